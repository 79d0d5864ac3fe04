"""Who may ask, how much may be sent, and what browsers are told."""

from __future__ import annotations

import hmac
import ipaddress
import time
from collections.abc import Callable
from typing import Any

from bayou.errors import BayouError
from bayou.service.errors import Busy
from bayou.service.limits import MOST_BYTES, MOST_FILE_BYTES, MOST_HELD

LEAST_TOKEN = 16  # letters
OPEN = ("/", "/v2/health/live", "/v2/health/ready")  # says nothing that is worth a token
OPEN_UNDER = "/dashboard/"  # pages and scripts, without data
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
STREAMED = (b"application/x-ndjson",)
Seen = Callable[[str, int, float], None]  # a path, the code of the answer, seconds


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_of(header: str) -> str:
    """Of a host and a port, the host.

    >>> host_of("localhost:8000"), host_of("LOCALHOST"), host_of("[::1]:8000"), host_of("[::1]")
    ('localhost', 'localhost', '::1', '::1')
    """
    return (header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]).lower()


def check_token(token: str | None, host: str) -> str | None:
    """Raise if an address that others can reach has no token, or one that can be guessed."""
    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise BayouError(f"a token must have at least {LEAST_TOKEN} printable letters; got {len(token)}.")
    if token is None and not is_loopback(host):
        raise BayouError(f"any host but this machine itself needs a token (--token-file or BAYOU_TOKEN); got {host}.")
    return token


class Guard:
    """In front of the application: token, host, size, and headers. Every request passes it."""

    def __init__(
        self, app: Any, token: str | None = None, hosts: tuple[str, ...] | None = None, seen: Seen | None = None
    ) -> None:
        self.app, self._hosts, self._seen = app, hosts, seen
        self.held = 0  # bytes of all bodies that are being answered
        self._token = None if token is None else b"Bearer " + token.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self.app(scope, receive, send)
            return
        headers, started = dict(scope["headers"]), time.perf_counter()

        async def sends(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]} & {b"cache-control"}
                message["headers"] = [*message["headers"], *(one for one in HEADERS if one[0] not in own)]
                if self._seen is not None:
                    self._seen(scope["path"], message["status"], time.perf_counter() - started)
            await send(message)

        refused = self._refused(scope, headers)
        if refused is not None:
            await _answer(sends, *refused)
            return
        limit = _limit(scope, headers)
        body = _Bounded(receive, limit, self)
        try:
            await self.app(scope, body, sends)
        finally:
            self.held -= body.held

    def _refused(self, scope: Any, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        host = host_of(headers.get(b"host", b"").decode("latin-1"))
        if self._hosts is not None and host not in self._hosts:  # a page elsewhere has a name of its own for us
            return 421, "the host must be that of this server"
        if self._token is not None and not _is_open(scope["path"]):
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, self._token):
                return 401, "a request must bring the token, as `Authorization: Bearer ...`"
        if self._token is None and headers.get(b"origin") not in (None, b"http://" + headers.get(b"host", b"")):
            return 403, "a request must not come from a page of another origin"
        length = headers.get(b"content-length")
        if length is not None and (not length.isdigit() or int(length) > _limit(scope, headers)):
            return 413, f"a body must have at most {_limit(scope, headers)} bytes"
        return None


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(OPEN_UNDER)


def _limit(scope: Any, headers: dict[bytes, bytes]) -> float:
    is_streamed = headers.get(b"content-type", b"").split(b";")[0].strip() in STREAMED
    if is_streamed and scope["method"] == "POST" and scope["path"].endswith(":learn"):
        return float("inf")  # it is read in parts
    return MOST_FILE_BYTES if scope["path"].endswith("/file") else MOST_BYTES


class TooLong(Exception):
    """A body that is longer than it may be, found while it is read."""


class _Bounded:
    """A body as it comes: no longer than it may be, nor more of all of them than there is room for."""

    def __init__(self, receive: Any, limit: float, guard: Guard) -> None:
        self._receive, self._left, self._guard = receive, limit, guard
        self._is_kept = limit < float("inf")  # others are read in parts
        self.held = 0

    async def __call__(self) -> Any:
        message = await self._receive()
        length = len(message.get("body", b""))
        self._left -= length
        if self._left < 0:
            raise TooLong("a body must be no longer than that; see the limits of the service.")
        if self._is_kept:
            self.held += length
            self._guard.held += length
            if length and self._guard.held > MOST_HELD:
                raise Busy("too much is being answered already; try again later.")
        return message


async def _answer(send: Any, status: int, detail: str) -> None:
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    body = b'{"detail":"%s"}' % detail.replace("`", "'").encode()
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
