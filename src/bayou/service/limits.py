"""How much the service takes: whatever is sent, memory and disk stay bounded."""

from __future__ import annotations

import re

MOST_MODELS = 100
MOST_ROWS = 10_000  # of one request
MOST_BYTES = 16 * 2**20  # of one body
MOST_HELD = 512 * 2**20  # of all bodies that are being answered
MOST_FILE_BYTES = 256 * 2**20  # of a model that is imported
MOST_COLUMNS = 1000
LONGEST_NAME = 200  # letters of a column
LONGEST_VALUE = 10_000  # letters of a value
MOST_QUEUED = 256  # requests that wait for one model
MOST_FORECAST = 4096  # and small predictions, which were answered, and are yet to be noted by it
MOST_KEYS = 10_000  # idempotency keys of a model, the latest
MOST_ANSWERED = 64 * 2**20  # bytes of answers to them: of older ones it is known only that they were given
MOST_JOURNAL = 64 * 2**20  # bytes of the journal of a model, or a few times its size, between versions
MOST_PENDING = 10_000  # predictions of a model that wait for their labels, the latest
LABEL_WAIT = 7 * 86_400.0  # seconds after which a prediction waits no longer
MOST_WAITING = 64 * 2**20  # letters of their text
MOST_CLASSES = 1000
MOST_WEIGHTS = 2**25  # of all classes of a model together
MOST_VERSIONS = 5  # that were made by themselves, and as many that were asked for
MOST_WATCHERS = 64  # open streams of events
PART = 1000  # lines of a stream that are learnt at a time
INLINE_BYTES = 16_384  # of a body that the loop reads itself
INLINE_ROWS = 64  # predictions that the loop makes in one go
INLINE_ISSUED = 32  # and those that wait for their labels, which cost more
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")
KEY = re.compile(r"[\x21-\x7e]{1,200}")
