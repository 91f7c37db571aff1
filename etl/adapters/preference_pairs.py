"""Preference sets: two answers to one prompt, one chosen and one rejected (DPO), or one answer with a label (KTO).

Each side is a row and both are attempts at one task: they share the group, `sample_index` is 0 for the chosen (or
first) side, and a judgment says which was preferred; a score of a side is its reward. Turns of the assistant before the
answer are what both answer to, so they are marked as inherited. Read are messages, ShareGPT turns, plain texts,
transcripts in one text (hh-rlhf), and battles of two models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from etl.adapter import FileContext
from etl.adapters._preference import Side, Unreadable, alike, side
from etl.adapters._records import ClaimAdapter, part
from etl.adapters._training import row
from etl.conversation import Conversation, Outcome, Record, Unusable, Verdict
from etl.identity import digest


class _Form(NamedTuple):
    """The keys of two answers, and the words that tell the keys of one side from those of the other."""

    answers: tuple[str, str]
    words: tuple[str, str]


_FORMS = (
    _Form(("chosen", "rejected"), ("chosen", "rejected")),
    _Form(("chosen_messages", "rejected_messages"), ("chosen", "rejected")),
    _Form(("chosen_response", "rejected_response"), ("chosen", "rejected")),
    _Form(("conversation_a", "conversation_b"), ("a", "b")),
)
_LABELS = ("kto_tag", "label")
_TURNS = ("messages", "conversations", "conversation")
_SCORES = ("score", "rating", "reward")


class PreferencePairs(ClaimAdapter):
    """Chosen and rejected answers, labelled answers, battles."""

    name = "preference_pairs"
    version = 2
    about = "preference sets: chosen and rejected (DPO, hh-rlhf), labelled answers (KTO), battles; each side a row"
    splits = True

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of two sides; fairly sure of an answer with a label."""
        if any(value.get(one) and value.get(other) for form in _FORMS for one, other in [form.answers]):
            return 0.95
        return 0.9 if _labelled(value) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """The sides of every record."""
        seen = Counter[str]()
        for record in records:
            value = record.value
            if not isinstance(value, dict):
                yield Unusable(record, "not_an_object", "a record is a JSON object with two answers or a label")
                continue
            try:
                made = list(_rows(record, value, seen))
            except Unreadable as reason:
                yield Unusable(record, "bad_message", str(reason))
                continue
            yield from made


def _labelled(value: dict[str, Any]) -> str | None:
    """The key of the label of a single answer."""
    key = next((key for key in _LABELS if type(value.get(key)) is bool), None)
    return key if key is not None and _answer_key(value) is not None else None


def _answer_key(value: dict[str, Any]) -> str | None:
    if value.get("prompt") and "completion" in value:
        return "completion"
    return next((key for key in _TURNS if isinstance(value.get(key), list) and value[key]), None)


def _rows(record: Record, value: dict[str, Any], seen: Counter[str]) -> Iterator[Conversation]:
    form = next((form for form in _FORMS if any(key in value for key in form.answers)), None)
    if form is None:
        label = _labelled(value)
        if label is None:
            raise Unreadable("neither two answers (`chosen`, `rejected`) nor one with a boolean label")
        yield _judged(record, value, label)
        return
    present = [number for number, key in enumerate(form.answers) if value.get(key) is not None]
    if not present:
        raise Unreadable(f"both `{form.answers[0]}` and `{form.answers[1]}` are null")
    sides = [side(value, form.answers[number]) for number in present]
    if len(sides) == 2:
        least = min(len(one.messages) for one in sides) - 1
        sides[0].shared = sides[1].shared = min(least, alike(sides[0].messages, sides[1].messages))
    name = digest(record.raw)
    group = f"{name}:{seen[name]}"
    seen[name] += 1
    for number, found in zip(present, sides, strict=True):
        yield _side(record, value, form, number, found, group if len(sides) == 2 else None)


def _side(
    record: Record, value: dict[str, Any], form: _Form, number: int, found: Side, group: str | None
) -> Conversation:
    """One side as a row; its record is the logged one without the other side."""
    other = form.words[1 - number]
    own = {key: item for key, item in value.items() if not _of(key, other)}
    unit = part(record, own)
    rest = {key: item for key, item in own.items() if key not in found.held}
    word = form.words[number]
    models = [key for key in rest if _of(key, word) and "model" in key and isinstance(rest[key], str)]
    scores = [key for key in rest if _of(key, word) and any(score in key for score in _SCORES)]
    model = rest.pop(models[0]) if models else None
    scored = next((key for key in scores if type(rest[key]) in (int, float)), None)
    reward = rest.pop(scored) if scored is not None else None
    judged = _battle(rest, number) if form.words == ("a", "b") else _preferred(number)
    made = _made(unit, rest, found)
    made.model = model if model is not None else made.model
    made.reward = reward
    made.judgments = [judged]
    made.group = group
    made.sample_index = None if group is None else number
    return made


def _of(key: str, word: str) -> bool:
    """Whether a key speaks of that side."""
    return word in key.replace("-", "_").split("_")


def _preferred(number: int) -> Verdict:
    return Verdict("preference", "marker", 1.0 - number, ("chosen", "rejected")[number])


def _battle(rest: dict[str, Any], number: int) -> Verdict:
    """Which of two models a person preferred: 1, 0, or a half each where neither won."""
    winner = rest.pop("winner", None)
    own, other = ("model_a", "model_b")[:: 1 if number == 0 else -1]
    value = {own: 1.0, other: 0.0}.get(winner) if isinstance(winner, str) else None
    if value is None and isinstance(winner, str) and winner.startswith("tie"):
        value = 0.5
    label = None if winner is None else winner if isinstance(winner, str) else msgspec.json.encode(winner).decode()
    return Verdict("preference", "human", value, label)


def _judged(record: Record, value: dict[str, Any], label: str) -> Conversation:
    """A single answer with its label."""
    key = _answer_key(value)
    assert key is not None
    found = side({name: item for name, item in value.items() if name == key or key == "completion"}, key)
    rest = {name: item for name, item in value.items() if name not in found.held and name != label}
    made = _made(record, rest, found)
    good = value[label]
    made.judgments = [Verdict(label, "marker", float(good), "desirable" if good else "undesirable")]
    return made


def _made(record: Record, rest: dict[str, Any], found: Side) -> Conversation:
    """The row of one side. Where turns of the assistant come before the answer, the task is all of what it answers to,
    not the first thing asked.
    """
    before = found.messages[: found.shared]
    said = msgspec.json.encode([(message.role, message.content) for message in before])
    for message in before:
        message.inherited = message.role == "assistant"
    made = row(record, rest, found.messages, found.unread)
    if any(message.inherited for message in before):
        made.task = ("preference", digest(said))
    return made
