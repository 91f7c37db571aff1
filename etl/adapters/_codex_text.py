"""What in a user's item of Codex a person typed, and what the program put there; and which events only repeat items."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from etl.adapters._blocks import plain, read
from etl.adapters._claude_text import squeezed
from etl.adapters._codex_lines import EVENT, ITEM, Line
from etl.adapters._session import list_of, text_of

_STARTS = (
    "# AGENTS.md instructions",
    "Another language model started to solve this problem and produced a summary",
    "You have exceeded the maximum number of",
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via",
    "# Context from my IDE setup:",
    "# Files mentioned by the user:",
)
_TAGS = frozenset(
    {
        "environment_context", "user_instructions", "permissions", "permissions instructions", "collaboration_mode",
        "turn_aborted", "user_shell_command", "user_action", "skill", "skills_instructions", "subagent_notification",
        "model_switch", "personality_spec", "realtime_conversation", "apps_instructions", "plugins_instructions",
        "INSTRUCTIONS", "hook_prompt", "goal_context", "multi_agent_mode", "memory_context", "system_reminder",
        "codex_internal_context", "internal_context", "recommended_plugins", "additional_context",
        "agent_message_board_notification",
    }
)  # fmt: skip
_TAGGED = re.compile(
    r"<([A-Za-z_]{3,40}(?: instructions)?)(?: [a-z_]{1,40}=[^<>\n]{0,400})?>"
    r".*</([A-Za-z_]{3,40})(?: instructions)?>\Z",
    re.DOTALL,
)
_REQUEST = re.compile(r"^## My request for Codex:[ \t]*\n", re.MULTILINE)
"""What an editor puts between the files that are open and the words of the person."""


def is_harness(text: str) -> bool:
    """Whether a text in the user's place is the program's.

    >>> is_harness("<environment_context><cwd>/srv</cwd></environment_context>"), is_harness("<b>Bold</b>?")
    (True, False)
    """
    bare = text.strip()
    if bare.startswith(_STARTS):
        return True
    found = _TAGGED.match(bare)
    if found is None:
        return False
    opened, closed = found.group(1), found.group(2)
    return opened in _TAGS and opened.split(" ")[0] == closed


def parted(text: str) -> list[str]:
    """A text as an editor hands it on: its context, and what the person typed; any other text as it is.

    >>> parted("# Context from my IDE setup:\\n\\n## My request for Codex:\\nMend it.")
    ['# Context from my IDE setup:', 'Mend it.']
    """
    if not text.lstrip().startswith(_STARTS[-2:]):
        return [text]
    found = _REQUEST.search(text)
    return [text] if found is None else [text[: found.start()].strip(), text[found.end() :].strip()]


_SAYING = {"user_message": "user", "agent_message": "assistant", "agent_reasoning": "reasoning",
           "agent_reasoning_raw_content": "reasoning"}  # fmt: skip


def spoken(line: Line) -> tuple[str, str] | None:
    """(who, text) of an event that tells what was said; None for other lines."""
    who = _SAYING.get(line.type) if line.kind == EVENT else None
    text = text_of(line.payload, "message", "text")
    return None if who is None or text is None else (who, text)


_NEAR = 64
"""Items before and after an event among which one that holds its text is looked for."""


def mark_repeats(lines: Sequence[Line]) -> None:
    """Mark the events that say what an item says; each item speaks for one event of its kind."""
    said: Counter[tuple[str, str]] = Counter()
    whole: dict[str, list[tuple[int, str]]] = {"user": [], "assistant": [], "reasoning": []}
    for number, line in enumerate(lines):
        for who, pieces in _items(line):
            said.update((who, piece) for piece in pieces)
            whole[who].append((number, " ".join(pieces)))
    for number, line in enumerate(lines):
        found = spoken(line)
        if found is None:
            continue
        who, text = found[0], squeezed(found[1])
        if said[who, text] > 0:
            said[who, text] -= 1
            line.repeats = True
        elif who != "assistant" and text:
            # The item may hold more: context of an editor before what was typed, pictures, further paragraphs.
            place = bisect_left(whole[who], (number, ""))
            near = whole[who][max(0, place - _NEAR) : place + _NEAR]
            line.repeats = any(text in one for _, one in near)


def _items(line: Line) -> Iterator[tuple[str, list[str]]]:
    """(who, what is said) in an item: a message as a whole, reasoning by its pieces."""
    if line.kind != ITEM:
        return
    if line.type == "message" and text_of(line.payload, "role") in ("user", "assistant"):
        yield str(line.payload["role"]), [squeezed(read(line.payload.get("content")).text)]
    elif line.type == "reasoning":
        blocks = [block for key in ("summary", "content") for block in list_of(line.payload, key)]
        yield "reasoning", [squeezed(text_of(block, "text") or plain(block)) for block in blocks]
