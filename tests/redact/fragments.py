"""Texts in which anything may happen: secrets, labels, names, quotes and escapes, thrown together."""

from __future__ import annotations

import json
import string
from typing import Any

from hypothesis import strategies as st

TOKEN = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5"
"""Shaped like a token, and nobody's."""
KEY_LINES = "\n".join("FAKE" + line * 30 for line in ("ab", "cd"))
BLOCK = "-----BEGIN PRIV" + f"ATE KEY-----\n{KEY_LINES}\n-----END PRIV" + "ATE KEY-----"

_PIECES = [
    *(
        TOKEN,
        BLOCK,
        "sk-" + "ant-FAKE0000FAKE0000FAKE",
        "hunter2fake",
        "swordfish",
        "low-entropy-fake-token",
        "12345678",
    ),
    *("AKIA" + "FAKEFAKEFAKE2345", "eyJ" + "hbGciOiJub25lIn0.eyJ" + "zdWIiOiJmYWtlIn0.abc"),
    *(
        "<SECRET_password>",
        "<SECRET_",
        "SECRET_token>",
        "password",
        "API_TOKEN",
        "secret",
        "token",
        "api_key",
        "authorization",
    ),
    *(
        "Bearer ",
        "Basic YXBwOmh1bnRlcjJmYWtl",
        "postgres://app:",
        "@db.example/x",
        "https://",
        "curl -u app:",
        "cookie: a=",
        "--",
    ),
    *(
        "=",
        ": ",
        ":",
        ", ",
        " is ",
        "=>",
        '"',
        "'",
        '\\"',
        "\\\\",
        "\\",
        "\\n",
        "\\u0026",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\n",
    ),
    *(
        "{",
        "}",
        "[",
        "]",
        ",",
        " ",
        "0",
        "1.50",
        "-7",
        "null",
        "é",
        "密",
        "\U0001f600",
        "\x00",
        "<",
        ">",
        "value",
        "host=db ",
    ),
    *("-----BEGIN PRIV" + "ATE KEY-----", "-----END PRIV" + "ATE KEY-----", "A" * 70, "sig=", "&key=", "?"),
]

pieces = st.one_of(st.sampled_from(_PIECES), st.text(max_size=6))
texts = st.lists(pieces, max_size=14).map("".join)
"""Any text."""

_names = st.one_of(
    st.sampled_from(["password", "API_TOKEN", "clientSecret", "authorization", "name", "value", "key", "text"]),
    st.text(string.ascii_lowercase, min_size=1, max_size=4),
)
_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts, texts, texts
)


def _nested(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(values, max_size=3),
        st.dictionaries(_names, values, max_size=4),
        st.tuples(values, st.booleans()).map(lambda pair: json.dumps(pair[0], ensure_ascii=pair[1])),
        st.tuples(values, values).map(lambda pair: f"{json.dumps(pair[0])} and {json.dumps(pair[1])}"),
    )


documents = st.recursive(_scalars, _nested, max_leaves=8)
"""Any JSON value, with JSON in its strings, and JSON in theirs."""


def shape(value: Any, depth: int = 0) -> Any:
    """What masking must not change: types, lengths, names, numbers, and which strings are JSON themselves."""
    if isinstance(value, dict):
        return {name: shape(inner, depth) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner, depth) for inner in value]
    if not isinstance(value, str):
        return repr(value)
    try:
        inner = json.loads(value)
    except ValueError:
        return str
    return (str, shape(inner, depth + 1)) if isinstance(inner, (dict, list)) else str
