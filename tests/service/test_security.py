"""Whoever must not gets a clear no, and the server stays up."""

import asyncio

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayou.errors import BayouError
from bayou.service import security
from bayou.service.security import check_token
from tests.service.made import rows

TOKEN = "a-token-of-enough-letters"
NEW = {"name": "m", "settings": {"target": "bought"}}


def test_a_token_is_asked_for(serving):
    async def run():
        async with serving(token=TOKEN) as client:
            for given_token in (None, "Bearer wrong", f"Bearer {TOKEN}x", TOKEN, "Bearer " + TOKEN[:-1]):
                headers = {} if given_token is None else {"authorization": given_token}
                for method, path in (("GET", "/v1/models"), ("POST", "/v1/models/m:predict"), ("GET", "/metrics")):
                    refused = await client.request(method, path, headers=headers)
                    assert refused.status_code == 401
                    assert "token" in refused.json()["detail"]
                    assert refused.headers["www-authenticate"] == "Bearer"
            assert (await client.get("/v2/health/live")).status_code == 200
            fine = await client.get("/v1/models", headers={"authorization": f"Bearer {TOKEN}"})
            assert fine.status_code == 200

    asyncio.run(run())


def test_no_other_host_without_a_token():
    for host in ("0.0.0.0", "192.168.1.5", "example.org", "::"):
        with pytest.raises(BayouError, match="needs a token"):
            check_token(None, host)
        assert check_token(TOKEN, host) == TOKEN
    assert check_token(None, "127.0.0.1") is check_token(None, "::1") is None
    with pytest.raises(BayouError, match="at least 16"):
        check_token("short", "127.0.0.1")


def test_pages_elsewhere_reach_nothing(serving):
    async def run():
        async with serving(hosts=("127.0.0.1",)) as client:
            for host in ("evil.example", "127.0.0.1.evil.example", ""):
                assert (await client.get("/v1/models", headers={"host": host})).status_code == 421
            other = await client.post("/v1/models", json=NEW, headers={"origin": "http://evil.example"})
            assert other.status_code == 403
            fine = await client.get("/v1/models")
            assert "default-src 'none'" in fine.headers["content-security-policy"]
            assert fine.headers["x-content-type-options"] == "nosniff"
            assert "access-control-allow-origin" not in fine.headers
            for path in ("/docs", "/redoc"):  # they would load from elsewhere
                assert (await client.get(path)).status_code == 404

    asyncio.run(run())


def test_bodies_are_bounded(serving, monkeypatch):
    monkeypatch.setattr(security, "MOST_BYTES", 10_000)

    async def run():
        async def drops():
            for _ in range(100):
                yield b" " * 1000

        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            for body in (b" " * 20_000, drops()):  # with and without a length that is told
                large = await client.post("/v1/models/m:learn", content=body)
                assert large.status_code == 413, large.text
            monkeypatch.undo()
            many = {"instances": [{"x": 1}] * 10_001}
            assert (await client.post("/v1/models/m:learn", json=many)).status_code == 413

    asyncio.run(run())


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "-x", "a" * 65, "a b", "é", "a\n", "%00", "<script>", "x:predict", "'; DROP TABLE models"]
)
def test_hostile_names(serving, name):
    async def run():
        async with serving() as client:
            made = await client.post("/v1/models", json={"name": name, "settings": {"target": "y"}})
            assert made.status_code == 422, made.text
            taken = await client.get(f"/v1/models/{name}".replace("\n", "%0A"))
            assert taken.status_code in (200, 307, 404, 405)  # 200 and 307: the list

    asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"instances": [NaN]}', 400),
        (b'{"instances": "x"}', 422),
        (b'{"instances": []}', 422),
        (b'{"instances": [1]}', 422),
        (b'{"instances": [{"x": [1]}]}', 422),
        (b'{"instances": [{"x": {}}], "more": 1}', 422),
        (b'{"instances": [{"price": 1}]}', 422),
        (b'{"instances": [{"price": 1e400}]}', 400),
        (b'{"instances": [{"price": 123456789012345678901234567890, "bought": true}]}', 422),
        (b"\xff\xfe", 400),
    ],
)
def test_bodies_that_make_no_sense(serving, body, status):
    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            answer = await client.post("/v1/models/m:learn", content=body)
            assert answer.status_code in (status, 200 if b"12345678" in body else status), answer.text
            if answer.status_code != 200:
                assert answer.json()["detail"]

    asyncio.run(run())


def test_columns_are_bounded_in_all(serving):
    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            wide = [{f"c{100 * row + column}": 1.0 for column in range(100)} | {"bought": True} for row in range(11)]
            told = await client.post("/v1/models/m:learn", json={"instances": wide})
            assert told.status_code == 422
            assert "at most 1000 columns in all; got 1101" in told.json()["detail"]

    asyncio.run(run())


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.none(), max_size=2)
some_rows = st.lists(st.dictionaries(st.sampled_from(["city", "price", "bought", "", "x"]), values), max_size=4)


def test_mutated_rows_never_break_the_server(serving):
    loop = asyncio.new_event_loop()
    context = serving()
    client = loop.run_until_complete(context.__aenter__())
    loop.run_until_complete(client.post("/v1/models", json=NEW))
    loop.run_until_complete(client.post("/v1/models/m:learn", json={"instances": rows(40)}))

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(some_rows, st.sampled_from(["learn", "predict", "predict_learn"]))
    def check(made, verb):
        try:
            body = orjson.dumps({"instances": made})
        except TypeError:  # whole numbers that orjson does not write
            return
        answer = loop.run_until_complete(client.post(f"/v1/models/m:{verb}", content=body))
        assert answer.status_code in (200, 400, 413, 422), answer.text

    check()
    fine = loop.run_until_complete(client.post("/v1/models/m:learn", json={"instances": rows(5)}))
    assert fine.status_code == 200
    loop.run_until_complete(context.__aexit__(None, None, None))
    loop.close()
