"""Kill the server at random moments under a mixed load: nothing that was acknowledged is lost, or counted twice.

python -m tests.service.kills 100 [seed]
"""

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx

from bayou.modelfile import from_bytes
from bayou.service.events import Event
from bayou.service.served_model import ServedModel
from bayou.service.settings import Settings
from bayou.service.store import Store
from tests.service.made import inputs, rows

COLUMNS = {"city": "category", "price": "number"}
SETTINGS = {"target": "bought", "task": "binary", "columns": COLUMNS}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A process with a store, which may be killed and begun again."""

    def __init__(self, store):
        self.store, self.port, self.process = store, free_port(), None
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        command = [sys.executable, "-m", "bayou.cli", "serve", "--store", self.store, "--port", str(self.port)]
        self.process = subprocess.Popen(command)
        self.wait()

    def wait(self):
        for _ in range(2400):
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended at once, with code {self.process.returncode}")
            try:
                if httpx.get(f"{self.url}/v2/health/ready", timeout=5.0).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise RuntimeError("the server did not begin")

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Sender(threading.Thread):
    """Learns batches, each with a key, repeated until it is acknowledged; predicts, and labels what it predicted."""

    def __init__(self, url, number, stop):
        super().__init__(daemon=True)
        self.url, self.number, self.stop = url, number, stop
        self.batches = self.learnt = self.labelled = self.repeated = self.unsure = 0

    def run(self):
        with httpx.Client(base_url=self.url, timeout=10.0) as client:
            while not self.stop.is_set():
                self.batches += 1
                seed = self.number * 1_000_000 + self.batches
                batch = rows(random.Random(seed).randint(1, 40), seed)
                told = self.until_told(client, "learn", {"instances": batch}, f"learn-{self.number}-{self.batches}")
                self.learnt += told["learnt"] if told else 0
                later = rows(2, -seed)
                try:
                    said = client.post("/v1/models/m:predict", json={"instances": inputs(later)}).json()
                except (httpx.TransportError, ValueError):
                    continue
                labels = [{"id": id, "label": row["bought"]} for id, row in zip(said["ids"], later, strict=True)]
                told = self.until_told(client, "feedback", {"labels": labels}, f"label-{self.number}-{self.batches}")
                self.labelled += told["learnt"] if told else 0

    def until_told(self, client, verb, body, key):
        while True:
            try:
                answer = client.post(f"/v1/models/m:{verb}", json=body, headers={"idempotency-key": key})
                if answer.status_code == 200:
                    return answer.json()
                if answer.status_code not in (503, 507):
                    raise AssertionError(f"{verb}: {answer.status_code} {answer.text}")
            except httpx.TransportError:
                self.repeated += 1
            time.sleep(0.02)


def run(kills, store, seed=0, senders=3, longest=0.8):
    """Returns examples learnt, repeated requests, and rows of the journal that were replayed."""
    server, stop, chance = Server(str(store)), threading.Event(), random.Random(seed)
    server.start()
    try:
        made = httpx.post(f"{server.url}/v1/models", json={"name": "m", "settings": SETTINGS})
        assert made.status_code == 201, made.text
        client = httpx.Client(base_url=server.url, timeout=30.0)
        client.post("/v1/models/m:learn", json={"instances": rows(300, 12345)})  # compiles what there is to compile
        threads = [Sender(server.url, number, stop) for number in range(senders)]
        for thread in threads:
            thread.start()
        for _ in range(kills):
            time.sleep(chance.uniform(0.05, longest))
            server.kill()
            server.start()
        time.sleep(0.3)
        stop.set()
        for thread in threads:
            thread.join(30.0)
            assert not thread.is_alive()
        examples = client.get("/v1/models/m").json()["examples"]
        wanted = 300 + sum(thread.learnt + thread.labelled for thread in threads)
        assert examples == wanted, f"{examples} examples are there; {wanted} were acknowledged"
        state = client.get("/v1/models/m/file").content
        client.close()
        server.kill()
    finally:
        if server.process.poll() is None:
            server.kill()
    replayed = check_journal(store, state)
    return examples, sum(thread.repeated for thread in threads), replayed


def check_journal(path, state):
    """The model that was served is, to the bit, that of an unbroken run over the journal."""
    store = Store(str(path))
    first = store.versions(1)[-1]
    latest = store.versions(1)[0]
    served = ServedModel.of_bytes(Settings.of(store.models()[0].settings), store.state(1, latest.number))
    served.seq, count = latest.seq, 0
    for row in store.journal(1, latest.seq, 10_000_000):
        served.apply(row.seq, Event.of(row.kind, row.at, row.body))
        count += 1
    store.close()
    assert first.number == 1 or latest.number > 1
    assert served.to_bytes() == state, f"{from_bytes(state)} is not {served.model}"
    return count


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        started = time.time()
        examples, repeated, replayed = run(int(sys.argv[1]), Path(folder) / "store.db", seed=int([*sys.argv, "0"][2]))
        print(f"{sys.argv[1]} kills in {time.time() - started:.0f} s: {examples:,} examples, none lost, none twice;")
        print(f"{repeated:,} requests were cut off; the last {replayed:,} rows of the journal replay to the bit.")
