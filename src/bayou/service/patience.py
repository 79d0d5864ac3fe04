"""Who waits how long for the interpreter, which one thread at a time has.

A thread that waits asks for it after `SWITCH`, and is woken for that within its timer's slack, of which Linux lets each
thread have its own. Without that, a prediction loses the interpreter some ten times to those who learn and waits for it
as often; so the loop has next to no slack, and who works for long has much.
"""

from __future__ import annotations

import ctypes
import sys

SWITCH = 0.00002  # seconds
LITTLE, MUCH = 1_000, 300_000  # nanoseconds
_SET_TIMER_SLACK = 29  # of prctl, in <linux/prctl.h>


def be_quick() -> None:
    """Of the thread that calls: it answers those who wait."""
    sys.setswitchinterval(SWITCH)
    _have_slack(LITTLE)


def be_patient() -> None:
    """Of the thread that calls: it learns."""
    _have_slack(MUCH)


def _have_slack(nanoseconds: int) -> None:
    """Elsewhere than on Linux, nothing happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, ctypes.c_ulong(nanoseconds), 0, 0, 0)
