"""Codex CLI rollouts: JSON Lines of `{timestamp, type, payload}`, one session over one file or several.

`parse` keeps every line that says something under its session; `assemble` puts sessions together with those that they
were forked or spawned from. What becomes of lines is told where it is done: `_codex_lines` (what a line is, copied
history), `_codex_turn_items` (items of turns), `_codex_turns` (who says what), `_codex_results` (outputs),
`_codex_tokens` (usage).

Rows. A session is a row with an empty branch. Turns that were rolled back are a row of their own with `parent_id`, flag
`abandoned`. A fork and a sub-agent are rows of their own session id with `parent_id`; what they copied is inherited.

Everything said is recorded as `response_item` and, by many versions, once more as `event_msg`: the item counts, the
event only where no item says the same. Token counts are running totals; the row has what its own lines added to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._codex_lines import (
    BARE_ITEMS,
    META,
    classify,
    header,
    lines_of,
    mark_copied,
    parent_of,
    session_of,
    with_base,
)
from etl.adapters._codex_turns import conversations
from etl.adapters._session import Naming, sessions, text_of
from etl.conversation import Conversation, Ignored, Outcome, Record, StoredEvent, Unusable

_NOISE = {
    "exec_command_begin": "the start of a call; its item tells the call",
    "exec_command_output_delta": "output so far; the result repeats it",
    "mcp_tool_call_begin": "the start of a call; its end repeats it",
    "patch_apply_begin": "the start of a call; its end repeats it",
    "web_search_begin": "the start of a call; its item repeats it",
    "agent_message_delta": "a piece of a message that comes whole",
    "agent_reasoning_delta": "a piece of reasoning that comes whole",
    "agent_reasoning_raw_content_delta": "a piece of reasoning that comes whole",
    "agent_reasoning_section_break": "a mark between pieces of reasoning",
    "codex/event/raw_item": "a raw piece of the stream; items come whole",
    "raw_response_item": "a copy of an item",
    "item_started": "a copy of an item",
}
_STATE = "world_state"
_OLD_STATE = "record_type"
_GHOST = "ghost_snapshot"
_UNKNOWN = "unknown_type"


class Codex(Adapter):
    """Session files of Codex CLI and of its desktop program, plain or compressed."""

    name = "codex"
    version = 4
    about = "Codex CLI rollouts: JSON Lines of session_meta, turn_context, response_item and event_msg, forks included"
    spans_files = True
    ignores: ClassVar[dict[str, str]] = {
        **_NOISE,
        _STATE: "the program's settings; what the model sees of them is a message of its own",
        _OLD_STATE: "a mark of the program's state in old files",
        _GHOST: "a snapshot of the working tree, for undo",
        f"{_UNKNOWN}:*": "a type of line not known here",
    }

    def score(self, sample: Sample) -> float:
        """The share of lines that look like a rollout's; sure only where a line has what no other log has."""
        looks = [_looks(value) for value in sample.values]
        if not looks or max(looks) < 0.5:
            return 0.0
        return max(looks) * sum(1 for look in looks if look > 0) / len(looks)

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A fragment for each line that is kept.

        A header of another session begins that session, unless the one so far names it as its parent: then it is
        copied.
        """
        naming = Naming(linked=True)
        ancestors: set[str] = set()
        for record in records:
            refused = _refused(record)
            if refused is not None:
                yield refused
                continue
            kind, _, payload = classify(record.value) or ("", "", {})
            link = None
            if kind == META:
                named = session_of(payload)
                if named is not None and naming.key != named:
                    parent = parent_of(payload)
                    link = named if named in ancestors else parent
                    if named not in ancestors:
                        ancestors.clear()
                        yield from naming.begin(named)
                    ancestors.update(name for name in (parent,) if name)
            yield from naming.take(record, record.value.get("timestamp"), link)
        yield from naming.end()

    def assemble(self, family: Sequence[StoredEvent]) -> Iterator[Conversation]:
        """The rows of the sessions of a family; none for one in which nobody says anything."""
        found = {key: lines_of(events) for key, events in sessions(family).items()}
        for key, lines in found.items():
            own = header(key, lines)
            parent = None if own is None else parent_of(own.payload)
            mark_copied(key, lines, None if parent is None or parent == key else found.get(parent))
        for key in sorted(found):
            yield from conversations(key, with_base(key, found), found)


def _refused(record: Record) -> Outcome | None:
    """A reject or a named rule for a line that no row can use; None for the others."""
    value = record.value
    if not isinstance(value, dict):
        return Unusable(record, "not_an_object", "a line of a rollout is a JSON object; this is none")
    found = classify(value)
    kind = text_of(value, "type")
    if found is None:
        if kind == _STATE:
            return Ignored(_STATE)
        if kind is None and "record_type" in value:
            return Ignored(_OLD_STATE)
        if kind is None:
            return Unusable(record, "no_type", "a line of a rollout has a type and a payload; this has neither")
        if kind in ("session_meta", "turn_context", "response_item", "event_msg", "compacted"):
            return Unusable(record, "no_payload", f"a {kind} line without a payload; the log is damaged here")
        return Ignored(f"{_UNKNOWN}:{kind[:40]}")
    _, inner, _ = found
    if kind == "event_msg" and inner in _NOISE:
        return Ignored(inner)
    return Ignored(_GHOST) if inner == _GHOST else None


def _looks(value: Any) -> float:
    """How much one value looks like a line of a rollout."""
    if not isinstance(value, dict):
        return 0.0
    kind = text_of(value, "type")
    if kind is None:
        return 0.6 if classify(value) is not None else 0.1 if "record_type" in value else 0.0
    if isinstance(value.get("payload"), dict):
        known = classify(value) is not None or kind == _STATE
        return 0.97 if known and "timestamp" in value else 0.6 if known else 0.1
    return 0.1 if kind in BARE_ITEMS else 0.0
