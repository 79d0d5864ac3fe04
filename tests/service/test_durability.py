"""What is acknowledged is there after a restart, once, and to the bit."""

import asyncio
import sqlite3
import time

import pytest

from bayou.service import lane as lanes
from bayou.service.errors import Conflict, NotStored
from bayou.service.events import Event
from bayou.service.lane import restored
from bayou.service.served_model import ServedModel
from bayou.service.settings import Settings
from bayou.service.store import Store
from bayou.service.turns import Told
from tests.service.made import inputs, rows

NEW = {"name": "m", "settings": {"target": "bought"}}


async def mixed(client, rounds=4):
    """Learn, predict, and label some of what was predicted."""
    for turn in range(rounds):
        await client.post("/v1/models/m:learn", json={"instances": rows(60, turn)})
        later = rows(5, 100 + turn)
        said = (await client.post("/v1/models/m:predict", json={"instances": inputs(later)})).json()
        labels = [{"id": id, "label": row["bought"]} for id, row in zip(said["ids"][:3], later, strict=False)]
        assert (await client.post("/v1/models/m:feedback", json={"labels": labels})).status_code == 200


async def state(client):
    return await client.hub.look("m", lambda served: served.to_bytes())


def full(*_):
    raise NotStored("the store could not be written: disk full.")


def test_a_restart_replays_to_the_same_bits(serving):
    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            await mixed(client)
            before = await state(client)
        async with serving() as client:
            assert await state(client) == before
            told = (await client.get("/v1/models/m")).json()
            assert told["examples"] == 4 * 63
            assert told["pending"] == 4 * 2

    asyncio.run(run())


def test_a_version_between_changes_nothing(serving):
    """From a snapshot and the rest of the journal, the same model as from the first row on."""

    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            lane = client.hub.lane("m")
            journal = []
            for turn in range(3):
                after = lane.served.seq
                await mixed(client, 1)
                journal += client.hub.store.journal(lane.id, after)
                if turn < 2:
                    await client.post("/v1/models/m/versions", json={})
            live = await state(client)
            assert len(client.hub.store.journal(lane.id)) < len(journal)  # the rest has gone
            again = ServedModel(Settings(target="bought"))
            for row in journal:
                again.apply(row.seq, Event.of(row.kind, row.at, row.body))
            assert again.to_bytes() == live
            served, *_ = restored(client.hub.store, lane.id, lane.served.settings)
            assert served.to_bytes() == live

    asyncio.run(run())


@pytest.mark.parametrize("count", [50, 500])  # of which the loop itself takes the digest, and another thread
def test_a_key_counts_once_even_after_a_restart(serving, count):
    async def run():
        body, headers = {"instances": rows(count)}, {"idempotency-key": "batch-1"}
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            both = await asyncio.gather(
                *(client.post("/v1/models/m:learn", json=body, headers=headers) for _ in range(3))
            )
            assert [one.json() for one in both] == [{"learnt": count, "examples": count}] * 3
            other = await client.post("/v1/models/m:learn", json={"instances": rows(2)}, headers=headers)
            assert other.status_code == 422
            assert "same request" in other.json()["detail"]
            said = await client.post("/v1/models/m:predict_learn", json=body, headers=headers)  # is told another answer
            assert said.status_code == 422
        async with serving() as client:
            again = await client.post("/v1/models/m:learn", json=body, headers=headers)
            assert again.text == both[0].text
            assert (await client.get("/v1/models/m")).json()["examples"] == count

    asyncio.run(run())


def test_an_offset_that_is_not_the_next_is_refused(serving):
    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            await client.hub.learn("m", rows(10), source=("file", 0))
            for wrong in (0, 5, 11):
                with pytest.raises(Conflict, match="must be 10"):
                    await client.hub.learn("m", rows(10), source=("file", wrong))
        async with serving() as client:
            assert client.hub.offset("m", "file") == 10
            await client.hub.learn("m", rows(5, 1), source=("file", 10))
            assert client.hub.lane("m").served.model.n_rows == client.hub.offset("m", "file") == 15

    asyncio.run(run())


def test_a_bad_batch_changes_nothing(serving):
    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            await mixed(client, 1)
            before = await state(client)
            bad = [*rows(5), {"city": "Paris", "price": "dear", "bought": True}]
            refused = await client.post("/v1/models/m:learn", json={"instances": bad})
            assert refused.status_code == 422
            assert "'dear' in row 5" in refused.json()["detail"]
            said = (await client.get("/v1/models/m")).json()
            assert said["examples"] == 63
            assert (await state(client)) == before

    asyncio.run(run())


def test_when_the_disk_takes_nothing_nothing_is_learnt(serving, monkeypatch):
    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            await mixed(client, 1)
            before = await state(client)

            with monkeypatch.context() as broken:
                broken.setattr(Store, "write", full)
                lost = await client.post("/v1/models/m:learn", json={"instances": rows(20, 8)})
                assert lost.status_code == 507
            for _ in range(200):
                if not client.hub.lane("m").broken:
                    break
                await asyncio.sleep(0.01)
            assert await state(client) == before
            fine = await client.post("/v1/models/m:learn", json={"instances": rows(20, 8)})
            assert fine.json()["examples"] == 83

    asyncio.run(run())


def test_a_defect_in_writing_is_answered_and_the_next_is_written(serving, monkeypatch):
    """The thread that everyone waits for does not end by it."""

    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            await mixed(client, 1)

            def defect(*_):
                raise ValueError("what nobody thought of")

            with monkeypatch.context() as broken:
                broken.setattr(Store, "write", defect)
                lost = await asyncio.wait_for(client.post("/v1/models/m:learn", json={"instances": rows(20, 8)}), 30.0)
                assert lost.status_code == 507
                assert "what nobody thought of" in lost.json()["detail"]
            fine = None
            for _ in range(200):  # until the model is read back
                fine = await client.post("/v1/models/m:learn", json={"instances": rows(20, 8)})
                if fine.status_code == 200:
                    break
                await asyncio.sleep(0.01)
            assert fine.json()["examples"] == 83

    asyncio.run(run())


def all_of(store, model):
    """What any table has of a model."""
    tables = ("journal", "versions", "answers", "offsets")
    return [row for table in tables for row in store._all(f"SELECT * FROM {table} WHERE model = ?", model)]


def test_what_is_deleted_leaves_nothing_behind(serving, monkeypatch):
    """Nor does what was applied just before, and is written while the model goes."""
    write = Store.write

    def slowly(store, batches):
        time.sleep(0.05)
        write(store, batches)

    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            await mixed(client, 1)
            lane, store = client.hub.lane("m"), client.hub.store
            monkeypatch.setattr(Store, "write", slowly)
            learnt = asyncio.create_task(client.hub.learn("m", rows(20, 8)))
            for _ in range(1000):
                await asyncio.sleep(0.001)
                if lane.served.model.n_rows == 83 and not lane.running:
                    break
            assert not learnt.done()
            gone = asyncio.create_task(client.hub.delete("m"))
            await asyncio.sleep(0.01)
            assert (await client.post("/v1/models", json=NEW)).status_code == 409
            told, _ = await asyncio.gather(learnt, gone, return_exceptions=True)
            assert isinstance(told, NotStored | Told)  # refused, if it was not being written yet
            assert all_of(store, lane.id) == []
            again = (await client.post("/v1/models", json=NEW)).json()
            assert again["examples"] == 0

    asyncio.run(run())


def test_a_model_that_cannot_be_deleted_stays(serving, monkeypatch):
    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            await mixed(client, 1)
            before = await state(client)

            with monkeypatch.context() as broken:
                broken.setattr(Store, "write", full)
                assert (await client.delete("/v1/models/m")).status_code == 507
            assert await state(client) == before
            assert (await client.delete("/v1/models/m")).status_code == 204
            assert (await client.get("/v1/models/m")).status_code == 404

    asyncio.run(run())


def test_the_file_stays_bounded(serving, tmp_path, monkeypatch):
    """However much is learnt, the journal goes when a version holds it."""
    monkeypatch.setattr(lanes, "MOST_REPLAYED", 2000)

    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW)
            sizes = []
            for turn in range(60):
                await client.post("/v1/models/m:learn", json={"instances": rows(500, turn % 4)})
                if turn % 20 == 19:
                    await client.post("/v1/models/m/versions", json={})
                    sizes.append(client.hub.store.size())
            assert sizes[2] < 1.2 * sizes[1], sizes
            assert client.hub.store.journal_size(1)[1] <= 2500
            assert len(client.hub.store.versions(1)) <= 10
            return await state(client)

    before = asyncio.run(run())

    async def again():
        async with serving() as client:
            assert await state(client) == before

    asyncio.run(again())


def test_what_is_large_goes_sooner(serving, monkeypatch):
    """A few large requests end in a version, too; of old answers no more is kept than that they were given."""
    monkeypatch.setattr(lanes, "MOST_JOURNAL", 60_000)
    monkeypatch.setattr("bayou.service.store.MOST_ANSWERED", 60_000)

    async def run():
        async with serving() as client:
            await client.post("/v1/models", json=NEW | {"settings": {"target": "bought", "budget": 1.0}})
            for turn in range(40):
                body, headers = {"instances": rows(200, turn)}, {"idempotency-key": f"batch-{turn}"}
                told = await client.post("/v1/models/m:predict_learn", json=body, headers=headers)
                assert told.json()["examples"] == 200 * (turn + 1)
            await client.post("/v1/models/m/versions", json={})
            store, size = client.hub.store, client.hub.lane("m").state_bytes
            assert len(store.versions(1)) > 2
            assert store.journal_size(1)[2] <= max(60_000, 4 * size) + 20_000
            assert 0 < len(store.answer(1, "batch-39")) == len(told.content)
            assert store.answer(1, "batch-0") == b""
            again = await client.post(
                "/v1/models/m:predict_learn", json={"instances": rows(200)}, headers={"idempotency-key": "batch-0"}
            )
            assert again.status_code == 409
            assert "no longer kept" in again.json()["detail"]
            assert (await client.get("/v1/models/m")).json()["examples"] == 8000

    asyncio.run(run())


def test_one_server_has_the_file(tmp_path):
    first = Store(str(tmp_path / "store.db"))
    with pytest.raises(Exception, match="no other server"):
        Store(str(tmp_path / "store.db"))
    first.close()
    Store(str(tmp_path / "store.db")).close()
    (tmp_path / "other").write_bytes(b"not a database at all" * 100)
    with pytest.raises(Exception, match="must be a file of bayou"):
        Store(str(tmp_path / "other"))
    made = sqlite3.connect(tmp_path / "foreign.db")
    made.execute("CREATE TABLE t (x)")
    made.close()
    with pytest.raises(Exception, match="schema"):
        Store(str(tmp_path / "foreign.db"))


def test_a_model_that_was_read_back_goes_on_to_the_same_bits():
    """Also after all labels have come: predictions that come later are counted on from those before."""
    settings = Settings(target="bought", task="binary", columns={"city": "category", "price": "number"})
    whole, broken = ServedModel(settings), ServedModel(settings)
    for seq, event in enumerate(
        [
            Event("learn", 1.0, {"rows": rows(300)}),
            Event("issue", 2.0, {"rows": inputs(rows(2, 1))}),
            Event("feedback", 3.0, {"labels": [["2-0", True], ["2-1", False]]}),
            Event("issue", 4.0, {"rows": inputs(rows(3, 2))}),
        ],
        1,
    ):
        whole.apply(seq, event)
        broken.apply(seq, event)
        broken = ServedModel.of_bytes(settings, broken.to_bytes())
        assert whole.to_bytes() == broken.to_bytes()
