"""Packages whose names are resolved when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

Resolve = Callable[[str], object]
Listed = Callable[[], list[str]]


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[dict[str, str], Resolve, Listed]:
    """The module that each name of a package is found in, and the package's ``__getattr__`` and ``__dir__``.

    ``homes`` has the names of each of its modules, divided by spaces.

    >>> from bayou.lazy_names import lazy_names
    >>> found, resolve, _ = lazy_names("bayou", {"errors": "BayouError InvalidSpec"})
    >>> found["InvalidSpec"], resolve("InvalidSpec").__name__
    ('bayou.errors', 'InvalidSpec')
    """
    found = {name: f"{package}.{home}" for home, names in homes.items() for name in names.split()}

    def resolve(name: str) -> object:
        if name not in found:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(found[name]), name)
        setattr(sys.modules[package], name, value)  # the next time it is there
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *found})

    return found, resolve, listed
