"""Objects of a store come by name, one after another; lakes and what stands for folders are left out."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from types import GeneratorType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import etl.listing
from etl.listing import below
from etl.walk import Exclusion, FoundFile

LOGS = "s3://bucket/logs"


def _store(names: Sequence[str], empty: Sequence[str] = ()) -> list[FoundFile]:
    return [FoundFile(f"{LOGS}/{name}", f"{LOGS}/{name}", 0 if name in empty else 7, 1) for name in names]


def _below(objects: Sequence[FoundFile], *exclude: str) -> list[str]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(etl.listing, "_objects", lambda _given: iter(objects))
        return [file.uri.removeprefix(f"{LOGS}/") for file in below(LOGS + "/", Exclusion(exclude))]


@given(st.lists(st.sampled_from(["a", "a/b", "a-b", "a/b/c", "é", "a.b/c", "z"]), unique=True), st.randoms())
def test_names_come_in_the_order_of_their_bytes(names: list[str], chance: random.Random) -> None:
    """Also of a store that gives them in no order."""
    chance.shuffle(names)
    assert _below(_store(names)) == sorted(names, key=os.fsencode)


def test_lakes_and_folders_are_left_out() -> None:
    """Though what tells of a lake comes after some of its files; an empty object with nothing below it is a file."""
    lake = ["lake/README.md", "lake/events/x", "lake/rollouts/_delta_log/0.json", "lake/rollouts/x", "lakes.jsonl"]
    marks = ["empty.jsonl", "folder", "folder-2.jsonl", "folder/deep/a.jsonl"]
    found = _below(_store(sorted([*lake, *marks]), empty=["empty.jsonl", "folder"]))
    assert found == ["empty.jsonl", "folder-2.jsonl", "folder/deep/a.jsonl", "lakes.jsonl"]
    assert _below(_store(sorted(marks)), "*.jsonl") == ["folder"]
    assert _below(_store(sorted(marks)), "deep") == ["empty.jsonl", "folder", "folder-2.jsonl"]


def test_what_is_found_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first object is there when the second has not been looked at by the second pass."""
    asked: list[int] = []

    def objects(_given: str) -> Iterator[FoundFile]:
        for number in range(1_000):
            asked.append(number)
            yield FoundFile(f"{LOGS}/{number:04}", "", 7, 1)

    monkeypatch.setattr(etl.listing, "_objects", objects)
    found = below(LOGS, Exclusion(()))
    assert isinstance(found, GeneratorType)
    assert next(found).uri == f"{LOGS}/0000"
    assert len(asked) == 1_001
