"""A stream of Redis, read by a consumer group of which the model is the one consumer.

The id of the last message that was learnt is stored with the model, and is the truth: at a start the group is set back
to it, so that what Redis takes for delivered, or even for acknowledged, comes again if the store does not have it; and
what the store has is acknowledged, and not learnt again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from bayou.service.sources.source import Item, SourceAway, SourceError
from bayou.service.sources.text_rows import parsed, plain

BLOCK = 200  # milliseconds that a read waits
TIMEOUT = 10.0  # seconds
OPTIONS = {"group", "consumer", "stream", "from"}
Id = tuple[int, int]


class RedisStream:
    """``redis://host:port/stream?group=bayou``, with ``/2/stream`` for the database 2, or ``unix://path?stream=...``."""

    alone = "name another group for each"

    def __init__(self, url: str, model: str) -> None:
        try:
            import redis.asyncio  # noqa: F401, PLC0415  # an extra
        except ModuleNotFoundError:
            raise SourceError("to follow Redis, install bayou[redis]; redis is not installed.") from None
        parts, options = urlsplit(url), {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}
        if unknown := options.keys() - OPTIONS:
            raise SourceError(f"the options of {parts.scheme}:// are {', '.join(sorted(OPTIONS))}; got {min(unknown)}.")
        self._database, path = "0", unquote(parts.path).strip("/")
        if parts.scheme == "unix":
            self.stream, where, path = options.get("stream", ""), parts.path, parts.path
        else:
            first, _, more = path.partition("/")
            if more and first.isdigit():
                self._database, path = first, more
            self.stream, where = options.get("stream", path), f"{parts.hostname}:{parts.port or 6379}"
            path = f"/{self._database}"
        self.group, self.consumer = options.get("group", "bayou"), options.get("consumer", f"bayou-{model}")
        self._first = {"first": "0", "new": "$"}.get(options.get("from", "first"), "")
        if not self.stream or not self._first:
            raise SourceError("Redis is named as redis://127.0.0.1:6379/STREAM?group=bayou, with from=first or new.")
        self._url = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
        self.name = f"redis:{where}/{self._database}/{self.stream}?group={self.group}"  # without a password
        self._client: Any = None
        self._learnt: Id = (0, 0)
        self._read: list[bytes] = []  # ids that are not acknowledged
        self._after = (
            ">"  # ">" for new messages; before those, of what was delivered and is not acknowledged, after which
        )

    async def open(self, place: dict[str, Any] | None) -> None:
        from redis.asyncio import Redis  # noqa: PLC0415
        from redis.exceptions import ResponseError  # noqa: PLC0415

        await self.close()
        self._client = Redis.from_url(self._url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)
        self._read = []
        last = None if place is None else str(place["id"])
        self._learnt = (0, 0) if last is None else _id(last.encode())
        async with self._told():
            try:
                begin = self._first if last is None else last
                await self._client.xgroup_create(self.stream, self.group, begin, mkstream=True)
            except ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise
            await self._check_alone()
            self._after = "0"
            if last is not None:
                await self._go_back_to(last)

    async def _check_alone(self) -> None:
        """Raise if messages were given to others, too: they would be missing here."""
        for one in await self._client.xinfo_consumers(self.stream, self.group):
            name = one["name"].decode(errors="replace")
            if name != self.consumer and one["pending"]:
                raise SourceError(
                    f"the group {self.group!r} of {self.stream!r} must be read by {self.consumer!r} alone; {name!r} "
                    f"has {one['pending']} messages that are not acknowledged: name another group."
                )

    async def _go_back_to(self, last: str) -> None:
        """Let the group go on after what is stored, whatever it thinks, and acknowledge what is."""
        about = await self._client.xinfo_stream(self.stream)
        if _id(about["last-generated-id"]) < self._learnt:
            raise SourceError(
                f"the stream {self.stream!r} must go on after {last}, which was learnt; its last id is "
                f"{about['last-generated-id'].decode()}: it was deleted and begun again, or is another."
            )
        after = b"0"
        while True:
            found = await self._group_read(after.decode(), 1000)
            done = [id for id, _ in found if _id(id) <= self._learnt]
            if done:
                await self._client.xack(self.stream, self.group, *done)
            if len(done) < len(found) or not found:
                break
            after = found[-1][0]
        await self._client.xgroup_setid(self.stream, self.group, last)
        self._after = ">"  # which gives what was delivered once more

    async def _group_read(self, after: str, most: int) -> list[tuple[bytes, dict[bytes, bytes] | None]]:
        told = await self._client.xreadgroup(
            self.group, self.consumer, {self.stream: after}, count=most, block=BLOCK if after == ">" else None
        )
        if not told:
            return []
        found: list[tuple[bytes, dict[bytes, bytes] | None]]
        found = told[0][1] if isinstance(told, list) else next(iter(told.values()))[0]
        return found

    async def read(self, most: int) -> list[Item] | None:
        async with self._told():
            found = await self._group_read(self._after, most)
            if self._after != ">":
                self._after = found[-1][0].decode() if found else ">"
        self._read += [id for id, _ in found]
        return [_item(id, fields) for id, fields in found if _id(id) > self._learnt]

    def place(self, end: Any) -> dict[str, Any]:
        return {"id": end}

    async def learnt(self, end: Any) -> None:
        self._learnt = last = _id(end.encode())
        done = [id for id in self._read if _id(id) <= last]
        self._read = self._read[len(done) :]
        async with self._told():
            await self._client.xack(self.stream, self.group, *done)

    @asynccontextmanager
    async def _told(self) -> AsyncIterator[None]:
        """What Redis says, as what it means here."""
        from redis.exceptions import BusyLoadingError, ConnectionError, RedisError, TimeoutError  # noqa: PLC0415

        try:
            yield
        except (BusyLoadingError, ConnectionError, TimeoutError) as error:
            raise SourceAway(f"{self.name} cannot be reached; {str(error).rstrip('.')}.") from error
        except RedisError as error:
            raise SourceError(f"{self.name} cannot be followed; {str(error).rstrip('.')}.") from error

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _id(text: bytes) -> Id:
    """Ids are compared as pairs of numbers.

    >>> _id(b"9-5") < _id(b"10-0")
    True
    """
    first, _, second = text.partition(b"-")
    return int(first), int(second or 0)


def _item(id: bytes, fields: dict[bytes, bytes] | None) -> Item:
    """A message as a row: of JSON where it has the one field ``json``, and else of its fields, as CSV has them."""
    end = id.decode()
    if not fields:
        return Item(None, "it was deleted before it was read", f"message {end}", end)
    if fields.keys() == {b"json"}:
        row, why = parsed(fields[b"json"])
        return Item(row, why, f"message {end}", end)
    try:
        return Item({k.decode(): plain(v.decode()) for k, v in fields.items()}, "", f"message {end}", end)
    except UnicodeDecodeError as error:
        return Item(None, f"it must be UTF-8; {error}", f"message {end}", end)
