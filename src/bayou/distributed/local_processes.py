"""Processes of this machine, one shard at a time each. One that dies is replaced, and its shard done again."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Any, Self

from bayou.distributed.engines import Combine, Function, tree
from bayou.errors import BayouError, InvalidSpec

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
MOST_DEATHS = 3  # of the same shard, or of workers one after another that never began
READY = "ready"
GUARD = (
    "a worker ended before it began. In a script, what starts the workers must stand below "
    '`if __name__ == "__main__":`, for each worker imports the script.'
)


class WorkerDied(BayouError):
    """A shard that ended every process that tried it."""


class LocalProcesses:
    """Local worker processes; there is nothing to install.

    ``workers`` is how many; by default as many as there are processors, up to one per shard. Results of tasks are kept
    here, in the process that asks. In a ``with`` block workers stay from one fit to the next; else each starts its own.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and not (isinstance(workers, int) and workers >= 1):
            raise InvalidSpec(f"`workers` must be a whole number, at least 1; got {workers!r}.")
        self.n_workers = workers or os.cpu_count() or 1
        self._workers: list[_Worker] = []
        self._users = self._stillborn = 0

    def __enter__(self) -> Self:
        self._users += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._users -= 1
        if not self._users or kind is not None:  # what is under way would be heard by the next who asks
            for worker in self._workers:
                worker.end()
            self._workers = []

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

    def reduce(self, combine: Combine, handles: Sequence[Any]) -> Any:
        """In this process."""
        return tree(combine, handles)

    def map(self, function: Function, tasks: Sequence[tuple[Any, ...]], done: Callable[[int], None]) -> list[Any]:
        """Results of the tasks, in their order."""
        waiting, results, deaths = deque(range(len(tasks))), [None] * len(tasks), [0] * len(tasks)
        left = len(tasks)
        while left:
            self._hire(min(self.n_workers, left))
            for worker in self._workers:
                if worker.is_ready and worker.task is None and waiting:
                    worker.take(waiting.popleft(), function, tasks)
            for worker in _heard(self._workers):
                answer = worker.answer()
                if answer is READY:
                    self._stillborn = 0
                    continue
                task = worker.task
                if isinstance(answer, _Died):
                    self._bury(worker, task, deaths)
                    if task is not None:
                        waiting.appendleft(task)
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    assert task is not None
                    worker.task, results[task], left = None, answer[0], left - 1
                    done(task)
        return results

    def _hire(self, wanted: int) -> None:
        with _one_thread():
            while len(self._workers) < wanted:
                self._workers.append(_Worker())

    def _bury(self, worker: _Worker, task: int | None, deaths: list[int]) -> None:
        self._workers.remove(worker)
        worker.end(patience=5.0)  # it says by which code it ends
        if not worker.is_ready:
            self._stillborn += 1
            if worker.code is None or worker.code >= 0:  # not by a signal: by an error in what it imported
                raise WorkerDied(GUARD)
            if self._stillborn >= MOST_DEATHS:
                raise WorkerDied(
                    f"{MOST_DEATHS} workers were ended before they began, the last with code {worker.code}: "
                    "is memory enough?"
                )
        if task is not None:
            deaths[task] += 1
            if deaths[task] >= MOST_DEATHS:
                raise WorkerDied(
                    f"shard {task} ended {MOST_DEATHS} processes, the last with code {worker.code}: is memory enough?"
                )


class _Died(Exception):  # it is said, not raised
    """What is heard of a process that is gone."""


class _Worker:
    """One process, and the line to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork may copy locks that threads of this process hold
        self._line, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other,), daemon=True)
        self._process.start()
        other.close()
        self.is_ready, self.task = False, None

    task: int | None

    @property
    def line(self) -> Connection:
        return self._line

    @property
    def code(self) -> int | None:
        return self._process.exitcode

    def take(self, task: int, function: Function, tasks: Sequence[tuple[Any, ...]]) -> None:
        self.task = task
        with suppress(ConnectionError):  # it is dead, which is heard of next
            self._line.send((function, tasks[task]))

    def answer(self) -> Any:
        try:
            said = self._line.recv()
        except (EOFError, ConnectionError, OSError):
            return _Died()
        if said == READY:
            self.is_ready = True
            return READY
        return said

    def end(self, patience: float = 0.0) -> None:
        self._line.close()
        self._process.join(patience)
        if self._process.is_alive():
            self._process.terminate()
        self._process.join()


def _heard(workers: Sequence[_Worker]) -> list[_Worker]:
    """Those that have something to say, which may be that they are gone."""
    lines = {worker.line: worker for worker in workers}
    return [lines[line] for line in wait(list(lines))]  # type: ignore[index]  # a line is what it was asked with


def _work(line: Connection) -> None:
    """What a worker does until the line is closed."""
    line.send(READY)
    while True:
        try:
            function, arguments = line.recv()
        except (EOFError, OSError):
            return
        try:
            answer: Any = (function(*arguments),)
        except Exception as error:  # told to whoever asked
            answer = error
        line.send(answer)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that begin now have one thread each for matrices and tables."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
