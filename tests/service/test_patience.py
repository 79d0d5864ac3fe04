"""Each thread has its own slack; the interpreter is asked for soon."""

import ctypes
import sys
import threading

import pytest

from bayou.service.patience import LITTLE, MUCH, SWITCH, be_patient, be_quick

GET_TIMER_SLACK = 30  # of prctl


@pytest.mark.skipif(sys.platform != "linux", reason="threads have slack of their own on Linux alone")
def test_who_learns_waits_longer_than_who_answers():
    found = {}

    def ask(be):
        be()
        found[be] = ctypes.CDLL(None).prctl(GET_TIMER_SLACK, 0, 0, 0, 0)

    interval = sys.getswitchinterval()
    try:
        for be in (be_quick, be_patient):
            thread = threading.Thread(target=ask, args=(be,))
            thread.start()
            thread.join()
        assert found == {be_quick: LITTLE, be_patient: MUCH}
        assert sys.getswitchinterval() == pytest.approx(SWITCH)
    finally:
        sys.setswitchinterval(interval)
