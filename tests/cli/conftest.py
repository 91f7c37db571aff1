"""The command line run in this process, and a lake of the sample logs, made once."""

import datetime as dt

import pytest

from etl.demo import demo


@pytest.fixture(scope="session")
def sample_lake(tmp_path_factory):
    """The lake that `etl demo` leaves. Read it, never write to it."""
    lake = tmp_path_factory.mktemp("samples") / "lake"
    demo(lake, now=dt.datetime(2026, 4, 1, 2, 0, tzinfo=dt.UTC))
    return lake
