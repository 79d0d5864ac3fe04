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


def learning(folder: Path, model: str) -> list[object]:
    """The words of a run over a few thousand rows, saved often."""
    source = folder / "t.csv"
    if not source.exists():
        table(5000).write_csv(source)
    words = ["learn", source, "--target", "label", "--ignore", "size", "--save-every", EVERY, "--quiet"]
    return [*words, "-f", folder / model, *QUICK]


def unbroken(folder: Path) -> bytes:
    assert bayou(*learning(folder, "whole")).exit_code == 0
    return (folder / "whole").read_bytes()


def wait_for_change(path: Path, before: int) -> None:
    """Until a file is saved anew, or for the first time."""
    stop = time.monotonic() + LIMIT
    while time.monotonic() < stop and (path.stat().st_mtime_ns if path.exists() else 0) == before:
        time.sleep(0.002)


def test_a_run_that_is_stopped_goes_on(tmp_path: Path) -> None:
    whole, model = unbroken(tmp_path), tmp_path / "model"
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


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_a_run_that_is_killed_goes_on(tmp_path: Path, kills: int) -> None:
    whole, model, dice = unbroken(tmp_path), tmp_path / "model", random.Random(kills)
    words = learning(tmp_path, "model")
    early = 0
    for _ in range(kills):
        before = model.stat().st_mtime_ns if model.exists() else 0
        process = started(*words, "--resume")
        wait_for_change(model, before)
        time.sleep(dice.uniform(0.0, 0.15))
        early += process.poll() is None
        process.kill()
        ended(process)
    assert early > 0
    assert bayou(*words, "--resume").exit_code == 0
    assert model.read_bytes() == whole


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_output_is_told_in_one_line(tmp_path: Path) -> None:
    assert bayou(*learning(tmp_path, "model")).exit_code == 0
    with Path("/dev/full").open("wb") as full:
        code, _, said = ended(started("predict", tmp_path / "model", tmp_path / "t.csv", stdout=full))
    assert code == 1
    assert said.count("\n") == 1
    assert "the disk is full" in said
