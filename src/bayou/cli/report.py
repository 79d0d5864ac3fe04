"""``bayou report``: a run as one page of HTML."""

from __future__ import annotations

import secrets
from pathlib import Path

from bayou.cli.errors import Failed
from bayou.cli.learn import loaded
from bayou.cli.places import require_folder
from bayou.cli.shown import warn
from bayou.evaluation import TableRun, report_page


def run(name: str, output: str) -> None:
    """Make the page, and write it whole or not at all."""
    path = Path(output)
    if path.exists() and (not path.is_file() or path.samefile(name)):
        raise Failed(f"the page must go to a file of its own; got {output}, which is {_what(path)}.")
    require_folder(output)
    model = loaded(name)
    if "run" not in model.extra.config or not (known := TableRun.of(model)).has_scores:
        raise Failed(f"{name} holds no run to report: `bayou learn` keeps one when it saves a model.")
    write_whole(path, report_page(known))
    warn(f"written to {output}")


def write_whole(path: Path, text: str) -> None:
    """Write beside the file, then take its place in one step."""
    beside = path.parent / f".bayou-{secrets.token_hex(8)}.tmp"
    try:
        with beside.open("x", encoding="utf-8") as stream:
            stream.write(text)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _what(path: Path) -> str:
    return "the model" if path.is_file() else "a folder or a device"
