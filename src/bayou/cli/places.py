"""Where files go: looked at before an hour is spent on what goes there."""

from __future__ import annotations

import os
from pathlib import Path

from bayou.cli.errors import Failed


def require_folder(*names: str | None) -> None:
    """Raise unless each file can be made where it is to be; None and the standard output always can."""
    for name in names:
        if name is None or name == "-":
            continue
        folder = Path(name).parent
        if not folder.is_dir():
            raise Failed(f"{name} must go to a folder that is there; got {folder}, which is none.")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise Failed(f"{name} must go to a folder that can be written to; got {folder}, which cannot.")
