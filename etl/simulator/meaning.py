"""What a tool does, told from its name and its schema: kind of action, the thing it acts on, how that is named."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from etl.simulator.tools import Tool

_VERBS = {
    "read": "get fetch read show view lookup look check retrieve describe status track load inspect details info see",
    "search": "search list find query browse grep glob filter ls scan",
    "create": "create add book make new open place submit register schedule reserve start post insert order log file",
    "update": "update edit change modify set rename move assign reschedule extend patch replace adjust write upgrade "
    "enable disable tag label",
    "act": "cancel refund return exchange close approve reject confirm ship complete resolve archive pause resume "
    "renew activate deactivate block unblock lock unlock suspend terminate revoke pay charge release merge reopen "
    "accept decline dispatch expire reset",
    "delete": "delete remove drop destroy purge erase clear",
    "send": "send notify email message transfer forward share invite publish escalate call text remind",
}
_KIND = {verb: kind for kind, verbs in _VERBS.items() for verb in verbs.split()}
_MORE = (
    "recommend suggest propose predict detect classify extract authenticate login logout authorize authorise quote "
    "run execute evaluate calculate compute convert translate validate verify ask think plan summarise "
    "summarize count measure estimate commit echo finish go compare generate analyze analyse draw parse "
    "render test build deploy install download upload sort merge split weigh feed press type click "
    "navigate wait stop solve review rate say tell use apply set"
)
VERBS = frozenset(_KIND) | frozenset(_MORE.split(" "))
"""Words that a tool's name or description may begin with when it says what one does."""
_DESTRUCTIVE = frozenset(
    [
        "cancel",
        "refund",
        "return",
        "exchange",
        "close",
        "reject",
        "terminate",
        "revoke",
        "suspend",
        "block",
        "deactivate",
        "archive",
        "pay",
        "charge",
        "merge",
        "delete",
        "remove",
        "drop",
        "destroy",
        "purge",
        "erase",
        "clear",
        "reset",
    ]
)
SUMS = {"add": "+", "sum": "+", "subtract": "-", "multiply": "*"}
"""Verbs that are arithmetic where all arguments are numbers."""
WRITES = frozenset({"create", "update", "act", "delete", "send"})
_ID = re.compile(r"^(?:(.+?)[_-]?)?(id|Id|ID|number|no|code|ref|reference|uuid|key)$")
_ID_FIRST = re.compile(r"^id[_-](.+)$")
_PLACE = re.compile(r"^(?:(.*)[_-])?(path|file|filename|filepath|url|uri)$", re.IGNORECASE)
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_IRREGULAR = {
    "send": "sent", "pay": "paid", "merge": "merged", "ship": "shipped", "cancel": "cancelled", "set": "set",
    "reset": "reset", "make": "made", "drop": "dropped", "refund": "refunded", "write": "written",
    "submit": "submitted",
    "tag": "tagged", "log": "logged", "get": "got", "find": "found", "put": "put", "begin": "begun",
    "modify": "modified",
    "notify": "notified", "label": "labelled", "transfer": "transferred", "deny": "denied", "resume": "resumed",
}  # fmt: skip


class Meaning(NamedTuple):
    """What one tool does."""

    verb: str
    kind: str
    """read, search, create, update, act, delete, send or compute."""
    entity: str
    """The thing acted on, in words: `order`, `credit card`."""
    id_name: str | None
    """The argument that names the record; None where the tool has none."""
    destructive: bool
    """True where what it does cannot simply be taken back: people are asked first."""
    words: tuple[str, ...]
    """The name in words, verb first."""

    @property
    def writes(self) -> bool:
        """Whether it changes the world."""
        return self.kind in WRITES

    @property
    def done(self) -> str:
        """The state of a record that it was done to: `cancelled`."""
        return participle(self.verb)


@functools.lru_cache(4096)
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in any spelling.

    >>> words_of("mcp__shop__getOrderDetails")
    ('get', 'order', 'details')
    """
    return tuple(word.lower() for word in _WORDS.findall(re.split(r"__|[.:/]", name)[-1])) or (name,)


def participle(verb: str) -> str:
    """The past participle.

    >>> participle("archive"), participle("cancel"), participle("approve")
    ('archived', 'cancelled', 'approved')
    """
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return verb + "d"
    return verb[:-1] + "ied" if verb.endswith("y") and verb[-2:-1] not in "aeiou" else verb + "ed"


def singular(word: str) -> str:
    """The singular of a noun in a tool's name."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def plural(noun: str) -> str:
    """The plural of a noun.

    >>> plural("order"), plural("query"), plural("box")
    ('orders', 'queries', 'boxes')
    """
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    if noun.endswith(("lf", "eaf")):
        return noun[:-1] + "ves"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def meaning(tool: Tool) -> Meaning:
    """What a tool does."""
    words = words_of(tool.name)
    verb = words[0] if words[0] in VERBS else next((word for word in words if word in _KIND), words[0])
    kind = _KIND.get(verb, "compute")
    properties = tool.parameters.get("properties") or {}
    numbers = [
        part for part in properties.values() if isinstance(part, dict) and part.get("type") in ("number", "integer")
    ]
    if verb in SUMS and len(numbers) == len(properties) >= 2:
        kind = "compute"
    named_first = verb == words[0] or kind != "read"
    rest = [word for word in words if word != verb] if named_first else list(words)
    required = [name for name in tool.parameters.get("required") or () if name in properties]
    id_name = None
    if kind in ("read", "update", "act", "delete", "send", "compute"):
        candidates = [name for name in [*required, *properties] if _names_a_record(name, properties[name])]
        about = [name for name in candidates if (set(words_of(name)) - {"id"}) & set(map(singular, rest))]
        id_name = next(iter(about or [name for name in candidates if name in required]), None)
        if kind in ("send", "compute") and id_name not in about:
            id_name = None
    entity = _entity(id_name, rest, kind)
    return Meaning(verb, kind, entity, id_name, verb in _DESTRUCTIVE, (verb, *rest))


def _names_a_record(name: str, schema: Any) -> bool:
    if not isinstance(schema, dict) or not (_ID.match(name) or _ID_FIRST.match(name) or _PLACE.match(name)):
        return False
    return schema.get("type", "string") in ("string", "integer") and "enum" not in schema and "const" not in schema


def _entity(id_name: str | None, rest: Sequence[str], kind: str) -> str:
    if id_name is not None:
        of_path, of_id = _PLACE.match(id_name), _ID.match(id_name)
        if of_path:
            return "page" if of_path[2].lower() in ("url", "uri") else "file"
        of_first = _ID_FIRST.match(id_name)
        if of_first:
            return " ".join(words_of(of_first[1]))
        if of_id and of_id[1]:
            return " ".join(words_of(of_id[1]))
    noise = {"by", "for", "to", "from", "of", "with", "the", "a", "in", "on", "details", "detail", "info", "status"}
    kept: list[str] = []
    for word in rest:
        if word in noise and kept:
            break
        if word not in noise:
            kept.append(word)
    if kind == "search" and (not kept or kept[-1] in ("web", "internet", "google", "online")):
        return "page" if kept else "result"
    return " ".join([*kept[:-1], singular(kept[-1])]) if kept else ("item" if kind != "compute" else "")
