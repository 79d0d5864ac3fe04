"""Turns of events: each gets its number on the loop, its place in the queue of its model, and an answer once it is
written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from bayou.errors import BayouError
from bayou.service.committer import Committer, Entry
from bayou.service.errors import Busy
from bayou.service.lane import Job, Lane
from bayou.service.limits import MOST_FORECAST, MOST_QUEUED
from bayou.service.patience import be_patient
from bayou.service.served_model import Applied, ServedModel
from bayou.service.store import Batch, Store

LOG = logging.getLogger(__name__)


class Told(NamedTuple):
    """An answer, as JSON; what came of the event, unless it is a repetition."""

    answer: bytes
    applied: Applied | None


class Turns:
    """Made on the loop, and asked there; models whose events could not be written are told to ``lost``."""

    def __init__(self, store: Store, threads: int, lost: Callable[[set[int]], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.pool = ThreadPoolExecutor(threads, "bayou-lane", be_patient)
        self.committer = Committer(store, lost, self._tell)
        self.latest = store.last_seq()

    def next_seq(self) -> int:
        """The number of an event that comes now."""
        self.latest += 1
        return self.latest

    def queue(self, lane: Lane, job: Job) -> asyncio.Future[Told]:
        """Give an event its number and its place, at once: events are applied in the order of their numbers."""
        self.check_room(lane, job)
        future: asyncio.Future[Told] = self.loop.create_future()
        seq = self.next_seq() if job.event is not None and not job.seq else job.seq
        lane.add(job._replace(seq=seq, done=self.told(future), epoch=lane.epoch), self.pool.submit)
        return future

    def write(self, batch: Batch) -> asyncio.Future[Told]:
        """Write something that no model has to apply, after all that was handed in before."""
        future: asyncio.Future[Told] = self.loop.create_future()
        done = self.told(future)
        self.committer.put(Entry(batch, lambda error: done(Applied(0, []), b"", error), lambda: True))
        return future

    @staticmethod
    def check_room(lane: Lane, job: Job) -> None:
        """Raise if too much waits for a model."""
        count, most = (len(lane.queue), MOST_FORECAST) if job.is_small else (lane.waiting, MOST_QUEUED)
        if count >= most:
            raise Busy(f"at most {most} requests may wait for {lane.name!r}; try again later.")

    def told(self, future: asyncio.Future[Told]) -> Callable[[Applied | None, bytes, BaseException | None], None]:
        """What sets a future: on the loop, or from a thread where a thing has failed."""

        def done(applied: Applied | None, answer: bytes, error: BaseException | None) -> None:
            if applied is None:
                self.loop.call_soon_threadsafe(settle, future, Told(answer, applied), error)
            else:
                settle(future, Told(answer, applied), error)

        return done

    def _tell(self, done: list[Callable[[], None]]) -> None:
        """Of a group that was written, once for all."""
        self.loop.call_soon_threadsafe(_each, done)

    async def close(self) -> None:
        """Let everything that was begun come to its end."""
        await self.loop.run_in_executor(None, self.pool.shutdown)
        await self.loop.run_in_executor(None, self.committer.close)


def _each(done: list[Callable[[], None]]) -> None:
    """Tell everyone, also where telling one of them fails."""
    for one in done:
        try:
            one()
        except Exception:
            LOG.exception("an answer could not be given")


def nothing(served: ServedModel, applied: Applied) -> bytes:
    """Whoever asked makes the answer."""
    return b""


def nobody(applied: Applied | None, answer: bytes, error: BaseException | None) -> None:
    """Nobody waits, or the queue will say who does."""


def settle(future: asyncio.Future[Told], told: Told, error: BaseException | None) -> None:
    """Give whoever still waits an answer, or what went wrong."""
    if future.done():
        return
    if error is None:
        future.set_result(told)
    elif isinstance(error, BayouError | MemoryError):
        future.set_exception(error)
    else:
        future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
