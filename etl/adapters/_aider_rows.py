"""Sessions of aider as conversations: from the Markdown history, and from the log of what the model was sent."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from etl.adapters._aider_shown import is_mark, shown
from etl.adapters._aider_text import MODEL, PAGE, PERSON, PROGRAM, Said, Spoken, spoken, turns
from etl.adapters._session import text_of
from etl.adapters._talk import Talk
from etl.conversation import Conversation, Message, Record, Tokens
from etl.identity import digest

_MODEL = re.compile(r"(?:Main m|M)odels?: ([^\s,;]+)")
_VERSION = re.compile(r"Aider (v[\w.+-]+)")
_TOKENS = re.compile(r"Tokens: ([\d.,]+)([kM]?) sent,.*?([\d.,]+)([kM]?) received")
_COST = re.compile(r"\$([\d.]+) session")
_COMMAND = re.compile(r"(?:/(?!(?:ask|code|architect|context|help|chat-mode ask)\s)[a-z][\w-]*|!)")
"""Commands to the program; those that take a question to the model are what a person asks."""
_PROGRAM = (
    "I have *added these files to the chat*", "I have *updated these files", "I switched to a new code base",
    "Here are summaries of some files", "Here are some READ ONLY files", "I am not sharing any files",
    "I am working with you on code in a git repository", "I didn't like any of the", "These are the *read-write files",
)  # fmt: skip
"""How a message begins that the program sends in the user's name."""
_AFTER_EXAMPLES = "I switched to a new code base"


def session(record: Record, published: bool) -> Conversation | None:
    """The conversation of a section of the Markdown history; None where nobody asks the model
    anything.
    """
    started = text_of(record.value, "started")
    talk = Talk()
    reading = _Session(talk)
    said = list(turns(text_of(record.value, "text") or "", published))
    for one, then in itertools.zip_longest(said, said[1:]):
        reading.take(one, answered=then is not None and then.who == MODEL)
    asked = next((m.content for m in talk.messages if m.role == "user"), None)
    if asked is None or all(message.synthetic for message in talk.messages):
        return None
    key = digest(f"{started}\n{asked}".encode("utf-8", "surrogatepass"))
    made = Conversation([], [record], native_id=f"aider:{key}", conversation_id=f"aider:{key}", agent="aider")
    if started is None:
        made.native_id, made.local_id, made.conversation_id = None, f"aider:{key}", None
    made.started_at, made.usage = started, reading.usage
    made.extra = reading.extra or None
    return talk.tell(made)


class _Session:
    """The turns of a session, one after the other."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.usage: Tokens | None = None
        self.extra: dict[str, Any] = {}
        self.commanded = False
        """Whether the last thing said is a command to the program."""

    def take(self, said: Said, answered: bool) -> None:
        """Read what one speaker says; `answered` where the model speaks next."""
        commanded, self.commanded = self.commanded, False
        if said.who == PROGRAM:
            self._told(said.text)
            self._shown(said.text, commanded, answered)
        elif said.who == PERSON and is_mark(said.text):
            self.talk.note({"shown": f"#### {said.text}"})
        elif said.who == PERSON:
            self.commanded = _COMMAND.match(said.text) is not None
            self.talk.say(Message("user", said.text, synthetic=self.commanded))
        elif said.who == MODEL and any(message.role == "user" for message in self.talk.messages):
            self.talk.say(Message("assistant", said.text, model=self.talk.model))
        else:
            key = "afterword" if said.who == PAGE and self.talk.messages else "preamble"
            self.extra[key] = f"{self.extra[key]}\n\n{said.text}" if key in self.extra else said.text

    def _shown(self, text: str, commanded: bool, answered: bool) -> None:
        """Keep what the program shows; what of it went to the model is a message in the user's place."""
        told = shown(text, commanded, answered and any(message.role == "user" for message in self.talk.messages))
        if told.unseen:
            self.talk.flags.add("content_not_captured")
        self._note(told.before)
        if told.sent:
            self.talk.say(Message("user", told.sent, synthetic=True))
        self._note(told.after)

    def _note(self, text: str) -> None:
        if text:
            self.talk.note({"shown": "\n".join(f"> {line}".rstrip() for line in text.split("\n"))})

    def _told(self, text: str) -> None:
        """What the program tells: the model, what a response used, that it was stopped."""
        model, version = _MODEL.search(text), _VERSION.search(text)
        if model is not None:
            self.talk.model = model.group(1)
        if version is not None:
            self.extra["version"] = version.group(1)
        for sent in _TOKENS.finditer(text):
            self._count(sent)
        cost = _COST.search(text)
        if cost is not None:
            self.usage = self.usage or Tokens()
            self.usage.cost_usd = float(cost.group(1)) if cost.group(1).count(".") <= 1 else self.usage.cost_usd
        if "^C" in text or "KeyboardInterrupt" in text:
            self.talk.flags.add("interrupted")

    def _count(self, sent: re.Match[str]) -> None:
        """Exact counts; rounded ones (`2.8k`) stay in the notes, and the sum is a lower bound."""
        if sent.group(2) or sent.group(4):
            self.talk.flags.add("usage_partial")
            return
        counts = [int(digits) for group in (1, 3) if (digits := sent.group(group).replace(",", "")).isdigit()]
        if len(counts) == 2:
            used = self.usage = self.usage or Tokens()
            used.input_tokens = (used.input_tokens or 0) + counts[0]
            used.output_tokens = (used.output_tokens or 0) + counts[1]
            last = self.talk.messages[-1] if self.talk.messages else None
            if last is not None and last.role == "assistant" and last.input_tokens is None:
                last.input_tokens, last.output_tokens = counts


def exchanges(records: Sequence[Record]) -> Iterator[Conversation]:
    """Requests with their responses; a request that repeats the response before it goes on with that conversation."""
    chain: list[Record] = []
    answer: str | None = None
    for record in records:
        if text_of(record.value, "log") == "TO LLM":
            said = spoken(text_of(record.value, "text") or "")
            goes_on = answer is not None and any(m.role == "assistant" and m.text.strip() == answer for m in said)
            if chain and not goes_on:
                yield _exchange(chain)
                chain = []
        else:
            answer = "\n".join(m.text for m in spoken(text_of(record.value, "text") or "")).strip()
        chain.append(record)
    if chain:
        yield _exchange(chain)


def _exchange(records: list[Record]) -> Conversation:
    """The last request holds all that was said before; what came back is the answer."""
    talk = Talk()
    request = next((record for record in reversed(records) if text_of(record.value, "log") == "TO LLM"), None)
    if request is not None:
        _asked(talk, spoken(text_of(request.value, "text") or ""), request.value.get("started"))
    for record in records[records.index(request) + 1 :] if request is not None else records:
        text = "\n".join(message.text for message in spoken(text_of(record.value, "text") or ""))
        talk.say(Message("assistant", text, at=record.value.get("started")))
    key = digest(records[0].raw)
    made = Conversation([], records, native_id=f"aider:{key}", conversation_id=f"aider:{key}", agent="aider")
    made.started_at = records[0].value.get("started")
    return talk.tell(made)


def _asked(talk: Talk, messages: list[Spoken], at: Any) -> None:
    switched = [n for n, m in enumerate(messages) if m.role == "user" and m.text.startswith(_AFTER_EXAMPLES)]
    examples = switched[0] if switched else 0
    for number, message in enumerate(messages):
        role = message.role if message.role in ("system", "user", "assistant") else "user"
        example = number < examples and role != "system"
        made = Message(role, message.text, synthetic=role != "system" and (example or message.role != role))
        if role == "user" and message.text.startswith(_PROGRAM):
            made.synthetic = True
        if role == "assistant" and number and talk.messages[-1].synthetic:
            made.synthetic = True
        if example:
            made.extra = {"demonstration": True}
        if number == len(messages) - 1:
            made.at = at
        talk.say(made)
