"""The command that serves: what it tells, when, and where it listens."""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest

from bayou.client import Client
from bayou.errors import BayouError
from bayou.service.server import bound, url_of
from tests.service.kills import free_port

SECONDS = 60.0  # for a process to begin, on a machine that is busy


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def serving(store, port, *more):
    """A process that serves, from its first line on, which is given."""
    command = [sys.executable, "-m", "bayou.cli", "serve", "--store", str(store), "--port", str(port), *more]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    late = threading.Timer(SECONDS, process.kill)
    late.start()
    try:
        yield process, process.stderr.readline()
    finally:
        late.cancel()
        process.kill()
        process.wait(30)
        process.stderr.close()


def ended(*words):
    """The code and the lines of a command that cannot serve."""
    command = [sys.executable, "-m", "bayou.cli", "serve", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "http://127.0.0.1"),
        pytest.param("::1", "http://[::1]", marks=pytest.mark.skipif(not has_ipv6(), reason="there is no IPv6 here")),
    ],
)
def test_the_address_is_told_once_requests_are_taken(tmp_path, host, shown):
    port = free_port()
    with serving(tmp_path / "store.db", port, "--host", host) as (process, line):
        address = f"{shown}:{port}"
        assert line == f"bayou: serving {tmp_path / 'store.db'} at {address}; Ctrl-C ends it.\n"
        assert httpx.get(f"{address}/v2/health/ready", timeout=20.0).status_code == 200
        with Client(address) as client:
            assert client.models() == []
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, lines = ended("--store", tmp_path / "store.db", "--port", port)
    assert code == 1
    taken = f"[Errno {errno.EADDRINUSE}] {os.strerror(errno.EADDRINUSE)}"
    assert lines == [f"bayou: port {port} of 127.0.0.1 must be free; {taken}."]
    assert not (tmp_path / "store.db").exists()


def test_a_store_that_another_has_is_told_in_one_line(tmp_path):
    with serving(tmp_path / "store.db", free_port()) as (_, line):
        assert "serving" in line
        code, lines = ended("--store", tmp_path / "store.db", "--port", free_port())
    assert code == 1
    assert len(lines) == 1
    assert "that no other server has" in lines[0]


def test_a_port_is_free_as_soon_as_who_had_it_is_killed(tmp_path):
    port = free_port()
    for _ in range(2):
        with serving(tmp_path / "store.db", port) as (process, line):
            assert "serving" in line
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20.0) as client:  # a connection is open
                assert client.get("/v2/health/ready").status_code == 200
                process.kill()
                process.wait(30)


RACE = """
import sys
import bayou.service.server as server
from bayou.cli import main

def taken(*arguments):
    sockets = bound(*arguments)
    others.extend(bound(*arguments))
    others[0].listen()
    return sockets

others, bound, server.bound = [], server.bound, taken
main()
"""


def test_a_port_that_is_taken_while_models_are_read_is_told(tmp_path):
    """Two sockets may be bound to it as long as none listens."""
    port = free_port()
    command = [sys.executable, "-c", RACE, "serve", "--store", str(tmp_path / "store.db"), "--port", str(port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert f"bayou: port {port} of 127.0.0.1 must be free; another has begun to listen there.\n" in done.stderr
    assert "serving" not in done.stderr


def test_hosts_of_other_machines_are_told():
    with pytest.raises(BayouError, match=r"address of this machine; got '203\.0\.113\.7'"):
        bound("203.0.113.7", free_port())
    with pytest.raises(BayouError, match=r"address of this machine; got 'nowhere\.invalid'"):
        bound("nowhere.invalid", free_port())
    assert url_of("::1", 8122) == "http://[::1]:8122"


def test_all_addresses_of_a_name_are_served(monkeypatch):
    """As `localhost` may be of IPv6 and of IPv4; one that the machine does not have is passed over."""
    port = free_port()
    tcp = socket.SOCK_STREAM, socket.IPPROTO_TCP, ""
    found = [(socket.AF_INET, *tcp, (address, port)) for address in ("127.0.0.1", "127.0.0.2", "203.0.113.7")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [*found, found[0]])
    sockets = bound("localhost", port)
    try:
        assert [one.getsockname() for one in sockets] == [("127.0.0.1", port), ("127.0.0.2", port)]
    finally:
        for one in sockets:
            one.close()


def test_small_answers_are_sent_at_once():
    """Those who are answered do not wait for more to be sent with it."""

    class Tells(asyncio.Protocol):
        def connection_made(self, transport):
            told.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            transport.close()

    async def run(port):
        (one,) = bound("127.0.0.1", port)
        server = await asyncio.get_running_loop().create_server(Tells, sock=one)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await reader.read()
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()

    told = []
    asyncio.run(run(free_port()))
    assert told == [1]
