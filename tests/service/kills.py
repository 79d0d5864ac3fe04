"""Kill the server at random moments under a mixed load: nothing that was acknowledged is lost, or counted twice.

    python -m tests.service.kills 100 [seed]

The store gets triggers that keep every row that was ever in the journal, and every key that was answered, of which the
server itself forgets the older ones. Each request that was acknowledged must be there once, as it was sent, and nothing
else; and the model that is served must be, to the bit, one that has learnt all of these rows and was never broken off.
"""

import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import orjson

from bayou.service.events import FEEDBACK, LEARN, Event
from bayou.service.served_model import ServedModel
from bayou.service.settings import Settings
from bayou.service.store import Store
from tests.service.made import inputs, rows

COLUMNS = {"city": "category", "price": "number"}
SETTINGS = {"target": "bought", "task": "binary", "columns": COLUMNS}
FIRST = rows(300, 12345)
KEEP = """
CREATE TABLE everything AS SELECT * FROM journal;
CREATE TRIGGER keep AFTER INSERT ON journal BEGIN
    INSERT INTO everything VALUES (new.seq, new.model, new.kind, new.at, new.rows, new.body);
END;
CREATE TABLE everyone (seq INTEGER, key TEXT);
CREATE TRIGGER tell AFTER INSERT ON answers BEGIN INSERT INTO everyone VALUES (new.seq, new.key); END;
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def is_open(port):
    """Whether somebody listens; cheaper to ask than by HTTP."""
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """A process with a store, which may be killed and begun again."""

    def __init__(self, store):
        self.store, self.port, self.process = store, free_port(), None
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        self.begin()
        self.wait()

    def begin(self):
        command = [sys.executable, "-m", "bayou.cli", "serve", "--store", self.store, "--port", str(self.port)]
        self.process = subprocess.Popen(command)

    def wait(self):
        for _ in range(2400):
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended at once, with code {self.process.returncode}")
            if is_open(self.port):  # requests come once all models are there
                return
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
        self.batches = self.repeated = self.learnt = 0
        self.sent = {}  # by key, what was acknowledged
        self.predicted, self.error = 0, None

    def run(self):
        try:
            self.send()
        except BaseException as error:
            self.error = error

    def send(self):
        with httpx.Client(base_url=self.url, timeout=10.0) as client:
            while not self.stop.is_set():
                self.batches += 1
                seed = self.number * 1_000_000 + self.batches
                batch = rows(random.Random(seed).randint(1, 40), seed)
                self.until_told(client, "learn", {"instances": batch}, f"learn-{self.number}-{self.batches}")
                later = rows(2, -seed)
                try:
                    answer = client.post("/v1/models/m:predict", json={"instances": inputs(later)})
                except httpx.TransportError:
                    time.sleep(0.1)
                    continue
                assert answer.status_code in (200, 503, 507), answer.text
                if answer.status_code != 200:
                    continue
                said, self.predicted = answer.json(), self.predicted + len(later)
                labels = [{"id": id, "label": row["bought"]} for id, row in zip(said["ids"], later, strict=True)]
                self.until_told(client, "feedback", {"labels": labels}, f"label-{self.number}-{self.batches}")

    def until_told(self, client, verb, body, key):
        while True:
            try:
                answer = client.post(f"/v1/models/m:{verb}", json=body, headers={"idempotency-key": key})
                if answer.status_code == 200:
                    self.sent[key] = verb, body
                    self.learnt += answer.json()["learnt"]
                    return
                if answer.status_code not in (503, 507):
                    raise AssertionError(f"{verb}: {answer.status_code} {answer.text}")
            except httpx.TransportError:
                self.repeated += 1
                time.sleep(0.1)  # the server begins
            time.sleep(0.02)


def run(kills, path, seed=0, senders=3, longest=0.8):
    """Returns examples learnt, repeated requests, and rows of the journal that were replayed."""
    Store(str(path)).close()
    with sqlite3.connect(path) as db:
        db.executescript(KEEP)
    db.close()
    server, stop, chance = Server(str(path)), threading.Event(), random.Random(seed)
    server.start()
    try:
        made = httpx.post(f"{server.url}/v1/models", json={"name": "m", "settings": SETTINGS})
        assert made.status_code == 201, made.text
        client = httpx.Client(base_url=server.url, timeout=300.0)  # at first, kernels are compiled
        first = client.post("/v1/models/m:learn", json={"instances": FIRST}, headers={"idempotency-key": "first"})
        assert first.status_code == 200, first.text
        threads = [Sender(server.url, number, stop) for number in range(senders)]
        for thread in threads:
            thread.start()
        for turn in range(kills):
            if turn % 10 == 9:  # while it starts, or replays
                time.sleep(chance.uniform(0.5, 3.0))
            else:
                server.wait()
                time.sleep(chance.uniform(0.05, longest))
            server.kill()
            server.begin()
        server.wait()
        time.sleep(0.3)
        stop.set()
        for thread in threads:
            thread.join(60.0)
            assert not thread.is_alive()
            if thread.error is not None:
                raise thread.error
            assert thread.learnt > 0
            assert thread.predicted > 0
        examples = client.get("/v1/models/m").json()["examples"]
        state = client.get("/v1/models/m/file").content
        client.close()
        server.kill()
    finally:
        if server.process.poll() is None:
            server.kill()
    learnt = len(FIRST) + sum(thread.learnt for thread in threads)
    assert examples == learnt, f"{examples} examples are there; {learnt} were acknowledged"
    sent = {"first": ("learn", {"instances": FIRST})}
    for thread in threads:
        sent |= thread.sent
    return examples, sum(thread.repeated for thread in threads), check_journal(path, sent, state)


def check_journal(path, sent, state):
    """Each acknowledged request is in the journal once, as it was sent; replayed, the journal gives the same bits."""
    store = Store(str(path))
    settings, last = Settings.of(store.models()[0].settings), store.last_seq()
    store.close()
    with sqlite3.connect(path) as db:
        journal = db.execute("SELECT seq, kind, at, body FROM everything ORDER BY seq").fetchall()
        answered = dict(db.execute("SELECT seq, key FROM everyone").fetchall())
    db.close()
    assert len({row[0] for row in journal}) == len(journal)
    assert journal[-1][0] <= last
    events = {seq: Event.of(kind, at, body) for seq, kind, at, body in journal}
    learnt = {seq: event for seq, event in events.items() if event.kind in (LEARN, FEEDBACK)}
    assert learnt.keys() == answered.keys()
    assert sorted(answered.values()) == sorted(sent)
    for seq, event in learnt.items():
        verb, body = sent[answered[seq]]
        if verb == "learn":
            wanted = {"rows": body["instances"]}
        else:
            wanted = {"labels": [[one["id"], one["label"]] for one in body["labels"]]}
        assert (event.kind, orjson.dumps(event.body)) == (verb, orjson.dumps(wanted)), answered[seq]
    served = ServedModel(settings)
    for seq, event in events.items():
        served.apply(seq, event)
    assert served.to_bytes() == state
    return len(journal)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        started = time.time()
        examples, repeated, replayed = run(int(sys.argv[1]), Path(folder) / "store.db", seed=int([*sys.argv, "0"][2]))
        print(f"{sys.argv[1]} kills in {time.time() - started:.0f} s: {examples:,} examples, none lost, none twice;")
        print(f"{repeated:,} requests were cut off; {replayed:,} rows of the journal replay to the bit.")
