"""A row as an export sees it: turns, each known to be trained or not, with only complete pairs of call and result.

Everything that is true for every trainer happens here: what must be in no file, which turns this row owns, which call
is answered where. What one form wants is its target's business.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from etl.decode import decode
from etl.exports.reasons import Dropped

_HARMLESS_TYPES = frozenset(
    {"thinking", "redacted_thinking", "reasoning", "text", "refusal", "web_search_result", "todo_list"}
)
"""Parts that say nothing which the text lacks, or which no template shows."""
_HARMLESS_KEYS = frozenset({"thoughtSignature", "reasoningContent", "buttons"})
PREFERENCES = ("preference", "label", "kto_tag")
"""Judgments by which a preference set says of an answer whether it is the wanted one."""
_LONG_NUMBER = re.compile(r"\d{19}")


class Call(NamedTuple):
    """A call of the agent; `arguments` is the text of a JSON object."""

    id: str
    name: str
    arguments: str

    def value(self) -> Any:
        """The arguments, decoded."""
        return decode(self.arguments.encode()).value


class Turn(msgspec.Struct):
    """One message. `trained`: a turn of the agent that this row owns, not empty and not written by a harness."""

    role: str
    content: str
    reasoning: str | None = None
    calls: list[Call] = []
    call_id: str | None = None
    name: str | None = None
    trained: bool = False
    synthetic: bool = False


class Policy(NamedTuple):
    """What a target, and who runs the export, want of a conversation."""

    imitates: bool = True
    """Rows with planted mistakes, and answers that were not wanted, are left out."""
    keep_rejected: bool = False
    """Answers that were not wanted stay all the same."""
    only_prompt: bool = False
    """What follows the prompt is not looked at: it may hold anything, or nothing."""
    missing_results: str = "drop"
    """drop, cut or allow-last."""
    templated: bool = True
    """A chat template renders it: one system message, at the start, and no developer."""
    reasoning: bool = True


class Dialogue(msgspec.Struct):
    """A row that is fit to be exported."""

    row: dict[str, Any]
    turns: list[Turn]
    ask: int
    """Turns before the first trained one that follows a user's: `turns[:ask]` is the prompt."""
    repairs: set[str]

    @property
    def rollout_id(self) -> str:
        return str(self.row["rollout_id"])

    @property
    def tools(self) -> str | None:
        """JSON text of an array that is not empty, or None."""
        text = self.row["tools"]
        return text if text and text != "[]" else None

    def tool_list(self) -> list[Any] | None:
        """The tool definitions, decoded."""
        return None if self.tools is None else decode(self.tools.encode()).value

    def prompt(self) -> list[Turn]:
        """What the agent answers; Dropped where nobody asked, or an inherited turn would be gone on with."""
        asked = self.turns[: self.ask]
        if not any(turn.role == "user" for turn in asked):
            raise Dropped("no_prompt")
        if asked[-1].role == "assistant":
            raise Dropped("no_alternation")
        return asked

    def completion(self) -> list[Turn]:
        """What follows the prompt, as `unmasked`."""
        return self.unmasked(self.ask)

    def unmasked(self, start: int = 0) -> list[Turn]:
        """The turns from there on; Dropped where one of the agent's must not be trained."""
        said = self.turns[start:]
        if any(turn.role == "assistant" and not turn.trained for turn in said):
            raise Dropped("unmaskable_turn")
        return said

    def masked(self) -> bool:
        """Whether there is a turn of the agent that must not be trained; noted as a repair."""
        if all(turn.trained for turn in self.turns if turn.role == "assistant"):
            return False
        self.repairs.add("turns_masked")
        return True


def check(row: dict[str, Any]) -> None:
    """What no file may hold, whatever the target."""
    if not row["messages"]:
        raise Dropped("no_messages")
    if "content_not_captured" in row["flags"]:
        raise Dropped("content_not_captured")
    if any(str(planted).startswith("leak") for planted in row["seeded"] or ()):
        raise Dropped("planted_leak")


def dialogue(row: dict[str, Any], policy: Policy) -> Dialogue:
    """The conversation of a row; Dropped where a rule leaves it out."""
    check(row)
    if policy.imitates and row["seeded"]:
        raise Dropped("planted_mistake")
    if policy.imitates and not policy.keep_rejected and any(map(_is_rejection, row["judgments"])):
        raise Dropped("rejected_answer")
    repairs: set[str] = set()
    turns = _turns(row, policy, repairs)
    if policy.only_prompt:
        del turns[_ask(turns) :]
    if any(info["parts"] and _has_media(info["parts"]) for info in row["message_info"][: len(turns)]):
        raise Dropped("media")
    if any(_is_garbled(step) for step in row["steps"] if step["message_index"] < len(turns)):
        raise Dropped("invalid_arguments")
    turns = _without_user_calls(turns, repairs)
    turns = _paired(turns, policy.missing_results, repairs)
    if policy.templated:
        turns = _templated(turns, repairs)
    if policy.only_prompt:
        return Dialogue(row, turns, len(turns), repairs)
    _cut_tail(turns, repairs)
    ask = _ask(turns)
    if ask == len(turns):
        raise Dropped("no_prompt")
    return Dialogue(row, turns, ask, repairs)


def _is_rejection(judgment: dict[str, Any]) -> bool:
    return judgment["name"] in PREFERENCES and judgment["value"] == 0


def _is_garbled(step: dict[str, Any]) -> bool:
    return step["raw_arguments"] is not None and step["actor"] != "user"


def _cut_tail(turns: list[Turn], repairs: set[str]) -> None:
    """The conversation ends with its last trained turn and the results of the calls made there."""
    last = max((index for index, turn in enumerate(turns) if turn.trained), default=None)
    if last is None:
        raise Dropped("nothing_to_train")
    end = last + 1
    while end < len(turns) and turns[end].role == "tool":
        end += 1
    if end < len(turns):
        repairs.add("tail_cut")
        del turns[end:]


def fits_64_bits(*texts: str | None) -> bool:
    """Whether no integer in these JSON texts is beyond 64 bits; readers of JSON columns cannot hold it.

    >>> fits_64_bits('{"n": 18446744073709551616}'), fits_64_bits('{"n": "18446744073709551616"}', None)
    (False, True)
    """
    return all(text is None or not _LONG_NUMBER.search(text) or _fits(decode(text.encode()).value) for text in texts)


def _fits(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_fits, value.values()))
    if isinstance(value, list):
        return all(map(_fits, value))
    return type(value) is not int or -(1 << 63) <= value < 1 << 64


def _has_media(parts: str) -> bool:
    found = decode(parts.encode()).value
    return any(not _is_harmless(part) for part in (found if isinstance(found, list) else [found]))


def _is_harmless(part: Any) -> bool:
    if not isinstance(part, dict):
        return isinstance(part, str)
    return part.get("type") in _HARMLESS_TYPES or not _HARMLESS_KEYS.isdisjoint(part)


def _turns(row: dict[str, Any], policy: Policy, repairs: set[str]) -> list[Turn]:
    turns = []
    for message, info in zip(row["messages"], row["message_info"], strict=True):
        calls = [
            Call(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message["tool_calls"] or ()
        ]
        reasoning = message["reasoning_content"] or None
        if reasoning and not policy.reasoning:
            repairs.add("reasoning_left_out")
            reasoning = None
        own = message["role"] == "assistant" and not info["inherited"] and not info["synthetic"]
        trained = own and bool(message["content"] or calls or message["reasoning_content"])
        turns.append(
            Turn(
                message["role"], message["content"], reasoning, calls, message["tool_call_id"], message["name"],
                trained, bool(info["synthetic"]),
            )
        )  # fmt: skip
    return turns


def _without_user_calls(turns: list[Turn], repairs: set[str]) -> list[Turn]:
    """A simulated user's own calls and their results are not part of what the agent saw."""
    made = {call.id for turn in turns if turn.role == "user" for call in turn.calls}
    if not made:
        return turns
    repairs.add("user_calls_left_out")
    kept = []
    for turn in turns:
        if turn.role == "user" and turn.calls:
            turn.calls = []
            if not turn.content:
                continue
        if turn.role != "tool" or turn.call_id not in made:
            kept.append(turn)
    return kept


class _Pairing:
    """Every result directly after the turn that made the call."""

    def __init__(self, repairs: set[str]) -> None:
        self.turns: list[Turn] = []
        self.open: list[str] = []
        self.held: list[Turn] = []
        self.called = 0
        """Position of the last turn with calls."""
        self._repairs = repairs

    def say(self, turn: Turn) -> None:
        """The agent's next turn; nothing is open."""
        self.close()
        self.called = len(self.turns)
        self.open = [call.id for call in turn.calls]
        self.turns.append(turn)

    def answer(self, turn: Turn) -> None:
        if turn.call_id not in self.open:
            raise Dropped("orphan_result")
        if self.held:
            self._repairs.add("results_moved_up")
        self.open.remove(turn.call_id)
        self.turns.append(turn)

    def hear(self, turn: Turn) -> None:
        """Somebody else speaks, perhaps before the results are there."""
        (self.held if self.open else self.turns).append(turn)

    def close(self) -> None:
        self.turns += self.held
        self.held = []


def _paired(turns: list[Turn], missing: str, repairs: set[str]) -> list[Turn]:
    pairing = _Pairing(repairs)
    for place, turn in enumerate(turns):
        if turn.role == "tool":
            pairing.answer(turn)
        elif turn.role != "assistant":
            pairing.hear(turn)
        elif pairing.open:
            later = any(other.call_id in pairing.open for other in turns[place:] if other.role == "tool")
            return _cut(pairing, "late_result" if later else "missing_result", missing, repairs)
        else:
            pairing.say(turn)
    if pairing.open:
        if missing != "allow-last" or len(pairing.turns) > pairing.called + 1:
            return _cut(pairing, "missing_result", missing, repairs)
        repairs.add("ends_in_open_calls")
        return pairing.turns
    pairing.close()
    return pairing.turns


def _cut(pairing: _Pairing, reason: str, missing: str, repairs: set[str]) -> list[Turn]:
    """What came before the turn whose calls are not answered, where that is wanted and something is left."""
    before = pairing.turns[: pairing.called]
    if missing != "cut" or not any(turn.trained for turn in before):
        raise Dropped(reason)
    repairs.add("cut_at_missing_result")
    return before


def _templated(turns: list[Turn], repairs: set[str]) -> list[Turn]:
    """As chat templates take it: at most one system message, and that first."""
    made: list[Turn] = []
    for turn in turns:
        if turn.role == "developer":
            repairs.add("developer_as_system")
            turn.role = "system"
        if turn.role != "system" or not made:
            made.append(turn)
        elif len(made) == 1 and made[0].role == "system":
            repairs.add("systems_merged")
            made[0].content = "\n\n".join(text for text in (made[0].content, turn.content) if text)
        else:
            repairs.add("late_system_as_user")
            turn.role = "user"
            made.append(turn)
    return made


def _ask(turns: list[Turn]) -> int:
    """Turns before the agent's first own one that answers somebody (a greeting does not); all, where none does."""
    asked = next((index for index, turn in enumerate(turns) if turn.role == "user"), len(turns))
    return next((index for index, turn in enumerate(turns) if turn.trained and index > asked), len(turns))
