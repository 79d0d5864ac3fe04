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


def pushed(url, path, *words):
    told = CliRunner().invoke(commands, ["push", str(path), "--to", url, *words])
    assert "Traceback" not in told.output
    return told.exit_code, told.output


def names(url):
    return {one["name"] for one in httpx.get(f"{url}/v1/models").json()["models"]}


def test_a_model_of_another_target_is_not_pushed_to(url, tmp_path):
    pl.DataFrame(rows(100)).write_csv(tmp_path / "rows.csv")
    words = tmp_path / "rows.csv", "--model", "owned"
    assert pushed(url, *words, "--target", "bought", "--task", "binary")[0] == 0
    code, told = pushed(url, *words, "--target", "price")
    assert code == 1
    assert "'bought'" in told
    assert "'price'" in told
    code, told = pushed(url, *words, "--task", "regression")
    assert code == 1
    assert "must be binary; got --task regression" in told
    assert pushed(url, *words, "--target", " bought ", "--task", "binary")[0] == 0
    assert httpx.get(f"{url}/v1/models/owned").json()["examples"] == 100


def test_the_task_of_a_model_that_push_makes(url, tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(50)))
    assert pushed(url, tmp_path / "rows.csv", "--model", "tasked", "--target", "y", "--task", "count")[0] == 0
    assert httpx.get(f"{url}/v1/models/tasked").json()["task"] == "count"
    code, told = pushed(url, tmp_path / "rows.csv", "--model", "none", "--target", "y", "--task", "guess")
    assert code == 1
    assert "--task must be one of auto, binary" in told


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x,z\n1,2\n3,4\n", "rows must have the target 'y'"),
        ("x,y\n1,\n3,\n", "y"),
        ("x,y\n1\n3,4\n", "2 fields"),
    ],
)
def test_a_model_that_was_made_for_nothing_is_taken_back(url, tmp_path, text, why):
    (tmp_path / "rows.csv").write_text(text)
    code, told = pushed(url, tmp_path / "rows.csv", "--model", "fresh", "--target", "y")
    assert code == 1
    assert why in told
    assert "fresh" not in names(url)


def test_a_model_that_has_learnt_is_never_taken_back(url, tmp_path):
    """Neither what was there, nor what was made and has learnt the parts before the one that is refused."""
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,true\n2,false\n" * 20)
    (tmp_path / "more.csv").write_text("x,y\n" + "1,true\n2,false\n" * 20 + "3\n")
    assert pushed(url, tmp_path / "rows.csv", "--model", "kept", "--target", "y")[0] == 0
    assert pushed(url, tmp_path / "more.csv", "--model", "kept", "--rows", "10")[0] == 1
    code, told = pushed(url, tmp_path / "more.csv", "--model", "other", "--target", "y", "--rows", "10")
    assert code == 1
    assert "fields" in told
    assert {"kept", "other"} <= names(url)
    with Client(url) as client:
        client.create("waits", "y")
    assert pushed(url, tmp_path / "none.csv", "--model", "waits", "--target", "y")[0] == 1
    assert "waits" in names(url)


def test_rows_without_targets_are_no_success(url, tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,true\n2,false\n" * 20)
    (tmp_path / "bare.csv").write_text("x,yes\n1,true\n2,false\n")
    assert pushed(url, tmp_path / "rows.csv", "--model", "bare", "--target", "y")[0] == 0
    code, told = pushed(url, tmp_path / "bare.csv", "--model", "bare")
    assert code == 1
    assert "rows must have the target 'y'; of 2 that were sent none has one" in told
    (tmp_path / "some.csv").write_text("x,yes,y\n1,true,true\n2,false,\n")
    code, told = pushed(url, tmp_path / "some.csv", "--model", "bare")
    assert code == 0
    assert "2 rows were sent, 1 with a target" in told
    assert "left out: yes" in told


def test_push_offers_tables_only(url, tmp_path):
    told = CliRunner().invoke(commands, ["push", "--help"], terminal_width=200).output
    assert "libsvm" not in told
    assert "with the same name, rows and --rows" in " ".join(told.split())
    (tmp_path / "rows.txt").write_text("1 1:0.5\n0 2:0.5\n")
    for format in ("libsvm", "vw", "texts"):
        code, told = pushed(url, tmp_path / "rows.txt", "--format", format, "--model", "sparse", "--target", "label")
        assert code == 1
        assert f"--format must be one of csv, tsv, parquet, ipc, json; got '{format}'" in told
    (tmp_path / "rows.libsvm").write_text("1 1:0.5\n0 2:0.5\n")
    code, told = pushed(url, tmp_path / "rows.libsvm", "--model", "sparse", "--target", "label")
    assert code == 1
    assert "rows of libsvm cannot be pushed" in told
    assert "sparse" not in names(url)


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
