"""``bayou serve``: the application behind uvicorn, on this machine unless told otherwise."""

from __future__ import annotations

import errno
import gc
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import uvicorn

from bayou.errors import BayouError
from bayou.service.app import create_app
from bayou.service.patience import be_quick
from bayou.service.security import check_token, is_loopback
from bayou.service.sources.follower import Follow, check_asked
from bayou.service.store import Store

LOCAL = ("127.0.0.1", "localhost", "::1")
BACKLOG = 2048  # connections that wait to be taken, as uvicorn has it
Begun = Callable[[str], None]  # is told the address, once requests are taken


def serve(
    store: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    sync: str = "normal",
    token: str | None = None,
    follow: Sequence[Follow] = (),
    begun: Begun | None = None,
) -> None:
    """Serve until stopped."""
    token = check_token(token, host)
    if not Path(store).resolve().parent.is_dir():
        raise BayouError(f"the folder of the store must be there; got {store}.")
    hosts = (*LOCAL, host) if is_loopback(host) else None
    with ExitStack() as held:
        sockets = [held.enter_context(one) for one in bound(host, port)]
        file = _opened(store, sync, follow)
        app = create_app(file, token, hosts, follow=follow)
        be_quick()
        gc.collect()
        gc.freeze()  # what is loaded stays: to look through all of it takes a tenth of a second: nobody answers then
        config = uvicorn.Config(
            app,
            host,
            port,
            backlog=BACKLOG,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        server = Server(config, begun)
        app.app.state.is_ending = lambda: server.should_exit
        with suppress(SystemExit):  # by which uvicorn says that the application could not begin
            server.run(sockets)
    if not server.started:
        raise BayouError(f"the server could not begin at {host}:{port} with the store {store}; see above.")


def _opened(store: str, sync: str, follow: Sequence[Follow]) -> Store:
    """The store, if what is to be followed fits its models."""
    file = Store(store, sync)
    try:
        check_asked(follow, {model.name for model in file.models()})
    except BaseException:
        file.close()
        raise
    return file


class Server(uvicorn.Server):
    """Tells once requests are taken."""

    def __init__(self, config: uvicorn.Config, begun: Begun | None = None) -> None:
        super().__init__(config)
        self._begun = begun

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        try:
            await super().startup(sockets)
            for one in sockets or ():
                one.listen(BACKLOG)  # once more: where that fails, uvloop keeps it to itself
        except OSError as error:
            await self.lifespan.shutdown()
            raise BayouError(
                f"port {self.config.port} of {self.config.host} must be free; another has begun to listen there."
            ) from error
        if self._begun is not None and self.started:
            self._begun(url_of(self.config.host, self.config.port))


def url_of(host: str, port: int) -> str:
    """Where a server is found.

    >>> url_of("127.0.0.1", 8000), url_of("::1", 8122)
    ('http://127.0.0.1:8000', 'http://[::1]:8122')
    """
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bound(host: str, port: int) -> list[socket.socket]:
    """A socket at each address of a host, as ``localhost`` may have two; none listens before all models are there.

    The protocol is kept as it is found: asyncio sends small answers at once (TCP_NODELAY) where it is TCP by name.
    """
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise BayouError(f"the host must be an address of this machine; got {host!r}: {error}.") from error
    sockets, missing = list[socket.socket](), OSError(errno.EADDRNOTAVAIL, "there is no such address")
    for family, kind, protocol, _, address in dict.fromkeys(found):
        try:
            sockets.append(_bound(family, kind, protocol, address))
        except OSError as error:
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # as where IPv6 is switched off
                missing = error
                continue
            for one in sockets:
                one.close()
            raise _taken(host, port, error) from error
    if not sockets:
        raise BayouError(f"the host must be an address of this machine; got {host!r}: {missing}.") from missing
    return sockets


def _bound(family: int, kind: int, protocol: int, address: tuple[object, ...]) -> socket.socket:
    one = socket.socket(family, kind, protocol)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that was killed may begin again at once
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # IPv4 has a socket of its own
        one.bind(address)
    except BaseException:
        one.close()
        raise
    return one


def _taken(host: str, port: int, error: OSError) -> BayouError:
    must = "be free" if error.errno == errno.EADDRINUSE else "be one that may be served"
    return BayouError(f"port {port} of {host} must {must}; {error}.")
