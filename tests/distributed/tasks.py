"""Tasks that need no part of the package, so that processes start at once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def square(value: int) -> int:
    return value * value


def dies(folder: str, value: int) -> int:
    """Kill this process while there are lives left in a folder."""
    for life in sorted(Path(folder).glob("life-*"))[:1]:
        life.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return value * value


def slowly(value: int) -> int:
    time.sleep(0.05)
    return value * value


def fails(value: int) -> int:
    if value == 2:
        raise OSError("the disk is gone")
    return value
