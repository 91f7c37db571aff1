"""The activity of Gemini Apps in a Google Takeout (`My Activity.json`): a prompt and its answer an entry, newest first.

Entries of one conversation name its address, since 2026; others stand alone. What an entry is stands in its title, in
the language of the account: where that is not known here, the title is kept whole. Answers are HTML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import FileContext
from etl.adapters._html import text_of_html
from etl.adapters._records import ClaimAdapter, left
from etl.adapters._rollouts import items, text
from etl.conversation import Conversation, Ignored, Message, Outcome, Record, Unusable
from etl.decode import encode
from etl.identity import digest
from etl.times import instant

_PLACE = re.compile(r"https://gemini\.google\.com/app/([0-9a-z]{8,})")
_PROMPTED = re.compile(r"(Prompted:?|Said|Submitted query|Asked|送信したメッセージ:) ")
_NAMED = re.compile(r"Gemini|Bard", re.IGNORECASE)
_PRE = re.compile(r"(<pre\b.*?</pre>)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_ENTRY = frozenset({"header", "title", "time"})
_HELD = frozenset({"header", "title", "time", "products", "safeHtmlItem", "details", "attachedFiles", "imageFile",
                   "activityControls", "subtitles"})  # fmt: skip
_ACT, _OTHER = "no_words", "other_product"


class GeminiTakeout(ClaimAdapter):
    """What a person said to Gemini, as their Google Takeout has it."""

    name = "gemini_takeout"
    about = "Gemini in a Google Takeout: My Activity.json, entries {header, title, time, safeHtmlItem}"
    ignores: ClassVar[dict[str, str]] = {
        _ACT: "something done in Gemini without words: a rating, a setting, a Gem",
        _OTHER: "the activity in another product",
    }

    def claim(self, value: dict[str, Any]) -> float:
        """Sure of activity in Gemini; activity in other products may lie among it."""
        if not value.keys() >= _ENTRY:
            return 0.0
        return 0.95 if _is_gemini(value) else 0.25 if isinstance(value.get("products"), list) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A row for each conversation, and for each entry that names none."""
        chats: dict[str, list[Record]] = {}
        alone: list[Record] = []
        for record in records:
            value = record.value
            if not isinstance(value, dict) or not value.keys() >= _ENTRY or not isinstance(value["title"], str):
                yield Unusable(record, "no_entry", "an entry of an activity has header, title and time; this has not")
            elif not _is_gemini(value):
                yield Ignored(_OTHER)
            elif not _messages(value):
                yield Ignored(_ACT)
            elif (name := _conversation_of(value)) is not None:
                chats.setdefault(name, []).append(record)
            else:
                alone.append(record)
        for name, found in chats.items():
            yield _row(f"gemini:{name}", name, found)
        for record in alone:
            told = encode([record.value["time"], record.value["title"]]).encode("utf-8", "surrogatepass")
            yield _row(f"gemini:{digest(told)}", None, [record])


def _is_gemini(value: dict[str, Any]) -> bool:
    named = [value.get("header"), *items(value, "products")]
    return any(isinstance(name, str) and _NAMED.search(name) is not None for name in named)


def _conversation_of(value: dict[str, Any]) -> str | None:
    """The conversation whose address an entry names, where it is one."""
    told = [each.get("url") for each in items(value, "details") if isinstance(each, dict)]
    found = {place[1] for url in told if isinstance(url, str) and (place := _PLACE.match(url)) is not None}
    return found.pop() if len(found) == 1 else None


def _row(key: str, name: str | None, records: list[Record]) -> Conversation:
    found = sorted(records, key=lambda record: instant(record.value["time"]).micros or 0)
    messages = [message for record in found for message in _messages(record.value)]
    return Conversation(
        messages,
        found,
        native_id=key,
        conversation_id=name,
        provider="google",
        agent="gemini",
        started_at=found[0].value["time"],
        ended_at=found[-1].value["time"],
    )


def _messages(value: dict[str, Any]) -> list[Message]:
    """A prompt with what was attached, and its answer; what Gemini made (a canvas) is an answer."""
    title, at = value["title"], value["time"]
    answers = [
        each["html"] for each in items(value, "safeHtmlItem") if isinstance(each, dict) and text(each.get("html"))
    ]
    label = _PROMPTED.match(title)
    made: list[Message] = []
    notes = [each for each in items(value, "subtitles") if isinstance(each, dict)]
    if label is not None or answers:
        asked = Message("user", title[label.end() :] if label else title, at=at)
        files = [each for each in (*items(value, "attachedFiles"), value.get("imageFile")) if text(each)]
        asked.parts = [{"type": "file", "name": name} for name in dict.fromkeys(files)] or None
        rest = {**(left(value, _HELD) or {}), **({"subtitles": notes} if notes else {})}
        asked.extra = rest or None
        made.append(asked)
        made += [_answer(answers, at)] if answers else []
    elif written := [said for each in notes if (said := text(each.get("name"))) is not None]:
        made.append(Message("assistant", "\n".join(written), at=at, extra={"title": title}))
    return made


def _answer(answers: list[str], at: Any) -> Message:
    """The text of an answer; its HTML stands beside it where it says more (emphasis, tables, links)."""
    texts: list[str] = []
    rich: list[Any] = []
    for body in answers:
        lines: list[str] = []
        more = False
        for piece in _PRE.split(body):
            if _PRE.fullmatch(piece):
                lines.append(html.unescape(_TAG.sub("", piece)).strip("\n"))
                more = True
            elif piece:
                said, images, shaped = text_of_html(piece)
                more = more or shaped or bool(images)
                lines += [said] if said.strip() else []
        texts.append("\n".join(lines))
        rich += [{"type": "html", "html": body}] if more else []
    return Message("assistant", "\n\n".join(texts), at=at, parts=rich or None)
