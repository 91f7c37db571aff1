"""Texts that a chat template made of messages, taken apart again: with its marks, or decoded without them.

Known are ChatML (`<|im_start|>role`), Llama 3 (`<|start_header_id|>role<|end_header_id|>`), and what is left of either
when special tokens are not decoded: the role alone on its line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from etl.adapters._training import Pairs
from etl.conversation import Message

_ROLE = r"(system|developer|user|assistant|tool|ipython)"
_MARKED = (
    (re.compile(rf"<\|im_start\|>{_ROLE}\n"), "<|im_end|>"),
    (re.compile(rf"<\|start_header_id\|>{_ROLE}<\|end_header_id\|>\n\n"), "<|eot_id|>"),
)
_TEMPLATES = (
    (re.compile(r"<start_of_turn>(user|model)\n"), "<end_of_turn>"),
    (re.compile(r"<\|(system|user|assistant)\|>\n"), None),
    (re.compile(r"### ?(Human|Assistant|System): ?"), None),
)
"""Further templates whose marks nothing else has, for texts that are whole conversations; their ends vary."""
_ENDS = re.compile(r"\s*(?:</s>|<\|end\|>|<\|endoftext\|>|<eos>|<\|eot_id\|>)\s*\Z")
_SILENT = re.compile(r"\s+|</s>|<\|end\|>|<\|end_?of_?text\|>|<eos>|<pad>|<\|eot_id\|>")
"""What may stand after a turn and says nothing; anything else is told with it."""
_INST = re.compile(
    r"(?:<s>)?\s*\[INST\]\s*(?:<<SYS>>\s*(?P<system>.*?)\s*<</SYS>>\s*)?(?P<asked>.*?)\s*\[/INST\]"
    r"(?P<said>.*?)(?=(?:<s>)?\s*\[INST\]|\Z)",
    re.DOTALL,
)
_BARE = re.compile(rf"(?:^|\n){_ROLE}\n")
_BARE_TURN = re.compile(r"(?:^|\n)(user)\n(?=<tool_response>)|(?<=</tool_response>)\n(assistant)\n")
_ROLES = {"ipython": "tool", "model": "assistant", "Human": "user", "Assistant": "assistant", "System": "system"}
_RESPONSE = re.compile(r"<tool_response>\n?(.*?)\n?</tool_response>\s*", re.DOTALL)
_THOUGHT = re.compile(r"\s*<think>\n?(.*?)\n?</think>\s*", re.DOTALL)


class Rendered(NamedTuple):
    """Messages of a text; `bare` where only lines with a role told them apart."""

    messages: list[Message]
    bare: bool
    unread: dict[str, object]


def rendered(prompt: str, completion: str | None) -> Rendered:
    """The messages of a prompt as a template made it, and of what the model wrote after it.

    A prompt that no template made is what a person said.

    >>> prompt = "<|im_start|>user\\nHi<|im_end|>\\n<|im_start|>assistant\\n"
    >>> [(message.role, message.content) for message in rendered(prompt, "Yes").messages]
    [('user', 'Hi'), ('assistant', 'Yes')]
    """
    for mark, end in _MARKED:
        if mark.search(prompt) is not None:
            return _read(_pieces(mark, prompt + (completion or ""), end), False)
    if _is_bare(prompt):
        pieces = _pieces(_BARE, prompt, "")
        if completion is not None:
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + _BARE_TURN.split(completion)[0])
            pieces += _later(completion)
        return _read(pieces, True)
    pieces = [("user", prompt)] if prompt else []
    if completion is not None:
        pieces += [("assistant", _BARE_TURN.split(completion)[0]), *_later(completion)]
    return _read(pieces, len(pieces) > 2)


def conversation_in(text: str) -> Rendered | None:
    """The messages of a text that is a whole conversation as a template made it; None for any other text.

    >>> [message.content for message in conversation_in("<s>[INST] Hi [/INST] Yes. </s>").messages]
    ['Hi', 'Yes.']
    """
    if any(mark.search(text) is not None for mark, _ in _MARKED):
        return rendered(text, None)
    if text.lstrip().startswith(("[INST]", "<s>[INST]", "<s> [INST]")):
        pieces: list[tuple[str, str]] = []
        for turn in _INST.finditer(text):
            pieces += [("system", turn["system"])] if turn["system"] else []
            pieces += [("user", turn["asked"]), ("assistant", _ENDS.sub("", turn["said"]).strip())]
        return _read(pieces, True)
    for mark, end in _TEMPLATES:
        text = text.removeprefix("<bos>").lstrip()
        if mark.match(text) is not None:
            pieces = [(role, _ENDS.sub("", said).strip()) for role, said in _pieces(mark, text, end or "")]
            return _read([(role, said) for role, said in pieces if said or role != "system"], True)
    return None


def _is_bare(prompt: str) -> bool:
    """Whether the text begins with a role on a line and ends where the model is to go on."""
    first = _BARE.match(prompt)
    tail = prompt.rstrip().removesuffix("<think>").rstrip()
    return first is not None and tail.endswith("\nassistant")


def _pieces(mark: re.Pattern[str], text: str, end: str) -> list[tuple[str, str]]:
    before, *parts = mark.split(text)
    pieces = [("system", before)] if before.strip() and not before.strip().startswith("<|") else []
    for role, said in zip(parts[::2], parts[1::2], strict=True):
        kept, _, after = said.partition(end) if end else (said, "", "")
        pieces.append((role, said if _SILENT.sub("", after.replace(end, "")) else kept))
    return pieces


def _later(completion: str) -> list[tuple[str, str]]:
    """The turns in what a model wrote over several calls: what tools gave, and how it went on."""
    found: list[tuple[str, str]] = []
    parts = _BARE_TURN.split(completion)[1:]
    for user, assistant, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        found.append((user or assistant, said))
    return found


def _read(pieces: list[tuple[str, str]], bare: bool) -> Rendered:
    """Messages of the turns: thoughts, calls and results taken out of their text."""
    pairs = Pairs()
    messages: list[Message] = []
    for number, (logged, text) in enumerate(pieces):
        role = _ROLES.get(logged, logged)
        said = text.strip("\n") if bare or role != "assistant" else text
        if role == "user" and (given := _RESPONSE.findall(said)) and not _RESPONSE.sub("", said).strip():
            messages += [Message("tool", item, call_id=pairs.answered()) for item in given]
            continue
        if role != "assistant":
            messages.append(Message(role, said))
            continue
        if number == len(pieces) - 1 and not said.strip():
            break  # the prompt ends where the model is to go on, and it never did
        messages.append(_assistant(said, f"messages[{len(messages)}]", pairs))
    return Rendered(messages, bare, dict(pairs.unread))


def _assistant(said: str, place: str, pairs: Pairs) -> Message:
    thought = _THOUGHT.match(said)
    if thought is not None:
        said = said[thought.end() :]
    text, asked = pairs.said(said, place)
    extra = {"blocks": asked.rest} if asked.rest else None
    calls = pairs.asked(asked.calls) or None
    return Message("assistant", text, thought[1] if thought is not None else None, calls=calls, extra=extra)
