"""A lake of every sample, and of secrets planted wherever a log can hold one, holds none of them in any byte.

Searched are all files of the lake, at its end and at each commit: data, logs, checkpoints, reports, staging, what lies
beside them; Parquet and compressed files also as what they say. A planted value is searched for as it is and in the
encodings in which it may hide. The same search finds every one of them where nothing was redacted.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from etl.lake import Lake
from etl.pipeline import ingest
from etl.redact import Redactor
from etl.redact.redactor import rules_version
from etl.redact.search import masked_texts
from tests.lakes import NOW, REPO
from tests.redaction_labelled.cases import Case, read, strings

KEY = b"0123456789abcdef0123456789abcdef"
_FAKE = re.compile(rb"(?:sk-ant-)?(?:FAKE[0-9]{4}){3,}")
_IN_NAMES = "gh" + "p_" + "Zx8wV6uT4sR2qP0oN9mL7kJ5iH3gF1eD2cB4"


@functools.cache
def planted(policy: str) -> list[tuple[str, str]]:
    """A text of every kind of what the policy takes out, with the value that must not land."""
    families = {"secrets": {"secret"}, "pii": {"secret", "personal"}}[policy]
    cases = [case for case in read() if case.family in families and case.label == "positive"]
    offers = [(case.kind, text, value) for case in cases for text, value in _values(case)]
    column = pa.chunked_array([pa.array([text for _, text, _ in offers], pa.string())])
    masked = masked_texts(column, Redactor(policy, KEY)._personal)
    chosen: dict[str, tuple[str, str]] = {}
    for kind, text, value in offers:
        if text in masked and value not in masked[text].text:
            chosen.setdefault(kind, (text, value))
    return list(chosen.values())


def _values(case: Case) -> Iterator[tuple[str, str]]:
    """Texts of a case with a distinctive piece of each span; numbers of a few digits would be found by chance."""
    for text in strings(case.value):
        for span in case.spans:
            piece = max(span.text.split("\n"), key=len)[:40]
            if span.text in text and len(piece) >= 8 and text.count(piece) == 1:
                yield text, piece


def plant(folder: Path, texts: list[str]) -> list[Path]:
    """Logs with every text in every field that a log may have, in a record that cannot be read, and in file names."""
    logs = []
    for number, text in enumerate(texts):
        folded = json.dumps({"x": text, "list": [text], "json": json.dumps({"deep": text})})
        call = {"id": f"c{number}", "type": "function", "function": {"name": "do", "arguments": folded}}
        tool = {"type": "function", "function": {"name": "do", "description": text, "parameters": {"note": text}}}
        record = {
            "id": f"planted-{number}", "note": text, "metadata": {"deep": {"er": [text]}}, "error": text,
            "tools": [tool], "model": "gpt", "finish_reason": text,
            "messages": [
                {"role": "system", "content": text},
                {"role": "user", "content": [{"type": "text", "text": text}], "extra": text},
                {"role": "assistant", "content": text, "reasoning_content": text, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{number}", "content": folded},
                {"role": "assistant", "content": text, "refusal": text},
            ],
        }  # fmt: skip
        line = json.dumps(record)
        logs.append(folder / f"planted-{number}-{_IN_NAMES}.jsonl")
        logs[-1].write_text(f"{line}\n{line[:-2]}\n{json.dumps({'unknown': text})}\n", encoding="utf-8")
    spans = [_span(number, text) for number, text in enumerate(texts)]
    logs.append(folder / "spans.jsonl")
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "svc"}}]}
    batches = [{"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]} for span in spans]
    logs[-1].write_text("".join(json.dumps(batch) + "\n" for batch in batches), encoding="utf-8")
    logs.append(folder / "packed.jsonl.gz")
    logs[-1].write_bytes(gzip.compress(b"".join(log.read_bytes() for log in logs[:3])))
    return logs


def _span(number: int, text: str) -> dict[str, Any]:
    said = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "unknown.key": text,
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}]),
    }  # fmt: skip
    return {
        "traceId": f"{number + 1:032x}", "spanId": f"{number + 1:016x}", "name": "chat m", "kind": 3,
        "startTimeUnixNano": str(1_770_000_000_000_000_000 + number), "status": {"code": 2, "message": text},
        "endTimeUnixNano": str(1_770_000_001_000_000_000 + number),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in said.items()],
        "events": [{"name": "exception", "attributes": [{"key": "exception.message", "value": {"stringValue": text}}]}],
    }  # fmt: skip


def seized(lake: Path, monkeypatch: pytest.MonkeyPatch, into: Path) -> None:
    """Copies the staging folder at each commit, as a crash there would leave it."""
    for name in [name for name in vars(Lake) if name.startswith("commit_")]:
        commit = getattr(Lake, name)

        def copied(self: Lake, *args: Any, _commit: Any = commit, _name: str = name, **more: Any) -> Any:
            shutil.copytree(lake / ".staging", into / f"{_name}-{len([*into.glob('*')])}")
            return _commit(self, *args, **more)

        monkeypatch.setattr(Lake, name, copied)


def hay(folder: Path) -> bytes:
    """Every byte below a folder, names of files included, and what Parquet and Arrow files say, column by column."""
    pieces: list[bytes] = []
    for path in sorted(folder.rglob("*")):
        pieces.append(path.relative_to(folder).as_posix().encode())
        if path.is_file():
            pieces.append(path.read_bytes())
            if path.name.endswith(".parquet"):
                with pq.ParquetFile(path) as file:
                    pieces += [bytes(str(file.metadata.metadata), "utf-8")]
                    table = file.read()
                pieces += [piece for name in table.column_names for piece in _said(table[name].combine_chunks())]
    return b"\n".join(pieces)


def _said(array: pa.Array) -> Iterator[bytes]:
    if isinstance(array, pa.ChunkedArray):
        for chunk in array.chunks:
            yield from _said(chunk)
    elif pa.types.is_dictionary(array.type):
        yield from _said(array.dictionary)
    elif pa.types.is_list(array.type) or pa.types.is_map(array.type):
        yield from _said(array.values)
    elif pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            yield from _said(array.field(index))
    elif pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        yield b"\n".join(value if isinstance(value, bytes) else value.encode() for value in array.to_pylist() if value)


def encodings(value: str) -> set[bytes]:
    """How a value may stand in a file: as it is, escaped in JSON once and twice, in URLs, base64 at any offset, hex."""
    raw = value.encode()
    escaped = json.dumps(value)[1:-1]
    forms = {
        raw,
        escaped.encode(),
        json.dumps(escaped)[1:-1].encode(),
        json.dumps(value, ensure_ascii=False)[1:-1].encode(),
    }
    forms |= {quote(value).encode(), quote(value, safe="").encode(), raw.hex().encode(), value.encode("utf-16-le")}
    for offset in range(3):
        whole = base64.b64encode(b"\0" * offset + raw)
        forms.add(whole[4 if offset else 0 : len(whole) - 4])
    return {form for form in forms if len(form) >= 8}


def found_in(whole: bytes, values: list[str]) -> set[str]:
    """Which values stand anywhere in these bytes, in any encoding."""
    return {value for value in values if any(form in whole for form in encodings(value))}


def _lake(tmp_path: Path, policy: str, texts: list[str]) -> Path:
    logs = tmp_path / "logs"
    logs.mkdir()
    paths = plant(logs, texts)
    ingest([REPO / "sample_logs", *paths], lake=tmp_path / "lake", now=NOW, redact=policy, pseudonym_key=KEY)
    return tmp_path / "lake"


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["secrets", "pii"])
def test_nothing_planted_lands(policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = planted(policy)
    assert len(texts) >= {"secrets": 60, "pii": 80}[policy]
    (tmp_path / "seized").mkdir()
    seized(tmp_path / "lake", monkeypatch, tmp_path / "seized")
    lake = _lake(tmp_path, policy, [text for text, _ in texts])
    values = [value for _, value in texts]
    assert [*lake.glob("rollouts/_delta_log/*.checkpoint.parquet")]
    assert [*(tmp_path / "seized").rglob("*.parquet")]
    for folder in (lake, tmp_path / "seized"):
        whole = hay(folder)
        assert found_in(whole, [*values, _IN_NAMES]) == set()
        assert not _FAKE.search(whole)
        assert rules_version(policy).encode() in whole


@pytest.mark.slow
def test_the_search_finds_what_lands(tmp_path: Path) -> None:
    texts = planted("pii")
    lake = _lake(tmp_path, "none", [text for text, _ in texts])
    values = [value for _, value in texts]
    whole = hay(lake)
    assert found_in(whole, [*values, _IN_NAMES]) == {*values, _IN_NAMES}
    assert _FAKE.search(whole)


@pytest.mark.parametrize(
    "encode",
    [
        str.encode,
        lambda value: base64.b64encode(b"x" + value.encode()),
        lambda value: quote(value, safe="").encode(),
        lambda value: json.dumps(json.dumps(value)).encode(),
    ],
)
def test_the_search_sees_through_encodings(encode: Any, tmp_path: Path) -> None:
    value = 'p"a\\ss/wörd+1234567'
    (tmp_path / "file").write_bytes(b"a" + encode(value) + b"z")
    assert found_in(hay(tmp_path), [value]) == {value}
