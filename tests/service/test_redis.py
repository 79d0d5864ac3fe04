"""Streams of a real redis-server on a socket: each message is learnt once."""

import asyncio

import orjson
import pytest

from bayou.service.sources.follower import Follower
from bayou.service.sources.redis_stream import RedisStream
from bayou.service.sources.source import SourceError
from tests.service.following import RedisServer, killed_with_redis, redis_binary
from tests.service.made import rows

redis = pytest.importorskip("redis")
pytestmark = pytest.mark.skipif(redis_binary() is None, reason="there is no redis-server here")


@pytest.fixture
def server(tmp_path):
    one = RedisServer(tmp_path)
    yield one
    one.end()


def add(client, made, stream="clicks"):
    return [client.xadd(stream, {"json": orjson.dumps(row)}).decode() for row in made]


async def followed(hub, source, is_so, on_error="stop"):
    """Follow until something is so."""
    one = Follower(hub, "m", source, on_error)
    one.start()
    try:
        for _ in range(600):
            if is_so(one):
                return one.told()
            await asyncio.sleep(0.02)
        raise AssertionError(one.told())
    finally:
        await one.stop()


def test_what_redis_forgot_or_acknowledged_too_early_is_learnt_once(serving, server):
    """The store is the truth: acknowledged messages that it has not come again, stored ones are not learnt again."""

    async def run():
        client, url = server.client(), f"unix://{server.path}?stream=clicks"
        ids = add(client, rows(300, 1))
        async with serving() as one:
            await one.post("/v1/models", json={"name": "m", "settings": {"target": "bought"}})
            source = RedisStream(url, "m")
            await followed(one.hub, source, lambda _: one.hub.offset("m", source.name) == 300)
            assert client.xpending("clicks", "bayou")["pending"] == 0
            assert orjson.loads(one.hub.position("m", source.name).place)["id"] == ids[-1]
            add(client, rows(50, 2))
            read = client.xreadgroup("bayou", "bayou-m", {"clicks": ">"}, count=20)  # died before it learnt them
            read += client.xreadgroup("bayou", "bayou-m", {"clicks": ">"}, count=10)
            client.xack("clicks", "bayou", *[id for id, _ in read[1][1]])  # the disk lost what was acknowledged
            client.xgroup_setid("clicks", "bayou", ids[100])
            client.xreadgroup("bayou", "bayou-m", {"clicks": ">"}, count=30)  # was learnt, died before it said so
            await followed(one.hub, RedisStream(url, "m"), lambda _: one.hub.offset("m", source.name) >= 350)
            assert (await one.get("/v1/models/m")).json()["examples"] == 350
            assert client.xpending("clicks", "bayou")["pending"] == 0

    asyncio.run(run())


def test_what_was_delivered_before_anything_was_stored_is_learnt(serving, server):
    async def run():
        client = server.client()
        add(client, rows(300, 1))
        client.xgroup_create("clicks", "bayou", "0")
        client.xreadgroup("bayou", "bayou-m", {"clicks": ">"}, count=120)
        async with serving() as one:
            await one.post("/v1/models", json={"name": "m", "settings": {"target": "bought"}})
            source = RedisStream(f"unix://{server.path}?stream=clicks", "m")
            await followed(one.hub, source, lambda _: one.hub.offset("m", source.name) >= 300)
            assert (await one.get("/v1/models/m")).json()["examples"] == 300

    asyncio.run(run())


def test_bad_messages_fields_and_strangers(serving, server):
    async def run():
        client = server.client()
        for row in rows(200, 1):
            client.xadd("clicks", {name: str(value).lower() for name, value in row.items()})
        client.xadd("clicks", {"json": "{"})
        client.xadd("clicks", {"json": '{"city": "Rome", "price": "dear", "bought": true}'})
        add(client, rows(10, 2))
        async with serving() as one:
            await one.post("/v1/models", json={"name": "m", "settings": {"target": "bought"}})
            url = f"unix://{server.path}?stream=clicks"
            source = RedisStream(url, "m")
            told = await followed(one.hub, source, lambda it: it.state == "failed")
            assert "must be JSON" in told["error"]
            assert one.hub.offset("m", source.name) == 200
            told = await followed(
                one.hub, RedisStream(url, "m"), lambda _: one.hub.offset("m", source.name) == 210, "skip"
            )
            assert told["skipped"] == 2
            assert "dear" in told["reasons"][1]
            assert (await one.get("/v1/models/m")).json()["columns"]["price"] == "number"
            client.xreadgroup("other", "somebody", {"clicks": ">"}) if client.xgroup_create(
                "clicks", "other", "0"
            ) else None
            told = await followed(one.hub, RedisStream(url + "&group=other", "m"), lambda it: it.state == "failed")
            assert "'somebody'" in told["error"]
            client.delete("clicks")
            client.xadd("clicks", {"json": "{}"}, id="1-1")
            told = await followed(one.hub, RedisStream(url, "m"), lambda it: it.state == "failed")
            assert "begun again" in told["error"]

    asyncio.run(run())


def test_addresses():
    one = RedisStream("redis://me:secret@127.0.0.1:6380/2/clicks?group=g", "m")
    assert one.name == "redis:127.0.0.1:6380/2/clicks?group=g"
    assert one.stream == "clicks"
    assert one.consumer == "bayou-m"
    for wrong in ("redis://127.0.0.1/", "redis://127.0.0.1/clicks?groop=g", "redis://127.0.0.1/clicks?from=there"):
        with pytest.raises(SourceError):
            RedisStream(wrong, "m")


@pytest.mark.slow
def test_two_kills_learn_each_message_once(tmp_path):
    assert len(killed_with_redis(tmp_path, 2, 5_000, seed=1)) == 2


@pytest.mark.soak
def test_ten_kills_learn_each_message_once(tmp_path):
    assert len(killed_with_redis(tmp_path, 10, 100_000, seed=3)) == 10
