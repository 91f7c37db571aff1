"""Whole tables: every column that may hold a secret, the counts per row, and everything else as it was."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etl.errors import UsageError
from etl.redact import Redacted, Redactor
from etl.redact.leaves import COPIES, UNMASKED, URIS
from etl.redact.search import OVERLAP, WINDOW
from etl.schema import TABLES, arrow_schema
from tests.redact.fragments import TOKEN, texts

PASSWORD = "hunter2" + "fake"
REDACTOR = Redactor()


def table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A table of that name; columns not given are null."""
    return pa.Table.from_pylist(list(rows), schema=arrow_schema(name))


def masked(name: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows after redaction."""
    given = table(name, rows)
    redacted = REDACTOR.table(name, given)
    redacted.table.validate(full=True)
    assert redacted.name == name
    assert redacted.table.schema == given.schema
    after: list[dict[str, Any]] = redacted.table.to_pylist()
    return after


def message(role: str, content: str = "", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def call(arguments: str) -> dict[str, Any]:
    return {
        "id": "toolu_01A9xQv7ZkLm3PqRs5TuVwXyZ",
        "type": "function",
        "function": {"name": "Bash", "arguments": arguments},
    }


def test_every_copy_is_masked_and_counted_once() -> None:
    arguments = json.dumps({"command": f"psql 'password={PASSWORD}'", "env": {"API_TOKEN": "low-entropy-fake-token"}})
    result = json.dumps({"cmd": f'psql "password={PASSWORD}"', "commit": "9fceb02d0ae598e95dc970b74767f19372d61af8"})
    (row, other) = masked(
        "rollouts",
        [
            {
                "prompt": f"My key is {TOKEN}",
                "messages": [
                    message("user", f"My key is {TOKEN}"),
                    message("assistant", tool_calls=[call(arguments)]),
                    message("tool", result, tool_call_id="toolu_01A9xQv7ZkLm3PqRs5TuVwXyZ"),
                ],
                "steps": [{"call_id": "toolu_01A9xQv7ZkLm3PqRs5TuVwXyZ", "tool": "Bash", "arguments": arguments}],
                "final_text": f"My key is {TOKEN}",
            },
            {"prompt": "hello", "messages": [message("user", "hello")]},
        ],
    )
    assert row["prompt"] == row["messages"][0]["content"] == row["final_text"] == "My key is <SECRET_github_token>"
    kept_call = row["messages"][1]["tool_calls"][0]
    assert kept_call["id"] == row["messages"][2]["tool_call_id"] == row["steps"][0]["call_id"]
    assert json.loads(kept_call["function"]["arguments"]) == {
        "command": "psql 'password=<SECRET_password>'",
        "env": {"API_TOKEN": "<SECRET_token>"},
    }
    assert row["steps"][0]["arguments"] == kept_call["function"]["arguments"]
    assert json.loads(row["messages"][2]["content"]) == {
        "cmd": 'psql "password=<SECRET_password>"',
        "commit": "9fceb02d0ae598e95dc970b74767f19372d61af8",
    }
    assert json.loads(row["redactions"]) == {"github_token": 1, "password": 2, "token": 1}
    assert other["redactions"] is None


def test_counts_add_to_what_a_row_came_with() -> None:
    rows = [
        {"payload": f'{{"password": "{PASSWORD}"}}', "redactions": '{"jwt":2,"password":1}'},
        {"payload": "{}", "redactions": '{"jwt":2}'},
        {"payload": f'{{"password": "{PASSWORD}"}}'},
    ]
    assert [row["redactions"] for row in masked("events", rows)] == [
        '{"jwt":2,"password":2}',
        '{"jwt":2}',
        '{"password":1}',
    ]


def test_a_payload_keeps_everything_else_to_the_letter() -> None:
    payload = (
        '{"n": 123456789012345678901234567890, "f": 0.10000000000000000555, "b":1,"a":2,"a":3, '
        '"lone": "\\ud800", "nul": "\\u0000", "s": "\\/", "password": "hunter2\\u0066ake", '
        '"deep": "{\\"token\\": \\"TOKEN\\", \\"x\\": 1e5}", "pin": 12345678, "e": 1E+2}'
    ).replace("TOKEN", TOKEN)
    expected = payload.replace("hunter2\\u0066ake", "<SECRET_password>").replace(TOKEN, "<SECRET_github_token>")
    assert masked("events", [{"payload": payload}])[0]["payload"] == expected


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "utf-16-le", "utf-16-be"])
def test_the_bytes_of_a_reject(encoding: str) -> None:
    text = f'{{"name": "Zoë", "password": "{PASSWORD}", "x": '
    (row, none, broken) = masked(
        "rejects", [{"raw": text.encode(encoding)}, {"raw": None}, {"raw": b"\xff\xfe\x00\x81 token=" + TOKEN.encode()}]
    )
    assert row["raw"] == text.replace(PASSWORD, "<SECRET_password>").encode(encoding)
    assert none["raw"] is None
    assert broken["raw"] == b"\xff\xfe\x00\x81 token=<SECRET_github_token>"


def test_addresses_keep_their_place() -> None:
    uri = f"https://app:{PASSWORD}@logs.example/2026/03/a.jsonl?sig={TOKEN[4:]}&v=1"
    expected = "https://app:<SECRET_url_password>@logs.example/2026/03/a.jsonl?sig=<SECRET_url_signature>&v=1"
    assert masked("sources", [{"uri": uri}])[0]["uri"] == expected
    assert masked("rollouts", [{"source_uri": uri}])[0]["source_uri"] == expected


def test_identities_stay() -> None:
    for name, paths in UNMASKED.items():
        for path in paths - {"redactions", "ignored"}:
            row = _nested(path, arrow_schema(name), TOKEN)
            assert TOKEN in str(masked(name, [row])[0]), (name, path)


def test_every_other_column_is_masked() -> None:
    for name in TABLES:
        for path in _text_paths(arrow_schema(name)):
            if path not in UNMASKED[name]:
                (row,) = masked(name, [_nested(path, arrow_schema(name), f"api_token={TOKEN}")])
                assert TOKEN.encode() not in str(row).encode(), (name, path)
                counted = "redactions" in row and path not in {*COPIES[name], URIS[name]}
                assert (row.get("redactions") is not None) == counted, (name, path)


def test_the_lists_name_columns_that_exist() -> None:
    for name in TABLES:
        paths = set(_text_paths(arrow_schema(name)))
        assert UNMASKED[name] <= paths
        assert COPIES[name] <= paths - UNMASKED[name]


def _text_paths(fields: Any, prefix: str = "") -> Iterator[str]:
    for field in fields:
        kind, path = field.type, prefix + field.name
        while pa.types.is_list(kind):
            kind = kind.value_type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_struct(kind):
            yield from _text_paths(kind, f"{path}.")
        elif pa.types.is_string(kind) or pa.types.is_binary(kind):
            yield path


def _nested(path: str, schema: pa.Schema, text: str) -> dict[str, Any]:
    """A row whose only value is a text at a dotted path."""
    names = path.split(".")
    kind: Any = pa.struct(list(schema))
    kinds = []
    for name in names:
        while pa.types.is_list(kind):
            kind = kind.value_type
        kind = kind.field(name).type
        kinds.append(kind)
    value: Any = text
    for name, kind in zip(reversed(names), reversed(kinds), strict=True):
        if pa.types.is_binary(kind):
            value = value.encode()
        while pa.types.is_list(kind):
            value, kind = [value], kind.value_type
        value = {name: value}
    row: dict[str, Any] = value
    return row


@settings(max_examples=20)
@given(
    st.lists(
        st.one_of(st.none(), st.lists(st.one_of(st.none(), texts.map(lambda text: text + TOKEN)), max_size=3)),
        max_size=6,
    ),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_slices_chunks_and_nulls(flags: list[list[str] | None], first: int, chunk: int) -> None:
    """Nested columns come back with the same lengths, nulls and offsets, however they were cut before."""
    rows = [
        {
            "seeded": value,
            "messages": None if value is None else [message("user", text or "", name=text) for text in value],
        }
        for value in flags
    ]
    whole = table("rollouts", rows)
    cut = pa.concat_tables([whole.slice(0, chunk), whole.slice(chunk)]).slice(first)
    after = REDACTOR.table("rollouts", cut).table
    after.validate(full=True)
    assert after.num_rows == cut.num_rows
    for before, row in zip(cut.to_pylist(), after.to_pylist(), strict=True):
        for column in ("seeded", "messages"):
            assert _mask_leaves(before[column]) == row[column]
        expected = str(before).count(TOKEN)
        counts = json.loads(row["redactions"] or "{}")
        assert counts.get("github_token", 0) <= expected
        assert bool(counts) == bool(expected)


def _mask_leaves(value: Any) -> Any:
    if isinstance(value, str):
        return REDACTOR.text(value)[0] if value != "user" else value
    if isinstance(value, list):
        return [_mask_leaves(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _mask_leaves(inner) for name, inner in value.items()}
    return value


@pytest.mark.parametrize("place", [0, WINDOW - 20, WINDOW - OVERLAP, WINDOW, 3 * WINDOW - 2 * OVERLAP - 17, 300_000])
def test_a_long_text_wherever_the_secret_stands(place: int) -> None:
    filler = "the quick brown fox é\n" * 30_000
    text = f"{filler[:place]} {TOKEN} {filler[place:]}"
    assert REDACTOR.text(text) == (text.replace(TOKEN, "<SECRET_github_token>"), {"github_token": 1})


@pytest.mark.parametrize(
    "piece",
    ["-----BEGIN PRIV" + "ATE KEY-----\n", "password=", "token: ", "://a:b@c ", "eyJ", "\\", '\\"', "A", "\U0001f600"],
)
def test_no_text_takes_forever(piece: str) -> None:
    text = piece * (50_000 // len(piece))
    masked_text, _ = REDACTOR.text(text)
    assert len(masked_text) > 0


def test_only_a_redactor_makes_redacted_tables() -> None:
    with pytest.raises(TypeError, match=r"Redactor\.table"):
        Redacted("rollouts", table("rollouts", []), "none", object())


def test_policies() -> None:
    rows = table("rollouts", [{"prompt": TOKEN}])
    assert Redactor("none").table("rollouts", rows).table is rows
    assert Redactor("none").text(TOKEN) == (TOKEN, {})
    with pytest.raises(UsageError, match="needs a key for its pseudonyms"):
        Redactor("pii")
    with pytest.raises(UsageError, match="no redaction policy is called 'all'"):
        Redactor("all")
    with pytest.raises(UsageError, match="no table is called 'rows'"):
        REDACTOR.table("rows", rows)


def test_the_version_names_the_rules() -> None:
    assert REDACTOR.version.startswith("secrets-4+kingfisher-secret-scanner-")
    assert Redactor("none").version == "none"


def _mask_in_worker(redactor: Redactor) -> str:
    return redactor.text(f"key {TOKEN}")[0]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform cannot start processes by {method}")
    REDACTOR.text(f"key {TOKEN}")
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(_mask_in_worker, [REDACTOR]) == ["key <SECRET_github_token>"]
    assert pickle.loads(pickle.dumps(REDACTOR)).version == REDACTOR.version


def test_the_case_of_a_broken_record() -> None:
    path = Path(os.environ.get("ETL_SHARED", Path(__file__).parents[3] / "shared")) / "cases" / "B55.jsonl"
    if not path.is_file():
        pytest.skip("the shared cases are not here")
    rows = masked("events", [{"payload": line} for line in path.read_text(encoding="utf-8").splitlines()])
    text = "\n".join(row["payload"] for row in rows)
    for secret in ("sk-ant-FAKE", PASSWORD, "low-entropy-fake-token"):
        assert secret not in text
    for same in (
        "9fceb02d0ae598e95dc970b74767f19372d61af8",
        "e3b0c44298fc1c149afbf4c8996fb924",
        "pub-1234567890123456",
    ):
        assert same in text
    assert sum(sum(json.loads(row["redactions"] or "{}").values()) for row in rows) == 4
