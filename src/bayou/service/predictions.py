"""What is said of rows: together where many are asked at once, by a copy where the model is learning."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from bayou.errors import BayouError
from bayou.service.committer import Entry
from bayou.service.errors import NOT_STORED, Conflict, NotStored
from bayou.service.events import ISSUE, Event, prediction_id
from bayou.service.lane import Job, Lane
from bayou.service.limits import INLINE_ISSUED, INLINE_ROWS, MOST_QUEUED
from bayou.service.rows import Row
from bayou.service.served_model import Applied, ServedModel
from bayou.service.store import Batch
from bayou.service.turns import Turns, nobody, nothing


class Predicted(NamedTuple):
    """What was said of rows, their ids if they wait for labels, and columns that were not used."""

    predictions: list[Any]
    ids: list[str] | None
    ignored: list[str]
    version: int


class Predictions:
    """Asked on the loop."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._tasks: set[asyncio.Task[None]] = set()

    async def predict(self, lane: Lane, rows: Sequence[Row], issue: bool = True) -> Predicted:
        """What is known of rows; with ``issue``, they wait for their labels."""
        if lane.broken:
            self._turns.pool.submit(lane.mend)
            raise NotStored(NOT_STORED)
        if lane.served.model.layout is None:
            raise Conflict(f"{lane.name!r} must have learnt something before it predicts; it has not.")
        if len(rows) > INLINE_ISSUED:
            return await self._predicted(lane, rows, issue)
        future: asyncio.Future[Predicted] = self._turns.loop.create_future()
        if not lane.asked[issue]:
            self._turns.loop.call_soon(self._answer_together, lane, issue)
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
                self._keep(self._turns.loop.create_task(self._answer_group(lane, group, issue)))
                group, count = [], 0
            group.append(one)
            count += len(one[0])
        self._keep(self._turns.loop.create_task(self._answer_group(lane, group, issue)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer_group(
        self, lane: Lane, group: list[tuple[Sequence[Row], asyncio.Future[Predicted]]], issue: bool
    ) -> None:
        try:
            found = await self._predicted(lane, [row for rows, _ in group for row in rows], issue)
        except BaseException as error:
            if len(group) > 1 and isinstance(error, BayouError) and not isinstance(error, NotStored):  # one is wrong
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
        if lane.idle or not lane.copy.model.begun or len(lane.queue) > MOST_QUEUED:
            return await self._issued_in_turn(lane, event)
        return await self._issued_beforehand(lane, event)

    async def _issued_now(self, lane: Lane, event: Event) -> Predicted:
        seq, future, epoch = self._turns.next_seq(), self._turns.loop.create_future(), lane.epoch
        try:
            applied = lane.apply_now(Job(seq, event, nothing, self._turns.told(future), epoch=epoch))
        finally:
            if lane.broken:
                self._turns.pool.submit(lane.mend)
        shown, version = lane.served.shown_each(applied.said or []), lane.version
        if lane.wants_version():
            lane.add(Job(0, None, nothing, nobody, epoch=epoch), self._turns.pool.submit)
        await future
        return Predicted(shown, _ids(seq, len(shown)), applied.ignored, version)

    async def _issued_in_turn(self, lane: Lane, event: Event) -> Predicted:
        seq = self._turns.next_seq()

        def answer(served: ServedModel, applied: Applied) -> bytes:
            return orjson.dumps(served.shown_each(applied.said or []))

        told = await self._turns.queue(lane, Job(seq, event, answer, nobody))
        assert told.applied is not None
        shown = orjson.loads(told.answer)
        return Predicted(shown, _ids(seq, len(shown)), told.applied.ignored, lane.version)

    async def _issued_beforehand(self, lane: Lane, event: Event) -> Predicted:
        """By what readers see; the event is written at once, and applied in its turn."""
        shown, ignored, version = await self._copied(lane, event.body["rows"])
        epoch = lane.epoch  # before it is asked whether that is over
        if lane.broken:
            raise NotStored(NOT_STORED)
        job = Job(0, event, nothing, nobody, written=True, epoch=epoch)
        self._turns.check_room(lane, job)
        seq, future = self._turns.next_seq(), self._turns.loop.create_future()
        job = job._replace(seq=seq)
        done, row = self._turns.told(future), lane.row_of(job, 0)
        lane.count(row)
        entry = Entry(
            Batch(row, model=lane.id),
            lambda error: done(Applied(0, []), b"", error),
            lambda: lane.epoch == epoch and not lane.deleted,
        )
        self._turns.committer.put_small(entry)
        lane.add(job, self._turns.pool.submit)
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


def _ids(seq: int, count: int) -> list[str]:
    return [prediction_id(seq, place) for place in range(count)]
