"""What runs the shards: a small protocol, and the tree by which results become one.

An engine may lose workers, and must give the work of those that died to others. What a task gives depends on nothing
but its arguments, and the tree on nothing but how many there are: so results are the same to the bit on any engine,
with any number of workers, and whoever died meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from bayou.errors import InvalidSpec

Function = Callable[..., Any]
Combine = Callable[[Any, Any], Any]


class Engine(Protocol):
    """Runs functions on workers. A handle stands for a result, wherever that lies."""

    n_workers: int

    def __enter__(self) -> Self:
        """Start the workers."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let them go."""

    def share(self, value: Any) -> Any:
        """A handle to a value that many tasks take."""

    def map(self, function: Function, tasks: Sequence[tuple[Any, ...]], done: Callable[[int], None]) -> list[Any]:
        """Handles to what a function makes of each task, whose arguments may be handles; each is told when done."""

    def reduce(self, combine: Combine, handles: Sequence[Any]) -> Any:
        """What all become, two by two, as `tree` has it; here, not a handle."""


def tree(combine: Combine, parts: Sequence[Any]) -> Any:
    """All parts as one: neighbours two by two, again and again; of an odd number the last waits."""
    if not parts:
        raise InvalidSpec("there must be a shard at least; got none.")
    level = list(parts)
    while len(level) > 1:
        pairs = [combine(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, level[-1]] if len(level) % 2 else pairs
    return level[0]


def engine_of(engine: Any) -> Engine:
    """An engine by what it is called: None or a number for local processes, "dask", or the address of a cluster."""
    from bayou.distributed.dask_cluster import DaskCluster  # noqa: PLC0415  # they know this protocol
    from bayou.distributed.local_processes import LocalProcesses  # noqa: PLC0415

    if engine is None or engine == "local":
        return LocalProcesses()
    if isinstance(engine, int) and not isinstance(engine, bool):
        return LocalProcesses(engine)
    if isinstance(engine, str):
        return DaskCluster() if engine == "dask" else DaskCluster(engine)
    if all(hasattr(engine, name) for name in ("share", "map", "reduce", "__enter__")):
        told: Engine = engine
        return told
    raise InvalidSpec(
        "`engine` must be None, a number of processes, 'dask', the address of a Dask scheduler, or an engine; "
        f"got {engine!r}."
    )
