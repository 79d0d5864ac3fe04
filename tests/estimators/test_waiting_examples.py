"""Examples that wait for their targets outlast files: of any kind, however long; forged ones are refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from bayou import Budget, Hashing, OnlineClassifier, OnlineRegressor, SparseRows, load, modelfile
from bayou.errors import BayouError, ModelFileError
from bayou.modelfile import from_bytes, to_bytes
from tests.test_modelfile import assemble, dissect, golden_module

GOLDEN = Path(__file__).parents[1] / "golden"
CHEAP = Budget(n_bytes=20_000.0)
NAME = "pending.examples"


def of_texts() -> tuple[OnlineClassifier, list[Any]]:
    model = OnlineClassifier(encoder=Hashing(bits=10, text=("words",)))
    for row in range(20):
        model.learn_one({"words": f"word {row}", "n": float(row)}, row % 3 == 0)
    odd = {"words": 'lines\nof "words", \ud83d\ude00 \ud800 漢字 \u2028', "n": math.nan, "yes": True}
    return model, [
        odd,
        {"words": None, "n": 7},
        {"n": np.float32(0.1), "spec": "x", "fields": "y"},
        {"n": np.array(0.5)},
        {},
    ]


def of_numbers_by_any_name() -> tuple[OnlineRegressor, list[Any]]:
    model = OnlineRegressor(budget=CHEAP)
    for row in range(20):
        model.learn_one({1: float(row), ("a", 2): row % 3, "tuple": 0.5}, float(row))
    return model, [{1: 3.0, ("a", 2): None}, {"tuple": -0.0}, {1: 2**60, "new": math.nan}]


def of_rows() -> tuple[OnlineRegressor, list[Any]]:
    rows = np.random.default_rng(0).normal(size=(30, 3))
    model = OnlineRegressor(budget=CHEAP).partial_fit(rows, rows[:, 0])
    return model, [rows[0], np.array([np.nan, -0.0, 1e-300]), rows[1:2]]


def of_sparse_rows() -> tuple[OnlineClassifier, list[Any]]:
    rows = scipy.sparse.random_array((40, 1200), density=0.01, rng=np.random.default_rng(1), format="csr")
    model = OnlineClassifier().partial_fit(rows, np.arange(40) % 2)
    ones = SparseRows(np.array([0, 3]), np.array([5, 7, 1199], np.int32), np.zeros(0), 1200)
    part = SparseRows(np.array([1, 3]), np.array([3, 2, 1, 0]), np.array([4, 3, 2, 1]), 1200)  # of a larger matrix
    return model, [ones, part, SparseRows(np.array([0, 1]), np.array([3], np.int32), np.array([0.25]), 1200)]


def of_nothing_yet() -> tuple[OnlineRegressor, list[Any]]:
    return OnlineRegressor(budget=CHEAP), [np.array([1.0, np.nan, 3.0])]


MADE: list[Callable[[], tuple[Any, list[Any]]]] = [
    of_texts,
    of_numbers_by_any_name,
    of_rows,
    of_sparse_rows,
    of_nothing_yet,
]


def header_of(data: bytes) -> int:
    return int.from_bytes(data[:8], "little")


@pytest.mark.parametrize("made", MADE)
def test_they_are_learnt_from_a_file_to_the_same_bits(made: Any) -> None:
    model, examples = made()
    issued = model.forecast_many(examples)
    again = from_bytes(to_bytes(model))
    assert to_bytes(again) == to_bytes(model)
    for one in (model, again):
        for place, each in enumerate(reversed(issued)):
            one.learn_late(each.id, place % 2)
    assert to_bytes(again) == to_bytes(model)
    assert not any(array["name"] == NAME for array in dissect(to_bytes(again))[0]["arrays"])  # none waits


@pytest.mark.parametrize("made", MADE)
def test_they_take_no_room_in_the_header(made: Any) -> None:
    model, examples = made()
    model.forecast_many(examples)
    few = header_of(to_bytes(model))
    model.forecast_many(examples * 50)
    assert header_of(to_bytes(model)) - few < 50 * len(examples) * 120


def test_long_texts_that_wait_can_be_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modelfile, "MAX_HEADER", 20_000)
    model, _ = of_texts()
    issued = model.forecast_many([{"words": "漢" * 1000, "n": float(n)} for n in range(30)])
    again = from_bytes(to_bytes(model))
    for one in (model, again):
        one.learn_late(issued[7].id, True)
    assert to_bytes(again) == to_bytes(model)


WRONG = [
    np.zeros((2, 3)),
    np.zeros((1, 1, 3)),
    np.array([1.0, np.inf, 0.0]),
    {"a": [1.0]},
    {"a": "text"},
    SparseRows(np.array([0, 1]), np.array([3]), np.array([1.0]), 3),
    SparseRows(np.array([0, 1]), np.array([0.5]), np.array([1.0]), 3),
    SparseRows(np.array([0, 1, 1]), np.array([0]), np.array([1.0]), 3),
]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_what_no_file_could_give_back_does_not_wait(wrong: Any) -> None:
    model = OnlineRegressor(budget=CHEAP)
    with pytest.raises(BayouError):
        model.forecast_many([np.zeros(3), wrong])
    assert model.forecasts.waiting == {}
    hashed = OnlineClassifier(encoder=Hashing(bits=10))
    with pytest.raises(BayouError):
        hashed.forecast_one({"a": [1.0]})
    assert hashed.forecast_one({"a": "text"}).id == 1


# --- files of before


@pytest.mark.parametrize("name", ["classifier-that-waits", "regressor-that-waits"])
def test_files_that_have_them_in_the_header_still_load(name: str) -> None:
    golden = golden_module()
    old, model = load(GOLDEN / f"{name}.bayou"), golden.MODELS[name]()
    golden._teach(model, 0, name)
    issued = model.forecast_many(golden.WAITING[name])
    assert "example" in dissect((GOLDEN / f"{name}.bayou").read_bytes())[0]["config"]["pending"]["waiting"][0]
    later = old.forecast_many(golden.WAITING[name])  # which are told as examples are now, beside the others
    model.forecast_many(golden.WAITING[name])
    again = from_bytes(to_bytes(old))
    labels = ["no", "yes", "yes"] if name.startswith("classifier") else [1.0, -1.0]
    for one in (old, again, model):
        for each, label in zip([*issued, *later], [*labels, *labels], strict=True):
            one.learn_late(each.id, label)
    assert to_bytes(again) == to_bytes(old)
    said, wanted = (golden.answers(one)["now"] for one in (old, model))
    for quantity in ("mean", "n_examples", "log_evidence"):  # may be computed better one day
        np.testing.assert_allclose(said[quantity], wanted[quantity], rtol=1e-5, atol=1e-5)


# --- forged ones


def forged(model: Any, told: bytes, dtype: str = "uint8", shape: list[int] | None = None) -> bytes:
    """The file of a model with other examples, whose checksum is right."""
    manifest, entries, data = dissect(to_bytes(model))
    described = next(array for array in manifest["arrays"] if array["name"] == NAME)
    begin, end = entries[NAME]["data_offsets"]
    assert end == len(data)  # the narrowest type comes last, but for truths
    described |= {"dtype": dtype, "shape": [len(told)] if shape is None else shape}
    entries[NAME] = {
        "dtype": modelfile.DTYPES[dtype],
        "shape": described["shape"],
        "data_offsets": [begin, begin + len(told)],
    }
    return assemble(manifest, entries, data[:begin] + told)


ROW, OTHER = b"[1.0,2.0,3.0]", b"[null,0.5,-0.25]"
FORGED: dict[str, tuple[bytes, str]] = {
    "no JSON": (ROW + b"\n[1.0,2.0", "JSON"),
    "no UTF-8": (ROW + b'\n{"a":"\xff"}', "JSON"),
    "UTF-16": ((ROW + b"\n" + OTHER).decode().encode("utf-16"), "JSON"),
    "nothing": (b"", "examples"),
    "one too few": (ROW, "2 examples"),
    "one too many": (b"\n".join([ROW, OTHER, ROW]), "2 examples"),
    "deep": (ROW + b"\n" + b"[" * 100_000 + b"]" * 100_000, "JSON"),
    "deep objects": (ROW + b"\n" + b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "JSON"),
    "many digits": (ROW + b"\n[" + b"9" * 5000 + b"]", "JSON"),
    "a text": (ROW + b'\n"row"', "example"),
    "a number": (ROW + b"\n1.0", "example"),
    "no value": (ROW + b"\nnull", "example"),
    "rows of text": (ROW + b'\n["1.0","2.0","3.0"]', "example"),
    "rows of truths": (ROW + b"\n[true,1.0,2.0]", "example"),
    "rows of whole numbers": (ROW + b"\n[1,2,3]", "example"),
    "rows in rows": (ROW + b"\n[[1.0,2.0,3.0]]", "example"),
    "a dict of lists": (ROW + b'\n{"a":[1.0]}', "example"),
    "a dict of specs": (ROW + b'\n{"a":{"spec":"Probit","fields":{"noise_scale":1.0}}}', "example"),
    "a spec": (ROW + b'\n{"spec":"Probit","fields":{"noise_scale":1.0}}', "example"),
    "a spec that is none": (ROW + b'\n{"spec":"Popen","fields":{}}', "one that this bayou has"),
    "code": (ROW + b'\n{"code":"os.system"}', "not its code"),
    "an array": (ROW + b'\n{"array":[1.0,2.0,3.0]}', "example"),
    "keys that cannot be": (ROW + b'\n{"dict":[[[],1.0]]}', "example"),
    "a float that is none": (ROW + b'\n[{"float":"x"},1.0,2.0]', "example"),
    "NaN": (ROW + b"\n[NaN,1.0,2.0]", "JSON"),
    "a number that overflows": (ROW + b"\n[1e999,1.0,2.0]", "JSON"),
    "a key twice": (ROW + b'\n{"a":1.0,"a":1.0}', "JSON"),
    "spaces": (ROW + b"\n[1.0, 2.0, 3.0]", "no use for"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_examples_are_refused(name: str) -> None:
    told, message = FORGED[name]
    model, _ = of_rows()
    model.forecast_many([np.array([1.0, 2.0, 3.0]), np.array([np.nan, 0.5, -0.25])])
    assert to_bytes(from_bytes(forged(model, ROW + b"\n" + OTHER))) == to_bytes(model)
    with pytest.raises(ModelFileError, match=message) as caught:
        from_bytes(forged(model, told))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(("dtype", "shape"), [("bool", [28]), ("uint8", [1, 28]), ("uint8", [28, 1])])
def test_examples_must_be_bytes(dtype: str, shape: list[int]) -> None:
    model, _ = of_rows()
    model.forecast_many([np.zeros(3), np.zeros(3)])
    told = b"\x01" * 28 if dtype == "bool" else b"[0.0,0.0,0.0]\n[0.0,0.0,0.0] "
    with pytest.raises(ModelFileError, match="must be bytes"):
        from_bytes(forged(model, told, dtype, shape))


@pytest.mark.parametrize(
    "told",
    [
        [[5, 7], [1.0, 2.0, 3.0], 1200],
        [[5, 1200], [1.0, 2.0], 1200],
        [[-1], [1.0], 1200],
        [[2**40], [1.0], 2**41],
        [[5.0], [1.0], 1200],
        [[5], ["x"], 1200],
        [[5], [1.0], "1200"],
        [[5], [1.0]],
        [1.0, 2.0],
        {"a": 1.0},
    ],
    ids=repr,
)
def test_forged_sparse_rows_are_refused(told: Any) -> None:
    model, examples = of_sparse_rows()
    model.forecast_many(examples[:1])
    with pytest.raises(ModelFileError, match="example"):
        from_bytes(forged(model, json.dumps(told, separators=(",", ":")).encode()))


def test_an_example_must_be_told() -> None:
    model, examples = of_rows()
    model.forecast_many(examples)
    manifest, entries, data = dissect(to_bytes(model))
    manifest["arrays"] = [array for array in manifest["arrays"] if array["name"] != NAME]
    begin, _ = entries.pop(NAME)["data_offsets"]
    with pytest.raises(ModelFileError, match="3 examples"):
        from_bytes(assemble(manifest, entries, data[:begin]))
