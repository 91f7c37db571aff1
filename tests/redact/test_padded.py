"""What is sifted natively says the same as the rules for one string say, whatever stands beside it in a column."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from etl.redact.escapes import joined, padded

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
    assert padded(column).to_pylist() == [_blanked(text) for text in column.to_pylist()]


@given(_TEXTS)
def test_joined_strings_have_a_byte_a_character(texts: list[str]) -> None:
    data, nexts = joined(pa.array(texts, pa.string()))
    assert [len(piece) for piece in data.decode("ascii").split("\n")][: len(texts)] == [len(text) for text in texts]
    assert nexts == [sum(len(text) + 1 for text in texts[: number + 1]) for number in range(len(texts))]
    assert all(byte == 10 or byte == 9 or 0x20 <= byte < 0x7F for byte in data)
