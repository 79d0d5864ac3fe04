"""Growing files and standard input: whole lines only, each once, whoever dies meanwhile."""

import asyncio
import csv
import io
import os
import signal
import subprocess
import sys
import time

import orjson
import pytest

from bayou.cli import main
from bayou.service.errors import NotStored
from bayou.service.sources.follower import Follow, Follower, check_asked
from bayou.service.sources.growing_file import GrowingFile
from bayou.service.sources.redis_stream import RedisStream
from bayou.service.sources.source import SourceAway, SourceError
from bayou.service.sources.standard_input import StandardInput
from bayou.service.sources.text_rows import TextRows
from tests.service.following import Following, assert_same_bits, finished, stored
from tests.service.kills import free_port
from tests.service.made import rows


def lines(made):
    return b"".join(orjson.dumps(row) + b"\n" for row in made)


async def until(is_so, told=lambda: ""):
    for _ in range(3000):
        if is_so():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(told())


async def made_model(client):
    await client.post("/v1/models", json={"name": "m", "settings": {"target": "bought"}})


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_pieces_of_any_size_give_the_same_rows(size):
    text = io.StringIO()
    writer = csv.writer(text)
    cells = [["a", "b", "c"], ["1", "x, y", ""], ["-2.5", 'two\nlines, "quoted"', "007"], ["1e3", "true", "Rome"]]
    writer.writerows(cells)
    data = b"\xef\xbb\xbf" + text.getvalue().encode() + b"1,2\r\n\r\n4,5,6\r\n"
    reader, items = TextRows(None), []
    for start in range(0, len(data), size):
        items += reader.feed(data[start : start + size])
    assert [item.row for item in items] == [
        {"a": 1, "b": "x, y", "c": None},
        {"a": -2.5, "b": 'two\r\nlines, "quoted"'.replace("\r\n", "\n"), "c": "007"},
        {"a": 1000.0, "b": True, "c": "Rome"},
        None,
        {"a": 4, "b": 5, "c": 6},
    ]
    assert "3 fields; got 2" in items[3].why
    assert items[3].where == "line 6"
    assert items[-1].end == (len(data), 8)
    for item in items:  # whoever goes on after an item finds the others
        at, line = item.end
        later = TextRows("csv", at, line, ["a", "b", "c"]).feed(data[at:])
        assert later == items[items.index(item) + 1 :]


def test_a_line_waits_until_it_is_whole(serving, tmp_path):
    async def run():
        path, made = tmp_path / "events.ndjson", rows(300, 1)
        async with serving() as client:
            await made_model(client)
            source = GrowingFile(str(path))
            one = Follower(client.hub, "m", source)
            one.start()
            await until(lambda: one.state == "waiting" and "not there yet" in one.error, one.told)
            whole = lines(made)
            cut = len(lines(made[:200])) + 9
            path.write_bytes(whole[:cut])
            await until(lambda: client.hub.offset("m", source.name) == 200, one.told)
            await asyncio.sleep(0.3)
            assert client.hub.offset("m", source.name) == 200
            assert one.state == "following"
            with path.open("ab") as file:
                file.write(whole[cut:])
            await until(lambda: client.hub.offset("m", source.name) == 300, one.told)
            told = (await client.get("/v1/models/m/status")).json()
            assert told["following"][0]["state"] == "following"
            assert told["sources"] == {source.name: 300}
            await one.stop()
            assert one.state == "stopped"

    asyncio.run(run())


@pytest.mark.parametrize("how", ["cut", "rewritten", "replaced", "removed"])
@pytest.mark.parametrize("is_served", [True, False])
def test_a_file_that_does_not_only_grow_is_told(serving, tmp_path, how, is_served):
    """While it is followed, and when it was changed between two runs."""
    path, other = tmp_path / "events.jsonl", tmp_path / "other.jsonl"

    def change():
        if how == "cut":
            os.truncate(path, 1000)
        elif how == "rewritten":
            path.write_bytes(lines(rows(900, 7)))
        elif how == "replaced":
            other.write_bytes(lines(rows(900, 7)))
            other.replace(path)
        else:
            path.unlink()

    async def run():
        path.write_bytes(lines(rows(300, 1)))
        async with serving() as client:
            await made_model(client)
            source = GrowingFile(str(path))
            one = Follower(client.hub, "m", source)
            one.start()
            await until(lambda: client.hub.offset("m", source.name) == 300, one.told)
            if not is_served:
                await one.stop()
            change()
            if not is_served:
                one = Follower(client.hub, "m", GrowingFile(str(path)))
                one.start()
            await until(lambda: one.state == "failed", one.told)
            assert str(path) in one.error
            assert "must" in one.error
            await one.stop()
            assert client.hub.offset("m", source.name) == 300

    asyncio.run(run())


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_bad_rows_stop_or_are_skipped_and_counted_once(serving, tmp_path, on_error):
    async def run():
        path, made = tmp_path / "events.ndjson", rows(300, 1)
        bad = orjson.dumps({"city": "Rome", "price": "dear", "bought": True}) + b"\n"
        path.write_bytes(lines(made[:250]))
        async with serving() as client:
            await made_model(client)
            source = GrowingFile(str(path))
            one = Follower(client.hub, "m", source, on_error)
            one.start()
            await until(lambda: client.hub.offset("m", source.name) == 250, one.told)
            with path.open("ab") as file:
                file.write(lines(made[250:270]) + bad + lines(made[270:280]) + b"[1]\n" + lines(made[280:]))
            if on_error == "stop":
                await until(lambda: one.state == "failed", one.told)
                assert "line 271" in one.error
                assert "dear" in one.error
                assert client.hub.offset("m", source.name) == 270
                await one.stop()
                return
            await until(lambda: client.hub.offset("m", source.name) == 300, one.told)
            await one.stop()
            assert one.skipped == 2
            assert [told.split(":")[0] for told in one.told()["reasons"]] == [
                "line 271",
                "line 282",
            ]
            again = Follower(client.hub, "m", GrowingFile(str(path)), on_error)
            again.start()
            await until(lambda: again.state == "following", again.told)
            assert again.skipped == 2
            assert client.hub.offset("m", source.name) == 300
            await again.stop()

    asyncio.run(run())


def test_a_disk_that_is_full_is_waited_for(serving, tmp_path, monkeypatch):
    async def run():
        path = tmp_path / "events.ndjson"
        path.write_bytes(lines(rows(300, 1)))
        async with serving() as client:
            await made_model(client)
            write, failures = client.hub.store.write, []

            def full(batches):
                if len(failures) < 3:
                    failures.append(1)
                    raise NotStored("the disk is full.")
                return write(batches)

            monkeypatch.setattr(client.hub.store, "write", full)
            source = GrowingFile(str(path))
            one = Follower(client.hub, "m", source)
            one.start()
            await until(lambda: client.hub.offset("m", source.name) == 300, one.told)
            await one.stop()
            assert len(failures) == 3
            assert (await client.get("/v1/models/m")).json()["examples"] == 300

    asyncio.run(run())


def test_standard_input_ends_and_the_server_goes_on(serving):
    async def run():
        reading, writing = os.pipe()
        async with serving() as client:
            await made_model(client)
            one = Follower(client.hub, "m", StandardInput(reading))
            one.start()
            made = rows(200, 1)
            text = "city,price,bought\n" + "\n".join(
                f"{r['city']},{r['price']!r},{str(r['bought']).lower()}" for r in made
            )
            os.write(writing, text.encode())  # without an end of the last line
            os.close(writing)
            await until(lambda: one.state == "ended", one.told)
            os.close(reading)
            assert client.hub.offset("m", "standard input") == 200
            told = (await client.get("/v1/models/m")).json()
            assert told["examples"] == 200
            assert told["columns"] == {"city": "category", "price": "number"}

    asyncio.run(run())


def test_what_is_asked_for():
    with pytest.raises(SourceError, match="MODEL=SOURCE"):
        Follow.of("events.ndjson")
    with pytest.raises(SourceError, match="stop, skip"):
        Follow.of("m=-", on_error="perhaps")
    with pytest.raises(SourceError, match="not packed"):
        Follow.of("m=events.csv.gz").opened()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["m={folder}"], "must be a file; {folder} is a folder"),
        (["m=http://127.0.0.1/rows"], "takes a file, - or redis://, rediss://, unix://; got 'http://127.0.0.1/rows'"),
        (["m=file:///rows.csv"], "takes a file, - or"),
        (["m=-", "n=-"], "standard input must be followed by one model; it can be read once"),
        (["m=redis://127.0.0.1/s", "n=redis://127.0.0.1/s"], "name another group for each"),
        (["m={folder}/\udcff.csv"], "must have a name in UTF-8; got 'file:{folder}/\\udcff.csv'"),
    ],
)
def test_what_cannot_be_followed_is_told_at_the_start(tmp_path, words, why):
    if "redis" in why:
        pytest.importorskip("redis")
    asked = [Follow.of(word.replace("{folder}", str(tmp_path)), "y") for word in words]
    with pytest.raises(SourceError) as error:
        check_asked(asked, ())
    assert why.replace("{folder}", str(tmp_path)) in str(error.value)
    str(error.value).encode()


def test_a_file_may_have_the_name_of_a_scheme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("redis", "unix"):
        assert Follow.of(f"m={name}").opened().name == f"file:{tmp_path / name}"
    check_asked([Follow.of("m=a.csv", "y"), Follow.of("n=a.csv", "y")], ())  # a file may be followed by more


def test_a_pipe_with_a_name_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "rows.csv")
    with pytest.raises(SourceError, match="is something else"):
        GrowingFile(str(tmp_path / "rows.csv"))


def test_a_folder_that_is_missing_is_told_and_waited_for(serving, tmp_path):
    async def run():
        path = tmp_path / "later" / "events.ndjson"
        async with serving() as client:
            await made_model(client)
            source = GrowingFile(str(path))
            one = Follower(client.hub, "m", source)
            one.start()
            await until(lambda: one.state == "waiting", one.told)
            assert one.error == f"{path} is not there yet; the folder {path.parent} is missing, too."
            path.parent.mkdir()
            await until(lambda: one.error == f"{path} is not there yet.", one.told)
            path.write_bytes(lines(rows(200, 1)))
            await until(lambda: client.hub.offset("m", source.name) == 200, one.told)
            await one.stop()

    asyncio.run(run())


def test_redis_that_is_down_is_told_with_one_dot():
    pytest.importorskip("redis")

    async def run():
        source = RedisStream(f"redis://127.0.0.1:{free_port()}/clicks", "m")
        with pytest.raises(SourceAway) as error:
            await source.open(None)
        await source.close()
        assert str(error.value).endswith(".")
        assert not str(error.value).endswith("..")

    asyncio.run(run())


@pytest.mark.slow
def test_a_growing_file_killed_in_the_middle_is_learnt_once(tmp_path):
    """The model has the bits of an unbroken run."""
    path, count = tmp_path / "events.ndjson", 6_000
    made = rows(count, 4)
    path.write_bytes(lines(made[:3000]))
    one = Following(tmp_path / "killed.db", path)
    try:
        one.until(lambda told: told["examples"] >= 3000)
        with path.open("ab") as file:
            for start in range(3000, 4500, 50):
                file.write(lines(made[start : start + 50]))
                file.flush()
                time.sleep(0.005)
            text = lines(made[4500:])
            file.write(text[:9])  # a part of a line
    finally:
        one.end(signal.SIGKILL)
    assert 3000 <= stored(tmp_path / "killed.db") <= 4500
    with path.open("ab") as file:
        file.write(text[9:])
    told, state = finished(tmp_path / "killed.db", path, count)
    _, unbroken = finished(tmp_path / "whole.db", path, count)
    assert told["examples"] == count
    assert list(told["sources"].values()) == [count]
    assert_same_bits(state, unbroken)


@pytest.mark.slow
def test_the_command_reads_standard_input(tmp_path):
    one = Following(tmp_path / "store.db", "-", stdin=subprocess.PIPE)
    try:
        one.process.stdin.write(lines(rows(250, 1)))
        one.process.stdin.close()
        told = one.until(lambda told: told["following"][0]["state"] == "ended")
        assert told["examples"] == 250
    finally:
        one.end(signal.SIGTERM)
    assert one.process.returncode is not None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--follow", "m=events.ndjson"], "needs a --target"),
        (["--follow", "m=a.csv", "--follow", "m=a.csv", "--target", "y"], "follow a source once"),
        (["--follow", "m"], "must be MODEL=SOURCE"),
        (["--follow", "m=.", "--target", "y"], "is a folder"),
        (["--follow", "m=a\udcff.csv", "--target", "y"], "name in UTF-8"),
        (["--on-error", "perhaps"], "--on-error must be one of stop, skip"),
        (["--task", "guess"], "--task must be one of auto, binary"),
        (["--store", "none/store.db"], "folder of the store"),
        (["--store", "text.db"], "must be a file of bayou"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_line(tmp_path, monkeypatch, capsys, words, why):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.db").write_text("this is no store of models, and long enough to be looked at " * 40)
    monkeypatch.setattr(sys, "argv", ["bayou", "serve", "--port", str(free_port()), *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert why in told
    assert "Traceback" not in told
    assert len(told.strip().splitlines()) == 1
