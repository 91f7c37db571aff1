"""What is sifted natively says the same as the rules for one string say, whatever stands beside it in a column."""

from __future__ import annotations

import itertools
import re

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from etl.redact.escapes import View
from etl.redact.texts import Texts

_BLANKS = {"\\n": " \n", "\\r": " \n", "\\t": "  ", "\\b": "  ", "\\f": "  "}
_CODES = {
    f"\\u00{code}": " " * 5 + chr(int(code, 16)) for code in ("26", "3c", "3C", "3d", "3D", "3e", "3E", "27", "22")
}
_PIECES = st.sampled_from(
    ["\\", "\\\\", *_BLANKS, *_CODES, "\\u00", "u003c", "n", "u", "0", "é", "€", "\0", "\x7f", "\t", "a b"]
)
_TEXTS = st.lists(st.lists(_PIECES, max_size=6).map("".join), max_size=6)


def _blanked(text: str) -> str:
    for escape, meaning in (_BLANKS | _CODES).items():
        text = text.replace(escape, meaning)
    return text.replace("\\", " ")


@given(_TEXTS, st.integers(0, 6))
def test_a_column_is_padded_as_its_strings_are(texts: list[str], first: int) -> None:
    column = pa.array(texts, pa.string()).slice(min(first, len(texts)))
    assert Texts(column).padded.to_pylist() == [_blanked(text) for text in column.to_pylist()]


@given(_TEXTS)
def test_joined_texts_stand_between_line_feeds(texts: list[str]) -> None:
    column = Texts(pa.array(texts, pa.string()))
    data, starts = column.joined
    assert data.decode() == "".join(f"\n\n{text}" for text in [*column.padded.to_pylist(), ""])
    assert [data[start - 2 : start] for start in starts] == [b"\n\n"] * (len(texts) + 1)
    assert starts[-1] == len(data)


@given(_TEXTS)
def test_plain_texts_have_a_byte_a_character(texts: list[str]) -> None:
    data, starts = Texts(pa.array(texts, pa.string())).plain
    assert [stop - start - 2 for start, stop in itertools.pairwise(starts)] == [len(text) for text in texts]
    assert starts[-1] == len(data)
    assert all(byte == 10 or byte == 9 or 0x20 <= byte < 0x7F for byte in data)


@given(st.text(st.sampled_from("\\\\\\nrtbf\"'/ué🔑 x")))
def test_a_view_undoes_escapes_of_any_depth(text: str) -> None:
    shown = re.sub(r"\\+", r"\\", text)
    for letter, meaning in zip("nrtbf\"'/", "\n\n   \"'/", strict=True):
        shown = shown.replace(f"\\{letter}", meaning)
    assert View(text).flat == shown


_SAID = re.compile(r"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")
_CODED = st.sampled_from(
    [
        "\\",
        "\\\\",
        "\\n",
        '\\"',
        "\\u00e9",
        "\\u0041",
        "\\u005c",
        "\\u20ac",
        "\\ud83d\\ude00",
        "\\ud83d",
        "\\uDE00",
        "\\u12",
        "\x1b[31m",
        "\\u001b[0m",
        "\x1b[",
        "n",
        "u",
        "0041",
        "é",
        "🔑",
        "\n",
        "\x7f",
        "m",
    ]
)


@given(st.lists(_CODED, max_size=9).map("".join))
def test_a_view_says_what_codes_stand_for(text: str) -> None:
    shown = re.sub(r"\\+", r"\\", text).replace("\\n", "\n").replace('\\"', '"')
    shown = _SAID.sub(lambda found: chr(int(found[1][1:], 16)) if len(found[1]) == 5 else "?", shown)
    shown = re.sub("\x1b\\[[0-9;]{0,16}[A-Za-z]", lambda found: " " * len(found.group()), shown)
    assert View(text).flat == shown


@given(st.lists(st.lists(_CODED | _PIECES, max_size=6).map("".join), min_size=1, max_size=6), st.data())
def test_texts_are_shown_together_as_their_views_show_them(texts: list[str], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.sampled_from(range(len(texts))), min_size=1, unique=True))
    shown, starts = Texts(pa.array(["x", *texts], pa.string()).slice(1)).shown(places)
    views = [View(texts[place]).data for place in places]
    assert shown == b"".join(b"\n\n" + each for each in [*views, b""])
    assert [shown[start : start + len(view)] for start, view in zip(starts, views, strict=False)] == views
    assert starts[-1] == len(shown)


_ESCAPE = re.compile(
    r"""\\+(?:u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[nrtbf"'/])|\\{2,}"""
)


@given(st.lists(_CODED | _PIECES, max_size=9).map("".join))
def test_places_of_a_view_lead_back_to_those_of_its_text(text: str) -> None:
    places, at = [0], 0
    while at < len(text):
        escape = _ESCAPE.match(text, at)
        at = escape.end() if escape else at + 1
        places.append(at)
    view = View(text)
    assert [view.raw_at(place) for place in range(len(view.text) + 1)] == places
