"""What requests and answers look like. Rows are checked where they become tables; here is what they promise."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

from bayou.service.limits import LONGEST_NAME, LONGEST_VALUE, MOST_COLUMNS, MOST_ROWS
from bayou.service.settings import ModelName, Settings

VALUE = {
    "anyOf": [{"type": "null"}, {"type": "boolean"}, {"type": "number"}, {"type": "string", "maxLength": LONGEST_VALUE}]
}
ROW = {"type": "object", "additionalProperties": VALUE, "maxProperties": MOST_COLUMNS}
Row = Annotated[Any, WithJsonSchema(ROW)]
Value = Annotated[Any, WithJsonSchema(VALUE)]
Scalar = Annotated[
    Any,
    WithJsonSchema(
        {"anyOf": [{"type": "boolean"}, {"type": "number"}, {"type": "string", "maxLength": LONGEST_VALUE}]}
    ),
]
Rows = Annotated[list[Row], Field(min_length=1, max_length=MOST_ROWS)]
PredictionId = Annotated[str, StringConstraints(min_length=1, max_length=40)]


class Asked(BaseModel):
    """Nothing but what is known may be sent."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewModel(Asked):
    """A model to be made: settings say what it learns."""

    name: ModelName
    settings: Settings


class Predict(Asked):
    """Rows to predict. With ``issue_id`` each gets an id, and waits for its label. With ``intervals``, for rows without
    ids, it is told of two classes how sure the probability itself is.
    """

    instances: Rows
    issue_id: bool = True
    intervals: bool = False


class Learn(Asked):
    """Rows with their targets."""

    instances: Rows


class Labelled(Asked):
    """The label of a prediction."""

    id: PredictionId
    label: Scalar


class Feedback(Asked):
    """Labels, in the order in which they are learnt."""

    labels: Annotated[list[Labelled], Field(min_length=1, max_length=MOST_ROWS)]


class KeepVersion(Asked):
    """A version to be kept."""

    label: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None


class RollBack(Asked):
    """The version to go back to."""

    version: int = Field(ge=1, lt=2**53)


class Tensor(BaseModel):
    """A column, as the Open Inference Protocol has it: a value per row, null where it is missing."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
    shape: Annotated[list[Annotated[int, Field(ge=0, le=MOST_ROWS)]], Field(min_length=1, max_length=2)]
    datatype: Literal[
        "BOOL",
        "UINT8",
        "UINT16",
        "UINT32",
        "UINT64",
        "INT8",
        "INT16",
        "INT32",
        "INT64",
        "FP16",
        "FP32",
        "FP64",
        "BYTES",
    ]
    data: Annotated[list[Value], Field(min_length=1, max_length=MOST_ROWS)]


class Infer(BaseModel):
    """A prediction as the Open Inference Protocol asks for it: a tensor per column, all with as many rows."""

    id: Annotated[str, StringConstraints(max_length=LONGEST_NAME)] | None = None
    inputs: Annotated[list[Tensor], Field(min_length=1, max_length=MOST_COLUMNS)]


class TensorTold(BaseModel):
    """What is said of each row; of probabilities, ``parameters`` has the classes."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]
    parameters: dict[str, Any] | None = None


class Inferred(BaseModel):
    """What was said of rows."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[TensorTold]


class TensorAbout(BaseModel):
    """What a column is, or what will be said."""

    name: str
    datatype: str
    shape: list[int]


class About(BaseModel):
    """A model, as the Open Inference Protocol tells of it."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorAbout]
    outputs: list[TensorAbout]


class ServerAbout(BaseModel):
    """The server, as the Open Inference Protocol tells of it."""

    name: str
    version: str
    extensions: list[str]


class ModelReady(BaseModel):
    """Whether a model predicts."""

    name: str
    ready: bool


class Classified(BaseModel):
    """The most probable class, and the probability of each; where that was asked for, the interval that has the
    probability of the label with 90 %, given what is known so far.
    """

    label: bool | int | str
    probabilities: dict[str, float]
    low: float | None = None
    high: float | None = None


class Measured(BaseModel):
    """What is expected of a number, its deviation, null where tails are too heavy to have one, and the interval that
    has it with 90 %.
    """

    mean: float
    sd: float | None
    low: float
    high: float


class Predictions(BaseModel):
    """What was said of each row: null before anything was learnt."""

    predictions: list[Classified | Measured | None]
    ids: list[str] | None = None
    version: int
    ignored_columns: list[str] | None = None


class Learnt(BaseModel):
    """How many rows were learnt by the request, and in all."""

    learnt: int
    examples: int
    without_target: int | None = None
    ignored_columns: list[str] | None = None


class PredictedLearnt(Learnt):
    """The same, and what was said of each row before."""

    predictions: list[Classified | Measured | None]
    version: int


class Streamed(BaseModel):
    """How far a stream was learnt; ``error`` says at which line it stopped, and why."""

    learnt: int
    lines: int
    parts: int
    error: str | None = None


class Kept(BaseModel):
    """The version that is now the latest."""

    version: int
    kept: int


class VersionTold(BaseModel):
    """A version that is kept."""

    number: int
    at: float
    label: str | None
    rows: int
    size: int


class Versions(BaseModel):
    """Those that are kept, the latest first."""

    versions: list[VersionTold]


class ModelTold(BaseModel):
    """A model: what it was asked to be, and what it found."""

    name: str
    ready: bool
    created: float
    settings: Settings
    task: str
    examples: int
    version: int
    pending: int
    columns: dict[str, str]
    classes: list[bool | int | str]


class Models(BaseModel):
    """All of them."""

    models: list[ModelTold]


class Ready(BaseModel):
    """Whether requests are taken."""

    live: Literal[True] = True
    ready: bool


class Problem(BaseModel):
    """What is wrong, in a sentence."""

    detail: str
