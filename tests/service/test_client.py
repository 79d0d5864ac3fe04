"""The client, on its own and with a server on loopback: what it sends, what it repeats, and what it tells."""

import datetime as dt
import json
import math
import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayou.client as client_module
from bayou.cli.app import app as commands
from bayou.client import Client, Prediction, ServerError
from bayou.errors import BayouError
from tests.service.kills import free_port
from tests.service.made import inputs, rows
from tests.service.test_over_the_wire import served


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served(tmp_path_factory.mktemp("served") / "store.db") as address:
        yield address


class Scripted:
    """A server of one connection after another, each with what it does; what came is kept."""

    def __init__(self, *each):
        self.requests, self._listening = [], socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, args=(each,), daemon=True)
        self._thread.start()

    def _run(self, each):
        for do in each:
            connection, _ = self._listening.accept()
            with connection:
                connection.settimeout(10.0)
                do(self, connection)

    def take(self, connection):
        """One request, with its body."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65_536)
        head, _, body = data.partition(b"\r\n\r\n")
        lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-le")]
        while lengths and len(body) < lengths[0]:
            body += connection.recv(65_536)
        self.requests.append((head.split(b"\r\n")[0].decode(), body))

    def end(self):
        self._thread.join(20.0)
        self._listening.close()


def answer(text, more=b""):
    body = json.dumps(text).encode()
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%s\r\n" % (len(body), more) + body
    )


def test_a_connection_that_was_idle_is_not_used_again(monkeypatch):
    """The server lets go of it after a while; what is not repeated must not go there."""
    monkeypatch.setattr("bayou.client.IDLE", 0.2)
    let_go = threading.Event()

    def answers_once(server, connection):
        server.take(connection)
        connection.sendall(answer({"version": 1}))
        let_go.wait(10.0)

    server = Scripted(answers_once, answers_once)
    with Client(server.url) as client:
        assert client.model("m").keep_version() == 1
        time.sleep(0.3)
        let_go.set()
        assert client.model("m").keep_version() == 1
    server.end()


@pytest.mark.slow
def test_the_server_is_asked_again_after_a_pause(url):
    with Client(url) as client:
        model = client.create("paused", "bought")
        model.learn(rows(100))
        time.sleep(6.0)  # uvicorn lets go after 5
        assert model.keep_version() == 2
        model.delete()


@pytest.mark.parametrize(
    "wrong", ["http://127.0.0.1:99999", "http://127.0.0.1:abc", "http://[::1", "http://a..b", "ftp://a", "127.0.0.1"]
)
def test_an_address_that_is_none_is_told(wrong, tmp_path):
    with pytest.raises(BayouError, match="`url`"):
        Client(wrong)
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n")
    told = CliRunner().invoke(commands, ["push", str(tmp_path / "rows.csv"), "--to", wrong, "--model", "m"])
    assert told.exit_code == 1
    assert "`url`" in told.output
    assert "Traceback" not in told.output


def test_letters_that_no_header_can_carry_are_told():
    with pytest.raises(BayouError, match="`token`") as error:
        Client("http://127.0.0.1:1", "secret\nsecret")
    assert "secret" not in str(error.value)
    with Client("http://127.0.0.1:1") as client, pytest.raises(BayouError, match="`key`"):
        client.model("m").learn([{"x": 1}], key="å")


def test_values_are_sent_as_json_has_them():
    def takes(server, connection):
        for _ in range(2):
            server.take(connection)
            connection.sendall(answer({"learnt": 1, "examples": 1}))

    server = Scripted(takes)
    moment = dt.datetime(2026, 1, 2, 3, 4, 5)
    row = {
        "nan": math.nan,
        "inf": -math.inf,
        "date": moment.date(),
        "time": moment,
        "int": np.int64(3),
        "float": np.float32(0.5),
        "double": np.float64(0.25),
        "nan32": np.float32("nan"),
        "bool": np.bool_(True),
        "text": np.str_("Rome"),
        "day": np.datetime64("2026-01-02"),
        "nanoseconds": np.datetime64("2026-01-02T03:04:05", "ns"),
        "never": np.datetime64("NaT"),
        "stamp": pd.Timestamp(moment),
        "nat": pd.NaT,
        "one": np.array(4),
    }
    with Client(server.url) as client:
        client.model("m").learn([row])
        client.model("m").learn([{**row, "nan": 1.0, "inf": 1.0, "nan32": 1.0}])
    server.end()
    taken = [json.loads(body)["instances"][0] for _, body in server.requests]
    assert taken[0] == {
        "nan": None,
        "inf": None,
        "date": "2026-01-02",
        "time": "2026-01-02T03:04:05",
        "int": 3,
        "float": 0.5,
        "double": 0.25,
        "nan32": None,
        "bool": True,
        "text": "Rome",
        "day": "2026-01-02",
        "nanoseconds": "2026-01-02T03:04:05.000000000",
        "never": None,
        "stamp": "2026-01-02T03:04:05",
        "nat": None,
        "one": 4,
    }
    assert taken[1] == {**taken[0], "nan": 1.0, "inf": 1.0, "nan32": 1.0}


def test_the_client_needs_no_numpy():
    """As the module itself: what imports it with all of bayou is another matter."""
    source = Path(client_module.__file__).read_text()
    names = {line.split()[1].split(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert names - {"bayou"} <= sys.stdlib_module_names


ITSELF = {}
ITSELF["x"] = ITSELF


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({"x": 1}, "`rows` must be a list of rows; got one"),
        (["x"], "row 0 is str"),
        ([{"x": 1.0}, {"x": math.nan, "y": {1}}], "row 1 in 'y' .*got set"),
        ([{"x": np.timedelta64(1, "s")}], "row 0 in 'x'"),
        ([{"x": np.arange(3)}], "row 0 in 'x' .*got ndarray"),
        ([{(1, 2): 3}], "row 0 in"),
        ([{"x": 10**5000}], "row 0 in 'x'"),
        ([ITSELF], "row 0 in 'x'"),
    ],
)
def test_rows_that_cannot_be_sent_are_told(sent, why):
    with Client("http://127.0.0.1:1", tries=1) as client:
        model = client.model("m")
        for ask in (model.learn, model.predict, model.predict_learn):
            with pytest.raises(BayouError, match=why) as error:
                ask(sent)
            assert not isinstance(error.value, ServerError)


def test_columns_that_are_not_known_are_told(url):
    with Client(url) as client:
        model = client.create("misspelt", "bought")
        assert model.learn(rows(100)).ignored_columns == ()
        more = [{**row, "prise": 1.0} for row in rows(3)]
        del more[0]["bought"]
        for told in (model.learn(more), model.predict_learn(more)):
            assert told.ignored_columns == ("prise",)
            assert (told.learnt, told.without_target) == (2, 1)
        assert model.predict([{"prise": 1.0}]).ignored_columns == ("prise",)
        said = model.predict([{"price": 1.0}])
        assert said.ignored_columns == ()
        assert model.feedback(said[0].id, True).without_target == 0
        model.delete()


def test_a_body_that_is_too_large_is_told_as_the_server_tells_it(url):
    with Client(url) as client:
        client.create("large", "bought")
        for key in (None, "again"):  # whether it may be repeated or not
            with pytest.raises(ServerError, match="at most 16777216 bytes") as error:
                client.ask("POST", "/v1/models/large:learn", {"text": "a" * 40_000_000}, key)
            assert error.value.status == 413
        client.model("large").delete()


def test_a_server_that_begins_again_is_waited_for(monkeypatch):
    waits = []
    monkeypatch.setattr("bayou.client.time.sleep", waits.append)
    with Client(f"http://127.0.0.1:{free_port()}") as client:
        with pytest.raises(ServerError, match="did not answer"):
            client.models()
        assert 14.0 < sum(waits) < 20.0
        assert max(waits) < 5.0
        assert client._connection.timeout == 300.0
        waits.clear()
        with pytest.raises(ServerError, match="did not answer"):
            client.model("m").predict([{"x": 1}])  # which would count twice
        assert not waits


def test_before_anything_was_learnt(url):
    """As the client's page says."""
    with Client(url) as client:
        model = client.create("empty", "bought")
        with pytest.raises(ServerError) as error:
            model.predict(inputs(rows(1)))
        assert error.value.status == 409
        model.delete()
        model = client.create("empty", "bought", task="binary", columns={"city": "category", "price": "number"})
        (said,) = model.predict(inputs(rows(1)))
        assert said.id is not None
        assert said == Prediction(said.id)
        model.delete()
