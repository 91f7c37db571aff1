"""Adapters of the tests beside the real ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import etl.adapters
from etl.adapter import adapters
from tests.lakes import REPO

TOY = str(REPO / "tests" / "toy")


@pytest.fixture
def toy_adapters() -> Iterator[None]:
    """The toy adapters are found: their folder is one more place where adapters lie."""
    etl.adapters.__path__.append(TOY)
    adapters.cache_clear()
    yield
    etl.adapters.__path__.remove(TOY)
    adapters.cache_clear()
