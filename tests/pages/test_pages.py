"""The report and the notebook show a row whole, and no log text can be more than text in them."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import etl
from etl.errors import UsageError
from etl.pages import render
from etl.pages.conversation import SHOWN, page, passage
from etl.pages.facts import MOST_DRAWN, MOST_LINES
from etl.query import connect, find_kin, find_rollout
from tests.lakes import NOW
from tests.pages.hostile import ATTACK, check_page, hostile_lake
from tests.query.support import make_lake, refund

pytest.importorskip("vl_convert", reason='the report needs: pip install "rollout-etl[report]"')


@pytest.fixture(scope="module")
def sample_report(sample_lake: Path) -> str:
    """The report of the sample logs."""
    from etl.pages.report import report

    return report(connect(sample_lake), "the lake", now=NOW)


def test_the_report_is_one_file_that_loads_nothing(sample_report: str) -> None:
    check_page(sample_report)
    assert "default-src 'none'" in sample_report
    assert not re.search(r"""(?:src|href)=["'](?!#|data:,)""", sample_report)
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org/)[^\s<&]*\.(?:css|js|png)", sample_report)


def test_the_report_says_what_is_asked_of_it(sample_report: str) -> None:
    text = check_page(sample_report)
    for title in (
        "What came in",
        "What could not be used, and why",
        "How often tasks are solved",
        "Tools that fail",
        "Tokens and money",
        "How long conversations are",
        "Coverage: traffic, simulated, missing",
        "Some conversations",
    ):
        assert title in text
    assert "torn_tail" in text
    assert "bash" in text


def test_every_picture_has_words(sample_report: str) -> None:
    pictures = re.findall(r"<svg [^>]*>", sample_report)
    assert len(pictures) >= 6
    for picture in pictures:
        label = re.search(r'role="img" aria-label="([^"]{20,})"', picture)
        assert label, picture
    assert sample_report.count("<figure>") == sample_report.count("<figcaption>") == len(pictures)
    assert "prefers-color-scheme: dark" in sample_report
    assert "@media print" in sample_report
    assert "currentColor" in sample_report


def test_a_hostile_lake_makes_a_harmless_report(tmp_path: Path) -> None:
    from etl.pages.report import report

    lake = hostile_lake(tmp_path / "lake")
    text = check_page(report(connect(lake.root), ATTACK, now=NOW))
    assert "<script>alert(1)</script>" in text, "it is shown, as text"
    assert "{{ 7*7 }}" in text


def test_an_empty_lake_has_a_report(tmp_path: Path) -> None:
    from etl.pages.report import report

    make_lake(tmp_path / "lake")
    assert "No tool was called" in check_page(report(connect(tmp_path / "lake"), "x", now=NOW))


def test_tables_that_are_cut_say_so(tmp_path: Path) -> None:
    from etl.pages.report import report

    rows = [refund(f"r_{n}", model=f"m{n}") for n in range(MOST_LINES + 5)]
    make_lake(tmp_path / "lake", rows)
    text = check_page(report(connect(tmp_path / "lake"), "x", now=NOW))
    assert "… and 5 more lines; etl sql gives all of them" in text
    assert f"… and {MOST_LINES + 5 - MOST_DRAWN} more lines" in text, "of the tasks"
    assert text.count("more lines") == 2


def test_a_row_is_an_object_that_a_notebook_shows(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [refund()])
    row = etl.find(tmp_path / "lake", "r_ref")
    assert isinstance(row, etl.Rollout)
    assert row.steps[2].condition == "permission_denied"
    text = check_page(row._repr_html_())
    for said in ("Refund my order W1, please.", "get_order", "1/2", "no result was logged", "not allowed", "reward 0"):
        assert said in text
    with pytest.raises(UsageError):
        etl.find(tmp_path / "lake", "nobody")


def test_a_hostile_row_is_harmless_in_a_notebook(tmp_path: Path) -> None:
    lake = hostile_lake(tmp_path / "lake")
    html = etl.find(lake.root, "r_one")._repr_html_()
    check_page(html)
    assert ":root" not in html
    assert "\nbody {" not in html


def test_results_stand_beside_their_calls_and_orphans_alone(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", [refund()])
    with connect(tmp_path / "lake") as connection:
        row = find_rollout(connection, "r_refund")
        shown = page(row, find_kin(connection, row))
    assert [turn.place for turn in shown.turns] == [0, 1, 2, 4, 6]
    calls = shown.turns[2].calls
    told = [(call.number, call.failed, call.result is None) for call in calls]
    assert told == [("1/2", False, False), ("2/2", True, True)]
    assert page(row, first=2, most=1).turns[0].place == 2


def test_long_texts_are_cut_and_say_so() -> None:
    text = "x" * (SHOWN + 5)
    assert passage(text).left_out == 5
    assert passage(text).folded
    assert not passage("short").folded
    assert passage("line\n" * 100).folded


@given(st.text())
def test_any_text_is_only_text(anything: str) -> None:
    html = render("problem.html", lake=anything, here=anything, form_token="", said=anything)
    check_page(html)


def test_times_are_utc() -> None:
    from etl.pages import when

    assert when(dt.datetime(2026, 3, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))) == "2026-02-28 23:00:00"
