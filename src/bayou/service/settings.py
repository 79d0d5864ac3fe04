"""What a model of the service is asked to be."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from bayou.encoders import TableEncoder
from bayou.errors import ModelFileError
from bayou.estimators import Budget, TableModel
from bayou.estimators.table_target import parsed
from bayou.service.limits import LABEL_WAIT, LONGEST_NAME, MODEL_NAME, MOST_COLUMNS, MOST_PENDING
from bayou.service.rows import table_of

ModelName = Annotated[str, StringConstraints(pattern=f"^{MODEL_NAME.pattern}$")]
Column = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
Kind = Literal["number", "category", "text", "date"]
Label = bool | int | str


class Settings(BaseModel):
    """With ``columns``, all of them, the model begins at once; without, by its first rows."""

    model_config = ConfigDict(extra="forbid", strict=True)

    target: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME, strip_whitespace=True)]
    task: Literal["auto", "binary", "multiclass", "regression", "count"] = "auto"
    columns: dict[Column, Kind] | None = Field(None, min_length=1, max_length=MOST_COLUMNS)
    classes: list[Label] | None = Field(None, min_length=2, max_length=1000)
    ignore: list[Column] = Field([], max_length=MOST_COLUMNS)
    weight: Column | None = None
    bits: int = Field(18, ge=10, le=24)
    hashed: bool | None = None
    budget: float | None = Field(None, gt=0.0, le=10_000.0, description="microseconds per row that learning may take")
    label_wait: float = Field(LABEL_WAIT, gt=0.0, le=366 * 86_400.0, description="seconds")
    most_pending: int = Field(1000, ge=1, le=MOST_PENDING)

    @model_validator(mode="after")
    def _check(self) -> Self:
        target = parsed(self.target)
        if self.classes is not None:
            self._check_classes(self.classes)
        if target.comparison is not None and self.task not in ("auto", "binary"):
            raise ValueError(f"the target {self.target!r} has two outcomes, so `task` must be binary; got {self.task}.")
        if self.columns is not None and (self.weight in self.columns or target.column in self.columns):
            raise ValueError("`columns` must be the inputs, without the target and the weight.")
        if self.weight is not None and self.weight == target.column:
            raise ValueError(f"`weight` must be another column than that of the target; got {self.weight!r}.")
        if target.column in self.ignore or self.weight in self.ignore:
            raise ValueError("`ignore` must leave the target and the weight; both are needed.")
        return self

    def _check_classes(self, classes: list[Label]) -> None:
        if self.task not in ("binary", "multiclass"):
            raise ValueError("`classes` are for the tasks binary and multiclass; say which.")
        if len(set(map(type, classes))) > 1 or len(set(classes)) < len(classes):
            raise ValueError(f"`classes` must be of one kind, each once; got {classes[:12]}.")
        if self.task == "binary" and len(classes) != 2:
            raise ValueError(f"`classes` must be two where the task is binary; got {len(classes)}.")

    def new_model(self) -> TableModel:
        """A model that has learnt nothing."""
        kinds: dict[str, list[str]] = {"number": [], "category": [], "text": [], "date": []}
        for name, kind in (self.columns or {}).items():
            kinds[kind].append(name)
        encoder = TableEncoder(
            numeric=tuple(kinds["number"]),
            categorical=tuple(kinds["category"]),
            text=tuple(kinds["text"]),
            time=tuple(kinds["date"]),
            hashed=self.hashed,
        )
        budget = None if self.budget is None else Budget(self.budget)
        model = TableModel(self.target, self.task, encoder, self.weight, self.bits, budget)
        if self.columns is not None and self.task != "auto":
            target = parsed(self.target)
            others = {target.column: "category" if isinstance(target.value, str) else "number"}
            model.begin(table_of([], self.columns | others | ({self.weight: "number"} if self.weight else {})))
        return model

    @classmethod
    def of(cls, data: Any) -> Settings:
        """From JSON's types, as the store keeps them."""
        return cls.model_validate(data)

    @classmethod
    def of_model(cls, model: TableModel) -> Settings:
        """As far as a model file tells them."""
        budget = model.budget
        told = {"target": model.target.text, "task": model.task, "weight": model.weight, "bits": model.bits}
        try:
            return cls.model_validate(told | {"budget": None if budget is None else budget.microseconds})
        except ValidationError as error:
            raise ModelFileError(f"the settings of the model cannot be served: {error.errors()[0]['msg']}.") from error
