"""What a command needs is loaded in one go, and what it only seems to need is not."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

SELDOM_USED = "scipy.stats", "pandas"  # scikit-learn imports both, for functions that no command calls


@contextmanager
def loading() -> Iterator[None]:
    """While modules are imported: none is looked through for garbage, then or later, and those that are seldom used
    wait until they are.
    """
    if "sklearn" in sys.modules:  # what is large is there
        yield
        return
    was_on = gc.isenabled()
    gc.disable()
    waiting = [Waiting(name) for name in SELDOM_USED if name not in sys.modules and _is_there(name)]
    sys.modules.update({module.__name__: module for module in waiting})
    try:
        yield
    finally:
        for module in waiting:
            module.give_way()
        gc.freeze()
        if was_on:
            gc.enable()


class Waiting(ModuleType):
    """Stands in for a module, which is imported when something of it is asked for."""

    def give_way(self) -> None:
        """Let the next import be that of the module itself."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]

    def __getattr__(self, name: str) -> object:
        self.give_way()
        return getattr(import_module(self.__name__), name)


def _is_there(name: str) -> bool:
    """Whether a module can be imported; only packages above it are."""
    try:
        return find_spec(name) is not None
    except ImportError:
        return False


__all__ = ["loading"]
