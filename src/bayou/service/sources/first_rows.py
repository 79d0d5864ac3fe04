"""The first rows of a model, together: what its columns are and what it learns is not to be seen from one alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from bayou.errors import BayouError
from bayou.service.errors import HalfDone
from bayou.service.events import LEARN, Event
from bayou.service.served_model import ServedModel
from bayou.service.settings import Settings
from bayou.service.sources.source import Item

FIRST_ROWS = 100  # by which a model begins
FIRST_PATIENCE = 5.0  # seconds in which no more have come, after which it begins by fewer
MOST_ITEMS = 1000  # rows, and what is none, that wait
MOST_MISFITS = 10  # rows that are found by trial: each takes some trials


class FirstRows:
    """What was read for a model that has not begun. The place after each row is taken when it is read, as a source
    tells places of what it read last.
    """

    def __init__(self, place_of: Callable[[Any], dict[str, Any]]) -> None:
        self._place_of = place_of
        self.items: list[Item] = []
        self.places: dict[Any, dict[str, Any]] = {}
        self._came = 0.0

    def add(self, items: Sequence[Item]) -> None:
        """More of them."""
        if items:
            self.items += items
            self.places |= {item.end: self._place_of(item.end) for item in items}
            self._came = time.monotonic()

    @property
    def are_enough(self) -> bool:
        """Whether the model is to begin by them."""
        rows = sum(item.row is not None for item in self.items)
        is_late = time.monotonic() - self._came >= FIRST_PATIENCE
        return rows == 0 or rows >= FIRST_ROWS or len(self.items) >= MOST_ITEMS or is_late

    def clear(self) -> None:
        """They are learnt, or are read again."""
        self.items, self.places = [], {}


def with_misfits_told(settings: Settings, items: Sequence[Item], one_is_enough: bool) -> list[Item]:
    """Rows with which a model of these settings cannot begin as what is no row, and why.

    Of a part that cannot be learnt halves would be tried; but the half that can, of one row perhaps, would begin it.
    Here models are tried that nobody keeps.
    """
    told = list(items)
    for _ in range(1 if one_is_enough else MOST_MISFITS):
        places = [place for place, item in enumerate(told) if item.row is not None]
        rows = [told[place].row for place in places]
        why = _refusal(settings, rows)
        if not why:
            break
        fits, fails = 0, len(rows)
        while fails - fits > 1:
            middle = (fits + fails) // 2
            if found := _refusal(settings, rows[:middle]):
                fails, why = middle, found
            else:
                fits = middle
        bad = places[fails - 1]
        why = _refusal(settings, rows[fails - 1 : fails]) or why
        told[bad] = told[bad]._replace(row=None, why=why)
    return told


def _refusal(settings: Settings, rows: Sequence[Any]) -> str:
    """Why a model cannot begin by these rows; nothing if it can."""
    try:
        if rows:
            ServedModel(settings).apply(1, Event(LEARN, time.time(), {"rows": rows}))
    except (BayouError, HalfDone) as error:
        return str(error)
    return ""
