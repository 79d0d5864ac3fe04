"""All models of a server: requests go in on the loop, in order, and answers come out once they are written."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from bayou.errors import BayouError, ModelFileError
from bayou.service.errors import Conflict, NotFound, Refused, TooLarge, Unread, Unusable
from bayou.service.events import FEEDBACK, ISSUE, LEARN, ROLL_BACK, Event, as_json
from bayou.service.lane import Job, Lane, restored
from bayou.service.limits import INLINE_ROWS, MOST_KEYS, MOST_MODELS, MOST_VERSIONS
from bayou.service.predictions import Predicted, Predictions
from bayou.service.rows import Row
from bayou.service.served_model import Applied, ServedModel
from bayou.service.settings import Settings
from bayou.service.status import status
from bayou.service.store import ASKED, BACK, Batch, Position, Store, Version
from bayou.service.turns import Told, Turns, nobody, nothing

LOG = logging.getLogger(__name__)
Answer = Callable[[ServedModel, Applied], bytes]
STATUS_EVERY, PATIENCE = 0.4, 1.0  # seconds
MOST_EXAMPLES = 2**53  # of a model that is taken in
SAY = "predict_learn"  # the same event as learning, with another answer


class Hub:
    """Made on the loop, and asked there."""

    def __init__(self, store: Store, threads: int = 2) -> None:
        self.store, self._turns = store, Turns(store, threads, self._lost)
        self._predictions = Predictions(self._turns)
        self.loop, self.pool, self.committer = self._turns.loop, self._turns.pool, self._turns.committer
        self.lanes: dict[str, Lane] = {}
        self._unread: dict[str, tuple[int, str]] = {}  # models of the file that could not be read back, and why
        self._leaving: set[str] = set()  # names of models that are being deleted
        self._keys: dict[int, OrderedDict[str, bytes]] = {}
        self._asked: dict[tuple[int, str], tuple[bytes, asyncio.Future[Told]]] = {}
        self._offsets: dict[int, dict[str, Position]] = {}
        self._reading: set[tuple[int, str]] = set()  # sources of which rows are on their way
        self._statuses: dict[str, tuple[float, asyncio.Future[dict[str, Any]]]] = {}
        self._latest: dict[str, dict[str, Any]] = {}
        self.ready, self.watchers = False, 0
        self.following: dict[str, list[Callable[[], dict[str, Any]]]] = {}  # what followers tell, by model

    async def start(self) -> None:
        """Take up all models as they were."""
        for known in self.store.models():
            settings = Settings.of(known.settings)
            try:
                served, _, size = await self.loop.run_in_executor(self.pool, restored, self.store, known.id, settings)
            except Exception as error:  # the others are served, and what is in the file stays
                LOG.error("%s could not be read back: %r", known.name, error)
                self._unread[known.name] = known.id, f"{type(error).__name__}: {error}"
                continue
            self._turns.latest = max(self._turns.latest, served.seq)
            self._enter(Lane(known.id, known.name, known.at, served, self.store, self.committer), size)
        self.ready = True

    def _enter(self, lane: Lane, size: int) -> None:
        lane._size = size
        self.lanes[lane.name] = lane
        self._keys[lane.id] = OrderedDict(self.store.keys(lane.id)[-MOST_KEYS:])
        self._offsets[lane.id] = self.store.offsets(lane.id)

    async def close(self) -> None:
        """Let everything that was begun come to its end, and the file go."""
        self.ready = False
        await self._turns.close()
        self.store.close()

    # --- models

    @property
    def names(self) -> set[str]:
        """Of all models of the store, also those that could not be read back."""
        return {*self.lanes, *self._unread}

    def lane(self, name: str) -> Lane:
        """The model of this name."""
        found = self.lanes.get(name)
        if found is None and name in self._unread:
            raise Unread(f"the model {name!r} is in the store, and could not be read back: {self._unread[name][1]}.")
        if found is None:
            raise NotFound(f"there must be a model {name!r}; there is none.")
        return found

    async def create(self, name: str, settings: Settings) -> Lane:
        """Begin a model that has learnt nothing."""
        self._check_free(name)
        return await self._begin(name, await self.loop.run_in_executor(self.pool, ServedModel, settings))

    async def take_in(self, name: str, data: bytes) -> Lane:
        """Begin a model from a model file."""
        self._check_free(name)
        return await self._begin(name, await self.loop.run_in_executor(self.pool, imported, data))

    def _check_free(self, name: str) -> None:
        if name in self.names or name in self._leaving:
            raise Conflict(f"there must be no model {name!r} yet; there is one.")
        if len(self.lanes) >= MOST_MODELS:
            raise Conflict(f"there must be at most {MOST_MODELS} models; delete one that is not used.")

    async def _begin(self, name: str, served: ServedModel) -> Lane:
        self._check_free(name)
        at, served.seq = time.time(), self._turns.next_seq()
        state = served.to_bytes()
        first = Version(1, served.seq, at, None, served.model.n_rows, len(state))
        id = self.store.create(name, at, served.settings.model_dump(), first, state)
        self.committer.look_at_log()
        lane = Lane(id, name, at, served, self.store, self.committer)
        self._enter(lane, len(state))
        return lane

    async def delete(self, name: str) -> None:
        """Forget a model, once what was begun with it has come to its end."""
        if name in self._unread:
            await self._turns.write(Batch(model=self._unread[name][0], forgotten_at=self._turns.latest))
            del self._unread[name]
            return
        lane = self.lanes.pop(self.lane(name).name)
        self._leaving.add(name)
        self._statuses.pop(name, None)
        self._latest.pop(name, None)
        try:
            while lane.running:
                await asyncio.sleep(0.005)
            lane.deleted = True  # what comes now is refused; what came before is written first, and goes, too
            await self._turns.write(Batch(model=lane.id, forgotten_at=self._turns.latest))
        except Refused:  # it stays, as it is written
            lane.deleted = False
            self.lanes[name] = lane
            lane.give_up()
            self.pool.submit(lane.mend)
            raise
        finally:
            self._leaving.discard(name)
        self._keys.pop(lane.id, None)
        self._offsets.pop(lane.id, None)
        await self.loop.run_in_executor(None, self.store.shrink)

    # --- what happens to them

    async def learn(
        self,
        name: str,
        rows: Sequence[Row],
        answer: Answer | None = None,
        key: str | None = None,
        source: tuple[str, int] | None = None,
        place: str | None = None,
    ) -> Told:
        """Learn rows. With a ``source``, its name and the offset of the first row, the next offset is written together
        with the rows, and so is the ``place`` after them, in whatever words the source has for it; an offset that is
        not the next is refused, so that each row counts once.
        """
        lane = self.lane(name)
        if source is None:
            return await self._happen(lane, LEARN, {"rows": rows}, answer or _counted, key)
        where, at = source
        if (wanted := self.position(name, where).next) != at or (lane.id, where) in self._reading:
            raise Conflict(f"the offset of {where!r} must be {wanted}, which comes next; got {at}, or again.")
        self._reading.add((lane.id, where))
        after = Position(at + len(rows), place)
        try:
            told = await self._happen(lane, LEARN, {"rows": rows}, answer or _counted, None, (where, after))
            self._offsets[lane.id][where] = after
        finally:
            self._reading.discard((lane.id, where))
        return told

    async def predict_learn(self, name: str, rows: Sequence[Row], key: str | None = None) -> Told:
        """Learn rows, and tell what was said of each before."""
        lane, body = self.lane(name), {"rows": rows}
        return await self._happen(lane, LEARN, body, lambda served, done: _said(lane, served, done), key, verb=SAY)

    def offset(self, name: str, source: str) -> int:
        """What comes next of a source."""
        return self.position(name, source).next

    def position(self, name: str, source: str) -> Position:
        """How far a source was read."""
        return self._offsets[self.lane(name).id].get(source, Position())

    async def feedback(self, name: str, labels: Sequence[tuple[str, Any]], key: str | None = None) -> Told:
        """Learn labels of predictions, by their ids."""
        body = {"labels": [list(one) for one in labels]}
        return await self._happen(self.lane(name), FEEDBACK, body, _counted, key)

    async def look(self, name: str, at: Callable[[ServedModel], bytes]) -> bytes:
        """Ask a model something that takes long, or must see it whole, in its own thread; nothing changes."""
        return (await self._turns.queue(self.lane(name), Job(0, None, nothing, nobody, look=at))).answer

    async def status(self, name: str) -> dict[str, Any]:
        """All that a page shows; whoever asks within half a second is told the same."""
        at, known = self._statuses.get(name, (0.0, None))
        if known is None or (known.done() and time.monotonic() - at > STATUS_EVERY):
            known = asyncio.ensure_future(self._status(self.lane(name)))
            self._statuses[name] = time.monotonic(), known
        return await asyncio.shield(known)

    async def _status(self, lane: Lane) -> dict[str, Any]:
        told = await self.look(lane.name, lambda served: orjson.dumps(status(served)))
        mine = {
            "name": lane.name,
            "created": lane.created,
            "at": time.time(),
            "seq": lane.served.seq,
            "version": lane.version,
            "rows_per_second": round(lane.rate.now(), 1),
            "queued": len(lane.queue),
            "state_bytes": lane.state_bytes,
            "sources": {name: at.next for name, at in self._offsets.get(lane.id, {}).items()},
            "following": [tell() for tell in self.following.get(lane.name, [])],
        }
        found: dict[str, Any] = mine | orjson.loads(told)
        self._latest[lane.name] = found
        return found

    async def latest_status(self, name: str) -> dict[str, Any] | None:
        """The same, or what was told last where a model is busy for longer than whoever asks will wait."""
        try:
            return await asyncio.wait_for(self.status(name), PATIENCE)
        except Exception:  # one model that cannot be told does not keep others from it
            return self._latest.get(name)

    async def keep_version(self, name: str, label: str | None) -> Told:
        """Keep the state as it is now."""
        lane = self.lane(name)
        asked = Job(0, None, lambda served, _: _version(lane), nobody, version=label or ASKED)
        return await self._turns.queue(lane, asked)

    async def roll_back(self, name: str, number: int, key: str | None = None) -> Told:
        """Make the state of a version that of a new one."""
        lane = self.lane(name)
        if number not in {version.number for version in self.store.versions(lane.id)}:
            raise NotFound(f"there must be a version {number} of {name!r}; there is none.")
        label = f"{BACK}{number}"
        return await self._happen(
            lane, ROLL_BACK, {"to": number}, lambda served, _: _version(lane), key, back_to=number, version=label
        )

    async def _happen(
        self,
        lane: Lane,
        kind: str,
        body: dict[str, Any],
        answer: Answer,
        key: str | None = None,
        offset: tuple[str, Position] | None = None,
        verb: str | None = None,
        **more: Any,
    ) -> Told:
        """Queue an event; a key that was answered before gets the same answer, if the same was asked by this verb."""
        if key is None:
            event = Event(kind, time.time(), body)
            return await self._turns.queue(lane, Job(0, event, answer, nobody, offset=offset, **more))
        is_long = len(body.get("rows", ())) > INLINE_ROWS
        digest = await asyncio.to_thread(_digest, verb or kind, body) if is_long else _digest(verb or kind, body)
        if self.lane(lane.name) is not lane:
            raise Conflict(f"{lane.name!r} was deleted and made again meanwhile.")
        event = Event(kind, time.time(), body)
        known = self._keys[lane.id].get(key)
        asked = self._asked.get((lane.id, key))
        if known is not None or asked is not None:
            if (known or asked[0]) != digest:  # type: ignore[index]
                raise Unusable(f"the key {key!r} must come with the same request as before; got another.")
            if asked is not None:
                return (await asyncio.shield(asked[1]))._replace(applied=None)
            return Told(self._answered(lane, key), None)
        job = Job(0, event, answer, nobody, (key, digest), offset, **more)
        future = self._turns.queue(lane, job)
        self._asked[lane.id, key] = digest, future
        future.add_done_callback(lambda done: self._learnt_key(lane, key, digest, done))
        return await asyncio.shield(future)

    def _learnt_key(self, lane: Lane, key: str, digest: bytes, done: asyncio.Future[Told]) -> None:
        self._asked.pop((lane.id, key), None)
        if done.cancelled() or done.exception() is not None or lane.id not in self._keys:
            return
        keys = self._keys[lane.id]
        keys[key] = digest
        while len(keys) > MOST_KEYS:
            keys.popitem(last=False)

    def _answered(self, lane: Lane, key: str) -> bytes:
        answer = self.store.answer(lane.id, key)
        if not answer:
            raise Conflict(f"the key {key!r} was answered, and the answer is no longer kept.")
        return answer

    async def predict(self, name: str, rows: Sequence[Row], issue: bool = True) -> Predicted:
        """What is known of rows; with ``issue``, they wait for their labels."""
        return await self._predictions.predict(self.lane(name), rows, issue)

    def _lost(self, models: set[int]) -> None:
        """A group could not be written: its models go back to what is written."""
        for lane in list(self.lanes.values()):  # the loop may add one meanwhile
            if lane.id in models:
                lane.give_up()
                self.pool.submit(lane.mend)


def _digest(verb: str, body: dict[str, Any]) -> bytes:
    """Tells requests with the same key apart."""
    return hashlib.sha256(verb.encode() + as_json(body)).digest()


def imported(data: bytes) -> ServedModel:
    """A model of a file, with settings as the file has them; nothing waits for a label here."""
    try:
        served = ServedModel.of_bytes(None, data)
    except MemoryError:
        raise TooLarge("the model of the file must fit into memory; it does not.") from None
    except BayouError:  # which says what is wrong
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"the file is not of a model that can be served: {error!r:.100}.") from error
    if not (0 <= served.model.n_rows < MOST_EXAMPLES):
        raise ModelFileError(
            f"a model must have learnt fewer than {MOST_EXAMPLES:,} rows; got {served.model.n_rows:,}."
        )
    served.pending.clear()
    if served.model.estimator is not None:
        served.model.estimator.forecasts.waiting.clear()
    _try(served.to_bytes())
    return served


def _try(data: bytes) -> None:
    """Raise unless a copy of a model says what it will be asked: a file may hold what no model comes to by learning."""
    try:
        served = ServedModel.of_bytes(None, data)
        orjson.dumps([status(served), served.predict([{}])])
        if served.model.begun:
            served.apply(served.seq + 1, Event(ISSUE, time.time(), {"rows": [{}]}))
            served.to_bytes()
    except (ArithmeticError, AttributeError, BayouError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"the model of the file cannot be asked: {error!r:.100}.") from error


def _said(lane: Lane, served: ServedModel, applied: Applied) -> bytes:
    """What was said of rows before they were learnt; null of those without a target, and before anything was."""
    learnt = applied.learnt
    assert learnt is not None
    each = served.shown(learnt.said, applied.rows, learnt.classes)
    each = [None] * (applied.rows - len(each)) + each
    if applied.knew_nothing:
        each[:1] = [None]
    known = iter(each)
    predictions = [next(known) if is_known else None for is_known in learnt.known.tolist()]
    told = {"predictions": predictions, "version": lane.version}
    return orjson.dumps(told | orjson.loads(_counted(served, applied)))


def _counted(served: ServedModel, applied: Applied) -> bytes:
    told: dict[str, Any] = {"learnt": applied.rows, "examples": served.model.n_rows}
    if applied.learnt is not None and (without := int((~applied.learnt.known).sum())):
        told["without_target"] = without
    if applied.ignored:
        told["ignored_columns"] = applied.ignored
    return orjson.dumps(told)


def _version(lane: Lane) -> bytes:
    return orjson.dumps({"version": lane.version, "kept": 2 * MOST_VERSIONS})
