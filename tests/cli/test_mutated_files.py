"""Files that went wrong at random: a command says in one line what is wrong, and harms no model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bayou import load
from tests.cli.made import QUICK, bayou, table

NAMES = ["t.csv", "t.jsonl", "t.vw", "t.libsvm"]
PIECES = [b",", b"\n", b'"', b"\x00", b"\xff\xfe", b"nan", b"inf", b"1e999", b"-", b"{", b"}", b"[", b"null", b":"]
PIECES += [b"9" * 400, b"\r", b"\x1f", b" ", b"2024-01-01", b"|", b"'", b"1e200", b"yes", b"perhaps", b"\xc3\xa9"]
SEEDS = [*range(40), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(40, 200))]


def mutated(text: bytes, dice: random.Random) -> bytes:
    """A file with one to four things done to it."""
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(text) + 1)
        size = dice.choice([1, 5, 50, 500])
        match dice.randrange(6):
            case 0:
                text = text[:at] + dice.choice(PIECES) + text[at:]
            case 1:
                text = text[:at] + text[at + size :]
            case 2:
                text = text[:at] + text[at : at + size] + text[at:]
            case 3:
                text = text[:at]
            case 4:
                text = text[:at] + bytes(dice.randrange(256) for _ in range(min(size, 8))) + text[at + size :]
            case _:
                word = dice.choice([b"yes", b"city", b"a", b"0.", b"label", b"1"])
                text = text.replace(word, dice.choice(PIECES), dice.choice([1, 3, 10_000]))
    return text


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    here = tmp_path_factory.mktemp("sources")
    made = table(150).drop("size")
    made.write_csv(here / "t.csv")
    made.write_ndjson(here / "t.jsonl")
    signs = {"yes": 1, "no": -1}
    rows = [(signs[label], a, b, city) for a, b, city, label in made.iter_rows()]
    (here / "t.vw").write_text("".join(f"{y} 1 'r|x a:{a} b:{b} |y city={city}\n" for y, a, b, city in rows))
    (here / "t.libsvm").write_text("".join(f"{y} 1:{a} 2:{b} {3 + ord(city)}:1\n" for y, a, b, city in rows))
    found = {}
    for name in NAMES:
        model = here / "model"
        model.unlink(missing_ok=True)
        result = bayou("learn", here / name, "--target", "label", "-f", model, *QUICK)
        assert result.exit_code == 0, result.output
        found |= {name: (here / name).read_bytes(), f"model of {name}": model.read_bytes()}
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_file_ends_in_a_traceback_or_harms_a_model(
    tmp_path: Path, sources: dict[str, bytes], name: str, seed: int
) -> None:
    source, model = tmp_path / name, tmp_path / "model"
    source.write_bytes(mutated(sources[name], random.Random(f"{name} {seed}")))
    for on_error, known in zip(("stop", "skip"), (seed % 2 == 0, seed % 2 == 1), strict=True):  # two of the four
        model.unlink(missing_ok=True)
        if known:
            model.write_bytes(sources[f"model of {name}"])
        words = ("learn", source, "--target", "label", "-f", model, "--on-error", on_error, "--quiet", *QUICK)
        result = bayou(*words)
        assert result.exit_code in (0, 1, 2), result.output
        if result.exit_code == 0:
            load(model)
        else:
            line = result.stderr.strip().splitlines()[-1]
            assert line.startswith("bayou: ")
            assert model.read_bytes() == sources[f"model of {name}"] if known else not model.exists()
        assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
