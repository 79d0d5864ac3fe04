"""Standard input, which nobody can read again: its places are those of this process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from typing import Any

from bayou.service.sources.source import Item
from bayou.service.sources.text_rows import TextRows

BLOCK = 2**16  # bytes
MOST_BLOCKS = 64  # that wait
PATIENCE = 0.2  # seconds


class StandardInput:
    """Rows of JSON lines or CSV from a descriptor, read by a thread of its own."""

    name = "standard input"
    alone = "it can be read once"

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._rows = TextRows(None)
        self._items: deque[Item] = deque()
        self._blocks: asyncio.Queue[bytes] = asyncio.Queue(MOST_BLOCKS)
        self._thread: threading.Thread | None = None
        self._ended = False

    async def open(self, place: dict[str, Any] | None) -> None:
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._pump, args=(loop,), name="bayou-stdin", daemon=True)
            self._thread.start()

    def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            try:
                data = os.read(self._descriptor, BLOCK)
            except OSError:
                data = b""
            try:
                asyncio.run_coroutine_threadsafe(self._blocks.put(data), loop).result()
            except BaseException:  # the loop is gone, and with it whoever reads
                return
            if not data:
                return

    async def read(self, most: int) -> list[Item] | None:
        if not self._items:
            if self._ended:
                return None
            try:
                data = await asyncio.wait_for(self._blocks.get(), PATIENCE)
            except TimeoutError:
                return []
            self._ended = not data
            self._items.extend(self._rows.feed(data, is_all=self._ended))
        return [self._items.popleft() for _ in range(min(most, len(self._items)))]

    def place(self, end: Any) -> dict[str, Any]:
        return {"bytes": end[0], "lines": end[1]}

    async def learnt(self, end: Any) -> None:
        """What was read is gone already."""

    async def close(self) -> None:
        """The thread ends with the input, or with the process."""
