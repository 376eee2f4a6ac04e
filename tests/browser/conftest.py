"""JupyterLab on a free port, with copies of the notebooks, driven by headless Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from . import jupyter


@pytest.fixture(scope="session")
def chromium(missing) -> str:
    found = jupyter.find_chromium()
    if found is None:
        missing(jupyter.NO_CHROMIUM)
    return found


@pytest.fixture(scope="session")
def lab_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that JupyterLab shows."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab_url(lab_folder: Path) -> Iterator[str]:
    """Address of a running JupyterLab whose folder holds copies of the notebooks."""
    with jupyter.lab(lab_folder) as address:
        yield address


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[object]:
    with jupyter.browser(chromium) as opened:
        yield opened
