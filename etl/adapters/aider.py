"""aider's histories: `.aider.chat.history.md` (Markdown, a section a session) and `.aider.llm.history`.

The Markdown has no roles and no ids: a session is known by the time in its header with the first thing asked. Web
pages of published transcripts are read alike. Output that a person added to the chat, and errors that the program had
the model mend, are messages in the user's place. The other log has every request whole and each response.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from etl.adapter import Adapter, FileContext, Sample
from etl.adapters._aider_rows import exchanges, session
from etl.adapters._aider_text import started_in
from etl.adapters._session import text_of
from etl.conversation import Conversation, Ignored, Outcome, Record, Unusable
from etl.decode import encode
from etl.framing import BOM, RAISE_LENGTH, Broken, Framed, Limits, frame

_SILENT = "silent_session"
_HEADER = b"# aider chat started at "
_LOGS = (b"TO LLM ", b"LLM RESPONSE ")
_LOG = re.compile(rb"(TO LLM|LLM RESPONSE) (\d{4}-\d\d-\d\dT[\d:.+-]+)\s*")
_ASKED = re.compile(rb"^#### ", re.MULTILINE)
_SHOWN = re.compile(
    rb"^> (?:Tokens: |Aider v|Added |Applied edit to|Commit |Main model: |Model: |\$ aider)", re.MULTILINE
)
_PAGE = b'class="chat-transcript"'


class Aider(Adapter):
    """Histories of aider."""

    name = "aider"
    version = 2
    about = "aider histories: .aider.chat.history.md (Markdown, also published transcripts) and .aider.llm.history"
    ignores: ClassVar[dict[str, str]] = {_SILENT: "a session in which nobody asks anything"}

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """Sections of a history; JSON records of any other file."""
        first = next(blocks, b"")
        rest = itertools.chain([first], blocks)
        if first.lstrip(BOM + b" \t\r\n\x00")[:1] in (b"{", b"["):
            return frame(rest, limits)
        return _sections(rest, limits)

    def score(self, sample: Sample) -> float:
        """By the headers of sections, or by lines of a person and of the program."""
        head = sample.head.removeprefix(BOM)
        if head.startswith(_HEADER) or b"\n" + _HEADER in head or _LOG.match(head):
            return 0.97
        if sample.values or not _ASKED.search(head):
            return 0.0
        return 0.9 if _PAGE in head else 0.8 if _SHOWN.search(head) else 0.0

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation a session; of the log of requests one for each that goes on."""
        logged: list[Record] = []
        for record in records:
            value = record.value
            if text_of(value, "log") in ("TO LLM", "LLM RESPONSE"):
                logged.append(record)
            elif not isinstance(value, dict) or not isinstance(value.get("text"), str):
                yield Unusable(record, "no_session", "a section of a history has text; this has none")
            else:
                yield _told(record, value)
        for made in exchanges(logged):
            yield made if made.messages else Ignored(_SILENT, len(made.records))


def _told(record: Record, value: dict[str, Any]) -> Outcome:
    made: Conversation | None = session(record, text_of(value, "started") is None and _PAGE.decode() in value["text"])
    if made is not None:
        return made
    if text_of(value, "started") is None:
        return Unusable(record, "no_session", "text before the first session, its beginning was cut off")
    return Ignored(_SILENT)


def _sections(blocks: Iterable[bytes], limits: Limits) -> Iterator[Framed]:
    """Each section from its header to the next, with its place."""
    section: list[bytes] = []
    size, offset, first_line, start = 0, 0, 1, 0
    for line, raw in enumerate(_lines(blocks), start=1):
        if _is_torn(raw):
            if section:
                yield from _section(section, size, first_line, start, limits)
            message = "the file ends in the middle of a header; ingest it again when it is complete"
            yield Broken("torn_tail", message, raw, line, offset, tail=True)
            return
        if section and _begins(raw):
            yield from _section(section, size, first_line, start, limits)
            section, size, first_line, start = [], 0, line, offset
        size += len(raw)
        if size <= limits.record_bytes:
            section.append(raw)
        offset += len(raw)
    if section:
        yield from _section(section, size, first_line, start, limits)


def _begins(line: bytes) -> bool:
    if line.startswith(_LOGS):
        return _LOG.fullmatch(line) is not None
    return line.startswith(_HEADER) and started_in(line.decode("utf-8", "replace")) is not None


def _is_torn(line: bytes) -> bool:
    """Whether a line without its end is the beginning of a header."""
    if line.endswith(b"\n") or len(line) < 4 or _begins(line):
        return False
    return any(mark.startswith(line[: len(mark)]) for mark in (_HEADER, *_LOGS))


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _section(lines: list[bytes], size: int, line: int, offset: int, limits: Limits) -> Iterator[Framed]:
    raw = b"".join(lines)
    if not raw.removeprefix(BOM).strip():
        return
    if size > limits.record_bytes:
        message = f"section of {size} bytes is longer than the limit of {limits.record_bytes}; {RAISE_LENGTH}"
        yield Broken("too_long", message, raw[:1024], line, offset, length=size)
        return
    head = lines[0].removeprefix(BOM)
    logged = _LOG.fullmatch(head)
    started = None if logged is not None else started_in(head.decode("utf-8", "replace"))
    text = b"".join(lines[1:] if logged is not None or started is not None else [head, *lines[1:]])
    notes: tuple[str, ...] = ()
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        decoded, notes = text.decode("utf-8", "replace"), ("invalid_utf8",)
    value: dict[str, Any] = {"text": decoded.replace("\r\n", "\n")}
    if logged is not None:
        value = {"log": logged.group(1).decode(), "started": logged.group(2).decode(), **value}
    elif started is not None:
        value = {"started": started, **value}
    yield Record(value, encode(value).encode(), line, offset, notes)
