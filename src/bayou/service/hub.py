"""All models of a server: requests go in on the loop, in order, and answers come out once they are written."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import orjson

from bayou.errors import BayouError, ModelFileError
from bayou.service.committer import Committer, Entry
from bayou.service.errors import NOT_STORED, Busy, Conflict, NotFound, NotStored, Unusable
from bayou.service.events import FEEDBACK, ISSUE, LEARN, ROLL_BACK, Event, prediction_id
from bayou.service.lane import Job, Lane, restored
from bayou.service.limits import INLINE_ISSUED, INLINE_ROWS, MOST_KEYS, MOST_MODELS, MOST_QUEUED, MOST_VERSIONS
from bayou.service.rows import Row
from bayou.service.served_model import Applied, ServedModel
from bayou.service.settings import Settings
from bayou.service.status import status
from bayou.service.store import Batch, Store, Version

Answer = Callable[[ServedModel, Applied], bytes]
STATUS_EVERY = 0.4  # seconds


class Told(NamedTuple):
    """An answer, as JSON; what came of the event, unless it is a repetition."""

    answer: bytes
    applied: Applied | None


class Predicted(NamedTuple):
    """What was said of rows, their ids if they wait for labels, and columns that were not used."""

    predictions: list[Any]
    ids: list[str] | None
    ignored: list[str]
    version: int


class Hub:
    """Made on the loop, and asked there."""

    def __init__(self, store: Store, threads: int = 2) -> None:
        self.store, self.loop = store, asyncio.get_running_loop()
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="bayou-lane")
        self.committer = Committer(store, self._lost, self._tell)
        self.lanes: dict[str, Lane] = {}
        self._keys: dict[int, OrderedDict[str, bytes]] = {}
        self._asked: dict[tuple[int, str], tuple[bytes, asyncio.Future[Told]]] = {}
        self._offsets: dict[int, dict[str, int]] = {}
        self._reading: set[tuple[int, str]] = set()  # sources of which rows are on their way
        self._seq = store.last_seq()
        self._statuses: dict[str, tuple[float, asyncio.Future[dict[str, Any]]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.ready, self.watchers = False, 0

    async def start(self) -> None:
        """Take up all models as they were."""
        for known in self.store.models():
            settings = Settings.of(known.settings)
            served, _, size = await self.loop.run_in_executor(self.pool, restored, self.store, known.id, settings)
            self._seq = max(self._seq, served.seq)
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
        await self.loop.run_in_executor(None, self.pool.shutdown)
        await self.loop.run_in_executor(None, self.committer.close)
        self.store.close()

    # --- models

    def lane(self, name: str) -> Lane:
        """The model of this name."""
        found = self.lanes.get(name)
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
        if name in self.lanes:
            raise Conflict(f"there must be no model {name!r} yet; there is one.")
        if len(self.lanes) >= MOST_MODELS:
            raise Conflict(f"there must be at most {MOST_MODELS} models; delete one that is not used.")

    async def _begin(self, name: str, served: ServedModel) -> Lane:
        self._check_free(name)
        at, served.seq = time.time(), self._next_seq()
        state = served.to_bytes()
        first = Version(1, served.seq, at, None, served.model.n_rows, len(state))
        id = self.store.create(name, at, served.settings.model_dump(), first, state)
        lane = Lane(id, name, at, served, self.store, self.committer)
        self._enter(lane, len(state))
        return lane

    async def delete(self, name: str) -> None:
        """Forget a model, once what was begun with it has come to its end."""
        lane = self.lane(name)
        del self.lanes[name]
        self._statuses.pop(name, None)
        while lane.running:
            await asyncio.sleep(0.005)
        lane.deleted = True
        await self.loop.run_in_executor(None, self.store.delete, lane.id, self._seq)
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
    ) -> Told:
        """Learn rows. With a ``source``, its name and the offset of the first row, the next offset is written together
        with the rows; an offset that is not the next is refused, so that each row counts once.
        """
        lane = self.lane(name)
        if source is None:
            return await self._happen(lane, LEARN, {"rows": rows}, answer or _counted, key)
        where, at = source
        if (wanted := self._offsets[lane.id].get(where, 0)) != at or (lane.id, where) in self._reading:
            raise Conflict(f"the offset of {where!r} must be {wanted}, which comes next; got {at}, or again.")
        self._reading.add((lane.id, where))
        try:
            told = await self._happen(lane, LEARN, {"rows": rows}, answer or _counted, None, (where, at + len(rows)))
            self._offsets[lane.id][where] = at + len(rows)
        finally:
            self._reading.discard((lane.id, where))
        return told

    async def predict_learn(self, name: str, rows: Sequence[Row], key: str | None = None) -> Told:
        """Learn rows, and tell what was said of each before."""
        lane = self.lane(name)
        return await self._happen(lane, LEARN, {"rows": rows}, lambda served, done: _said(lane, served, done), key)

    def offset(self, name: str, source: str) -> int:
        """What comes next of a source."""
        return self._offsets[self.lane(name).id].get(source, 0)

    async def feedback(self, name: str, labels: Sequence[tuple[str, Any]], key: str | None = None) -> Told:
        """Learn labels of predictions, by their ids."""
        body = {"labels": [list(one) for one in labels]}
        return await self._happen(self.lane(name), FEEDBACK, body, _counted, key)

    async def look(self, name: str, at: Callable[[ServedModel], bytes]) -> bytes:
        """Ask a model something that takes long, or must see it whole, in its own thread; nothing changes."""
        return (await self._queue(self.lane(name), Job(0, None, _nothing, _nobody, look=at))).answer

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
            "at": time.time(),
            "seq": lane.served.seq,
            "version": lane.version,
            "rows_per_second": round(lane.rate.now(), 1),
            "queued": len(lane.queue),
            "state_bytes": lane.state_bytes,
            "sources": dict(self._offsets.get(lane.id, {})),
        }
        found: dict[str, Any] = mine | orjson.loads(told)
        return found

    async def keep_version(self, name: str, label: str | None) -> Told:
        """Keep the state as it is now."""
        lane = self.lane(name)
        return await self._queue(lane, Job(0, None, lambda served, _: _version(lane), _nobody, version=label))

    async def roll_back(self, name: str, number: int, key: str | None = None) -> Told:
        """Make the state of a version that of a new one."""
        lane = self.lane(name)
        if number not in {version.number for version in self.store.versions(lane.id)}:
            raise NotFound(f"there must be a version {number} of {name!r}; there is none.")
        label = f"back to {number}"
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
        offset: tuple[str, int] | None = None,
        **more: Any,
    ) -> Told:
        """Queue an event; a key that was answered before gets the same answer."""
        event = Event(kind, time.time(), body)
        if key is None:
            return await self._queue(lane, Job(0, event, answer, _nobody, offset=offset, **more))
        digest = hashlib.sha256(kind.encode() + orjson.dumps(body)).digest()
        known = self._keys[lane.id].get(key)
        asked = self._asked.get((lane.id, key))
        if known is not None or asked is not None:
            if (known or asked[0]) != digest:  # type: ignore[index]
                raise Unusable(f"the key {key!r} must come with the same request as before; got another.")
            if asked is not None:
                return (await asyncio.shield(asked[1]))._replace(applied=None)
            return Told(self._answered(lane, key), None)
        job = Job(0, event, answer, _nobody, (key, digest), offset, **more)
        future = self._queue(lane, job)
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
        if answer is None:
            raise Conflict(f"the key {key!r} was answered, and the answer is no longer kept.")
        return answer

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _queue(self, lane: Lane, job: Job) -> asyncio.Future[Told]:
        """Give an event its number and its place, at once: events are applied in the order of their numbers."""
        self._check_room(lane)
        future: asyncio.Future[Told] = self.loop.create_future()
        seq = self._next_seq() if job.event is not None and not job.seq else job.seq
        lane.add(job._replace(seq=seq, done=self._told(future), epoch=lane.epoch), self.pool.submit)
        return future

    @staticmethod
    def _check_room(lane: Lane) -> None:
        if len(lane.queue) >= MOST_QUEUED:
            raise Busy(f"at most {MOST_QUEUED} requests may wait for {lane.name!r}; try again later.")

    def _told(self, future: asyncio.Future[Told]) -> Callable[[Applied | None, bytes, BaseException | None], None]:
        """What sets a future: on the loop, or from a thread where a thing has failed."""

        def done(applied: Applied | None, answer: bytes, error: BaseException | None) -> None:
            if applied is None:
                self.loop.call_soon_threadsafe(_settle, future, Told(answer, applied), error)
            else:
                _settle(future, Told(answer, applied), error)

        return done

    def _tell(self, done: list[Callable[[], None]]) -> None:
        """Of a group that was written, once for all."""
        self.loop.call_soon_threadsafe(lambda: [each() for each in done])

    def _lost(self, models: set[int]) -> None:
        """A group could not be written: its models go back to what is written."""
        for lane in self.lanes.values():
            if lane.id in models:
                lane.give_up()
                self.pool.submit(lane.mend)

    # --- predictions

    async def predict(self, name: str, rows: Sequence[Row], issue: bool = True) -> Predicted:
        """What is known of rows; with ``issue``, they wait for their labels."""
        lane = self.lane(name)
        if lane.broken:
            raise NotStored(NOT_STORED)
        if lane.served.model.layout is None:
            raise Conflict(f"{name!r} must have learnt something before it predicts; it has not.")
        if len(rows) > INLINE_ISSUED:
            return await self._predicted(lane, rows, issue)
        future: asyncio.Future[Predicted] = self.loop.create_future()
        if not lane.asked[issue]:
            self.loop.call_soon(self._answer_together, lane, issue)
        lane.asked[issue].append((rows, future))
        return await future

    def _answer_together(self, lane: Lane, issue: bool) -> None:
        """Answer what was asked in this turn of the loop: many rows cost little more than one."""
        asked, lane.asked[issue] = lane.asked[issue], []
        most = INLINE_ISSUED if issue else INLINE_ROWS
        group: list[tuple[Sequence[Row], asyncio.Future[Predicted]]] = []
        count = 0
        for one in asked:
            if group and count + len(one[0]) > most:
                self._keep(self.loop.create_task(self._answer_group(lane, group, issue)))
                group, count = [], 0
            group.append(one)
            count += len(one[0])
        self._keep(self.loop.create_task(self._answer_group(lane, group, issue)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer_group(
        self, lane: Lane, group: list[tuple[Sequence[Row], asyncio.Future[Predicted]]], issue: bool
    ) -> None:
        try:
            found = await self._predicted(lane, [row for rows, _ in group for row in rows], issue)
        except BaseException as error:
            if len(group) > 1 and isinstance(error, BayouError):  # one of them is wrong
                for one in group:
                    await self._answer_group(lane, [one], issue)
                return
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
            return
        start = 0
        for rows, future in group:
            stop = start + len(rows)
            ids = None if found.ids is None else found.ids[start:stop]
            ignored = lane.served.ignored(rows) if found.ignored else []
            if not future.done():
                future.set_result(Predicted(found.predictions[start:stop], ids, ignored, found.version))
            start = stop

    async def _predicted(self, lane: Lane, rows: Sequence[Row], issue: bool) -> Predicted:
        if not issue:
            return await self._only_predicted(lane, rows)
        event = Event(ISSUE, time.time(), {"rows": rows})
        if lane.idle and len(rows) <= INLINE_ISSUED:
            return await self._issued_now(lane, event)
        if lane.idle or not lane.copy.model.begun:
            return await self._issued_in_turn(lane, event)
        return await self._issued_beforehand(lane, event)

    async def _issued_now(self, lane: Lane, event: Event) -> Predicted:
        seq, future, epoch = self._next_seq(), self.loop.create_future(), lane.epoch
        try:
            applied = lane.apply_now(Job(seq, event, _nothing, self._told(future), epoch=epoch))
        finally:
            if lane.broken:
                self.pool.submit(lane.mend)
        shown, version = lane.served.shown_each(applied.said or []), lane.version
        if lane.wants_version():
            lane.add(Job(0, None, _nothing, _nobody, epoch=epoch), self.pool.submit)
        await future
        return Predicted(shown, _ids(seq, len(shown)), applied.ignored, version)

    async def _issued_in_turn(self, lane: Lane, event: Event) -> Predicted:
        seq = self._next_seq()

        def answer(served: ServedModel, applied: Applied) -> bytes:
            return orjson.dumps(served.shown_each(applied.said or []))

        told = await self._queue(lane, Job(seq, event, answer, _nobody))
        assert told.applied is not None
        shown = orjson.loads(told.answer)
        return Predicted(shown, _ids(seq, len(shown)), told.applied.ignored, lane.version)

    async def _issued_beforehand(self, lane: Lane, event: Event) -> Predicted:
        """By what readers see; the event is written at once, and applied in its turn."""
        shown, ignored, version = await self._copied(lane, event.body["rows"])
        self._check_room(lane)
        seq, future, epoch = self._next_seq(), self.loop.create_future(), lane.epoch
        job = Job(seq, event, _nothing, _nobody, written=True, epoch=epoch)
        done, row = self._told(future), lane.row_of(job, 0)
        lane.count(row)
        entry = Entry(
            Batch(row, model=lane.id),
            lambda error: done(Applied(0, []), b"", error),
            lambda: lane.epoch == epoch and not lane.deleted,
        )
        self.committer.put(entry)
        lane.add(job, self.pool.submit)
        await future
        return Predicted(shown, _ids(seq, len(shown)), ignored, version)

    async def _only_predicted(self, lane: Lane, rows: Sequence[Row]) -> Predicted:
        if lane.idle and len(rows) <= INLINE_ROWS and lane.lock.acquire(blocking=False):
            try:
                served = lane.served
                return Predicted(served.predict(rows), None, served.ignored(rows), lane.version)
            finally:
                lane.lock.release()
        shown, ignored, version = await self._copied(lane, rows)
        return Predicted(shown, None, ignored, version)

    async def _copied(self, lane: Lane, rows: Sequence[Row]) -> tuple[list[Any], list[str], int]:
        """By the copy, in parts, so that others get their turn."""
        served, version, shown = lane.copy, lane.version, []
        for start in range(0, len(rows), INLINE_ROWS):
            if start:
                await asyncio.sleep(0)
            shown += served.predict(rows[start : start + INLINE_ROWS])
        return shown, served.ignored(rows), version


def imported(data: bytes) -> ServedModel:
    """A model of a file, with settings as the file has them; nothing waits for a label here."""
    try:
        served = ServedModel.of_bytes(None, data)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"the file is not of a model that can be served: {error!r:.100}.") from error
    served.pending.clear()
    if served.model.estimator is not None:
        served.model.estimator.forecasts.waiting.clear()
    return served


def _said(lane: Lane, served: ServedModel, applied: Applied) -> bytes:
    """What was said of rows before they were learnt; null of those without a target, and before anything was."""
    learnt = applied.learnt
    assert learnt is not None
    each = served.shown(learnt.said, applied.rows, learnt.classes)
    each = [None] * (applied.rows - len(each)) + each
    known = iter(each)
    predictions = [next(known) if is_known else None for is_known in learnt.known.tolist()]
    told = {"predictions": predictions, "version": lane.version}
    return orjson.dumps(told | orjson.loads(_counted(served, applied)))


def _ids(seq: int, count: int) -> list[str]:
    return [prediction_id(seq, place) for place in range(count)]


def _counted(served: ServedModel, applied: Applied) -> bytes:
    told: dict[str, Any] = {"learnt": applied.rows, "examples": served.model.n_rows}
    if applied.learnt is not None and (without := int((~applied.learnt.known).sum())):
        told["without_target"] = without
    if applied.ignored:
        told["ignored_columns"] = applied.ignored
    return orjson.dumps(told)


def _version(lane: Lane) -> bytes:
    return orjson.dumps({"version": lane.version, "kept": 2 * MOST_VERSIONS})


def _nothing(served: ServedModel, applied: Applied) -> bytes:
    return b""


def _nobody(applied: Applied | None, answer: bytes, error: BaseException | None) -> None:
    """Nobody waits, or the queue will say who does."""


def _settle(future: asyncio.Future[Told], told: Told, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(told)
    elif isinstance(error, BayouError | MemoryError):
        future.set_exception(error)
    else:
        future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
