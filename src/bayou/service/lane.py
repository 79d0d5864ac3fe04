"""The way of one model: what happens to it is applied in order by one thread at a time, and read by the loop.

The loop gives each event its number. A thread of the pool applies it and hands it to the committer; the answer goes out
once it is written. Readers ask the live model while nothing is applied, and else the copy that was published last.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from bayou.errors import BayouError
from bayou.estimators.forecasts import Forecasts
from bayou.service.committer import Committer, Entry
from bayou.service.errors import NOT_STORED, HalfDone, NotStored, Refused
from bayou.service.events import ISSUE, Event
from bayou.service.limits import INLINE_ISSUED, MOST_JOURNAL
from bayou.service.rate import Rate
from bayou.service.served_model import Applied, ServedModel
from bayou.service.store import Answered, Batch, Journalled, Position, Store, Version

PUBLISH_EVERY = 0.05  # seconds at least, while events keep coming
PUBLISH_SHARE = 0.1  # of the time, at most
LEAST_ROWS, MOST_REPLAYED = 256, 100_000  # rows of the journal, and examples in them, between versions
LOG = logging.getLogger(__name__)
Result = TypeVar("Result")
Done = Callable[["Applied | None", "bytes", "BaseException | None"], None]


class Job(NamedTuple):
    """An event on its way: ``answer`` makes the answer of what came of it, ``done`` is called once it is written.

    ``written`` is of those that were written beforehand. Without an event, a version alone is to be made; or ``look``
    is asked, with nothing else going on meanwhile, and nothing written.
    """

    seq: int
    event: Event | None
    answer: Callable[[ServedModel, Applied], bytes]
    done: Done
    key: tuple[str, bytes] | None = None
    offset: tuple[str, Position] | None = None
    version: str | None = None
    back_to: int | None = None
    written: bool = False
    epoch: int = 0  # of the lane, when it came
    look: Callable[[ServedModel], bytes] | None = None

    @property
    def rows(self) -> int:
        """How many are to be predicted; of other events none."""
        return len(self.event.body["rows"]) if self.event is not None and self.event.kind == ISSUE else 0

    @property
    def is_small(self) -> bool:
        """Whether it takes next to no time."""
        return 0 < self.rows <= INLINE_ISSUED


class Lane:
    """A model of the hub, with what waits for it."""

    def __init__(self, id: int, name: str, at: float, served: ServedModel, store: Store, committer: Committer) -> None:
        self.id, self.name, self.created = id, name, at
        self.served, self._store, self._committer = served, store, committer
        self.lock = threading.Lock()  # of the live model
        self.queue: deque[Job] = deque()
        self.waiting = 0  # of the queue, those that are not small
        self.asked: dict[bool, list[Any]] = {False: [], True: []}  # predictions that are made together, next
        self.running = self.deleted = False
        self.epoch = 0  # grows when what was applied could not be written: whoever came before is refused
        self.broken = False
        self.version = max((version.number for version in store.versions(id)), default=0)
        self.rate = Rate()
        self._since = store.journal_size(id)
        self._size = 0
        self._guard = threading.Lock()  # of `running`
        self._copied, self._cost = 0.0, 0.0
        self.copy = self._copy_of(served)
        self._fresh = True

    # --- asked by the loop

    @property
    def idle(self) -> bool:
        """Whether nothing is applied or waits."""
        return not (self.running or self.queue or self.broken)

    @property
    def state_bytes(self) -> int:
        """Of the latest version."""
        return self._size

    def add(self, job: Job, start: Callable[[Callable[[], None]], Any]) -> None:
        """Let something happen after all that waits; who only looks goes first."""
        with self._guard:
            if job.look is None:
                self.queue.append(job)
            else:
                self.queue.appendleft(job)
            self.waiting += not job.is_small
            if self.running:
                return
            self.running = True
        start(self.work)

    def apply_now(self, job: Job) -> Applied:
        """Let a small thing happen at once, where nothing waits."""
        assert job.event is not None
        with self.lock:
            self._check_epoch(job)
            applied = self._applied(job)
            self._put(job, applied, self._committer.put_small)
            self._fresh = False
        return applied

    def wants_version(self) -> bool:
        """Whether the journal has become longer than is good."""
        count, rows, size = self._since
        is_long = rows > MOST_REPLAYED or (count > LEAST_ROWS and size > max(self._size, 2**20))
        return is_long or size > max(4 * self._size, MOST_JOURNAL)

    # --- applied by a thread

    def work(self) -> None:
        """Apply what waits, in order. Readers, who saw the live model until now, see a copy of it meanwhile."""
        with self.lock, suppress(Exception):  # there is always an older copy
            self._publish()
        while True:
            if self.broken:
                self.mend()
            with self._guard:
                if not self.queue:
                    self.running = False
                    return
                jobs = self._next_jobs()
            try:
                self._do_written(jobs) if len(jobs) > 1 else self._do(jobs[0])
            except BaseException as error:
                for job in jobs:
                    job.done(None, b"", error)

    def _next_jobs(self) -> list[Job]:
        """The next that waits; of predictions that were written beforehand, some that follow each other."""
        jobs, rows = [self.queue.popleft()], 0
        while jobs[-1].written and self.queue and self.queue[0].written:
            rows += self.queue[0].rows
            if rows > INLINE_ISSUED:
                break
            jobs.append(self.queue.popleft())
        self.waiting -= sum(not job.is_small for job in jobs)
        return jobs

    def _do_written(self, jobs: list[Job]) -> None:
        """Apply predictions that were written beforehand together, or where one of them cannot be, each by itself."""
        try:
            with self.lock:
                for job in jobs:
                    self._check_epoch(job)
                self._guarded(lambda: self.served.issue_all([(job.seq, job.event) for job in jobs if job.event]))
                self._note_applied()
        except BayouError:
            for job in jobs:
                with suppress(NotStored):
                    self._do(job)
        self._shorten_journal(jobs[-1].epoch)

    def _do(self, job: Job) -> None:
        with self.lock:
            if job.look is not None:
                job.done(None, job.look(self.served), None)
                return
            self._check_epoch(job)
            if job.event is None:
                self._put_version(job)
                return
            try:
                applied = self._applied(job)
            except BayouError:
                if job.written:  # the journal has it, and whoever replays it finds the same
                    self.served.seq = job.seq
                    return
                raise
            self._note_applied()
            if not job.written:
                self._put(job, applied)
            self.rate.add(applied.rows)
        if job.back_to is None:
            self._shorten_journal(job.epoch)

    def _shorten_journal(self, epoch: int) -> None:
        """Make a version where the journal has become long."""
        if self.wants_version():
            with self.lock, suppress(Exception):  # the journal is kept, and so nothing is lost
                self._put_version(Job(0, None, _nothing, _nobody, epoch=epoch))

    def _note_applied(self) -> None:
        """Let readers see it, unless they have seen what is nearly the same a moment ago."""
        self._fresh = False
        if time.monotonic() - self._copied > max(PUBLISH_EVERY, self._cost / PUBLISH_SHARE):
            self._publish()

    def _check_epoch(self, job: Job) -> None:
        if self.broken or job.epoch != self.epoch:
            raise NotStored(NOT_STORED)

    def _applied(self, job: Job) -> Applied:
        event = job.event
        assert event is not None
        return self._guarded(
            lambda: self._roll_back(job) if job.back_to is not None else self.served.apply(job.seq, event)
        )

    def _guarded(self, apply: Callable[[], Result]) -> Result:
        """Apply something; where it is not known what of it was, nothing counts that is not written."""
        try:
            return apply()
        except HalfDone as error:
            self.give_up()
            raise error.why from error
        except BayouError:
            raise
        except BaseException:  # a defect: what was applied is not known
            self.give_up()
            raise

    def _roll_back(self, job: Job) -> Applied:
        assert job.back_to is not None
        state = self._store.state(self.id, job.back_to)
        if state is None:
            raise Refused(f"there must be a version {job.back_to}; it was given up meanwhile.")
        self.served = self.served.rolled_back(state)
        self.served.seq = job.seq
        return Applied(0, [])

    def row_of(self, job: Job, rows: int) -> Journalled:
        """As the journal has it."""
        assert job.event is not None
        return Journalled(job.seq, self.id, job.event.kind, job.event.at, rows, job.event.to_bytes())

    def _put(self, job: Job, applied: Applied, put: Callable[[Entry], None] | None = None) -> None:
        """Have what was applied written."""
        try:
            self._put_row(job, applied, self._committer.put if put is None else put)
        except BaseException:  # it was applied, and nobody will write it
            self.give_up()
            raise

    def _put_row(self, job: Job, applied: Applied, put: Callable[[Entry], None]) -> None:
        row = self.row_of(job, applied.rows)
        version = self._new_version(job.version) if job.back_to is not None else None
        answer = job.answer(self.served, applied)
        told = None if job.key is None else Answered(*job.key, answer)
        self.count(row, answer if told is not None else b"")
        done, epoch = job.done, job.epoch
        put(
            Entry(
                Batch(row, told, job.offset, version, self.id),
                lambda error: done(applied, answer, error),
                lambda: self.epoch == epoch and not self.deleted,
            )
        )

    def count(self, row: Journalled, kept: bytes = b"") -> None:
        """Of what a start would have to replay, and an answer that is kept: both are cut by a version."""
        count, rows, size = self._since
        self._since = count + 1, rows + row.rows, size + len(row.body) + len(kept)

    def _new_version(self, label: str | None) -> tuple[Version, bytes]:
        """What the journal is given up for: hence it is read back before."""
        state = self.served.to_bytes()
        ServedModel.of_bytes(self.served.settings, state)
        self._since = (0, 0, 0)
        self.version += 1
        self._size = len(state)
        told = Version(self.version, self.served.seq, time.time(), label, self.served.model.n_rows, len(state))
        return told, state

    def _put_version(self, job: Job) -> None:
        version = self._new_version(job.version)
        done, epoch = job.done, job.epoch
        answer = job.answer(self.served, Applied(0, []))
        self._committer.put(
            Entry(
                Batch(version=version, model=self.id),
                lambda error: done(Applied(0, []), answer, error),
                lambda: self.epoch == epoch and not self.deleted,
            )
        )

    # --- what readers see

    def _publish(self) -> None:
        """Let readers see what is there by now; whoever calls has the lock."""
        if self._fresh:
            return
        started = time.monotonic()
        self.copy, self._fresh = self._copy_of(self.served), True
        self._copied = time.monotonic()
        self._cost = self._copied - started

    @staticmethod
    def _copy_of(served: ServedModel) -> ServedModel:
        """To be read only: without what waits, and sharing what never changes."""
        model, estimator = served.model, served.model.estimator
        memo: dict[int, Any] = {}
        shared: Any
        for shared in (model.encoder, model.extra, model.target):
            memo[id(shared)] = shared
        if estimator is not None:
            memo[id(estimator.forecasts)] = Forecasts()
            bank = getattr(estimator, "_learner_", None)
            for name in ("members", "plan", "snapshots", "_kernels", "_params"):
                shared = getattr(bank, name, None)
                memo[id(shared)] = shared
            choice = getattr(estimator, "_choice", None)
            memo[id(choice)] = choice
        mine = copy.copy(served)
        mine.model = copy.deepcopy(model, memo)
        return mine

    # --- when the disk takes nothing

    def give_up(self) -> None:
        """What was applied since the last commit was not written: what is there no longer counts."""
        self.broken = True  # first: whoever reads the new epoch finds this
        self.epoch += 1

    def _reload(self) -> None:
        """Back to what is written. What still waits is of an older epoch, and refused in its turn."""
        self._committer.settle()  # who was found valid before the lane gave up is written by now
        self.served, self.version, self._size = restored(self._store, self.id, self.served.settings)
        self._since, self.broken, self._fresh = self._store.journal_size(self.id), False, False

    def mend(self) -> None:
        """Reload, if that is to be done; where that fails, it is tried again after the next job."""
        with self.lock:
            try:
                if self.broken:
                    self._reload()
                self._publish()
            except Exception as error:
                LOG.error(
                    "%s could not be read back, and refuses what comes: %s: %s", self.name, type(error).__name__, error
                )


def restored(store: Store, id: int, settings: Any) -> tuple[ServedModel, int, int]:
    """A model as the store knows it: its latest version, and what happened since; that version, and its size."""
    latest = store.versions(id)[0]
    state = store.state(id, latest.number)
    assert state is not None
    served = ServedModel.of_bytes(settings, state)
    served.seq = latest.seq
    while rows := store.journal(id, served.seq):
        for row in rows:
            replay(served, row)
    return served, latest.number, latest.size


def replay(served: ServedModel, row: Journalled) -> None:
    """Let what the journal tells happen again."""
    try:
        served.apply(row.seq, Event.of(row.kind, row.at, row.body))
    except BayouError:  # as it did when it came, written before it was applied
        served.seq = row.seq
    except Exception:
        if row.kind != ISSUE:  # all else was applied before it was written
            raise
        served.seq = row.seq


def _nothing(served: ServedModel, applied: Applied) -> bytes:
    return b""


def _nobody(applied: Applied | None, answer: bytes, error: BaseException | None) -> None:
    """Nobody waits."""
