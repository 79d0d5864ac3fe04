"""Ask a server of bayou: ``Client("http://127.0.0.1:8000").model("clicks").predict([{"city": "Paris"}])``.

Nothing but the standard library is needed. A request that is cut off is sent again with the same key, and counts once.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Self
from urllib.parse import quote, urlsplit

from bayou.errors import BayouError

AGAIN = (503, 507)  # codes after which a request may be sent again
WAIT = 0.1  # seconds before the first repetition, twice as long before each other


class ServerError(BayouError):
    """The server said no; ``status`` is the code that HTTP has for it, 0 if there was no answer."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True)
class Prediction:
    """Of classes, the most probable and the probability of each; of numbers, mean, deviation and interval of 90 %.
    Where intervals were asked for, ``low`` and ``high`` are those of the label's probability.

    By its ``id`` the label can be told later. All is None before the model has learnt anything.
    """

    id: str | None
    label: Any = None
    probabilities: Mapping[str, float] | None = None
    mean: float | None = None
    sd: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Learnt:
    """How many rows were learnt by a request, and in all; what was said of them before, if that was asked."""

    learnt: int
    examples: int
    predictions: tuple[Prediction, ...] = ()


class Client:
    """A server, over one connection; for one thread at a time."""

    def __init__(self, url: str, token: str | None = None, timeout: float = 60.0, tries: int = 5) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise BayouError(f"`url` must be as http://127.0.0.1:8000; got {url!r}.")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._tries = tries

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
        data = body if body is None or isinstance(body, bytes) else json.dumps(body, allow_nan=False).encode()
        if data is not None:
            headers["Content-Type"] = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        is_safe = method == "GET" or key is not None
        for turn in range(self._tries):
            last = turn == self._tries - 1 or not is_safe
            try:
                self._connection.request(method, path, data, headers)
                answer = self._connection.getresponse()
                told, status = answer.read(), answer.status
            except (OSError, HTTPException) as error:
                self._connection.close()
                if last:
                    raise ServerError(0, f"the server did not answer: {error}.") from error
            else:
                if status < 300:
                    is_json = answer.headers.get_content_type() == "application/json"
                    return json.loads(told) if is_json else told
                if last or status not in AGAIN:
                    raise ServerError(status, _detail(told))
            time.sleep(WAIT * 2**turn)
        raise AssertionError("unreachable")


class Model:
    """A model of a server."""

    def __init__(self, client: Client, name: str) -> None:
        self.name, self._client = name, client
        self._path = f"/v1/models/{quote(name, safe='')}"

    def learn(self, rows: Sequence[Mapping[str, Any]], key: str | None = None) -> Learnt:
        """Learn rows with their targets."""
        told = self._client.ask("POST", f"{self._path}:learn", {"instances": list(rows)}, key or _key())
        return Learnt(told["learnt"], told["examples"])

    def predict(
        self, rows: Sequence[Mapping[str, Any]], issue_id: bool = True, intervals: bool = False
    ) -> list[Prediction]:
        """What is known of rows; with ids, by which labels come later; or, without, with intervals of probabilities."""
        body = {"instances": list(rows), "issue_id": issue_id, "intervals": intervals}
        told = self._client.ask("POST", f"{self._path}:predict", body)
        ids = told.get("ids") or [None] * len(told["predictions"])
        return [Prediction(id, **(one or {})) for id, one in zip(ids, told["predictions"], strict=True)]

    def predict_learn(self, rows: Sequence[Mapping[str, Any]], key: str | None = None) -> Learnt:
        """Predict rows, then learn them."""
        told = self._client.ask("POST", f"{self._path}:predict_learn", {"instances": list(rows)}, key or _key())
        said = tuple(Prediction(None, **(one or {})) for one in told["predictions"])
        return Learnt(told["learnt"], told["examples"], said)

    def feedback(self, id: str, label: Any) -> Learnt:
        """The label of a prediction."""
        return self.feedback_many([(id, label)])

    def feedback_many(self, labels: Iterable[tuple[str, Any]], key: str | None = None) -> Learnt:
        """Labels of predictions."""
        body = {"labels": [{"id": id, "label": label} for id, label in labels]}
        told = self._client.ask("POST", f"{self._path}:feedback", body, key or _key())
        return Learnt(told["learnt"], told["examples"])

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


def _key() -> str:
    return secrets.token_hex(16)


def _detail(told: bytes) -> str:
    try:
        return str(json.loads(told)["detail"])
    except (ValueError, KeyError, TypeError):
        return told.decode(errors="replace")[:200]
