"""Where the data of the larger claims is: beside the repository, or where BAYOU_DATA says. It is not shipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data(root: Path) -> Path:
    folder = Path(os.environ.get("BAYOU_DATA", root.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the data sets of this claim are not at {folder}; set BAYOU_DATA to the folder that has them")
    return folder
