"""The command as a process: quick to help, stopped by Ctrl-C, killed at any moment, and taken up again."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.cli.made import LIMIT, QUICK, bayou, ended, environment, started, table

EVERY = 50


def test_help_is_quick() -> None:
    """By the time of the processor: how busy the machine is does not count. Best of three."""
    seconds = []
    for _ in range(3):
        command = [sys.executable, "-m", "bayou.cli", "--help"]
        null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
        process = os.posix_spawn(sys.executable, command, environment(), file_actions=null)
        _, status, usage = os.wait4(process, 0)
        assert status == 0
        seconds.append(usage.ru_utime + usage.ru_stime)
    assert min(seconds) < 0.3


def learning(folder: Path, model: str, kind: str = "csv", n_rows: int = 5000) -> list[object]:
    """The words of a run over a few thousand rows, saved often."""
    source = folder / f"t.{kind}"
    if not source.exists() and kind == "csv":
        table(n_rows).write_csv(source)
    elif not source.exists():  # of so many names that they are hashed
        rows = enumerate(table(n_rows).select("a", "b", "label").iter_rows())
        lines = (f"{1 if y == 'yes' else -1} 2|n a:{a} b:{b} u{n % 1000}\n" for n, (a, b, y) in rows)
        source.write_text("".join(lines))
    words = ["learn", source, "--save-every", EVERY, "--quiet", "-p", folder / f"{model}.jsonl", *QUICK]
    own = ["--target", "label", "--ignore", "size"] if kind == "csv" else ["-b", 12]
    return [*words, *own, "-f", folder / model]


def unbroken(folder: Path, kind: str = "csv", n_rows: int = 5000) -> bytes:
    assert bayou(*learning(folder, "whole", kind, n_rows)).exit_code == 0
    return (folder / "whole").read_bytes()


def wait_for_change(path: Path, before: int) -> None:
    """Until a file is saved anew, or for the first time."""
    stop = time.monotonic() + LIMIT
    while time.monotonic() < stop and (path.stat().st_mtime_ns if path.exists() else 0) == before:
        time.sleep(0.002)


def test_a_run_that_is_stopped_goes_on(tmp_path: Path) -> None:
    whole, model = unbroken(tmp_path, n_rows=10_000), tmp_path / "model"  # so many that it is stopped on the way
    words = learning(tmp_path, "model")
    process = started(*words)
    wait_for_change(model, 0)
    process.send_signal(signal.SIGINT)
    code, _, said = ended(process)
    assert code == 130, said
    assert "stopped after" in said
    assert f"saved to {model}; go on with --resume" in said
    assert model.read_bytes() != whole
    assert bayou(*words, "--resume").exit_code == 0
    assert model.read_bytes() == whole
    again = bayou(*[word for word in words if word != "--quiet"], "--resume")
    assert "has learnt all of" in again.stdout


@pytest.mark.parametrize(
    ("kills", "kind", "n_rows"),
    [
        (3, "csv", 5000),
        (2, "vw", 12_000),
        pytest.param(10, "csv", 20_000, marks=pytest.mark.soak),
        pytest.param(10, "vw", 40_000, marks=pytest.mark.soak),
    ],
)
def test_a_run_that_is_killed_goes_on(tmp_path: Path, kills: int, kind: str, n_rows: int) -> None:
    whole, model, dice = unbroken(tmp_path, kind, n_rows), tmp_path / "model", random.Random(kills)
    words = learning(tmp_path, "model", kind, n_rows)
    early = 0
    for _ in range(kills):
        before = model.stat().st_mtime_ns if model.exists() else 0
        process = started(*words, "--resume")
        wait_for_change(model, before)
        time.sleep(dice.uniform(0.0, 0.15))
        early += process.poll() is None
        process.kill()
        ended(process)
    assert early >= kills // 2, early
    assert bayou(*words, "--resume").exit_code == 0
    assert model.read_bytes() == whole
    assert (tmp_path / "model.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_output_is_told_in_one_line(tmp_path: Path) -> None:
    assert bayou(*learning(tmp_path, "model")).exit_code == 0
    with Path("/dev/full").open("wb") as full:
        code, _, said = ended(started("predict", tmp_path / "model", tmp_path / "t.csv", stdout=full))
    assert code == 1
    assert said.count("\n") == 1
    assert "the disk is full" in said
