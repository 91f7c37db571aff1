"""Inspect logs: archives with Zstandard members, headers beside samples, rewards, tokens that a grader used too."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard

from etl import ingest
from etl.adapter import adapters
from etl.adapters._inspect_samples import read_messages
from tests.contract.harness import read
from tests.lakes import NOW, rows

INSPECT = adapters()["inspect_ai"]
RUN = {"eval_id": "E1", "task": "ports", "model": "demo/harbour-1", "created": "2026-03-01T10:00:00+01:00"}


def _sample(epoch: int = 1, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "2+2?"}, {"id": "a", "role": "assistant", "content": "4"}]
    return {"id": 1, "epoch": epoch, "input": "2+2?", "target": "4", "messages": messages, "scores": {}, **more}


def _log(*samples: dict[str, Any]) -> bytes:
    return json.dumps({"version": 2, "status": "success", "eval": RUN, "samples": samples}).encode()


def _zstandard_archive(path: Path, members: dict[str, bytes], spoiled: str = "") -> None:
    """A ZIP archive by hand: method 93, which `zipfile` cannot write either."""
    body, directory = b"", b""
    for name, data in members.items():
        packed, crc = zstandard.compress(data), zlib.crc32(data) ^ (name == spoiled)
        fields = struct.pack("<HHHHHIIIHH", 63, 0, 93, 0, 0x21, crc, len(packed), len(data), len(name), 0)
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + fields
        directory += struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        body += b"PK\x03\x04" + fields + name.encode() + packed
    count, end = len(members), struct.pack("<IIH", len(directory), len(body), 0)
    path.write_bytes(body + directory + b"PK\x05\x06" + struct.pack("<HHHH", 0, 0, count, count) + end)


def _members(header: str) -> dict[str, bytes]:
    return {
        "samples/1_epoch_2.json": json.dumps(_sample(2)).encode(),
        "samples/1_epoch_1.json": json.dumps(_sample(1)).encode(),
        header: json.dumps({"version": 2, "eval": RUN, "plan": {"name": "plan"}}).encode(),
        "summaries.json": json.dumps([{"id": 1, "epoch": 1, "input": "", "target": "", "scores": {}}]).encode(),
        "reductions.json": json.dumps([{"scorer": "match", "samples": []}]).encode(),
    }


@pytest.mark.parametrize("header", ["header.json", "_journal/start.json"])
@pytest.mark.parametrize("kind", ["zstandard", "deflate", "folder"])
def test_members_of_an_archive_know_their_run(header: str, kind: str, tmp_path: Path) -> None:
    log = tmp_path / "log.eval"
    if kind == "zstandard":
        _zstandard_archive(log, _members(header))
    elif kind == "deflate":
        with zipfile.ZipFile(log, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in _members(header).items():
                archive.writestr(name, data)
    else:
        for name, data in _members(header).items():
            (log / name).parent.mkdir(parents=True, exist_ok=True)
            (log / name).write_bytes(data)
    report = ingest([log], lake=tmp_path / "lake", now=NOW, strict=True).to_json()
    assert report["ignored"] == {"log_header": 1, "reduction": 1, "sample_summary": 1}
    found = sorted(rows(tmp_path / "lake"), key=lambda row: row["sample_index"])
    assert [(row["conversation_id"], row["model"]) for row in found] == [
        ("E1/1/1", "demo/harbour-1"),
        ("E1/1/2", "demo/harbour-1"),
    ]
    assert len({row["group_id"] for row in found}) == len({row["task_id"] for row in found}) == 1


def test_a_json_log_and_an_archive_of_one_run_give_the_same_rows(tmp_path: Path) -> None:
    _zstandard_archive(tmp_path / "log.eval", _members("header.json"))
    (tmp_path / "log.json").write_bytes(_log(_sample(1), _sample(2)))
    ingest([tmp_path / "log.eval"], lake=tmp_path / "lake", now=NOW, strict=True)
    report = ingest([tmp_path / "log.json"], lake=tmp_path / "lake", now=NOW, strict=True).to_json()
    assert report["rows"]["added"] == 0


def test_a_member_with_a_wrong_checksum_is_named(tmp_path: Path) -> None:
    _zstandard_archive(tmp_path / "log.eval", _members("header.json"), spoiled="samples/1_epoch_1.json")
    report = ingest([tmp_path / "log.eval"], lake=tmp_path / "lake", now=NOW, strict=True).to_json()
    assert report["files"]["failed"] == 1
    (failed,) = (file for file in rows(tmp_path / "lake", "sources") if file["state"] == "failed")
    assert "bad checksum of samples/1_epoch_1.json" in failed["error"]


@pytest.mark.parametrize(
    ("value", "reward"),
    [("C", 1.0), ("P", 0.5), ("I", 0.0), ("N", 0.0), (True, 1.0), (-3.5, -3.5), ("maybe", None), ([1], None)],
)
def test_the_reward_is_the_first_scorers_value(value: Any, reward: float | None) -> None:
    scores = {"match": {"value": value}, "other": {"value": 9}}
    (row,) = read(_log(_sample(scores=scores)), INSPECT).rows
    assert row["reward"] == reward
    assert [verdict["name"] for verdict in row["judgments"]] == ["match", "other"]
    assert row["flags"] == []


def test_what_a_grader_used_is_not_the_agents() -> None:
    usage = {"input_tokens": 5, "output_tokens": 1, "total_tokens": 16, "input_tokens_cache_read": 10}
    event = {"event": "model", "output": {"choices": [{"message": {"id": "a"}, "stop_reason": "stop"}], "usage": usage}}
    both = {"demo/harbour-1": {"input_tokens": 500, "output_tokens": 90}}
    (row,) = read(_log(_sample(events=[event], model_usage=both)), INSPECT).rows
    assert (row["usage"]["input_tokens"], row["usage"]["cached_tokens"]) == (15, 10)
    (row,) = read(_log(_sample(model_usage=both)), INSPECT).rows
    assert row["usage"]["input_tokens"] == 500


def test_a_pool_of_messages_stands_for_the_messages() -> None:
    pool = [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": "1+1?"},
        {"role": "user", "content": "2?"},
    ]
    answer = {"choices": [{"message": {"id": "a", "role": "assistant", "content": "attachment://7"}}]}
    event = {"event": "model", "input": [], "input_refs": [[0, 1], [2, 3]], "output": answer}
    sample = _sample(messages=[], message_pool=pool, events=[event], attachments={"7": "Two."})
    (row,) = read(_log(sample), INSPECT).rows
    assert [message["content"] for message in row["messages"]] == ["Add.", "2?", "Two."]


def test_a_message_that_is_json_in_a_string_is_read_as_what_it_says():
    turns = [
        {"role": "user", "content": "Hi", "source": "input"},
        {"role": "tool", "content": "no", "error": {"type": "timeout"}},
    ]
    plain, texts = (read_messages({"messages": each}, None) for each in (turns, [json.dumps(turn) for turn in turns]))
    assert plain == texts
    assert not isinstance(texts, str)
    assert texts.messages[1].failed
