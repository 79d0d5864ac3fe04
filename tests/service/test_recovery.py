"""What goes wrong beside a model, in it or under it: who asked is told, and what is served stays what is written."""

import asyncio
import hashlib
import sqlite3
import time

import orjson
import pytest

from bayou.errors import InvalidSpec
from bayou.evaluation import TableRun
from bayou.service import lane as lanes
from bayou.service import security
from bayou.service.events import ISSUE, Event
from bayou.service.lane import replay, restored
from bayou.service.served_model import ServedModel
from bayou.service.settings import Settings
from bayou.service.sources.follower import Follow
from bayou.service.store import Journalled, Store
from tests.service.made import inputs, rows
from tests.service.test_durability import full

NEW = {"name": "m", "settings": {"target": "bought"}}
COLUMNS = {"city": "category", "price": "number"}


async def begun(client, count=300, **settings):
    told = await client.post("/v1/models", json={"name": "m", "settings": {"target": "bought", **settings}})
    assert told.status_code == 201, told.text
    assert (await client.post("/v1/models/m:learn", json={"instances": rows(count)})).status_code == 200
    return client.hub.lane("m")


async def settled(lane):
    """Once all that was asked is applied."""
    for _ in range(500):
        if lane.idle:
            break
        await asyncio.sleep(0.01)


async def same_as_written(client, lane):
    """Whether the model that is served is, to the bit, the one that a start would find."""
    await settled(lane)
    live = await client.hub.look("m", lambda served: served.to_bytes())
    return live == restored(client.hub.store, lane.id, lane.served.settings)[0].to_bytes()


# --- the model


def test_a_prediction_of_a_model_that_no_longer_knows_its_columns_can_be_replayed():
    """It was journalled beside a roll-back to before the first row, and answered by what was known until then."""
    served = ServedModel(Settings(target="bought"))
    event = Event(ISSUE, 1.0, {"rows": inputs(rows(1))})
    with pytest.raises(InvalidSpec, match="must have learnt something"):
        served.apply(1, event)
    replay(served, Journalled(2, 1, ISSUE, 1.0, 0, event.to_bytes()))
    assert (served.seq, len(served.pending)) == (2, 0)


def test_rows_that_are_found_out_while_they_are_learnt_change_nothing(serving, monkeypatch):
    async def run():
        async with serving() as client:
            lane = await begun(client)
            before = await client.hub.look("m", lambda served: served.to_bytes())
            for error, status in ((InvalidSpec("no"), 422), (ValueError("singular"), 422), (FloatingPointError(), 422)):
                with monkeypatch.context() as wrong:
                    wrong.setattr(TableRun, "count", lambda *_, error=error: (_ for _ in ()).throw(error))
                    new = [row | {"city": "Bergen"} for row in rows(50, 1)]
                    refused = await client.post("/v1/models/m:learn", json={"instances": new})
                    assert refused.status_code == status, refused.text
                assert await same_as_written(client, lane)
                assert await client.hub.look("m", lambda served: served.to_bytes()) == before

    asyncio.run(run())


@pytest.mark.parametrize("value", [1e9, 1.7e18, 1e139])
@pytest.mark.parametrize("task", ["binary", "regression", "count"])
def test_one_wild_value_spoils_nothing(serving, task, value):
    """It is learnt; versions can be made, rows are learnt after it, and the file can be read."""

    async def run():
        async with serving() as client:
            made = [{**row, "bought": int(row["bought"])} for row in rows(150)]
            settings = {"target": "bought", "task": task, "columns": COLUMNS}
            await client.post("/v1/models", json={"name": "m", "settings": settings})
            await client.post("/v1/models/m:learn", json={"instances": made})
            wild = {**made[0], "price": value}
            assert (await client.post("/v1/models/m:learn", json={"instances": [wild]})).status_code == 200
            for start in range(0, 150, 50):
                told = await client.post("/v1/models/m:learn", json={"instances": made[start : start + 50]})
                assert told.status_code == 200, told.text
            kept = await client.post("/v1/models/m/versions")
            assert kept.json()["version"] == 2
            assert await same_as_written(client, client.hub.lane("m"))

    asyncio.run(run())


def test_predictions_wait_by_the_names_of_their_columns_over_a_roll_back(serving):
    async def run():
        async with serving() as client:
            settings = {"target": "y", "task": "binary", "columns": {"c": "category"}}
            await client.post("/v1/models", json={"name": "m", "settings": settings})

            async def learn(*cities):
                made = [{"c": city, "y": place % 2 == 0} for place, city in enumerate(cities)]
                assert (await client.post("/v1/models/m:learn", json={"instances": made})).status_code == 200

            async def asked(city):
                said = await client.post("/v1/models/m:predict", json={"instances": [{"c": city}]})
                await settled(lane)
                return said.json()["ids"][0]

            def example(id):
                served = lane.served
                found = served.model.estimator.forecasts.waiting[served.pending[id].forecast].example[0]
                return dict(zip(served.model.layout.names, found.tolist(), strict=True))

            lane = client.hub.lane("m")
            await learn("a", "b", "a", "b")
            await client.post("/v1/models/m/versions", json={"label": "two"})
            await learn("red", "a", "b")
            await client.post("/v1/models/m/versions", json={"label": "three"})
            await client.post("/v1/models/m:roll_back", json={"version": 2})
            short = await asked("a")
            await learn("blue", "a", "b")
            blue = await asked("blue")
            await client.post("/v1/models/m:roll_back", json={"version": 3})
            assert example(blue) == {"c=a": 0.0, "c=b": 0.0, "c=red": 0.0}
            assert example(short) == {"c=a": 1.0, "c=b": 0.0, "c=red": 0.0}
            for id in (blue, short):
                told = await client.post("/v1/models/m:feedback", json={"labels": [{"id": id, "label": True}]})
                assert told.status_code == 200, told.text
            assert await same_as_written(client, lane)

    asyncio.run(run())


# --- the store


def test_a_model_that_cannot_be_read_back_does_not_keep_others_from_it(serving, tmp_path):
    async def run():
        async with serving() as client:
            await begun(client)
            await client.post("/v1/models", json={"name": "other", "settings": {"target": "bought"}})
        with sqlite3.connect(tmp_path / "store.db") as db:
            db.execute("UPDATE versions SET state = x'00' WHERE model = 1")
        db.close()
        async with serving() as client:
            assert [one["name"] for one in (await client.get("/v1/models")).json()["models"]] == ["other"]
            refused = await client.get("/v1/models/m")
            assert refused.status_code == 503
            assert "could not be read back" in refused.json()["detail"]
            assert (await client.post("/v1/models", json=NEW)).status_code == 409
        (tmp_path / "rows.ndjson").write_bytes(b"\n".join(map(orjson.dumps, rows(150))) + b"\n")
        follow = [Follow(name, str(tmp_path / "rows.ndjson")) for name in ("m", "other")]
        async with serving(follow=follow) as client:  # nor those who follow
            for _ in range(1000):
                if client.hub.lane("other").served.model.n_rows == 150:
                    break
                await asyncio.sleep(0.01)
            (told,) = (tell() for tell in client.hub.following["m"])
            assert (told["state"], "could not be read back" in told["error"]) == ("failed", True)
            assert client.hub.lane("other").served.model.n_rows == 150
            assert (await client.delete("/v1/models/m")).status_code == 204
            assert (await client.post("/v1/models", json=NEW)).status_code == 201

    asyncio.run(run())


def test_a_store_that_cannot_be_read_either_is_waited_for(serving, monkeypatch):
    async def run():
        async with serving() as client:
            lane = await begun(client)
            with monkeypatch.context() as broken:
                for name in ("write", "_write_row", "versions"):
                    broken.setattr(Store, name, full)
                said = (client.post("/v1/models/m:learn", json={"instances": rows(20, n)}) for n in range(4))
                told = await asyncio.wait_for(asyncio.gather(*said), 30.0)
                assert [one.status_code for one in told] == [507] * 4
                for _ in range(500):
                    if not lane.running:
                        break
                    await asyncio.sleep(0.01)
                assert lane.broken
            told = await asyncio.wait_for(client.post("/v1/models/m:learn", json={"instances": rows(5, 9)}), 30.0)
            assert (told.status_code, told.json()["examples"]) == (200, 305)
            assert await same_as_written(client, lane)

    asyncio.run(run())


def test_predictions_that_could_not_be_written_are_applied_at_most_once(serving, monkeypatch):
    write = Store._write_row

    async def run():
        async with serving() as client:
            lane = await begun(client)
            for _ in range(5):
                left = [1]

                def flaky(store, row, left=left):
                    if left[0]:
                        left[0] -= 1
                        full()
                    write(store, row)

                monkeypatch.setattr(Store, "_write_row", flaky)
                asks = (client.post("/v1/models/m:predict", json={"instances": inputs(rows(1, n))}) for n in range(2))
                assert {one.status_code for one in await asyncio.gather(*asks)} <= {200, 507}
                assert await same_as_written(client, lane)
                served = lane.served
                assert len(served.pending) == len(served.model.estimator.forecasts.waiting)

    asyncio.run(run())


def test_what_is_written_while_a_model_is_read_back_is_not_lost(serving, monkeypatch):
    """The thread that writes has found a batch valid when the model gives up: it is acknowledged, so it is there."""
    write = Store.write

    def slowly(store, batches):
        time.sleep(0.3)
        write(store, batches)

    async def run():
        async with serving() as client:
            lane = await begun(client)
            monkeypatch.setattr(Store, "write", slowly)
            learnt = asyncio.create_task(client.post("/v1/models/m:learn", json={"instances": rows(50, 3)}))
            while client.hub.lane("m").served.model.n_rows < 350:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)  # by now it is being written
            lane.give_up()
            lane.mend()
            assert (await learnt).status_code == 200
            assert lane.served.model.n_rows == 350
            assert await same_as_written(client, lane)

    asyncio.run(run())


def test_a_version_that_cannot_be_made_does_not_undo_what_was_learnt(serving, monkeypatch):
    def no_room(served):
        raise MemoryError("no room for the version")

    async def run():
        async with serving() as client:
            lane = await begun(client)
            for turn in range(2):  # the second time, the key is known
                with monkeypatch.context() as broken:
                    broken.setattr(lanes.Lane, "wants_version", lambda lane: True)
                    broken.setattr(ServedModel, "to_bytes", no_room)
                    body, headers = {"instances": rows(50, 3)}, {"idempotency-key": "batch"}
                    told = await client.post("/v1/models/m:learn", json=body, headers=headers)
                    assert (told.status_code, told.json()["examples"]) == (200, 350), turn
            assert await same_as_written(client, lane)

    asyncio.run(run())


def test_versions_that_were_asked_for_outlive_roll_backs(serving):
    async def run():
        async with serving() as client:
            await begun(client, 50)
            for _ in range(2):
                await client.post("/v1/models/m/versions", json={"label": "mine"})
                await client.post("/v1/models/m/versions")  # without a label
            for _ in range(7):
                assert (await client.post("/v1/models/m:roll_back", json={"version": 2})).status_code == 200
            found = (await client.get("/v1/models/m/versions")).json()["versions"]
            labels = [one["label"] for one in found]
            assert labels == ["back to 2"] * 5 + [None, "mine", None, "mine", None]

    asyncio.run(run())


# --- how much is taken


def forged(data, **changes):
    """A model file whose configuration says something else."""
    length = int.from_bytes(data[:8], "little")
    header = orjson.loads(data[8 : 8 + length])
    told = orjson.loads(header["__metadata__"]["bayou"])
    told["config"] |= changes
    told["checksum"] = "0" * 64
    header["__metadata__"]["bayou"] = orjson.dumps(told).decode()
    text = orjson.dumps(header)
    text += b" " * (-len(text) % 8)
    made = len(text).to_bytes(8, "little") + text + data[8 + length :]
    return made.replace(b"0" * 64, hashlib.sha256(made).hexdigest().encode(), 1)


def test_a_file_with_more_rows_than_a_store_can_count_is_refused(serving):
    async def run():
        async with serving() as client:
            await begun(client)
            data = (await client.get("/v1/models/m/file")).content
            assert (await client.put("/v1/models/same/file", content=forged(data))).status_code == 201
            for count in (2**63 - 100, -1):
                refused = await client.put("/v1/models/other/file", content=forged(data, n_rows=count))
                assert refused.status_code == 422
                assert f"got {count:,}" in refused.json()["detail"]

    asyncio.run(run())


def test_bodies_that_are_held_are_bounded_and_streams_are_only_of_rows(serving, monkeypatch):
    monkeypatch.setattr(security, "MOST_HELD", 50_000)
    monkeypatch.setattr(security, "MOST_BYTES", 60_000)

    async def run():
        async with serving() as client:
            await begun(client, 50)
            large = orjson.dumps({"instances": rows(950)})
            assert 50_000 < len(large) < 60_000
            held = await client.post("/v1/models/m:learn", content=large)
            assert (held.status_code, "later" in held.json()["detail"]) == (503, True)
            assert (await client.post("/v1/models/m:learn", json={"instances": rows(5)})).status_code == 200
            for path in ("/v1/models/m:predict", "/v1/models", "/v1/models/x/versions"):
                streamed = {"content-type": "application/x-ndjson"}
                refused = await client.post(path, content=b"x" * 70_000, headers=streamed)
                assert refused.status_code == 413, path

    asyncio.run(run())


def test_classes_and_text_that_waits_are_bounded(serving, monkeypatch):
    async def run():
        async with serving() as client:
            settings = {"target": "y", "task": "multiclass", "columns": {"t": "text"}, "bits": 22}
            await client.post("/v1/models", json={"name": "m", "settings": settings})
            many = [{"t": f"word {n}", "y": f"class {n}"} for n in range(400)]
            refused = await client.post("/v1/models/m:learn", json={"instances": many})
            assert refused.status_code == 422
            assert "at most 8 classes, of 4,194,304 weights each; got 400" in refused.json()["detail"]

            monkeypatch.setattr("bayou.service.served_model.MOST_WAITING", 10_000)
            settings = {"target": "y", "task": "binary", "columns": {"t": "text"}, "bits": 10}
            await client.post("/v1/models", json={"name": "long", "settings": settings})
            made = [{"t": f"a{n} b", "y": n % 2 == 0} for n in range(20)]
            await client.post("/v1/models/long:learn", json={"instances": made})
            long = [{"t": "x y " * 1000}] * 5
            assert (await client.post("/v1/models/long:predict", json={"instances": long})).status_code == 200
            lane = client.hub.lane("long")
            await settled(lane)
            assert len(lane.served.pending) == len(lane.served.model.estimator.forecasts.waiting) == 2
            assert lane.served.pending.letters == 8000

    asyncio.run(run())


def test_the_log_stays_bounded_where_models_come_and_go(serving, tmp_path):
    async def run():
        async with serving() as client:
            settings = {"target": "y", "task": "binary", "columns": {"t": "text"}, "bits": 16}
            await client.post("/v1/models", json={"name": "m", "settings": settings})
            made = [{"t": f"a{n} b", "y": n % 2 == 0} for n in range(20)]
            await client.post("/v1/models/m:learn", json={"instances": made})
            data = (await client.get("/v1/models/m/file")).content
            for _ in range(16):
                assert (await client.put("/v1/models/q/file", content=data)).status_code == 201
                assert (await client.delete("/v1/models/q")).status_code == 204
            log = (tmp_path / "store.db-wal").stat().st_size
            assert log < 8 * len(data) + 2**24, (log, len(data))

    asyncio.run(run())
