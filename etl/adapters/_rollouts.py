"""Shared by formats of evaluations and RL rollouts: results without ids, named numbers, lists of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from etl.adapters._chat import chat_messages
from etl.conversation import Message


def transcript(listed: Any, role: str) -> list[Message] | str:
    """Messages of a list in OpenAI form, or of a bare text that `role` said; the reason where one is none."""
    if listed is None:
        return []
    if isinstance(listed, str):
        return [Message(role, listed)]
    messages: list[Message] = []
    for item in listed if isinstance(listed, list) else [listed]:
        read = chat_messages(item)
        if isinstance(read, str):
            return read
        messages += read
    return messages


def numbers(value: Any) -> dict[str, int | float | bool]:
    """The numbers of an object by name; {} where it is none."""
    if not isinstance(value, dict):
        return {}
    return {name: item for name, item in value.items() if type(item) in (int, float, bool)}


def count(value: Any) -> int | None:
    """A number of tokens: whole and not negative, also where it is logged as a double.

    >>> count(12.0), count(-1), count(True)
    (12, None, None)
    """
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None


def reals(value: Any) -> list[float] | None:
    """A list of numbers (log probabilities, a mask) as doubles; None where it is anything else.

    >>> reals([-0.5, 0]), reals([]), reals(["-0.5"]), reals(None)
    ([-0.5, 0.0], [], None, None)
    """
    if not isinstance(value, list) or not all(type(item) in (int, float) and abs(item) < 1 << 53 for item in value):
        return None
    return [float(item) for item in value]


def text(value: Any) -> str | None:
    """A text that says something, else None."""
    return value if isinstance(value, str) and value else None


def obj(value: Any, key: str) -> dict[str, Any]:
    """The object under a key, {} where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def items(value: Any, key: str) -> list[Any]:
    """The list under a key, [] where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


class Sampled(NamedTuple):
    """Tokens of one model response: what it was given, what it gave, and the log probabilities of that."""

    prompt: Any
    completion: Any
    logprobs: Any = None


class TokenSequence(NamedTuple):
    """One token sequence of a whole conversation; the mask is 1 where the model sampled."""

    token_ids: list[int]
    loss_mask: list[int]
    logprobs: list[float] | None


def one_sequence(responses: Sequence[Sampled]) -> TokenSequence | None:
    """The tokens of all responses as one sequence, where each was given all that came before it; None where they are
    not all logged, or a later prompt rewrote an earlier one.
    """
    ids: list[int] = []
    mask: list[int] = []
    logprobs: list[float] | None = []
    for response in responses:
        prompt, completion = response.prompt, response.completion
        if not (_tokens(prompt) and _tokens(completion)) or prompt[: len(ids)] != ids:
            return None
        given = len(prompt) - len(ids)
        ids += prompt[len(ids) :] + completion
        mask += [0] * given + [1] * len(completion)
        said = response.logprobs
        whole = isinstance(said, list) and len(said) == len(completion)
        if logprobs is not None and whole and all(type(item) in (int, float) for item in said):
            logprobs += [0.0] * given + [float(item) for item in said]
        else:
            logprobs = None
    return TokenSequence(ids, mask, logprobs) if ids else None


def _tokens(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 1 << 31 for item in value)
