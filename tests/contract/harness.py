"""Reads bytes through framing, one adapter and the normaliser alone: no file, no lake, and no net under the adapter.

What an adapter raises comes out of here, so a test that only calls `read` already says that it raised nothing.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from etl.adapter import Adapter, FileContext, adapters
from etl.columns import rollouts_table
from etl.conversation import Conversation, Fragment, Ignored, Outcome, Record, StoredEvent, Unusable
from etl.framing import LIMITS, Broken
from etl.normalise import FileMemory, Refused, Stream, normalise
from etl.opening import blocks
from etl.row import Row
from etl.schema import Rollout
from etl.times import instant
from tests.lakes import REPO

SAMPLES = REPO / "sample_logs"


class SampleLog(NamedTuple):
    """One file of `sample_logs/<adapter>/`."""

    adapter: Adapter
    path: Path

    @property
    def name(self) -> str:
        """`adapter/file`, below `sample_logs/`."""
        return self.path.relative_to(SAMPLES).as_posix()

    def data(self) -> bytes:
        """The content as framing sees it: decompressed UTF-8."""
        return _data(self.path)


@functools.cache
def _data(path: Path) -> bytes:
    return b"".join(blocks(path))


class Reading(NamedTuple):
    """All that came out of some bytes; `rejects` are counted by reason code, `ignored` by rule."""

    records: list[Record]
    parsed: list[Row]
    rejects: Counter[str]
    ignored: Counter[str]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as the one schema stores them."""
        return stored(self.parsed)

    def keys(self) -> list[str]:
        """What names each row."""
        return [row.rollout_id for row in self.parsed]

    def said(self) -> list[str]:
        """What each row says, wherever it lay."""
        return sorted(row.row_hash for row in self.parsed)


def stored(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows through Arrow."""
    table = rollouts_table(rows, "b_contract", 0)
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


@functools.cache
def sample_logs() -> tuple[SampleLog, ...]:
    """Every sample of every adapter; READMEs and what lies in a folder whose name begins with a dot aside."""
    return tuple(
        SampleLog(adapter, path)
        for name, adapter in adapters().items()
        for path in sorted((SAMPLES / name).rglob("*"))
        if path.is_file() and path.name != "README.md"
    )


@functools.cache
def sample_of(name: str) -> SampleLog:
    """The sample that has this name."""
    return next(sample for sample in sample_logs() if sample.name == name)


def each(samples: Iterable[SampleLog], test: Callable[..., None], **given: Any) -> None:
    """The test of every one of these samples; its failure says of which."""
    for sample in samples:
        try:
            test(sample=sample, **given)
        except Exception as error:
            error.add_note(f"sample: {sample.name}")
            raise


def every_sample(test: Callable[..., None]) -> Any:
    """The test of every sample, for each adapter at once: a test for each would cost more than what it looks at."""

    @functools.wraps(test)
    def of_adapter(adapter: Adapter, **given: Any) -> None:
        each((sample for sample in sample_logs() if sample.adapter.name == adapter.name), test, **given)

    adapter = inspect.Parameter("adapter", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    others = [parameter for name, parameter in inspect.signature(test).parameters.items() if name != "sample"]
    of_adapter.__signature__ = inspect.Signature([adapter, *others])  # type: ignore[attr-defined]
    return pytest.mark.parametrize("adapter", adapters().values(), ids=lambda adapter: adapter.name)(of_adapter)


@functools.cache
def whole(sample: SampleLog) -> Reading:
    """What comes out of a sample as it is; tests only look at it."""
    return read(sample.data(), sample.adapter)


def read(data: bytes, adapter: Adapter, uri: str = "/logs/file.json") -> Reading:
    """Frame, parse and normalise; checks that every record is accounted for."""
    framed = list(adapter.records(iter([data]), LIMITS))
    records = [item for item in framed if isinstance(item, Record)]
    outcomes = list(adapter.parse(iter(records), FileContext(uri)))
    _account(adapter, records, outcomes)
    rejects = Counter(item.reason for item in framed if isinstance(item, Broken))
    rejects.update(outcome.reason for outcome in outcomes if isinstance(outcome, Unusable))
    ignored = Counter[str]()
    for outcome in outcomes:
        if isinstance(outcome, Ignored):
            ignored[outcome.rule] += outcome.n
    rows = []
    occurrences, stream = FileMemory(), Stream("contract", adapter.name, adapter.version, uri)
    for outcome in [*outcomes, *_assembled(adapter, outcomes)]:
        if isinstance(outcome, Conversation):
            try:
                rows.append(normalise(outcome, stream, occurrences))
            except Refused as refused:
                rejects[refused.reason] += 1
    return Reading(records, rows, rejects, ignored)


def _account(adapter: Adapter, records: Sequence[Record], outcomes: Sequence[Outcome]) -> None:
    """Each record is used, unusable or ignored, and no record is two of them; of units, none is lost."""
    for outcome in outcomes:
        if isinstance(outcome, Ignored):
            assert declared(adapter, outcome.rule), f"{adapter.name} ignores by {outcome.rule!r}, not in its `ignores`"
    if adapter.splits:
        units = sum(_units(outcome) for outcome in outcomes)
        assert units >= len(records), "a record was dropped"
        return
    known = {id(record) for record in records}
    used: set[int] = set()
    unusable: Counter[int] = Counter()
    ignored = 0
    for outcome in outcomes:
        if isinstance(outcome, Conversation):
            used |= {id(record) for record in outcome.records}
        elif isinstance(outcome, Fragment):
            used.add(id(outcome.record))
        elif isinstance(outcome, Unusable):
            unusable[id(outcome.record)] += 1
        else:
            ignored += outcome.n
    assert used | unusable.keys() <= known, "an outcome names a record that was not given"
    assert not used & unusable.keys(), "a record is both used and unusable"
    assert not unusable or max(unusable.values()) == 1, "a record is rejected twice"
    assert len(used) + len(unusable) + ignored == len(records), "a record was dropped or counted twice"


def _units(outcome: Outcome) -> int:
    if isinstance(outcome, Ignored):
        return outcome.n
    return len(outcome.records) if isinstance(outcome, Conversation) else 1


def declared(adapter: Adapter, rule: str) -> bool:
    """Whether `ignores` has the rule, or its beginning as `prefix:*`."""
    return rule in adapter.ignores or any(
        name.endswith("*") and rule.startswith(name.removesuffix("*")) for name in adapter.ignores
    )


def _assembled(adapter: Adapter, outcomes: Iterable[Outcome]) -> Iterator[Conversation]:
    """The conversations of all fragments, one family a key."""
    fragments = [outcome for outcome in outcomes if isinstance(outcome, Fragment)]
    events = [
        StoredEvent(fragment.key, _payload(fragment), fragment.link, instant(fragment.at).micros)
        for fragment in fragments
    ]
    events.sort(key=lambda event: (event.key, event.at or 0, event.record.offset or 0))
    for _, family in groupby(events, key=lambda event: event.key):
        for outcome in adapter.assemble(list(family)):
            if isinstance(outcome, Conversation):
                yield outcome


def _payload(fragment: Fragment) -> Record:
    if fragment.payload is None:
        return fragment.record
    return msgspec.structs.replace(fragment.record, value=fragment.payload)


def check_row(row: dict[str, Any]) -> None:
    """What holds for every row, whatever it was read from."""
    Rollout.model_validate(row)
    messages, steps = row["messages"], row["steps"]
    assert len(row["message_info"]) == len(messages)
    assert 0 <= row["prompt_len"] <= len(messages)
    assert row["n_steps"] == len(steps)
    calls = []
    for index, message in enumerate(messages):
        assert message["content"] is not None
        assert message["tool_calls"] is None or message["tool_calls"]
        assert message["tool_call_id"] is None or message["role"] == "tool"
        for call in message["tool_calls"] or ():
            assert isinstance(msgspec.json.decode(call["function"]["arguments"]), dict)
            calls.append((call["id"], call["function"]["name"], call["function"]["arguments"], index))
    assert [(s["call_id"], s["tool"], s["arguments"], s["message_index"]) for s in steps] == calls
    assert len({call[0] for call in calls}) == len(calls), "call ids are unique within a row"
    results = [step["result_index"] for step in steps if step["result_index"] is not None]
    assert len(set(results)) == len(results), "a result answers one call"
    for step in steps:
        taken_over = row["message_info"][step["message_index"]]["inherited"]
        assert taken_over == (step["message_index"] < row["prompt_len"]) or step["actor"] == "user", (
            "views rest on this"
        )
        if step["result_index"] is not None:
            answer = messages[step["result_index"]]
            assert answer["role"] == "tool"
            assert answer["tool_call_id"] == step["call_id"]
            assert step["result_index"] > step["message_index"]
        else:
            assert step["status"] in ("missing", "cancelled") or step["actor"] == "server"
    for name in ("extra", "rewards", "redactions"):
        assert row[name] is None or isinstance(msgspec.json.decode(row[name]), dict)
    assert row["tools"] is None or isinstance(msgspec.json.decode(row["tools"]), list)
    for info in row["message_info"]:
        assert info["parts"] is None or isinstance(msgspec.json.decode(info["parts"]), list)
        assert info["extra"] is None or isinstance(msgspec.json.decode(info["extra"]), dict)
    assert row["flags"] == sorted(set(row["flags"]))
