"""No workers at all: every shard in this process, one after another. For small data, and to find what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from bayou.distributed.engines import Combine, Function, tree


class InProcess:
    """Runs shards here, one after another."""

    n_workers = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

    def map(self, function: Function, tasks: Sequence[tuple[Any, ...]], done: Callable[[int], None]) -> list[Any]:
        """Results of the tasks, in their order."""
        results = []
        for place, task in enumerate(tasks):
            results.append(function(*task))
            done(place)
        return results

    def reduce(self, combine: Combine, handles: Sequence[Any]) -> Any:
        """Here."""
        return tree(combine, handles)
