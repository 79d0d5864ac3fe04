"""What is read and written in parts is what is read and written in one go."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayou.service import json_parts
from bayou.service.json_parts import dumped, parsed
from tests.service.made import rows

VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.sampled_from('{}[],:"\\ aé\n'), max_size=12)
ROWS = st.lists(st.dictionaries(TEXTS, VALUES | TEXTS | st.lists(VALUES, max_size=2), max_size=3), max_size=30)


@pytest.fixture(autouse=True, scope="module")
def small_parts():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_parts, "PART_BYTES", 16)
        patch.setattr(json_parts, "PART_ROWS", 3)
        yield


@given(ROWS, st.sampled_from(["instances", "", "[", "},{", '"']), st.booleans())
def test_a_body_is_read_as_in_one_go(made, key, first):
    others = {"issue_id": False, "more": [{"a": 1}, {}]}
    for body in ({key: made}, {"issue_id": False, key: made}, {key: made} | others, others | {key: made}, made):
        for option in (None, orjson.OPT_INDENT_2):
            data = orjson.dumps(body, option=option)
            assert parsed(data) == orjson.loads(data)
            assert parsed(b" " + data + b"\n") == body


@given(ROWS, st.integers(0, 400), st.binary(max_size=2))
def test_what_is_not_json_is_refused_as_in_one_go(made, place, put):
    data = orjson.dumps({"instances": made})
    place %= len(data)
    broken = data[:place] + put + data[place + 1 :]
    try:
        whole = orjson.loads(broken)
    except orjson.JSONDecodeError:
        with pytest.raises(orjson.JSONDecodeError):
            parsed(broken)
    else:
        assert parsed(broken) == whole


@pytest.mark.parametrize(
    "body",
    [
        b'{"instances":[{"a":1},{"a":2},{"a":3},{"a":4},]}',
        b'{"instances":[{"a":1},{"a":2},,{"a":3},{"a":4}]}',
        b'{"instances":[{"a":1},{"a":2},{"a":3},{"a":4}}',
        b'{"instances":[{"a":1},{"a":2},{"a":3},{"a":4}]]',
        b'{"instances":[{"a":1},{"a":2},{"a":3},{"a":4}]',
        b'{"instances":[{"a":1},{"a":2},{"a":3},{"a":4}]}}',
        b"[",
        b"",
    ],
)
def test_broken_bodies_are_refused(body):
    with pytest.raises(orjson.JSONDecodeError):
        parsed(body)


def test_long_bodies_are_read_in_parts():
    body = orjson.dumps({"issue_id": False, "instances": rows(200)})
    assert json_parts._in_parts(body) == orjson.loads(body)  # and not left to who reads it in one go


@given(ROWS)
def test_rows_are_written_as_in_one_go(made):
    assert dumped(made) == orjson.dumps(made)
