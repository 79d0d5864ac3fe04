"""Pumps a source into a model: a part at a time, its place stored together with its rows."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Container, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from bayou.errors import BayouError
from bayou.estimators.table_target import AUTO, TASKS
from bayou.service.errors import Busy, Conflict, NotFound, NotStored
from bayou.service.hub import Hub
from bayou.service.limits import MODEL_NAME, PART
from bayou.service.settings import Settings
from bayou.service.sources.first_rows import FirstRows, with_misfits_told
from bayou.service.sources.growing_file import GrowingFile
from bayou.service.sources.redis_stream import RedisStream
from bayou.service.sources.source import Item, Source, SourceAway, SourceError
from bayou.service.sources.standard_input import StandardInput

IDLE = 0.1  # seconds before it is looked again whether there is more
FIRST_WAIT, LONGEST_WAIT = 0.05, 2.0  # seconds before something is tried again
REASONS = 5  # that are told, the latest
ON_ERROR = ("stop", "skip")
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://")
REDIS = ("redis", "rediss", "unix")
LOG = logging.getLogger(__name__)


class Follow(NamedTuple):
    """What was asked for: a model, and where its rows come from; what it is to learn if it is not there yet."""

    model: str
    source: str
    target: str | None = None
    on_error: str = "stop"
    task: str = AUTO

    @classmethod
    def of(cls, text: str, target: str | None = None, on_error: str = "stop", task: str = AUTO) -> Follow:
        """From ``MODEL=SOURCE``.

        >>> Follow.of("clicks=events.ndjson")[:2]
        ('clicks', 'events.ndjson')
        """
        check_options(task, on_error)
        model, _, source = text.partition("=")
        if not MODEL_NAME.fullmatch(model) or not source:
            raise SourceError(f"--follow must be MODEL=SOURCE, as clicks=events.ndjson; got {text!r}.")
        return cls(model, source, target, on_error, task)

    def opened(self) -> Source:
        """The source, not begun."""
        source = self._made()
        try:
            source.name.encode()  # the store keeps it
        except UnicodeEncodeError:
            raise SourceError(f"what is followed must have a name in UTF-8; got {source.name!r}.") from None
        return source

    def _made(self) -> Source:
        if self.source == "-":
            return StandardInput()
        scheme = SCHEME.match(self.source)
        if scheme is None:
            return GrowingFile(self.source)
        if scheme[1].lower() not in REDIS:
            raise SourceError(
                f"--follow takes a file, - or {', '.join(f'{one}://' for one in REDIS)}; got {self.source!r}."
            )
        return RedisStream(self.source, self.model)


def check_options(task: str, on_error: str) -> None:
    """Raise if these are none of those that there are."""
    for name, told, known in (("--task", task, (AUTO, *TASKS)), ("--on-error", on_error, ON_ERROR)):
        if told not in known:
            raise SourceError(f"{name} must be one of {', '.join(known)}; got {told!r}.")


class Follower:
    """One source and one model. Rows of a part are learnt, or stored, all or none, and then the next is read."""

    def __init__(self, hub: Hub, model: str, source: Source, on_error: str = "stop") -> None:
        self._hub, self._model, self._source, self._skips = hub, model, source, on_error == "skip"
        self.state, self.error = "starting", ""
        self.skipped = 0
        self._first = FirstRows(source.place)
        self._reasons: deque[str] = deque(maxlen=REASONS)
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow from now on."""
        self._hub.following.setdefault(self._model, []).append(self.told)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Let what was begun be stored, and end."""
        self._stopping.set()
        if self._task is not None:
            await self._task
        with suppress(KeyError, ValueError):
            self._hub.following[self._model].remove(self.told)

    def told(self) -> dict[str, Any]:
        """How it goes."""
        told = {"source": self._source.name, "state": self.state, "error": self.error or None}
        return told | {"skipped": self.skipped, "reasons": list(self._reasons)}

    async def _run(self) -> None:
        try:
            await self._follow()
            self.state = "stopped" if self._stopping.is_set() else "ended"
        except Exception as error:  # whatever it is, the server goes on, and tells
            self.state, self.error = "failed", str(error) or type(error).__name__
            expected = isinstance(error, BayouError)
            LOG.error("%s no longer follows %s: %s", self._model, self._source.name, error, exc_info=not expected)
        finally:
            with suppress(Exception):
                await self._source.close()

    async def _follow(self) -> None:
        wait, is_open = FIRST_WAIT, False
        while not self._stopping.is_set():
            try:
                if not is_open:
                    await self._open()
                    is_open = True
                items = await self._read()
                if items is None:
                    await self._learn_first()
                    return
                if self._first.items or (items and not self._has_begun):
                    self._first.add(items)
                    if self._has_begun or self._first.are_enough or self._ends_by(items):
                        await self._learn_first()
                elif items:
                    await self._learn(items)
                self.state, self.error, wait = "following", "", FIRST_WAIT
                if not items:
                    await self._pause(IDLE)
            except SourceAway as error:
                is_open = False  # and goes back to what is stored
                self.state, self.error = "waiting", str(error)
                await self._pause(wait)
                wait = min(2.0 * wait, LONGEST_WAIT)

    async def _read(self) -> list[Item] | None:
        try:
            return await self._source.read(PART)
        except SourceError:  # what stands before it is learnt
            await self._learn_first()
            raise

    @property
    def _has_begun(self) -> bool:
        """Whether the model knows its columns and what it learns."""
        return self._hub.lane(self._model).served.model.layout is not None

    def _ends_by(self, items: Sequence[Item]) -> bool:
        """Whether there is what is no row, and following stops at it."""
        return not self._skips and any(item.row is None for item in items)

    async def _learn_first(self) -> None:
        """Learn what has waited for the model to begin."""
        if self._first.items:
            await self._learn(self._first.items)
            self._first.clear()

    async def _open(self) -> None:
        self._first.clear()  # they come again
        text = self._hub.position(self._model, self._source.name).place
        place = None if text is None else orjson.loads(text)
        self.skipped = 0 if place is None else int(place["skipped"])
        await self._source.open(place)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _learn(self, items: Sequence[Item]) -> None:
        """Learn a part; where it cannot be learnt, its halves, so that of many rows a bad one alone is left out."""
        broken = [item for item in items if item.row is None]
        if broken and (not self._skips or len(broken) == len(items)):
            first = items.index(broken[0])
            if first:
                await self._learn(items[:first])
            for item in broken:
                self._skip(item, item.why)
            return
        try:
            if not await self._stored([item.row for item in items if item.row is not None], items[-1].end, len(broken)):
                return
        except (Conflict, NotFound):
            raise
        except BayouError as error:
            if isinstance(error, SourceAway | SourceError):
                raise
            if len(items) == 1:
                self._skip(items[0], str(error))
                return
            if not self._has_begun:
                settings = self._hub.lane(self._model).served.settings
                told = await asyncio.to_thread(with_misfits_told, settings, items, not self._skips)
                if told != list(items):
                    await self._learn(told)
                    return
            for half in (items[: len(items) // 2], items[len(items) // 2 :]):
                if not self._stopping.is_set():
                    await self._learn(half)
            return
        for item in broken:
            self._skip(item, item.why)

    async def _stored(self, rows: list[Any], end: Any, skipped: int) -> bool:
        """Have rows learnt, however long the disk or the queue takes; not if it is to end meanwhile."""
        name, wait = self._source.name, FIRST_WAIT
        after = self._first.places.get(end) or self._source.place(end)
        place = orjson.dumps(after | {"skipped": self.skipped + skipped}).decode()
        while not self._stopping.is_set():
            try:
                before = self._hub.offset(self._model, name)
                await self._hub.learn(self._model, rows, source=(name, before), place=place)
            except (Busy, NotStored) as error:
                self.state, self.error = "waiting", str(error)
                await self._pause(wait)
                wait = min(2.0 * wait, LONGEST_WAIT)
            else:
                await self._source.learnt(end)
                return True
        return False

    def _skip(self, item: Item, why: str) -> None:
        told = f"{item.where}: {why.rstrip('.')}."
        if not self._skips:
            raise SourceError(f"{told} What stands before it is learnt; --on-error skip would leave it out.")
        self.skipped += 1
        self._reasons.append(told)


def check_asked(asked: Sequence[Follow], known: Container[str]) -> None:
    """Raise if what was asked for cannot be followed, given the models that are there."""
    sources = [one.opened() for one in asked]
    names = [source.name for source in sources]
    for source in sources:
        if source.alone and names.count(source.name) > 1:
            raise SourceError(f"{source.name} must be followed by one model; {source.alone}.")
    if len(set(zip(names, (one.model for one in asked), strict=True))) < len(asked):
        raise SourceError("each model must follow a source once.")
    for one in asked:
        if one.model not in known and one.target is None:
            raise SourceError(f"--follow needs a --target to make the model {one.model!r}, which is not there.")


async def begin(hub: Hub, asked: Sequence[Follow]) -> list[Follower]:
    """Follow all that was asked for; models that are not there are made."""
    check_asked(asked, hub.names)
    sources = [one.opened() for one in asked]
    for one in asked:
        if one.model not in hub.names:
            await hub.create(one.model, Settings.of({"target": one.target, "task": one.task}))
    followers = [Follower(hub, one.model, source, one.on_error) for one, source in zip(asked, sources, strict=True)]
    for follower in followers:
        follower.start()
    return followers
