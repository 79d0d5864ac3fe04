"""Ask a server of bayou: ``Client("http://127.0.0.1:8000").model("clicks").predict([{"city": "Paris"}])``.

Nothing but the standard library is needed. A request that is cut off is sent again with the same key, and counts once.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Self
from urllib.parse import quote, urlsplit

from bayou.errors import BayouError

AGAIN = (503, 507)  # codes after which a request may be sent again
FIRST_WAIT, LONGEST_WAIT = 0.1, 3.0  # seconds before the first repetition, and, doubling, at most before another
TRIES = 10  # which take 15 seconds: as long as a server takes to begin again
TIMEOUT = 300.0  # seconds: a server that compiles its kernels answers late
IDLE = 3.0  # seconds after which a connection is not used again: the server lets go of it after 5


class ServerError(BayouError):
    """The server said no; ``status`` is the code that HTTP has for it, 0 if there was no answer."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True)
class Prediction:
    """Of classes, the most probable and the probability of each; of numbers, mean, deviation and interval of 90 %.
    Where intervals were asked for, ``low`` and ``high`` are those of the label's probability.

    By its ``id`` the label can be told later. All else is None where nothing was said: by a model that was made with
    its task and columns and has learnt nothing yet, and by `predict_learn` of rows without a target. A model that was
    made without them cannot be asked before it has learnt something: that is a `ServerError` of status 409.
    """

    id: str | None
    label: Any = None
    probabilities: Mapping[str, float] | None = None
    mean: float | None = None
    sd: float | None = None
    low: float | None = None
    high: float | None = None


class Predictions(list[Prediction]):
    """One per row; ``ignored_columns`` are those of the rows that the model does not know, as misspelt ones."""

    def __init__(self, each: Iterable[Prediction], ignored_columns: Iterable[str] = ()) -> None:
        super().__init__(each)
        self.ignored_columns = tuple(ignored_columns)


@dataclass(frozen=True)
class Learnt:
    """How many rows were learnt by a request, and in all; what was said of them before, if that was asked.

    ``ignored_columns`` are those of the rows that the model does not know, as misspelt ones; ``without_target`` counts
    rows that could not be learnt as they had none.
    """

    learnt: int
    examples: int
    predictions: tuple[Prediction, ...] = ()
    ignored_columns: tuple[str, ...] = ()
    without_target: int = 0


class Client:
    """A server, over one connection; for one thread at a time."""

    def __init__(self, url: str, token: str | None = None, timeout: float = TIMEOUT, tries: int = TRIES) -> None:
        self._connection = _connection(url, timeout)
        if token is not None and not _is_plain(token):
            raise BayouError("`token` must be printable letters without blanks; got others.")
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._tries = tries
        self._answered = 0.0  # when the last answer was

    def models(self) -> list[dict[str, Any]]:
        """All models of the server."""
        found: list[dict[str, Any]] = self.ask("GET", "/v1/models")["models"]
        return found

    def create(self, name: str, target: str, **settings: Any) -> Model:
        """Make a model; settings are those of `POST /v1/models`."""
        self.ask("POST", "/v1/models", {"name": name, "settings": {"target": target, **settings}})
        return Model(self, name)

    def model(self, name: str) -> Model:
        """A model that is there."""
        return Model(self, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """One request, again where that is safe: where it only asks, or has a key. Bytes go as they are."""
        headers = dict(self._headers)
        data = body if body is None or isinstance(body, bytes) else _json(body)
        if data is not None:
            headers["Content-Type"] = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        if key is not None:
            if not _is_plain(key):
                raise BayouError(f"`key` must be printable letters without blanks; got {key!r}.")
            headers["Idempotency-Key"] = key
        is_safe, wait = method == "GET" or key is not None, FIRST_WAIT
        for turn in range(self._tries):
            last = turn == self._tries - 1 or not is_safe
            try:
                answer, told = self._exchange(method, path, data, headers)
            except (OSError, HTTPException) as error:
                self._connection.close()
                if last:
                    raise ServerError(0, f"the server did not answer: {error}.") from error
            else:
                if answer.status < 300:
                    is_json = answer.headers.get_content_type() == "application/json"
                    return json.loads(told) if is_json else told
                if last or answer.status not in AGAIN:
                    raise ServerError(answer.status, _detail(told))
            time.sleep(wait)
            wait = min(2.0 * wait, LONGEST_WAIT)
        raise AssertionError("unreachable")

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[HTTPResponse, bytes]:
        """One request and its answer, over a connection that the server still has."""
        if time.monotonic() - self._answered > IDLE:
            self._connection.close()  # it opens again by itself
        cut: OSError | None = None
        try:
            self._connection.request(method, path, data, headers)
        except (BrokenPipeError, ConnectionResetError) as error:  # a server that refuses a body may not read it
            cut = error
        try:
            answer = self._connection.getresponse()
            told = answer.read()
        except (OSError, HTTPException) as error:
            raise cut or error from None
        if cut is not None:
            self._connection.close()
        self._answered = time.monotonic()
        return answer, told


class Model:
    """A model of a server."""

    def __init__(self, client: Client, name: str) -> None:
        self.name, self._client = name, client
        self._path = f"/v1/models/{quote(name, safe='')}"

    def learn(self, rows: Sequence[Mapping[str, Any]], key: str | None = None) -> Learnt:
        """Learn rows with their targets."""
        told = self._client.ask("POST", f"{self._path}:learn", {"instances": _rows(rows)}, key or _key())
        return _learnt(told)

    def predict(self, rows: Sequence[Mapping[str, Any]], issue_id: bool = True, intervals: bool = False) -> Predictions:
        """What is known of rows; with ids, by which labels come later; or, without, with intervals of probabilities."""
        body = {"instances": _rows(rows), "issue_id": issue_id, "intervals": intervals}
        told = self._client.ask("POST", f"{self._path}:predict", body)
        ids = told.get("ids") or [None] * len(told["predictions"])
        said = (Prediction(id, **(one or {})) for id, one in zip(ids, told["predictions"], strict=True))
        return Predictions(said, told.get("ignored_columns") or ())

    def predict_learn(self, rows: Sequence[Mapping[str, Any]], key: str | None = None) -> Learnt:
        """Predict rows, then learn them."""
        told = self._client.ask("POST", f"{self._path}:predict_learn", {"instances": _rows(rows)}, key or _key())
        return _learnt(told, tuple(Prediction(None, **(one or {})) for one in told["predictions"]))

    def feedback(self, id: str, label: Any) -> Learnt:
        """The label of a prediction."""
        return self.feedback_many([(id, label)])

    def feedback_many(self, labels: Iterable[tuple[str, Any]], key: str | None = None) -> Learnt:
        """Labels of predictions."""
        body = {"labels": [{"id": id, "label": label} for id, label in labels]}
        told = self._client.ask("POST", f"{self._path}:feedback", body, key or _key())
        return _learnt(told)

    def status(self) -> dict[str, Any]:
        """All that a page about the model shows."""
        told: dict[str, Any] = self._client.ask("GET", f"{self._path}/status")
        return told

    def keep_version(self, label: str | None = None) -> int:
        """Keep the model as it is now; returns the number of the version."""
        return int(self._client.ask("POST", f"{self._path}/versions", {"label": label})["version"])

    def roll_back(self, version: int) -> int:
        """Go on from an older version; returns the number of the new one."""
        return int(self._client.ask("POST", f"{self._path}:roll_back", {"version": version}, _key())["version"])

    def file(self) -> bytes:
        """The model as a file that `bayou.load` reads."""
        data: bytes = self._client.ask("GET", f"{self._path}/file")
        return data

    def delete(self) -> None:
        """Have the server forget it."""
        self._client.ask("DELETE", self._path)


def _connection(url: str, timeout: float) -> HTTPConnection:
    """Not opened yet."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
        if parts.scheme in ("http", "https") and host and not parts.path.strip("/"):
            return (HTTPSConnection if parts.scheme == "https" else HTTPConnection)(host, port, timeout=timeout)
    except (ValueError, HTTPException) as error:  # of a port, of brackets, of letters
        raise BayouError(f"`url` must be as http://127.0.0.1:8000; got {url!r}: {error}.") from None
    raise BayouError(f"`url` must be as http://127.0.0.1:8000; got {url!r}.")


def _is_plain(text: str) -> bool:
    """Whether a header can carry it."""
    return text.isascii() and text.isprintable() and " " not in text


def _rows(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if isinstance(rows, Mapping):
        raise BayouError("`rows` must be a list of rows; got one.")
    told = list(rows)
    for place, row in enumerate(told):
        if not isinstance(row, Mapping):
            raise BayouError(f"`rows` must be mappings of columns to values; row {place} is {type(row).__name__}.")
    return told


def _learnt(told: Mapping[str, Any], said: tuple[Prediction, ...] = ()) -> Learnt:
    ignored, without = tuple(told.get("ignored_columns") or ()), told.get("without_target") or 0
    return Learnt(told["learnt"], told["examples"], said, ignored, without)


def _json(body: Any) -> bytes:
    """As JSON: dates as text, scalars of NumPy as what they hold, and null for what is no number."""
    try:
        return json.dumps(body, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError):  # it has NaN, or what JSON has no word for
        pass
    try:
        return json.dumps(_without_nan(body), allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        where = _where(body["instances"]) if isinstance(body, Mapping) and "instances" in body else ""
        raise BayouError(f"{where or 'a request'} must hold what JSON can say; {error}.") from None


def _plain(value: Any) -> Any:
    """What JSON has no word for, in its types; found by what it can do, as NumPy and others need not be there."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "isoformat"):
        return value.isoformat() if value == value else None  # what is no time is not what it is
    if hasattr(value, "item") and not getattr(value, "shape", ()):
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if kind == "M":  # of which the item may be a bare number of nanoseconds
            return str(value) if value == value else None
        if kind != "m":
            return value.item()
    raise TypeError(f"got {type(value).__name__}")


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else _without_nan(_plain(value))


def _where(rows: Iterable[Mapping[str, Any]]) -> str:
    """The first value that cannot be sent."""
    for place, row in enumerate(rows):
        for name, value in row.items():
            try:
                json.dumps(_without_nan({name: value}), allow_nan=False)
            except (TypeError, ValueError, RecursionError):
                return f"row {place} in {str(name)[:40]!r}"
    return ""


def _key() -> str:
    return secrets.token_hex(16)


def _detail(told: bytes) -> str:
    try:
        return str(json.loads(told)["detail"])
    except (ValueError, KeyError, TypeError):
        return told.decode(errors="replace")[:200]
