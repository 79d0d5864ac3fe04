"""Dask: the processors of a laptop, or a cluster at some address. It alone replaces workers that die.

What shards give stays on the cluster, and the tree runs there too: no more than its root comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from bayou.distributed.engines import Combine, Function, tree
from bayou.errors import InvalidSpec

MISSING = 'shards on Dask need distributed, which is missing: pip install "bayou[dask]"'


class DaskCluster:
    """Workers of Dask: of a scheduler at an ``address``, of a client that you have, or new ones on this machine.

    New ones are so many processes as ``workers`` says, of one thread each, and they end with the work, or with the
    ``with`` block that it is in.
    """

    def __init__(self, address: Any = None, workers: int = 2) -> None:
        if not (isinstance(workers, int) and workers >= 1):
            raise InvalidSpec(f"`workers` must be a whole number, at least 1; got {workers!r}.")
        self._address, self.n_workers = address, workers
        self._client: Any = None
        self._cluster: Any = None
        self._users = 0

    def __enter__(self) -> Self:
        try:
            import distributed  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise ImportError(MISSING) from error
        self._users += 1
        if self._client is not None:
            return self
        if isinstance(self._address, distributed.Client):
            self._client = self._address
        elif self._address is not None:
            self._client = _connected(distributed, self._address)
        else:
            self._cluster = distributed.LocalCluster(
                n_workers=self.n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            )
            self._client = distributed.Client(self._cluster)
        self.n_workers = len(self._client.scheduler_info()["workers"]) or self.n_workers
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._users -= 1
        if self._users:
            return
        if self._client is not self._address:
            self._client.close()
        if self._cluster is not None:
            self._cluster.close()
        self._client = self._cluster = None

    def share(self, value: Any) -> Any:
        """The value as a task of its own, so that it is made again where it was lost."""
        return self._client.submit(_same, value, pure=False)

    def map(self, function: Function, tasks: Sequence[tuple[Any, ...]], done: Callable[[int], None]) -> list[Any]:
        """Futures of the tasks, all of them done."""
        import distributed  # noqa: PLC0415

        futures = [self._client.submit(function, *task, pure=False) for task in tasks]
        places = {future.key: place for place, future in enumerate(futures)}
        for future in distributed.as_completed(futures):
            if future.status == "error":
                future.result()  # which raises what was raised there
            done(places[future.key])
        return futures

    def reduce(self, combine: Combine, handles: Sequence[Any]) -> Any:
        """By tasks on the cluster, of which the last is fetched."""
        root = tree(lambda a, b: self._client.submit(combine, a, b, pure=False), handles)
        return root.result()


def _connected(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise InvalidSpec(f"there must be a Dask scheduler at {address!r}; got: {error}") from error


def _same(value: Any) -> Any:
    return value
