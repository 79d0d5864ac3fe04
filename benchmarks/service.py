"""The service beside what it stands on, as ratios in one run: python -m benchmarks.service [--seconds 5]

predict   requests per second, beside a bare FastAPI echo of the same payload; with ids, and without
learn     rows per second in batches of 1000, beside `TableModel.learn_many` in the process
p99       of one predictor while others learn as fast as they can, beside that of one alone
"""

import argparse
import asyncio
import os
import secrets
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import orjson
import polars as pl

import bayou
from bayou.numerics.files import ALLOCATOR
from bayou.service.patience import SWITCH
from tests.service.kills import Server
from tests.service.made import inputs, rows

STAMPED = 35  # SO_TIMESTAMPNS of Linux
ECHO = """
import sys, uvicorn
from fastapi import FastAPI
from bayou.service.schemas import Predict
app = FastAPI()
@app.post("/v1/models/m:predict")
async def echo(body: Predict) -> Predict:
    return body
@app.get("/v2/health/ready")
async def ready() -> dict[str, bool]:
    return {"ready": True}
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", access_log=False)
"""


class Echo(Server):
    """The same payload, there and back."""

    def start(self):
        self.process = subprocess.Popen([sys.executable, "-c", ECHO, str(self.port)])
        self.wait()


def worked(process):
    """Seconds of processor time that a process has taken so far, however busy the machine is with others."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request(verb, body):
    data = orjson.dumps(body)
    head = f"POST /v1/models/m:{verb} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data


def with_key(message):
    """As clients send what is to count once."""
    return message.replace(b"\r\n", b"\r\nidempotency-key: %b\r\n" % secrets.token_hex(16).encode(), 1)


async def telling(port, message, until, times):
    """Tell again and again, each time with another key."""
    await asking(port, message, until, times, with_key)


async def asking(port, message, until, times, dressed=bytes):
    """Ask again and again over one connection; how long each answer took goes to ``times``."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while (started := time.perf_counter()) < until:
        writer.write(dressed(message))
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"{head!r} {body[:200]!r}")
        times.append(time.perf_counter() - started)
    writer.close()


async def load(port, message, seconds, connections, learning=None, learners=0, asks=asking):
    until, times, learnt = time.perf_counter() + seconds, [], []
    others = [telling(port, learning, until, learnt) for _ in range(learners)]
    await asyncio.gather(*(asks(port, message, until, times) for _ in range(connections)), *others)
    return times, learnt


def arrived(stamp):
    whole, billionths = struct.unpack("qq", stamp)
    return whole + billionths * 1e-9


async def waiting(port, message, until, times):
    """The same, by when the kernel had an answer for us: on two cores of which a learner has one, it may take the
    scheduler a whole tick more, 4 ms, to let us read it, and that is not the server's.
    """
    loop, one = asyncio.get_running_loop(), socket.create_connection(("127.0.0.1", port))
    one.setsockopt(socket.SOL_SOCKET, STAMPED, 1)
    one.setblocking(False)
    while time.perf_counter() < until:
        started, answer, wanted = time.time(), b"", None
        await loop.sock_sendall(one, message)
        while wanted is None or len(answer) < wanted:
            can_read = loop.create_future()
            loop.add_reader(one, can_read.set_result, None)
            await can_read
            loop.remove_reader(one)
            part, told, _, _ = one.recvmsg(2**16, 1024)
            answer += part
            head, end, _ = answer.partition(b"\r\n\r\n")
            if end:
                wanted = len(head + end) + int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer[:200])
        stamp = next((stamp for _, kind, stamp in told if kind == STAMPED), None)
        times.append((arrived(stamp) if stamp else time.time()) - started)
    one.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    seconds = options.seconds
    one = inputs(rows(1, 5))
    ask, only = request("predict", {"instances": one}), request("predict", {"instances": one, "issue_id": False})
    bulk = request("learn", {"instances": rows(1000, 3)})
    sys.setswitchinterval(SWITCH)
    os.environ.pop(ALLOCATOR, None)  # polars, loaded here, has told what a server is to tell it
    with tempfile.TemporaryDirectory() as folder:
        server, echo = Server(str(Path(folder) / "store.db")), Echo("")
        try:
            server.start()
            echo.start()
            warm(server)
            predict_rates(echo, server, ask, only, seconds, options.connections)
            learn_rates(server, bulk, seconds)
            for name, message in (("with ids", ask), ("without", only)):
                print(f"p99 of predict {name}: {slowest_of_hundred(server, message, bulk, seconds)}")
        finally:
            for each in (server, echo):
                if each.process is not None:
                    each.kill()


def slowest_of_hundred(server, message, bulk, seconds):
    """At rest and while others learn, by turns: what else a machine does now and then is in some of them."""
    at_rest, under, rows_learnt = [], [], []
    for _ in range(5):
        rest, _ = asyncio.run(load(server.port, message, seconds / 2, 1, asks=waiting))
        busy, learnt = asyncio.run(load(server.port, message, seconds / 2, 1, bulk, 2, waiting))
        for found, times in ((at_rest, rest), (under, busy)):
            found.append(float(np.quantile(times, 0.99)) * 1e3)
        rows_learnt.append(2000 * len(learnt) / seconds)
    ratios = np.array(under) / np.array(at_rest)
    told = f"{np.median(at_rest):.2f} ms at rest, {np.median(under):.2f} ms while {np.median(rows_learnt):,.0f} rows/s"
    return f"{told} are learnt: {np.median(ratios):.1f} times ({ratios.min():.1f} to {ratios.max():.1f})"


def predict_rates(echo, server, ask, only, seconds, connections):
    asked = {"echo": (echo, ask), "with ids": (server, ask), "without": (server, only)}
    rates, costs = {name: [] for name in asked}, {name: [] for name in asked}
    for _ in range(5):  # interleaved
        for name, (one, message) in asked.items():
            before = worked(one.process)
            times, _ = asyncio.run(load(one.port, message, seconds / 2, connections))
            rates[name].append(len(times) / seconds * 2)
            costs[name].append((worked(one.process) - before) / len(times) * 1e3)
    rate, cost = ({name: float(np.median(each[name])) for name in asked} for each in (rates, costs))
    print(
        f"echo: {rate['echo']:,.0f} requests/s over {connections} connections, {cost['echo']:.3f} ms of processor each"
    )
    for name in ("with ids", "without"):
        told = f"{rate[name]:,.0f}/s, {rate[name] / rate['echo']:.2f} of the echo"
        print(f"predict {name}: {told}; {cost[name]:.3f} ms each, {cost['echo'] / cost[name]:.2f} of the echo")


def warm(server):
    httpx.post(f"{server.url}/v1/models", json={"name": "m", "settings": {"target": "bought"}}, timeout=300)
    for seed in range(3):
        httpx.post(f"{server.url}/v1/models/m:learn", json={"instances": rows(1000, seed)}, timeout=300)


def learn_rates(server, bulk, seconds):
    model, table = bayou.TableModel("bought"), pl.DataFrame(rows(1000, 3))
    for seed in range(3):
        model.learn_many(pl.DataFrame(rows(1000, seed)))
    ratios, costs, by_http = [], [], 0.0
    for _ in range(3):
        started, count, own = time.perf_counter(), 0, time.process_time()
        while time.perf_counter() < started + seconds / 2:
            model.learn_many(table)
            count += 1
        alone, own = 1000 * count / (time.perf_counter() - started), (time.process_time() - own) / count
        started, before = time.perf_counter(), worked(server.process)
        times, _ = asyncio.run(load(server.port, bulk, seconds / 2, 2, asks=telling))
        by_http = 1000 * len(times) / (time.perf_counter() - started)
        ratios.append(by_http / alone)
        costs.append(own * len(times) / (worked(server.process) - before))
    told = f"{by_http:,.0f} rows/s, {np.median(ratios):.2f} of in the process"
    print(f"learn: {told}; by processor time {np.median(costs):.2f}")


if __name__ == "__main__":
    main()
