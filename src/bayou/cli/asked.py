"""What is asked of ``bayou learn``, and the model that it asks for."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from bayou.cli.errors import Failed
from bayou.encoders import SparseEncoder, TableEncoder
from bayou.estimators import Budget, TableModel
from bayou.streams.sources import WITHOUT_COLUMNS

OF_MODELS = ("task", "weight", "bits", "budget")
SETTINGS = (*OF_MODELS, "numeric", "categorical", "text", "time", "ignore", "interactions", "basis", "hashed")


@dataclass(frozen=True)
class Asked:
    """What was asked for."""

    source: str
    target: str | None
    model: str | None = None
    initial: str | None = None
    task: str = "auto"
    delay: int = 0
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    time: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    weight: str | None = None
    interactions: tuple[tuple[str, ...], ...] = ()
    basis: str | None = None
    bits: int = 18
    hashed: bool | None = None
    budget: float | None = None
    format: str | None = None
    header: tuple[str, ...] | None = None
    on_error: str = "stop"
    save_every: int | None = None
    resume: bool = False
    predictions: str | None = None
    test_only: bool = False
    json: bool = False
    quiet: bool = False

    def new_model(self, format: str) -> TableModel:
        """A model of these settings, for rows of this format."""
        budget = None if self.budget is None else Budget(microseconds=self.budget)
        if format in WITHOUT_COLUMNS:
            return TableModel(self.target or "label", self.task, self._sparse_encoder(format), None, self.bits, budget)
        if self.target is None:
            raise Failed("a new model needs a --target: a column, or a comparison as 'delay > 15'.")
        encoder = TableEncoder(
            numeric=self.numeric,
            categorical=self.categorical,
            text=self.text,
            time=self.time,
            ignore=self.ignore,
            interactions=self.interactions,  # type: ignore[arg-type]  # it says what is wrong with them
            basis=self.basis,
            hashed=self.hashed,
        )
        return TableModel(self.target, self.task, encoder, self.weight, self.bits, budget)

    def check_settings(self, model: TableModel, name: str) -> None:
        """Raise if a model that exists was made with other settings than are asked for."""
        for field in fields(self):
            wanted = getattr(self, field.name)
            if field.name not in SETTINGS or wanted == field.default:
                continue
            known = getattr(model if field.name in OF_MODELS else model.encoder, field.name, None)
            if field.name == "budget" and model.budget is not None:
                known = model.budget.microseconds
            if field.name == "interactions" and isinstance(model.encoder, SparseEncoder):
                wanted = tuple(namespaces(pair) for pair in wanted)
            if wanted != known:
                raise Failed(
                    f"{name} was made with other settings; --{field.name} must be as it was, {_told(known)}, or left "
                    f"out; got {_told(wanted)}."
                )

    def _sparse_encoder(self, format: str) -> SparseEncoder:
        for name in ("numeric", "categorical", "text", "time", "ignore", "weight", "basis"):
            if getattr(self, name):
                raise Failed(f"--{name} is for columns, of which {format} has none but the label.")
        return SparseEncoder(tuple(namespaces(pair) for pair in self.interactions), self.bits, self.hashed)


def _told(setting: Any) -> str:
    """A setting as it is written."""
    if isinstance(setting, tuple):
        setting = ",".join(",".join(part) if isinstance(part, tuple) else part for part in setting)
    return repr(setting) if setting not in (None, "") else "not set"


def namespaces(pair: tuple[str, ...]) -> tuple[str, str]:
    """Two namespaces, by how they begin: as a,b, or by a letter each, as Vowpal Wabbit has it."""
    if len(pair) == 1 and len(pair[0]) == 2:
        return pair[0][0], pair[0][1]
    if len(pair) != 2:
        raise Failed(f"-q takes two namespaces, as ab or a,b; got {','.join(pair)!r}.")
    return pair[0], pair[1]
