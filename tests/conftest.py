"""Fixtures several tests share: the embedded model, and what to do when something is missing here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from specnb import models
from specnb.backend import Model, ModelError, Session

THREADS = 1  # the shared machines that run tests give a second thread too little for it to be faster


@pytest.fixture(scope="session")
def missing() -> Callable[[str], NoReturn]:
    """Skips for want of something (a model, a browser); fails instead where SPECNB_REQUIRE_ALL is 1."""

    def skip_or_fail(what: str) -> NoReturn:
        if os.environ.get("SPECNB_REQUIRE_ALL") == "1":
            pytest.fail(f"SPECNB_REQUIRE_ALL is 1, but: {what}")
        pytest.skip(what)

    return skip_or_fail


@pytest.fixture(scope="session")
def embedded(missing) -> Path:
    """The embedded model's file, whatever SPECNB_TARGET says."""
    try:
        return models.embedded()
    except ModelError as error:
        missing(str(error))


@pytest.fixture(scope="session")
def model(embedded) -> Iterator[Model]:
    """The embedded model in Q4_0."""
    with Model(models.in_format(embedded, "Q4_0")) as opened:
        yield opened


@pytest.fixture(scope="session")
def shared_session(model) -> Iterator[Session]:
    with Session(model, n_ctx=512, n_batch=64, threads=THREADS) as opened:
        yield opened


@pytest.fixture
def session(shared_session) -> Session:
    """An empty session of the embedded model: n_ctx 512, n_batch 64."""
    shared_session.rewind(0)
    return shared_session
