"""The command line: each command is thin, and calls what Python users call.

Commands are loaded when they are asked for, so that ``bayou --help`` is quick.
"""

from __future__ import annotations

import gc
import sys

MISSING = 'the command line needs typer, which is missing: pip install "bayou[cli]"'


def main() -> None:
    """Run the command that was asked for."""
    try:
        from bayou.cli.app import app  # noqa: PLC0415  # an extra
    except ImportError as error:
        if error.name not in ("typer", "click"):
            raise
        sys.exit(f"bayou: {MISSING}")
    gc.freeze()  # what was loaded stays; to look through it again and again is a tenth of a short run
    gc.set_threshold(100_000)
    app()
