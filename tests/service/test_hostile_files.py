"""Model files that were made to harm: refused, or models like any other; and never much memory."""

import asyncio
import hashlib
import json
import random
import time
import tracemalloc

import orjson
import pytest

from bayou.errors import BayouError
from bayou.modelfile import NO_CHECKSUM
from bayou.service.errors import HalfDone
from bayou.service.events import FEEDBACK, ISSUE, LEARN, Event, prediction_id
from bayou.service.hub import imported
from bayou.service.served_model import ServedModel
from bayou.service.settings import Settings
from bayou.service.status import status
from tests.service.made import inputs, rows

VALUES = [None, 0, -1, 1, 10**6, 2**70, -5.5, 1e308, 1e-300, "", "x", True, [], {}, [1, 2, 3], {"a": 1}, [None]]


@pytest.fixture(scope="module")
def parts():
    """Header, manifest and arrays of a served model that has learnt."""
    served = ServedModel(Settings(target="bought"))
    served.apply(1, Event(LEARN, time.time(), {"rows": rows(300, 1)}))
    served.apply(2, Event(ISSUE, time.time(), {"rows": inputs(rows(3, 2))}))
    data = served.to_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["bayou"]), data[8 + length :]


def forged(parts, manifest):
    """A file with another manifest, and a checksum that is right."""
    header, _, arrays = parts
    text = json.dumps(manifest | {"checksum": NO_CHECKSUM}, separators=(",", ":"))
    head = json.dumps(header | {"__metadata__": {"bayou": text}}, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    start = len(head).to_bytes(8, "little") + head
    return start.replace(NO_CHECKSUM.encode(), hashlib.sha256(start + arrays).hexdigest().encode(), 1) + arrays


def places(value, path=()):
    """Every place in a manifest."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield (*path, key)
        yield from places(one, (*path, key))


def changed(manifest, place, value):
    """With another value at a place."""
    copy = json.loads(json.dumps(manifest))
    at = copy
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return copy


@pytest.mark.filterwarnings("ignore:X has feature names")  # of a model that was told it has none: said, and no harm
def test_forged_files_are_refused_or_can_be_asked(parts):
    chance, (_, manifest, _) = random.Random(1), parts
    assert imported(forged(parts, manifest)).model.n_rows == 300
    all_places = list(places({"config": manifest["config"]}))
    refused = 0
    for _ in range(120):
        data = forged(parts, changed(manifest, chance.choice(all_places), chance.choice(VALUES)))
        try:
            served = imported(data)
        except BayouError:
            refused += 1
            continue
        orjson.dumps([status(served), served.predict(inputs(rows(3, 8)))])
        try:
            served.apply(11, Event(ISSUE, time.time(), {"rows": inputs(rows(2, 9))}))
            served.apply(12, Event(LEARN, time.time(), {"rows": rows(20, 9)}))
            served.apply(13, Event(FEEDBACK, time.time(), {"labels": [[prediction_id(11, 0), True]]}))
        except (BayouError, HalfDone):  # who is asked by requests goes back to what is written
            continue
    assert 60 < refused < 120


@pytest.mark.parametrize("count", [50_000, 5_000_000, 10**18])
def test_a_bank_that_claims_to_be_wide_costs_nothing(parts, count):
    data = forged(parts, changed(parts[1], ("config", "estimator", "learner", "n_features"), count))
    tracemalloc.start()
    try:
        with pytest.raises(BayouError, match="must have"):
            imported(data)
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()


def test_a_state_that_cannot_be_read_back_gives_nothing_up(serving, monkeypatch):
    """The journal goes only for a version that a start can read."""

    async def run():
        async with serving() as client:
            await client.post("/v1/models", json={"name": "m", "settings": {"target": "bought"}})
            await client.post("/v1/models/m:learn", json={"instances": rows(60)})

            def improper(*_):
                raise BayouError("variances must be positive.")

            with monkeypatch.context() as broken:
                broken.setattr(ServedModel, "of_bytes", improper)
                told = await client.post("/v1/models/m/versions", json={})
                assert told.status_code == 422
                assert "positive" in told.json()["detail"]
            assert client.hub.store.journal_size(1)[1] == 60
            assert len(client.hub.store.versions(1)) == 1
            assert (await client.post("/v1/models/m/versions", json={})).json()["version"] == 2
            assert client.hub.store.journal_size(1)[1] == 0

    asyncio.run(run())
