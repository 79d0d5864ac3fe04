"""Small tables and ways to run the command, for the tests of the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from typer.testing import CliRunner, Result

from bayou.cli.app import app

QUICK = ("--budget", "3")
LIMIT = 300  # seconds that a process may take, on a machine that is busy and has compiled nothing yet


def table(n_rows: int = 600, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n_rows)).round(4)
    city = rng.choice(["u", "v", "w"], n_rows)
    size = (2.0 * a - b + (city == "u") + rng.normal(size=n_rows)).round(4)
    label = np.where(size > 0.0, "yes", "no")
    return pl.DataFrame({"a": a, "b": b, "city": city, "size": size, "label": label})


def bayou(*words: Any, stdin: bytes | None = None) -> Result:
    """Run a command in this process; a traceback would be an exception that is not an exit."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def refused(*words: Any, code: int = 1) -> str:
    """What a command says that fails: one line."""
    result = bayou(*words)
    assert result.exit_code == code, result.output
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("bayou: ")
    return lines[0]


def environment() -> dict[str, str]:
    """Of a process that sees this package."""
    source = Path(__file__).parent.parent.parent / "src"
    return os.environ | {"PYTHONPATH": str(source), "PYTHONUTF8": "1"}


def started(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
    """A process of its own."""
    command = [sys.executable, "-m", "bayou.cli", *(str(word) for word in words)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment(), **(pipes | options))


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Its exit code and what it said; it is killed where it takes too long."""
    try:
        out, err = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
    return process.returncode, (out or b"").decode(), (err or b"").decode()
