"""What two calls have in common, as hashes: messages by their digests, and the conversation so far at every state.

An agent sends its whole history with every call. What is stored of it is each message once per conversation (`said`,
by its digest), the order in which a call sent them (`path`), and hashes of the conversation so far: before and after
every turn of the assistant (`states`), at the end of the request (`asked`), after each answer (`outs`). They are made
of roles, stripped texts, tool names and canonical arguments; system texts, ids and reasoning, which clients change or
drop, are left out. The key of a conversation is the hash of its opening: all up to the first answer to a user.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from etl.adapters._api_form import SYSTEM_ROLES, Body, Codec, packed, text
from etl.adapters._api_secrets import cleaned
from etl.conversation import Message
from etl.decode import JsonError, decode

_encode = msgspec.json.Encoder(order="deterministic").encode
_plain = msgspec.json.Decoder().decode
_as_logged = msgspec.json.Encoder().encode
_WHOLE = re.compile(rb"(?<=[0-9])\.0(?=[,\]}])")
_THOUGHT = "</think>"
"""Open models write their reasoning before this mark; clients cut it off."""
_MEMO = 20_000
"""Messages remembered while a file is read."""
_SHORT = 2_048
"""Bytes of a message that is remembered as it is; of a longer one its digest is."""
_HELD, _HELD_EACH = 8_000_000, 2_000_000
"""Bytes of the histories that are remembered, in all and of one."""
_SIDES = 4
"""Histories with the same opening that are remembered."""


class Said(NamedTuple):
    """A message with all that is computed of it once."""

    name: int
    form: Body
    atoms: bytes
    role: str


def said(message: Message) -> Said:
    """A message with its digest and its part of the chain."""
    form = packed(message)
    return Said(state_number(blake2b(_encode(form), digest_size=8)), form, atoms(message), message.role)


def state_number(hasher: blake2b) -> int:
    """63 bits: a number that every JSON reader holds, and that no rule takes for a secret."""
    return int.from_bytes(hasher.digest()[:8], "big") >> 1


def atoms(message: Message) -> bytes:
    """What a message is known by in the chain."""
    if message.role in SYSTEM_ROLES:
        return b""
    found: list[bytes] = []
    said_text = message.content.strip()
    if message.role == "assistant" and _THOUGHT in said_text:
        said_text = said_text.rpartition(_THOUGHT)[2].strip()
    if message.role == "tool":
        found.append(b"r\x00" + _utf8(said_text))
    elif said_text:
        found.append(b"t\x00%s\x00%s" % (_utf8(message.role), _utf8(said_text)))
    if message.parts and message.role != "assistant":
        found.append(b"p\x00" + blake2b(_encode(message.parts), digest_size=16).digest())
    found += [b"c\x00%s\x00%s" % (_utf8(call.name), canonical(call.arguments)) for call in message.calls or ()]
    return b"".join(atom + b"\x01" for atom in found)


def _utf8(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def is_object(arguments: Any) -> bool:
    """Whether call arguments are the JSON text of an object."""
    try:
        return type(arguments) is str and type(decode(_utf8(arguments)).value) is dict
    except JsonError:
        return False


def canonical(arguments: Any) -> bytes:
    """Call arguments, however they are spelt, as the same bytes; JavaScript writes 2.0 as 2.

    >>> canonical('{"b": 1, "a": 2}') == canonical({"a": 2, "b": 1})
    True
    """
    if type(arguments) is str:
        raw = _utf8(arguments)
        try:
            arguments = _plain(raw)
        except (ValueError, RecursionError):
            try:
                arguments = decode(raw).value
            except JsonError:
                return raw.strip()
    encoded = _encode(arguments if arguments is not None else {})
    return _WHOLE.sub(b"", encoded) if b".0" in encoded else encoded


class Chain:
    """The hash of a conversation as it grows; it depends on what is said, not on how it is cut into messages."""

    def __init__(self) -> None:
        self._hasher = blake2b(digest_size=16)
        self.asked = False
        """Whether a user has spoken."""
        self.size = 0
        """Bytes that went into the hash."""
        self.opening: str | None = None
        self.before: blake2b | None = None
        """The conversation before the first answer to a user; its place in the path is `begun`."""
        self.begun = 0

    def add(self, messages: Sequence[Said]) -> None:
        for message in messages:
            self._hasher.update(message.atoms)
            self.size += len(message.atoms)
            self.asked = self.asked or message.role == "user"

    def copy(self) -> Chain:
        made = Chain()
        made._hasher, made.asked, made.size, made.opening = self._hasher.copy(), self.asked, self.size, self.opening
        made.before, made.begun = self.before, self.begun
        return made

    def pause(self, spoken: bool, place: int, states: list[tuple[int, int]]) -> None:
        """Somebody else speaks now: a state, once the assistant has answered a user; `spoken` where it just did."""
        if self.asked and self.opening is None:
            if spoken:
                self.opening = self._hasher.hexdigest()
            else:
                self.before, self.begun = self._hasher.copy(), place
        if self.opening is not None and (not states or states[-1][1] != self.now()):
            states.append((place, self.now()))

    def now(self) -> int:
        return state_number(self._hasher)

    def opened(self, messages: Sequence[Said]) -> str:
        """The opening with these messages as its answer, where it has none yet."""
        if self.opening is not None:
            return self.opening
        return self.after(messages).hexdigest()

    def after(self, messages: Sequence[Said], start: blake2b | None = None) -> blake2b:
        """The hash after these messages, said at the end or where the conversation had come to another state."""
        hasher = (start or self._hasher).copy()
        for message in messages:
            hasher.update(message.atoms)
        return hasher


class History(NamedTuple):
    """A history as far as it was read: the next call of the same conversation begins with it."""

    items: list[Any]
    said: list[list[Said]]
    path: list[Said]
    states: list[tuple[int, int]]
    chain: Chain
    speaking: bool


class Memory:
    """What the calls of one file have in common: messages already read, and which conversation has which of them."""

    def __init__(self) -> None:
        self._read: dict[bytes, list[Said]] = {}
        self._sent: dict[str, set[int]] = {}
        self._kits: list[tuple[Any, Any, int]] = []
        self._histories: dict[Any, list[History]] = {}
        self._held = 0

    def history(self, codec: Codec, items: list[Any]) -> History:
        """The messages of a request, with the states that were passed; only what no earlier call sent is read anew."""
        begin = (codec.name, _opening(items))
        known, same = self._begun(begin, items)
        if known is not None and same == len(known.items):
            path, states, chain, speaking = known.path[:], known.states[:], known.chain.copy(), known.speaking
            read, new = known.said[:], items[same:]
        else:
            path, states, chain, speaking, read, new = [], [], Chain(), False, [], items
        for place, item in enumerate(new):
            messages = known.said[place] if known is not None and new is items and place < same else None
            if messages is None and new is items:
                messages = self._messages(codec, item)
            elif messages is None:
                messages = [said(message) for message in codec.message(item)]
            speaks = any(message.role == "assistant" for message in messages)
            if messages and speaks != speaking:
                chain.pause(speaking, len(path), states)
                speaking = speaks
            chain.add(messages)
            path += messages
            read.append(messages)
        self._hold(begin, History(items, read, path[:], states[:], chain.copy(), speaking), known)
        chain.pause(speaking, len(path), states)
        return History(items, read, path, states, chain, speaking)

    def _begun(self, begin: Any, items: list[Any]) -> tuple[History | None, int]:
        """The history that most of the items are in, and how many."""
        best: tuple[History | None, int] = (None, 0)
        for known in reversed(self._histories.get(begin, ())):
            same = 0
            for one, other in zip(known.items, items, strict=False):
                if one != other:
                    break
                same += 1
            if same > best[1]:
                best = known, same
            if same == len(known.items):
                break
        return best

    def _hold(self, begin: Any, made: History, known: History | None) -> None:
        if made.chain.size > _HELD_EACH:
            return
        if self._held > _HELD:
            self._histories.clear()
            self._held = 0
        held = self._histories.setdefault(begin, [])
        if known is not None and known in held and len(known.items) <= len(made.items):
            held.remove(known)
            self._held -= known.chain.size
        elif len(held) >= _SIDES:
            self._held -= held.pop(0).chain.size
        held.append(made)
        self._held += made.chain.size

    def _messages(self, codec: Codec, item: Any) -> list[Said]:
        """An item of a history, read by its codec, once."""
        key = _as_logged(item)
        if len(key) > _SHORT:
            key = blake2b(key, digest_size=16).digest()
        key = codec.name.encode() + key
        found = self._read.get(key)
        if found is None:
            if len(self._read) >= _MEMO:
                self._read.clear()
            found = self._read[key] = [said(message) for message in codec.message(item)]
        return found

    def kit(self, key: str, tools: Any) -> tuple[int | None, dict[str, Any]]:
        """Tool definitions by their digest, and themselves where this conversation has not been given them yet."""
        if not tools:
            return None, {}
        kit = next((kit for kit in self._kits if kit[0] == tools), None)
        if kit is None:
            clean = cleaned(tools)
            kit = tools, clean, state_number(blake2b(_encode(clean), digest_size=8))
            self._kits = [*self._kits[-_SIDES:], kit]
        _, clean, name = kit
        sent = self._sent.setdefault(key, set())
        if name in sent:
            return name, {}
        sent.add(name)
        return name, {str(name): clean}

    def new(self, key: str, messages: Sequence[Said]) -> dict[str, Body]:
        """Those that this conversation has not been given yet."""
        sent = self._sent.setdefault(key, set())
        found = {}
        for message in messages:
            if message.name not in sent:
                sent.add(message.name)
                found[str(message.name)] = message.form
        return found


def _opening(items: list[Any]) -> Any:
    """What tells most conversations apart at once: the first words that are no system text."""
    for item in items:
        if type(item) is dict and text(item.get("role")) not in SYSTEM_ROLES:
            content = item.get("content")
            return content if type(content) is str else _as_logged(item)
    return None
