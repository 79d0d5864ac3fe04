"""A server on loopback: the client, the command that pushes, metrics, and what OpenAPI promises."""

import contextlib
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import polars as pl
import pytest
import requests
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from typer.testing import CliRunner

from bayou.cli.app import app as commands
from bayou.client import Client, ServerError
from bayou.service.app import create_app
from bayou.service.store import Store
from tests.service.kills import free_port
from tests.service.made import inputs, rows


@contextlib.contextmanager
def served(path, **options):
    port = free_port()
    config = uvicorn.Config(create_app(Store(str(path)), **options), port=port, log_level="warning", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    for _ in range(500):
        if server.started:
            break
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20.0)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served(tmp_path_factory.mktemp("served") / "store.db") as address:
        yield address


def test_the_client_asks_for_all(url):
    client = Client(url)
    model = client.create("shops", "bought")
    assert model.learn(rows(200)).examples == 200
    said = model.predict(inputs(rows(2, 1)))
    assert said[0].probabilities["true"] + said[0].probabilities["false"] == pytest.approx(1.0)
    assert model.feedback(said[0].id, True).examples == 201
    assert len(model.predict_learn(rows(3, 2)).predictions) == 3
    version = model.keep_version("good")
    assert model.roll_back(version) == version + 1
    assert model.status()["examples"] == 204
    assert len(model.file()) > 1000
    with pytest.raises(ServerError, match="waits for its label") as error:
        model.feedback(said[0].id, True)
    assert error.value.status == 404
    model.delete()
    assert "shops" not in {one["name"] for one in client.models()}
    client.close()


def test_the_example_of_the_page_runs(url):
    text = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    code = text.split("```python\n")[1].split("```")[0].replace("http://127.0.0.1:8000", url)
    names = {}
    exec(code, names)  # what the page tells users to run
    assert set(names["said"].probabilities) == {"true", "false"}
    with names["client"]:
        assert names["shops"].status()["examples"] == 3
        names["shops"].delete()


def test_a_file_that_is_pushed_twice_counts_once(url, tmp_path):
    pl.DataFrame(rows(2300)).write_csv(tmp_path / "rows.csv")
    for _ in range(2):
        told = CliRunner().invoke(
            commands, ["push", str(tmp_path / "rows.csv"), "--to", url, "--model", "pushed", "--target", "bought"]
        )
        assert told.exit_code == 0, told.output
        assert "2,300 rows were sent" in told.output
    assert httpx.get(f"{url}/v1/models/pushed").json()["examples"] == 2300
    wrong = CliRunner().invoke(commands, ["push", str(tmp_path / "rows.csv"), "--to", url, "--model", "none"])
    assert wrong.exit_code == 1
    assert "there must be a model 'none'" in wrong.output


def test_metrics_are_named_as_prometheus_wants_them(url):
    client = Client(url)
    model = client.create("measured", "bought")
    model.learn(rows(100))
    said = model.predict(inputs(rows(2)))
    model.feedback(said[0].id, True)
    page = httpx.get(f"{url}/metrics").text
    for line in (
        'bayou_learn_examples_total{model="measured"} 101.0',
        'bayou_predict_requests_total{code="200",model="measured"} 1.0',
        'bayou_label_delay_seconds_count{model="measured"} 1.0',
        'bayou_pending_labels{model="measured"} 1.0',
        'bayou_model_info{model="measured",task="binary",version="1"} 1.0',
    ):
        assert line in page, page
    share = float(page.split('bayou_noise_rate{model="measured"} ')[1].split()[0])
    assert 0.0 <= share < 0.2
    for name in ("bayou_logloss", "bayou_ece_ratio", "bayou_drift_rate", "bayou_state_bytes"):
        assert f'{name}{{model="measured"}}' in page, name
    assert "bayou_predict_duration_seconds_bucket" in page
    model.delete()
    client.close()
    assert "measured" not in httpx.get(f"{url}/metrics").text


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_what_openapi_promises_holds(url, mode):
    """What the schema allows, and what it does not, is answered in time; a body that it does not allow is refused."""
    schemathesis = pytest.importorskip("schemathesis")
    way = schemathesis.GenerationMode[mode]
    httpx.post(f"{url}/v1/models", json={"name": "m", "settings": {"target": "bought"}})
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json").exclude(path_regex="events")
    tried, session = 0, requests.Session()
    for found in schema.get_all_operations():
        operation = found.ok()

        if way.is_negative and not (operation.body or operation.query):
            continue

        @settings(
            max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(operation.as_strategy(generation_mode=way))
        def check(case):
            answer = case.call(session=session, timeout=30.0)
            told = f"{case.method} {case.formatted_path}: {answer.status_code} {answer.text}"
            assert answer.status_code < 500, told
            assert answer.status_code >= 400 or not way.is_negative, told

        with contextlib.suppress(Unsatisfiable):  # nothing that can be sent is wrong with it
            check()
            tried += 1
    session.close()
    assert tried >= (8 if way.is_negative else 20)


@pytest.mark.soak
def test_schemathesis_finds_no_error_of_the_server(tmp_path):
    """Its own command, with all that it thinks of: boundaries, wrong bodies, requests after each other."""
    pytest.importorskip("schemathesis")
    command = [sys.executable, "-m", "schemathesis.cli", "run", "--exclude-path-regex", "events", "-n", "100"]
    command += ["--mode", "all", "--seed", "1", "--suppress-health-check", "all", "--request-timeout", "60"]
    command += ["--checks", "not_a_server_error,content_type_conformance,response_schema_conformance"]
    with served(tmp_path / "store.db") as address:
        with Client(address) as client:
            client.create("m", "bought").learn(rows(200))
        told = subprocess.run(
            [*command, f"{address}/openapi.json"], capture_output=True, text=True, timeout=900, check=False
        )
        assert told.returncode == 0, told.stdout[-5000:]
        assert httpx.get(f"{address}/v2/health/ready").status_code == 200
