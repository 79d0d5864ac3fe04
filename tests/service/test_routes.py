"""Every route, asked as a client asks it."""

import asyncio
import random
import time
from types import SimpleNamespace

import numpy as np
import orjson
import polars as pl
import pytest

import bayou
from bayou.modelfile import from_bytes
from bayou.service import routes_rows
from bayou.service.limits import INLINE_BYTES
from bayou.service.quick_rows import quick_features
from bayou.service.rows import table_of
from tests.service.made import inputs, rows


async def made(client, name="shops", **settings):
    answer = await client.post("/v1/models", json={"name": name, "settings": {"target": "bought", **settings}})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_model_from_its_making_to_its_end(serving):
    async def run():
        async with serving() as client:
            told = await made(client)
            assert told["examples"] == 0
            assert told["version"] == 1
            assert told["settings"]["task"] == "auto"
            early = await client.post("/v1/models/shops:predict", json={"instances": inputs(rows(1))})
            assert early.status_code == 409
            assert "must have learnt" in early.json()["detail"]
            learnt = await client.post("/v1/models/shops:learn", json={"instances": rows(300)})
            assert learnt.json() == {"learnt": 300, "examples": 300}
            said = (await client.post("/v1/models/shops:predict", json={"instances": inputs(rows(3, 1))})).json()
            assert len(said["ids"]) == 3
            assert said["version"] == 1
            for one in said["predictions"]:
                assert sum(one["probabilities"].values()) == pytest.approx(1.0)
                assert one["label"] is (one["probabilities"]["true"] > 0.5)
            listed = (await client.get("/v1/models")).json()["models"]
            assert [(one["name"], one["pending"]) for one in listed] == [("shops", 3)]
            assert (await client.delete("/v1/models/shops")).status_code == 204
            assert (await client.get("/v1/models/shops")).status_code == 404
            assert (await client.get("/v1/models")).json() == {"models": []}

    asyncio.run(run())


def test_intervals_of_probabilities_have_them_and_shrink(serving):
    async def run():
        async with serving() as client:
            await made(client)
            asked, widths = {"instances": inputs(rows(20, 9)), "issue_id": False, "intervals": True}, []
            for seed, count in ((1, 60), (2, 3000)):
                await client.post("/v1/models/shops:learn", json={"instances": rows(count, seed)})
                said = (await client.post("/v1/models/shops:predict", json=asked)).json()
                plain = (await client.post("/v1/models/shops:predict", json=asked | {"intervals": False})).json()
                for one, other in zip(said["predictions"], plain["predictions"], strict=True):
                    assert one["probabilities"] == other["probabilities"]
                    assert 0.0 <= one["low"] <= max(one["probabilities"].values()) <= one["high"] <= 1.0
                widths.append(sum(one["high"] - one["low"] for one in said["predictions"]))
                assert said["version"] == plain["version"]
            assert widths[1] < 0.5 * widths[0]
            wrong = await client.post("/v1/models/shops:predict", json=asked | {"issue_id": True})
            assert wrong.status_code == 422

    asyncio.run(run())


@pytest.mark.parametrize("labels", [[True, "maybe", False], ["yes", "no", 1], [0, 1, True]])
def test_labels_of_several_kinds_are_refused(serving, labels):
    async def run():
        async with serving() as client:
            await made(client)
            mixed = [row | {"bought": labels[place % 3]} for place, row in enumerate(rows(30))]
            told = await client.post("/v1/models/shops:learn", json={"instances": mixed})
            assert told.status_code == 422
            assert "of one kind" in told.json()["detail"]
            same = [row | {"bought": labels[place % 2]} for place, row in enumerate(rows(30))]
            if type(labels[0]) is type(labels[1]):
                assert (await client.post("/v1/models/shops:learn", json={"instances": same})).status_code == 200
                told = await client.post("/v1/models/shops:learn", json={"instances": mixed})
                assert told.status_code == 422
                assert (await client.get("/v1/models/shops")).json()["examples"] == 30

    asyncio.run(run())


def test_what_is_served_is_the_table_model(serving):
    """Learning by HTTP is learning in the process: the same probabilities to the last bit."""

    async def run():
        async with serving() as client:
            await made(client)
            for start in (0, 100, 250):
                part = rows(400)[start : {0: 100, 100: 250, 250: 400}[start]]
                await client.post("/v1/models/shops:learn", json={"instances": part})
            asked = inputs(rows(5, 9))
            body = {"instances": asked, "issue_id": False}
            said = (await client.post("/v1/models/shops:predict", json=body)).json()
            assert "ids" not in said
            return [one["probabilities"]["true"] for one in said["predictions"]], asked

    served, asked = asyncio.run(run())
    model = bayou.TableModel("bought")
    for start, stop in ((0, 100), (100, 250), (250, 400)):
        model.learn_many(pl.DataFrame(rows(400)[start:stop]))
    assert served == model.predict(pl.DataFrame(asked))[:, 1].tolist()


def test_labels_come_later_by_id(serving):
    async def run():
        async with serving() as client:
            await made(client)
            await client.post("/v1/models/shops:learn", json={"instances": rows(200)})
            later = rows(10, 3)
            ids = (await client.post("/v1/models/shops:predict", json={"instances": inputs(later)})).json()["ids"]
            labels = [{"id": id, "label": row["bought"]} for id, row in zip(ids, later, strict=True)]
            told = await client.post("/v1/models/shops:feedback", json={"labels": labels})
            assert told.json() == {"learnt": 10, "examples": 210}
            again = await client.post("/v1/models/shops:feedback", json={"labels": labels[:1]})
            assert again.status_code == 404
            assert ids[0] in again.json()["detail"]
            twice = await client.post("/v1/models/shops:feedback", json={"labels": [{"id": "no-1", "label": True}]})
            assert twice.status_code == 404

    asyncio.run(run())


def test_predict_learn_says_before_it_learns(serving):
    async def run():
        async with serving() as client:
            await made(client)
            await client.post("/v1/models/shops:learn", json={"instances": rows(200)})
            row = rows(1, 4)
            said = (await client.post("/v1/models/shops:predict", json={"instances": inputs(row)})).json()
            told = (await client.post("/v1/models/shops:predict_learn", json={"instances": row})).json()
            assert told["learnt"] == 1
            assert told["examples"] == 201
            assert told["predictions"][0]["probabilities"]["true"] == pytest.approx(
                said["predictions"][0]["probabilities"]["true"],
                abs=1e-3,  # inputs are scaled by what was seen of them, now with this row's
            )

    asyncio.run(run())


@pytest.mark.parametrize("task", ["regression", "auto"])
def test_numbers_have_intervals(serving, task):
    async def run():
        async with serving() as client:
            await client.post("/v1/models", json={"name": "m", "settings": {"target": "amount", "task": task}})
            first = (await client.post("/v1/models/m:predict_learn", json={"instances": rows(30, 0, "amount")})).json()
            widths = [one["high"] - one["low"] for one in first["predictions"]]
            assert len(widths) == 30
            assert widths[-1] < widths[0]
            assert first["predictions"][0]["sd"] is None
            await client.post("/v1/models/m:learn", json={"instances": rows(500, 1, "amount")})
            later = rows(200, 2, "amount")
            said = (await client.post("/v1/models/m:predict", json={"instances": inputs(later)})).json()["predictions"]
            inside = [one["low"] <= row["amount"] <= one["high"] for one, row in zip(said, later, strict=True)]
            assert sum(inside) > 200 * 0.9 - 4 * (200 * 0.09) ** 0.5

    asyncio.run(run())


def test_a_long_body_that_is_broken_is_refused_as_a_short_one(serving):
    async def run():
        async with serving() as client:
            await made(client)
            for count in (2, 1000):  # read by the loop, and in parts by a thread
                whole = orjson.dumps({"instances": rows(count)})
                assert len(whole) > INLINE_BYTES or count == 2
                for body, code in ((whole[:-2], 400), (whole[:-1] + b',"other":1}', 422), (b"[" + whole + b"]", 422)):
                    told = await client.post("/v1/models/shops:learn", content=body)
                    assert told.status_code == code, told.text
            assert (await client.get("/v1/models/shops")).json()["examples"] == 0

    asyncio.run(run())


def test_a_stream_of_lines(serving):
    async def run():
        async with serving() as client:
            await made(client)
            lines = b"\n".join(map(orjson.dumps, rows(2500)))
            headers = {"content-type": "application/x-ndjson", "idempotency-key": "file-1"}
            for _ in range(2):  # a repetition counts once
                told = await client.post("/v1/models/shops:learn", content=lines, headers=headers)
                assert told.json() == {"learnt": 2500, "lines": 2500, "parts": 3}
            assert (await client.get("/v1/models/shops")).json()["examples"] == 2500
            bad = b"\n".join([*map(orjson.dumps, rows(1000)), b"{broken"])
            told = await client.post("/v1/models/shops:learn", content=bad, headers={"content-type": NDJSON})
            assert told.status_code == 422
            assert told.json()["learnt"] == 1000
            assert "after line 1000" in told.json()["error"]

    asyncio.run(run())


NDJSON = "application/x-ndjson"


def test_a_stream_of_long_lines_is_learnt_in_smaller_parts(serving, monkeypatch):
    """However long lines are, what waits to be learnt stays bounded; and a part is the same however bytes come."""
    monkeypatch.setattr(routes_rows, "MOST_BYTES", 20_000)

    async def run():
        async with serving() as client:
            await made(client)
            lines = b"\n".join(orjson.dumps(row | {"note": "x" * 500}) for row in rows(120))
            headers, counts = {"content-type": NDJSON, "idempotency-key": "file-1"}, []
            for size in (len(lines), 700, 13):

                async def chunks(size=size):
                    for start in range(0, len(lines), size):
                        yield lines[start : start + size]

                told = await client.post("/v1/models/shops:learn", content=chunks(), headers=headers)
                counts.append(told.json())
            assert counts == [{"learnt": 120, "lines": 120, "parts": 4}] * 3
            assert (await client.get("/v1/models/shops")).json()["examples"] == 120

    asyncio.run(run())


def test_files_go_out_and_come_in(serving):
    async def run():
        async with serving() as client:
            await made(client)
            await client.post("/v1/models/shops:learn", json={"instances": rows(300)})
            data = (await client.get("/v1/models/shops/file")).content
            assert from_bytes(data).n_rows == 300
            taken = await client.put("/v1/models/other/file", content=data)
            assert taken.status_code == 201
            assert taken.json()["examples"] == 300
            body = {"instances": inputs(rows(4, 7)), "issue_id": False}
            said = [(await client.post(f"/v1/models/{m}:predict", json=body)).json() for m in ("shops", "other")]
            assert said[0]["predictions"] == said[1]["predictions"]
            for bad in (b"", b"nonsense", data[:-3]):
                refused = await client.put("/v1/models/third/file", content=bad)
                assert refused.status_code == 422, refused.text
            assert (await client.put("/v1/models/other/file", content=data)).status_code == 409

    asyncio.run(run())


def test_versions_are_kept_and_come_back(serving):
    async def run():
        async with serving() as client:
            await made(client)
            await client.post("/v1/models/shops:learn", json={"instances": rows(300)})
            kept = (await client.post("/v1/models/shops/versions", json={"label": "good"})).json()["version"]
            body = {"instances": inputs(rows(4, 7)), "issue_id": False}
            before = (await client.post("/v1/models/shops:predict", json=body)).json()["predictions"]
            worse = [row | {"bought": not row["bought"]} for row in rows(300, 5)]
            await client.post("/v1/models/shops:learn", json={"instances": worse})
            assert (await client.post("/v1/models/shops:predict", json=body)).json()["predictions"] != before
            told = await client.post("/v1/models/shops:roll_back", json={"version": kept})
            assert told.json()["version"] == kept + 1
            assert (await client.post("/v1/models/shops:predict", json=body)).json()["predictions"] == before
            found = (await client.get("/v1/models/shops/versions")).json()["versions"]
            assert [one["label"] for one in found] == [f"back to {kept}", "good", None]
            assert from_bytes((await client.get(f"/v1/models/shops/versions/{kept}/file")).content).n_rows == 300
            assert (await client.post("/v1/models/shops:roll_back", json={"version": 99})).status_code == 404

    asyncio.run(run())


def test_the_status_tells_all_that_a_page_shows(serving):
    async def run():
        async with serving() as client:
            await made(client)
            empty = (await client.get("/v1/models/shops/status")).json()
            assert empty["examples"] == 0
            assert empty["scores"] == {}
            assert empty["weights"] == []
            await client.post("/v1/models/shops:learn", json={"instances": rows(600)})
            await client.post("/v1/models/shops:predict", json={"instances": inputs(rows(2))})
            await asyncio.sleep(0.5)
            told = (await client.get("/v1/models/shops/status")).json()
            assert told["examples"] == 600
            assert told["pending"] == 2
            assert told["version"] == 1
            assert told["scores"]["accuracy"]["value"] > 0.7
            assert told["scores"]["accuracy"]["error"] > 0.0
            assert told["curve"]["names"][0] == "rows"
            assert len(told["curve"]["points"]) >= 1
            assert sum(told["reliability"]["counts"]) > 0
            assert told["state_bytes"] > 0
            assert any("price" in one["name"] for one in told["weights"])
            assert told["found"]["drift"]
            assert told["weights"][0]["low"] < told["weights"][0]["mean"] < told["weights"][0]["high"]

    asyncio.run(run())


@pytest.mark.parametrize("task", ["binary", "regression", "count"])
def test_rows_that_weigh_nothing_are_counted_and_no_more(serving, task):
    """Before anything was learnt, and after."""

    async def run():
        async with serving() as client:
            columns = {"city": "category", "price": "number"}
            settings = {"target": "y", "task": task, "columns": columns, "weight": "w"}
            await client.post("/v1/models", json={"name": "m", "settings": settings})
            made = [{"city": "Paris", "price": n, "y": n % 2} for n in range(4)]

            async def learn(weight, examples, **more):
                weighed = [row | more | {"w": weight} for row in made]
                told = await client.post("/v1/models/m:learn", json={"instances": weighed})
                assert (told.status_code, told.json()["examples"]) == (200, examples), told.text
                asked = {"instances": inputs(made), "issue_id": False}
                return (await client.post("/v1/models/m:predict", json=asked)).json()["predictions"]

            assert await learn(0, 4) == [None] * 4
            before = await learn(1, 8)
            assert await learn(0, 12, price=1e3, city="Rome") == before
            assert await learn(1, 16, price=1e3) != before

    asyncio.run(run())


def test_classes_that_were_named_are_possible_from_the_first_row_on(serving):
    async def run():
        async with serving() as client:
            columns = {"city": "category", "price": "number"}
            for task, classes in (("binary", ["no", "yes"]), ("multiclass", ["no", "perhaps", "yes"])):
                await made(client, task, task=task, classes=classes, columns=columns)
                row = rows(1)[0] | {"bought": "yes"}
                told = await client.post(f"/v1/models/{task}:predict_learn", json={"instances": [row, row]})
                first, second = told.json()["predictions"]
                assert list(first["probabilities"].values()) == pytest.approx([1.0 / len(classes)] * len(classes))
                assert all(0.0 < p < 1.0 for p in second["probabilities"].values())
                assert second["probabilities"]["yes"] > 1.0 / len(classes)
                assert (await client.get(f"/v1/models/{task}")).json()["classes"] == classes
            await made(client, "unnamed", task="binary", columns=columns)
            told = await client.post("/v1/models/unnamed:predict_learn", json={"instances": rows(2)})
            assert told.json()["predictions"][0] is None  # its own label was not known before

    asyncio.run(run())


def test_a_comparison_whose_column_is_missing_everywhere_is_no_target(serving):
    async def run():
        async with serving() as client:
            settings = {"target": "price > 3", "columns": {"x": "number"}, "task": "binary"}
            await client.post("/v1/models", json={"name": "m", "settings": settings})
            told = await client.post("/v1/models/m:learn", json={"instances": [{"x": 1, "price": p} for p in (1, 5)]})
            assert told.json()["learnt"] == 2
            for row in ({"x": 1, "price": None}, {"x": 1}):
                told = await client.post("/v1/models/m:learn", json={"instances": [row]})
                assert (told.status_code, told.json()["without_target"]) == (200, 1)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"weight": "bought"}, "must be another column than that of the target"),
        ({"ignore": ["bought"]}, "must leave the target and the weight"),
        ({"task": "binary", "classes": ["a", "b", "c"]}, "must be two where the task is binary; got 3"),
        ({"task": "multiclass", "classes": [True, "a"]}, "must be of one kind, each once"),
        ({"task": "multiclass", "classes": ["a", "a"]}, "must be of one kind, each once"),
        ({"target": "price > 3", "task": "regression"}, "`task` must be binary; got regression"),
        ({"bits": "many"}, '`settings.bits`: Input should be a valid integer; got "many"'),
        ({"colour": 1}, "`settings.colour`: nothing by that name is known"),
        ([], "`settings`: it must be an object; got an array"),
    ],
)
def test_settings_that_make_no_sense_are_refused(serving, settings, told):
    async def run():
        async with serving() as client:
            asked = {"target": "bought"} | settings if isinstance(settings, dict) else settings
            refused = await client.post("/v1/models", json={"name": "m", "settings": asked})
            assert refused.status_code == 422
            detail = refused.json()["detail"]
            assert told in detail
            assert ".." not in detail
            assert "Value error" not in detail

    asyncio.run(run())


def test_as_many_columns_as_can_be_named_can_be_learnt(serving):
    async def run():
        async with serving() as client:
            columns = {f"c{n}": "number" for n in range(1000)}
            settings = {"target": "y", "task": "regression", "columns": columns, "weight": "w", "budget": 5.0}
            await client.post("/v1/models", json={"name": "wide", "settings": settings})
            row = dict.fromkeys(columns, 0.5) | {"y": 1.0, "w": 1.0}
            told = await client.post("/v1/models/wide:learn", json={"instances": [row]})
            assert told.status_code == 200, told.text
            more = await client.post("/v1/models/wide:learn", json={"instances": [row | {"one": 1}]})
            assert more.status_code == 422

    asyncio.run(run())


def test_what_is_not_there_is_named(serving):
    async def run():
        async with serving() as client:
            await made(client)
            for method, path, code in (
                ("POST", "/v1/models/shops:explode", 405),
                ("GET", "/v3/models", 404),
                ("PATCH", "/v1/models", 405),
            ):
                told = await client.request(method, path)
                assert told.status_code == code
                assert told.json()["detail"] == f"there is no {method} {path}; /openapi.json tells what there is."

    asyncio.run(run())


def test_a_broken_line_of_a_stream_is_named(serving):
    async def run():
        async with serving() as client:
            await made(client)
            lines = [*map(orjson.dumps, rows(1200)), b"{broken"]
            refused = await client.post(
                "/v1/models/shops:learn", content=b"\n".join(lines), headers={"content-type": NDJSON}
            )
            assert refused.status_code == 422
            assert refused.json()["learnt"] == 1000
            assert refused.json()["error"].startswith("after line 1000: line 1201 must be JSON; ")

    asyncio.run(run())


def test_events_come_when_something_changed(serving):
    async def run():
        async with serving() as client:
            await made(client)
            from bayou.service.routes_models import _watch

            request = SimpleNamespace(app=client.app)
            events = _watch(client.hub, "shops", request)
            first = await anext(events)
            assert first.startswith(b"event: status\ndata: ")
            assert first.endswith(b"\n\n")
            assert orjson.loads(first.split(b"data: ")[1])["examples"] == 0
            await client.post("/v1/models/shops:learn", json={"instances": rows(20)})
            assert orjson.loads((await anext(events)).split(b"data: ")[1])["examples"] == 20
            await client.delete("/v1/models/shops")
            assert (await anext(events)).startswith(b"event: deleted")
            assert [one async for one in events] == []
            await made(client)
            events = _watch(client.hub, "shops", request)
            await anext(events)
            client.app.state.is_ending = lambda: True  # as a server says that is told to stop
            assert [one async for one in events] == []
            assert client.hub.watchers == 0

    asyncio.run(run())


def test_the_open_inference_protocol(serving):
    """The same predictions, told as KServe's V2 has them."""

    async def run():
        async with serving() as client:
            assert (await client.get("/v2")).json()["name"] == "bayou"
            await made(client)
            assert (await client.get("/v2/models/shops/ready")).json() == {"name": "shops", "ready": False}
            await client.post("/v1/models/shops:learn", json={"instances": rows(300)})
            assert (await client.get("/v2/models/shops/ready")).json()["ready"] is True
            assert (await client.get("/v1/models/shops")).json()["ready"] is True
            about = (await client.get("/v2/models/shops")).json()
            assert about["versions"] == ["1"]
            assert {one["name"]: one["datatype"] for one in about["inputs"]} == {"price": "FP64", "city": "BYTES"}
            assert [one["name"] for one in about["outputs"]] == ["label", "probabilities"]
            later = inputs(rows(40, 7))
            tensors = [
                {"name": "price", "shape": [40], "datatype": "FP64", "data": [row["price"] for row in later]},
                {"name": "city", "shape": [40, 1], "datatype": "BYTES", "data": [row["city"] for row in later]},
            ]
            said = (await client.post("/v2/models/shops/infer", json={"id": "a", "inputs": tensors})).json()
            body = {"instances": later, "issue_id": False}
            wanted = (await client.post("/v1/models/shops:predict", json=body)).json()["predictions"]
            labels, shares = said["outputs"]
            assert (said["id"], said["model_version"]) == ("a", "1")
            assert shares["shape"] == [40, 2]
            assert shares["parameters"]["classes"] == ["false", "true"]
            assert shares["data"][1::2] == [one["probabilities"]["true"] for one in wanted]
            assert labels["data"] == [str(one["label"]).lower() for one in wanted]
            assert (await client.get("/v1/models/shops")).json()["pending"] == 0
            same = await client.post("/v2/models/shops/versions/1/infer", json={"inputs": tensors})
            assert same.json()["outputs"] == said["outputs"]
            assert (await client.get("/v2/models/shops/versions/2")).status_code == 404
            tensors[1]["data"].pop()
            wrong = await client.post("/v2/models/shops/infer", json={"inputs": tensors})
            assert wrong.status_code == 422
            assert "of 40 rows" in wrong.json()["detail"]

    asyncio.run(run())


def test_numbers_by_the_open_inference_protocol(serving):
    async def run():
        async with serving() as client:
            await client.post("/v1/models", json={"name": "m", "settings": {"target": "amount", "task": "regression"}})
            await client.post("/v1/models/m:learn", json={"instances": rows(100, 1, "amount")})
            tensor = {"name": "price", "shape": [2], "datatype": "FP64", "data": [0.5, None]}
            told = (await client.post("/v2/models/m/infer", json={"inputs": [tensor]})).json()["outputs"]
            assert [one["name"] for one in told] == ["mean", "sd", "low", "high"]
            wanted = {"instances": [{"price": 0.5}, {}], "issue_id": False}
            said = (await client.post("/v1/models/m:predict", json=wanted)).json()["predictions"]
            assert [one["data"] for one in told] == [[row[one["name"]] for row in said] for one in told]

    asyncio.run(run())


def test_predictions_are_not_refused_while_a_model_is_busy(serving):
    """Those with ids are answered by the copy, and noted when the model has time again."""

    async def run():
        async with serving() as client:
            await made(client)
            await client.post("/v1/models/shops:learn", json={"instances": rows(100)})
            busy = asyncio.create_task(client.hub.look("shops", lambda served: time.sleep(1.0) or b""))
            await asyncio.sleep(0.1)
            body = {"instances": inputs(rows(1, 5))}
            answers = [await client.post("/v1/models/shops:predict", json=body) for _ in range(300)]
            assert {one.status_code for one in answers} == {200}
            await busy
            ids = [one.json()["ids"][0] for one in answers]
            labels = [{"id": id, "label": True} for id in ids]
            told = await client.post("/v1/models/shops:feedback", json={"labels": labels})
            assert told.json()["learnt"] == 300

    asyncio.run(run())


def test_the_quick_way_tells_what_a_table_tells():
    """Rows of any plain values: the same features as by a table, or none, and then the table decides."""
    model = bayou.TableModel("bought")
    model.learn_many(pl.DataFrame(rows(300)))
    chance, quick = random.Random(3), 0
    for _ in range(300):
        row = {}
        if chance.random() < 0.9:
            row["city"] = chance.choice(
                ["Paris", " Rome ", "Oslo", "", None, "Bern", 3, 2.5, True, "a\tb", "\u3000Rome"]
            )
        if chance.random() < 0.9:
            row["price"] = chance.choice([0.5, -3, None, True, "2.5", 1e9])
        found = quick_features(model.layout, [row, {}])
        if found is not None:
            table = table_of([row, {}], model.kinds())
            np.testing.assert_array_equal(found, model.layout.encode(table))
            quick += 1
    assert quick > 150
