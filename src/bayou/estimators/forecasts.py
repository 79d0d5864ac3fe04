"""Targets that come late: an example is forecast now, and learnt whenever its target is known.

A bank weighs its members by what they said when they were asked, and knows that weights may have walked since. Other
learners learn a late example as if it had come now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bayou.bank import Forecast
from bayou.calibration import Foreseen
from bayou.contracts import SparseRows
from bayou.errors import InvalidSpec, InvalidTarget, ModelFileError
from bayou.estimators.waiting_examples import as_bytes, example_of, plain, told_by
from bayou.likelihoods import Softmax
from bayou.mixed_classes import MixedClasses
from bayou.mixed_prediction import MixedPrediction

BY_BANK = ("past", "record", "shares")
NO_BYTES = np.zeros(0, np.uint8)
MOST_PENDING = 100_000  # forecasts that may wait for their targets


class Issued(NamedTuple):
    """A forecast: by its ``id`` the target is learnt later; ``said`` is what is known of it now.

    That is the probability of each class, or for numbers all that is predicted; None before anything was learnt.
    """

    id: int
    said: Any


class Pending(NamedTuple):
    """A forecast whose target has not come: the example as it was given, and what a bank said of it, in which units.

    ``calibrated`` is what a calibration made of it (see `bayou.Calibration`), if there was one. An example that came
    ``in_header`` of a file, as all did once, goes there again: what a file tells is compared with what is told of it.
    """

    example: Any
    forecast: Forecast | None
    units: tuple[float, float]
    calibrated: Foreseen | None = None
    in_header: bool = False


class Forecasts:
    """The forecasts of an estimator that wait for their targets."""

    def __init__(self) -> None:
        self.waiting: dict[int, Pending] = {}
        self.issued = 0

    def check_room(self, count: int) -> None:
        """Raise unless so many more may wait."""
        if len(self.waiting) + count > MOST_PENDING:
            raise InvalidSpec(
                f"at most {MOST_PENDING:,} forecasts may wait for their targets; `drop_forecast` those that get none."
            )

    def issue(self, pending: Pending) -> int:
        """Let one wait; returns its id."""
        self.check_room(1)
        self.issued += 1
        self.waiting[self.issued] = pending
        return self.issued

    def waits(self, id: int) -> Pending:
        """The one with this id."""
        pending = self.waiting.get(id)
        if pending is None:
            raise InvalidTarget(f"`id` must be that of a forecast that waits for its target; got {id!r}.")
        return pending

    def outdate(self) -> None:
        """Those that wait are learnt as if they came when their targets do: who said them is no more."""
        for id, pending in self.waiting.items():
            self.waiting[id] = pending._replace(forecast=None, calibrated=None)

    def to_config(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """As data: JSON, and arrays of the examples and of what banks said."""
        kept = [(id, pending) for id, pending in self.waiting.items()]
        examples = [pending.example for _, pending in kept if not pending.in_header]
        config = {
            "issued": self.issued,
            "waiting": [
                {
                    "id": id,
                    "is_sparse": isinstance(pending.example, SparseRows),
                    "units": list(pending.units),
                    "step": _step(pending),
                    "calibrated": pending.calibrated is not None,
                    **({"example": plain(pending.example)} if pending.in_header else {}),
                }
                for id, pending in kept
            ],
        }
        said = [pending.forecast for _, pending in kept if pending.forecast is not None]
        calibrated = [pending.calibrated for _, pending in kept if pending.calibrated is not None]
        arrays = {field: np.stack([getattr(one, field) for one in said]) for field in BY_BANK if said}
        arrays |= {"examples": as_bytes(examples)} if examples else {}
        foreseen = {name: [getattr(one, name) for one in calibrated] for name in Foreseen._fields if calibrated}
        return config, arrays | {f"calibrated.{name}": np.stack(values) for name, values in foreseen.items()}

    def load(self, config: dict[str, Any], arrays: Mapping[str, Any], likelihoods: list[Any]) -> None:
        """From data."""
        self.issued, place, calibrations = int(config["issued"]), 0, 0
        n_examples = sum("example" not in one for one in config["waiting"])
        told = iter(told_by(arrays.get("examples", NO_BYTES), n_examples) if n_examples else [])
        for one in config["waiting"]:
            forecast, calibrated = None, None
            if one.get("calibrated", False):
                # files of before do not say when: what waits in them counts for little
                foreseen = {
                    name: arrays[f"calibrated.{name}"][calibrations] for name in Foreseen._fields if name != "step"
                }
                given, said_then, *rest = foreseen.values()
                step = int(arrays["calibrated.step"][calibrations]) if "calibrated.step" in arrays else 0
                calibrated = Foreseen(float(given), float(said_then), step, *(array.copy() for array in rest))
                calibrations += 1
            if one["step"] is not None:
                past, record, shares = (arrays[field][place] for field in BY_BANK)
                if record.shape[1] != len(likelihoods) or shares.shape[1] != len(likelihoods):
                    raise ModelFileError(f"`pending.record` must be of {len(likelihoods)} members; got {record.shape}.")
                total = shares.sum(axis=0, keepdims=True)
                said: Any = MixedPrediction(likelihoods, record, total, single=True)
                if isinstance(likelihoods[0], Softmax):
                    said = MixedClasses(record, total, single=True)
                nothing = np.zeros((1, 0)), np.zeros((0, 0), dtype=np.bool_)
                forecast = Forecast(*nothing, past.copy(), record.copy(), shares.copy(), int(one["step"]), said)
                place += 1
            in_header = "example" in one
            example = example_of(one["example"] if in_header else next(told), bool(one.get("is_sparse", False)))
            units = one["units"][0], one["units"][1]
            self.waiting[int(one["id"])] = Pending(example, forecast, units, calibrated, in_header)


def _step(pending: Pending) -> int | None:
    return None if pending.forecast is None else pending.forecast.step
