"""Local processes: the same to the bit with any number of them, and whoever dies meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayou import Logistic, OnlineClassifier
from bayou.distributed import DaskCluster, InProcess, LocalProcesses, WorkerDied, fit, local_processes
from bayou.distributed.engines import engine_of, tree
from bayou.errors import InvalidSpec
from tests.distributed import made, tasks

X = made.rows(2000)
LABELS = made.labels(X)
SHARDS = made.cut(X, LABELS, [300, 700, 1200, 1700])
CLASSIFIER = OnlineClassifier(likelihood=Logistic())


@pytest.fixture(scope="module")
def expected() -> bytes:
    """What is believed when all shards are learnt in this process."""
    return made.belief_bytes(fit(CLASSIFIER, SHARDS, engine=InProcess()).model)


def joined(a: str, b: str) -> str:
    return f"({a}{b})"


@pytest.mark.parametrize(
    ("n", "shape"), [(1, "0"), (2, "(01)"), (3, "((01)2)"), (5, "(((01)(23))4)"), (6, "(((01)(23))(45))")]
)
def test_the_tree_depends_on_the_number_of_parts_alone(n: int, shape: str) -> None:
    assert tree(joined, [str(part) for part in range(n)]) == shape


def test_a_tree_has_a_part_at_least() -> None:
    with pytest.raises(InvalidSpec, match="none"):
        tree(joined, [])


def test_processes_that_are_killed_change_no_bit(tmp_path: Path, expected: bytes) -> None:
    with LocalProcesses(2) as engine:
        fitted = fit(CLASSIFIER, made.deadly(SHARDS, 2, tmp_path), engine=engine)
        assert not list(tmp_path.iterdir())  # somebody died
        assert made.belief_bytes(fitted.model) == expected
        engine._workers.pop().end()
        engine.n_workers = 1
        assert made.belief_bytes(fit(CLASSIFIER, SHARDS, engine=engine).model) == expected
        assert len(engine._workers) == 1  # which waits for more
    assert not engine._workers


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_tasks(workers: int) -> None:
    done: list[int] = []
    with LocalProcesses(workers) as engine:
        assert engine.map(tasks.square, [(n,) for n in range(7)], done.append) == [n * n for n in range(7)]
    assert sorted(done) == list(range(7))


def test_a_process_that_is_killed_from_outside_is_replaced() -> None:
    killed: list[Any] = []
    with LocalProcesses(2) as engine:

        def kill(task: int) -> None:
            if not killed:
                killed.append(engine._workers[0]._process.pid)
                os.kill(killed[0], signal.SIGKILL)

        assert engine.map(tasks.slowly, [(n,) for n in range(9)], kill) == [n * n for n in range(9)]
        assert killed[0] not in [worker._process.pid for worker in engine._workers]


def test_processes_that_are_killed_before_they_begin_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    started = local_processes._Worker.__init__
    lives = [2]

    def begin(worker: Any) -> None:
        started(worker)
        if lives[0]:
            lives[0] -= 1
            os.kill(worker._process.pid, signal.SIGKILL)

    monkeypatch.setattr(local_processes._Worker, "__init__", begin)
    with LocalProcesses(1) as engine:
        assert engine.map(tasks.square, [(3,)], lambda task: None) == [9]
    lives[0] = 9
    with pytest.raises(WorkerDied, match="3 workers were ended before they began, the last with code -9"):
        LocalProcesses(1).map(tasks.square, [(3,)], lambda task: None)


def test_a_task_that_kills_whoever_takes_it_is_named(tmp_path: Path) -> None:
    for life in range(9):
        (tmp_path / f"life-{life}").touch()
    with (
        pytest.raises(WorkerDied, match="shard 1 ended 3 processes, the last with code -9"),
        LocalProcesses(2) as engine,
    ):
        engine.map(tasks.dies, [(str(tmp_path / "none"), 0), (str(tmp_path), 1)], lambda task: None)


def test_what_goes_wrong_in_a_worker_is_raised_here() -> None:
    with LocalProcesses(2) as engine:
        with pytest.raises(OSError, match="the disk is gone"), engine:
            engine.map(tasks.fails, [(n,) for n in range(5)], lambda task: None)
        assert engine.map(tasks.square, [(3,)], lambda task: None) == [9]  # by others, who have nothing left to say


def test_a_script_without_a_guard_is_told_so(tmp_path: Path, root: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from bayou.distributed import LocalProcesses\n"
        "with LocalProcesses(1) as engine:\n"
        "    engine.map(abs, [(-1,)], print)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert '`if __name__ == "__main__":`' in done.stderr.strip().splitlines()[-1]


def test_engines_are_known_by_name() -> None:
    assert isinstance(engine_of(None), LocalProcesses)
    assert engine_of(3).n_workers == 3
    assert isinstance(engine_of("dask"), DaskCluster)
    own = InProcess()
    assert engine_of(own) is own
    for wrong in (True, 1.5, object()):
        with pytest.raises(InvalidSpec, match="`engine`"):
            engine_of(wrong)
    for engine in (LocalProcesses, DaskCluster):
        with pytest.raises(InvalidSpec, match="`workers`"):
            engine(workers=0)


def test_workers_hold_a_part_of_the_rows_at_a_time(root: Path, tmp_path: Path) -> None:
    """What a shard takes does not grow with its rows."""
    if not Path("/proc/self/status").exists():
        pytest.skip("what a process held at most is told by Linux")
    import polars as pl

    rng = np.random.default_rng(0)
    for n_rows in (100_000, 1_000_000):
        table = pl.DataFrame({f"x{j}": rng.normal(size=n_rows) for j in range(8)})
        table.write_parquet(tmp_path / f"{n_rows}.parquet", row_group_size=50_000)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from bayou import FullGaussian, Gaussian, OnlineRegressor\n"
        "from bayou.distributed import InProcess, fit\n"
        "model = OnlineRegressor(likelihood=Gaussian(), posterior=FullGaussian())\n"
        "for path in sys.argv[1:]:\n"
        "    fit(model, path, target='x0', engine=InProcess(), shards=1)\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"  # resource's begins with the parent's
        "    print(*(line.split()[1] for line in lines if line.startswith('VmHWM')))\n"
    )
    paths = [str(tmp_path / f"{n_rows}.parquet") for n_rows in (100_000, 1_000_000)]
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "POLARS_MAX_THREADS": "1"}
    command = [sys.executable, "-c", script, *paths]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    few, many = map(int, done.stdout.split())
    assert many < 1.15 * few
