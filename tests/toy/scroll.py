"""A toy adapter of a container that is no JSON: plain text, a dialogue a paragraph, `who: what was said` a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from etl.adapter import Adapter, FileContext, Sample
from etl.conversation import Conversation, Message, Outcome, Record
from etl.framing import Broken, Framed, Limits

_ROLES = {"guest": "user", "desk": "assistant"}


class Scroll(Adapter):
    """Dialogues as paragraphs."""

    name = "scroll"
    about = "toy: paragraphs of `who: what was said`"

    def score(self, sample: Sample) -> float:
        """By the first bytes: there are no JSON values to see."""
        return 1.0 if sample.head.startswith((b"guest: ", b"desk: ")) else 0.0

    def records(self, blocks: Iterator[bytes], limits: Limits) -> Iterator[Framed]:
        """A paragraph is a record; one with a line of nobody is broken."""
        line, offset = 1, 0
        for paragraph in b"".join(blocks).split(b"\n\n"):
            said = [text.partition(": ") for text in paragraph.decode().splitlines()]
            if said and all(who in _ROLES for who, _, _ in said):
                yield Record([(who, what) for who, _, what in said], paragraph, line, offset)
            else:
                yield Broken("no_dialogue", "a line of nobody", paragraph, line, offset)
            line += paragraph.count(b"\n") + 2
            offset += len(paragraph) + 2

    def parse(self, records: Iterable[Record], file: FileContext) -> Iterator[Outcome]:
        """A conversation for each paragraph."""
        for record in records:
            yield Conversation([Message(_ROLES[who], what) for who, what in record.value], [record])
