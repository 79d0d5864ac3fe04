"""The hash against a definition of its own in whole numbers; what it gave once, it gives for ever; how it spreads."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from bayou.numerics import hashing
from bayou.numerics.hashing import wrapping

M64 = 2**64 - 1
GOLDEN = {
    (b"", 0): 0x0000000000000000,
    (b"", 1): 0xB456BCFC34C2CB2C,
    (b"bayou", 0): 0xA5289604B4631A3A,
    (b"bayou", 1): 0x3151955E198E55A8,
    (b"a", 0): 0xCEB5A05A7A92499D,
    (b"abcdefgh", 0): 0x6C412A5F9D1D06BA,
    (b"abcdefghi", 0): 0xE191145BEB714770,
    ("Überlingen".encode(), 0): 0x66B896D49C6093CA,
    (b"twelve bytes", 7): 0x8344C86452BEB0FC,
    (b"a string of more than sixteen bytes", M64): 0x75C5F62DB2A142BD,
}


def mix(h: int) -> int:
    h ^= h >> 33
    h = h * 0xFF51AFD7ED558CCD & M64
    h ^= h >> 33
    h = h * 0xC4CEB9FE1A85EC53 & M64
    return h ^ (h >> 33)


def reference(data: bytes, seed: int = 0) -> int:
    h = seed ^ (len(data) * 0x9E3779B97F4A7C15 & M64)
    for i in range(0, len(data), 8):
        h = (h ^ int.from_bytes(data[i : i + 8], "little")) * 0xD6E8FEB86659FD93 & M64
        h ^= h >> 32
    return mix(h)


def strings(seed: int = 0) -> list[bytes]:
    """Three of every length from 0 to 40."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, n, dtype=np.uint8).tobytes() for n in range(41) for _ in range(3)]


def views(items: list[bytes], buffers: list[bytearray]) -> np.ndarray:
    """As Arrow lays them out; each long string goes to the next buffer in turn."""
    whole = b""
    for n, item in enumerate(items):
        if len(item) <= 12:
            whole += struct.pack("<i12s", len(item), item)
        else:
            buffer = n % len(buffers)
            whole += struct.pack("<i4sii", len(item), item[:4], buffer, len(buffers[buffer]))
            buffers[buffer] += item
    return np.frombuffer(whole, np.uint64)


@pytest.mark.parametrize(("given", "wanted"), GOLDEN.items())
def test_golden_values(given: tuple[bytes, int], wanted: int) -> None:
    assert hashing.hash_bytes(*given) == wanted


@pytest.mark.parametrize("seed", [0, 1, M64, 0x0123456789ABCDEF])
def test_strings_of_every_length_agree_with_the_definition(seed: int) -> None:
    for item in strings():
        assert hashing.hash_bytes(item, seed) == reference(item, seed)


def test_a_run_is_hashed_wherever_it_lies() -> None:
    data = np.random.default_rng(1).integers(0, 256, 60, dtype=np.uint8)
    with wrapping():
        for begin in range(60):
            for length in range(min(20, 61 - begin)):
                wanted = reference(data[begin : begin + length].tobytes(), 9)
                assert int(hashing.hash_run(data, begin, length, np.uint64(9))) == wanted


@pytest.mark.parametrize("offset_type", [np.int32, np.int64])
def test_strings_with_offsets(offset_type: type) -> None:
    items, missing = strings(), np.uint64(77)
    offsets = np.cumsum([0, *map(len, items)]).astype(offset_type)
    data = np.frombuffer(b"".join(items), np.uint8)
    present = np.random.default_rng(0).random(len(items)) < 0.8
    keys = np.zeros((len(items), 3), np.uint64)
    valid = np.packbits(present, bitorder="little")
    with wrapping():
        hashing.hash_offsets(offsets, data, valid, 5, len(items) - 5, np.uint64(3), missing, keys, 5, 1)
        hashing.hash_offsets(offsets, data, valid[:0], 0, 5, np.uint64(3), missing, keys, 0, 1)
    wanted = [reference(item, 3) if n < 5 or present[n] else 77 for n, item in enumerate(items)]
    assert keys[:, 1].tolist() == wanted
    assert not keys[:, [0, 2]].any()


@pytest.mark.parametrize("n_buffers", [1, 2, 5])
def test_string_views(n_buffers: int) -> None:
    items, buffers = strings(), [bytearray() for _ in range(n_buffers)]
    laid_out = views(items, buffers)
    present = np.random.default_rng(0).random(len(items)) < 0.8
    valid = np.packbits(present, bitorder="little")
    keys = np.zeros((len(items), 1), np.uint64)
    buffer, visited = 0, []
    with wrapping():
        while buffer >= 0:
            visited.append(buffer)
            data = np.frombuffer(buffers[buffer], np.uint8)
            buffer = hashing.hash_views(
                laid_out, data, buffer, valid, 0, len(items), np.uint64(3), np.uint64(77), keys, 0, 0
            )
    assert keys[:, 0].tolist() == [reference(item, 3) if present[n] else 77 for n, item in enumerate(items)]
    assert visited == list(range(n_buffers))


def test_whole_numbers_are_hashed_as_their_decimal_text() -> None:
    values = [0, 7, 10, 99_999_999, 100_000_000, 10**15, 10**16, -1, -12_345_678, 2**63 - 1, -(2**63)]
    values += np.random.default_rng(0).integers(-(2**63), 2**63, 50).tolist()
    keys = np.zeros((len(values), 1), np.uint64)
    none = np.zeros(0, np.uint8)
    with wrapping():
        hashing.hash_integers(np.array(values), none, 0, len(values), np.uint64(3), np.uint64(0), keys, 0, 0)
    assert keys[:, 0].tolist() == [reference(str(value).encode(), 3) for value in values]
    large = np.array([2**64 - 1, 2**63, 5], np.uint64)
    with wrapping():
        hashing.hash_integers(large, none, 0, 3, np.uint64(3), np.uint64(0), keys, 0, 0)
    assert keys[:3, 0].tolist() == [reference(str(int(value)).encode(), 3) for value in large]


def test_joined_strings() -> None:
    items = [item.replace(b"\x1f", b"-") for item in strings()]
    seeds = np.random.default_rng(0).integers(0, 2**64, len(items), dtype=np.uint64)
    keys = np.zeros(len(items), np.uint64)
    with wrapping():
        for some in (items, items[::-1], items[:1], items[:2]):
            data = b"\x1f".join(some) + b"\x1f" * 8
            assert hashing.hash_joined(np.frombuffer(data, np.uint8), seeds[: len(some)], keys)
            wanted = [reference(item, int(seed)) for item, seed in zip(some, seeds, strict=False)]
            assert keys[: len(some)].tolist() == wanted
        for bad in (b"\x1f", b"a\x1fb", b"a long string with \x1f in it", b"\x1f" * 9):
            for some in ([bad], [bad, b"x"], [b"x", bad], [b"x" * 20, bad, b""]):
                data = b"\x1f".join(some) + b"\x1f" * 8
                assert not hashing.hash_joined(np.frombuffer(data, np.uint8), seeds[: len(some)], keys)


def test_two_hashes_become_one_in_any_order() -> None:
    pairs = np.random.default_rng(0).integers(0, 2**64, (50, 2), dtype=np.uint64)
    with wrapping():
        for a, b in pairs:
            assert int(hashing.combine(a, b)) == int(hashing.combine(b, a)) == mix(int(a) + int(b) & M64)


@pytest.mark.parametrize(
    "spelt", ["{}", "{:08x}", "user-{}", "{:020d}", "https://example.org/items/{}/view"], ids=lambda spelt: spelt
)
@pytest.mark.parametrize("shift", [54, 32, 0], ids=["top bits", "middle bits", "lowest bits"])
def test_names_that_count_upwards_spread_evenly(spelt: str, shift: int) -> None:
    """Chi-square of 1,024 cells: mean 1,023, standard error sqrt(2 * 1,023) = 45; within four of these."""
    items = [spelt.format(i).encode() for i in range(20_480)]
    offsets, data = np.cumsum([0, *map(len, items)]), np.frombuffer(b"".join(items), np.uint8)
    if hashing.COMPILED:
        keys = np.zeros((len(items), 1), np.uint64)
        hashing.hash_offsets(
            offsets, data, data[:0], 0, len(items), np.uint64(reference(b"name")), np.uint64(0), keys, 0, 0
        )
    else:  # a quarter of a million steps of plain Python are not what is tested here
        keys = np.array([[reference(item, reference(b"name"))] for item in items], np.uint64)
    counts = np.bincount((keys[:, 0] >> np.uint64(shift)).astype(np.int64) & 1023, minlength=1024)
    expected = len(items) / 1024
    chi_square = np.sum((counts - expected) ** 2) / expected
    assert abs(chi_square - 1023.0) < 4.0 * 45.2


def test_a_changed_bit_changes_half_of_the_hash() -> None:
    """Each of the 64 bits flips with probability 1/2: over 96 flips of 50 strings, standard error 0.5 / sqrt(4,800)."""
    rng = np.random.default_rng(0)
    flips = np.zeros(64)
    for _ in range(50):
        item = rng.integers(0, 256, 12, dtype=np.uint8)
        before = reference(item.tobytes())
        for bit in range(96):
            changed = item.copy()
            changed[bit // 8] ^= np.uint8(1 << bit % 8)
            difference = hashing.hash_bytes(changed.tobytes()) ^ before
            flips += [difference >> i & 1 for i in range(64)]
    assert np.all(np.abs(flips / 4800 - 0.5) < 5.0 * 0.5 / np.sqrt(4800))
