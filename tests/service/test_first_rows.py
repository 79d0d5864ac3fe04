"""A model that is followed begins by its first rows together, each of which counts once whatever happens meanwhile."""

import asyncio
import os

import orjson
import pytest

from bayou.service.settings import Settings
from bayou.service.sources import first_rows
from bayou.service.sources.first_rows import with_misfits_told
from bayou.service.sources.follower import Follow, Follower, begin
from bayou.service.sources.growing_file import GrowingFile
from bayou.service.sources.redis_stream import RedisStream
from bayou.service.sources.source import Item
from bayou.service.sources.standard_input import StandardInput
from tests.service.following import RedisServer, redis_binary
from tests.service.test_sources import lines, until


def numbers(count, start=0):
    """Targets that look like classes at first."""
    return [{"x": k, "place": "somewhere " * 8, "y": 5 if k < 2 else k + 0.5} for k in range(start, start + count)]


async def made(client, **more):
    await client.post("/v1/models", json={"name": "m", "settings": {"target": "y", **more}})


async def told(client):
    return (await client.get("/v1/models/m")).json()


def has_waiting(one, count):
    return lambda: len(one._first.items) == count


@pytest.fixture
def patience(monkeypatch):
    def have(seconds):
        monkeypatch.setattr(first_rows, "FIRST_PATIENCE", seconds)

    have(600.0)
    return have


def test_lines_that_trickle_in_begin_a_model_together(serving, patience):
    async def run():
        reading, writing = os.pipe()
        async with serving() as client:
            await made(client)
            one = Follower(client.hub, "m", StandardInput(reading))
            one.start()
            for place, row in enumerate(numbers(5)):
                os.write(writing, lines([row]))
                await until(has_waiting(one, place + 1), one.told)
            assert (await told(client))["examples"] == 0
            patience(0.2)
            await until(lambda: client.hub.offset("m", "standard input") == 5, one.told)
            assert (await told(client))["task"] == "regression"
            patience(600.0)
            os.write(writing, lines(numbers(1, 5)))  # and from then on each comes at once
            await until(lambda: client.hub.offset("m", "standard input") == 6, one.told)
            os.close(writing)
            await until(lambda: one.state == "ended", one.told)
            os.close(reading)
            await one.stop()

    asyncio.run(run())


@pytest.mark.parametrize("count", [30, 100])
def test_as_many_as_there_are_to_be_or_the_end_are_not_waited_for(serving, patience, count):
    async def run():
        reading, writing = os.pipe()
        async with serving() as client:
            await made(client)
            one = Follower(client.hub, "m", StandardInput(reading))
            one.start()
            os.write(writing, lines(numbers(count - 1)))
            await until(has_waiting(one, count - 1), one.told)
            os.write(writing, lines(numbers(1, count - 1)))
            if count < first_rows.FIRST_ROWS:
                await until(has_waiting(one, count), one.told)
                os.close(writing)
            await until(lambda: client.hub.offset("m", "standard input") == count, one.told)
            assert (await told(client))["examples"] == count
            if count == first_rows.FIRST_ROWS:
                os.close(writing)
            await until(lambda: one.state == "ended", one.told)
            os.close(reading)

    asyncio.run(run())


def test_a_model_that_others_begin_meanwhile_learns_what_waits(serving, patience, tmp_path):
    async def run():
        path = tmp_path / "rows.ndjson"
        path.write_bytes(lines(numbers(3)))
        async with serving() as client:
            await made(client)
            source = GrowingFile(str(path))
            one = Follower(client.hub, "m", source)
            one.start()
            await until(has_waiting(one, 3), one.told)
            assert (await client.post("/v1/models/m:learn", json={"instances": numbers(50, 3)})).status_code == 200
            await until(lambda: client.hub.offset("m", source.name) == 3, one.told)
            assert (await told(client))["examples"] == 53
            await one.stop()

    asyncio.run(run())


def test_what_waits_when_it_ends_is_read_again(serving, patience, tmp_path):
    async def run():
        path = tmp_path / "rows.ndjson"
        path.write_bytes(lines(numbers(20)))
        source = GrowingFile(str(path))
        async with serving() as client:
            await made(client)
            one = Follower(client.hub, "m", source)
            one.start()
            await until(has_waiting(one, 20), one.told)
            await one.stop()
            assert client.hub.position("m", source.name).place is None
        async with serving() as client:
            one = Follower(client.hub, "m", GrowingFile(str(path)))
            one.start()
            await until(has_waiting(one, 20), one.told)
            patience(0.1)
            await until(lambda: client.hub.offset("m", source.name) == 20, one.told)
            assert (await told(client))["examples"] == 20
            await one.stop()

    asyncio.run(run())


BAD = {"no row": b"[1]\n", "no label": b'{"x": 1, "y": "n/a"}\n', "no value": b'{"x": [1], "y": 2.5}\n'}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_what_cannot_be_learnt_among_the_first(serving, patience, tmp_path, on_error, bad):
    """Rows came in several reads, so the place is not that of what was read last; a start goes on at the right one."""

    async def run():
        path = tmp_path / "rows.ndjson"
        path.write_bytes(lines(numbers(3)))
        async with serving() as client:
            await made(client)
            source = GrowingFile(str(path))
            one = Follower(client.hub, "m", source, on_error)
            one.start()
            await until(has_waiting(one, 3), one.told)
            for count, more in ((4, BAD[bad]), (14, lines(numbers(10, 3))), (44, lines(numbers(30, 13)))):
                with path.open("ab") as file:
                    file.write(more)
                if bad != "no row" or on_error == "skip":
                    await until(has_waiting(one, count), one.told)
            patience(0.1)
            if on_error == "stop":
                await until(lambda: one.state == "failed", one.told)
                assert one.error.startswith("line 4: ")
                assert client.hub.offset("m", source.name) == 3
                again = Follower(client.hub, "m", GrowingFile(str(path)))
                again.start()
                await until(lambda: again.state == "failed", again.told)
                assert again.error.startswith("line 4: ")  # not that the file is another
                await again.stop()
            else:
                await until(lambda: client.hub.offset("m", source.name) == 43, one.told)
                assert one.skipped == 1
                assert one.told()["reasons"][0].startswith("line 4: ")
                await one.stop()
                with path.open("ab") as file:
                    file.write(lines(numbers(5, 43)))
                one = Follower(client.hub, "m", GrowingFile(str(path)), on_error)
                one.start()
                await until(lambda: client.hub.offset("m", source.name) == 48, one.told)
                assert one.skipped == 1
            about = await told(client)
            assert about["task"] == "regression"
            assert about["examples"] == client.hub.offset("m", source.name)
            await one.stop()

    asyncio.run(run())


def test_what_is_no_row_is_told_at_once_where_it_ends_the_following(serving, patience, tmp_path):
    async def run():
        path = tmp_path / "rows.ndjson"
        path.write_bytes(lines(numbers(3)) + b"[1]\n")
        async with serving() as client:
            await made(client)
            one = Follower(client.hub, "m", GrowingFile(str(path)))
            one.start()
            await until(lambda: one.state == "failed", one.told)
            assert "line 4" in one.error
            assert (await told(client))["examples"] == 3
            await one.stop()

    asyncio.run(run())


def test_a_file_that_is_replaced_loses_nothing_that_was_read(serving, patience, tmp_path):
    async def run():
        path, other = tmp_path / "rows.ndjson", tmp_path / "other.ndjson"
        path.write_bytes(lines(numbers(3)))
        async with serving() as client:
            await made(client)
            one = Follower(client.hub, "m", GrowingFile(str(path)))
            one.start()
            await until(has_waiting(one, 3), one.told)
            other.write_bytes(lines(numbers(9)))
            other.replace(path)
            await until(lambda: one.state == "failed", one.told)
            assert "another is in its place" in one.error
            assert (await told(client))["examples"] == 3
            await one.stop()

    asyncio.run(run())


def test_misfits_are_found_by_trial():
    rows = numbers(60)
    for place in (7, 40):
        rows[place] = {"x": 1, "y": "n/a"}
    rows[50] = {"x": [1], "y": 2.5}
    items = [Item(row, "", f"line {place}", (place, place)) for place, row in enumerate(rows)]
    settings = Settings.of({"target": "y"})
    found = with_misfits_told(settings, items, one_is_enough=False)
    assert [place for place, item in enumerate(found) if item.row is None] == [7, 40, 50]
    assert "of one kind" in found[7].why
    assert "plain values" in found[50].why
    found = with_misfits_told(settings, items, one_is_enough=True)
    assert len([item for item in found if item.row is None]) == 1
    good = [item for place, item in enumerate(items) if place not in (7, 40, 50)]
    assert with_misfits_told(settings, good, one_is_enough=False) == good


def test_a_model_that_following_makes_has_the_task_that_is_asked_for(serving, tmp_path):
    async def run():
        path = tmp_path / "rows.csv"
        path.write_text("x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(120)))
        async with serving() as client:
            (one,) = await begin(client.hub, [Follow.of(f"m={path}", "y", "stop", "count")])
            await until(lambda: client.hub.offset("m", f"file:{path}") == 120, one.told)
            about = await told(client)
            assert about["task"] == about["settings"]["task"] == "count"
            await one.stop()

    asyncio.run(run())


@pytest.mark.skipif(redis_binary() is None, reason="there is no redis-server here")
def test_messages_that_wait_are_not_acknowledged_and_come_again(serving, patience, tmp_path):
    pytest.importorskip("redis")

    async def run():
        client = server.client()
        for row in numbers(30):
            client.xadd("clicks", {"json": orjson.dumps(row)})
        url = f"unix://{server.path}?stream=clicks"
        async with serving() as asked:
            await made(asked)
            one = Follower(asked.hub, "m", RedisStream(url, "m"))
            one.start()
            await until(has_waiting(one, 30), one.told)
            assert client.xpending("clicks", "bayou")["pending"] == 30
            await one.stop()
            source = RedisStream(url, "m")
            one = Follower(asked.hub, "m", source)
            one.start()
            await until(has_waiting(one, 30), one.told)
            patience(0.1)
            await until(lambda: asked.hub.offset("m", source.name) == 30, one.told)
            await until(lambda: client.xpending("clicks", "bayou")["pending"] == 0, one.told)
            assert (await told(asked))["examples"] == 30
            await one.stop()
        client.close()

    server = RedisServer(tmp_path)
    try:
        asyncio.run(run())
    finally:
        server.end()
