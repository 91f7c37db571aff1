"""The fake world: records that calls read and change, and a service that fails when its schedule says so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random  # noqa: TID251  (seeded)
from typing import Any, NamedTuple

from etl.decode import encode
from etl.identity import digest
from etl.simulator.answers import as_text, computed, lines_of
from etl.simulator.domain import Domain
from etl.simulator.faults import Fault, Said, refused, said
from etl.simulator.meaning import Meaning, plural
from etl.simulator.naming import named_text
from etl.simulator.people import Person
from etl.simulator.records import State, changed, copied, is_done, kept_of
from etl.simulator.values import UnmakeableError, text


class Result(NamedTuple):
    """What a call gave."""

    said: Said
    value: Any
    """The value behind the text; None where the call failed."""


class World:
    """One situation's world while one attempt runs in it."""

    def __init__(
        self, domain: Domain, state: State, faults: Sequence[Fault], who: Person, seed: int, style: int
    ) -> None:  # fmt: skip
        self.domain = domain
        self.state = copied(state)
        self.who = who
        self.calls: dict[str, int] = {}
        self._faults = faults
        self._seed = seed
        self._style = style
        self._made = 0

    def call(self, name: str, arguments: Any) -> Result:
        """Answer a call; the world changes only where the call works."""
        tool = self.domain.tools.get(name)
        if tool is None:
            known = ", ".join(self.domain.tools)
            return Result(refused(f"unknown tool {name}; known tools: {known}", self._style), None)
        if not isinstance(arguments, dict) or not tool.validator.is_valid(arguments):
            problem = next(iter(tool.validator.iter_errors(arguments)), None)
            return Result(refused(_in_words(problem), self._style), None)
        number = self.calls[name] = self.calls.get(name, 0) + 1
        meaning = self.domain.meanings[name]
        fault = next((known for known in self._faults if known.tool == name and known.hits(number)), None)
        met = fault.condition if fault else None
        if met in ("not_found", "already_done") and self._met_anyway(meaning, arguments) == met:
            met = None
        if met is not None:
            rng = Random(self._seed * 1_000_003 + number * 101 + len(name))
            return Result(self._faulty(met, name, meaning, arguments, rng), None)
        value = self._act(name, meaning, arguments)
        if isinstance(value, Said):
            return Result(value, None)
        return Result(Said(_text(value), "success", False), value)

    def _faulty(self, met: str, name: str, meaning: Meaning, arguments: dict[str, Any], rng: Random) -> Said:
        """What a call gives that meets a fault; the world stays as it is."""
        thing = meaning.entity or name
        if meaning.writes or met not in ("stale_result", "malformed_result"):
            return said(met, thing, '{"id": "' + digest(name.encode())[:6] + '", "status"', self._style, rng)
        value = self._act(name, meaning, arguments)
        if isinstance(value, Said):
            return value if met == "stale_result" else said(met, thing, value.content, self._style, rng)
        aged = self._aged(meaning, arguments) if met == "stale_result" else None
        return said(
            met, thing, _text(value if aged is None else self._view(name, meaning, aged, arguments)), self._style, rng
        )

    def _own(self, arguments: Any) -> Random:
        """Random numbers of the arguments: the same question has the same answer, whenever it is asked."""
        return Random(int(digest(json.dumps(arguments, sort_keys=True, default=str).encode())[:12], 16) ^ self._seed)

    def _met_anyway(self, meaning: Meaning, arguments: Mapping[str, Any]) -> str | None:
        """What a call meets because of the state alone."""
        if meaning.id_name is None:
            return None
        record = self.state.get(plural(meaning.entity), {}).get(str(arguments.get(meaning.id_name)))
        if record is None:
            return "not_found"
        return "already_done" if meaning.kind == "act" and is_done(self.domain, meaning, record) else None

    def _act(self, name: str, meaning: Meaning, arguments: dict[str, Any]) -> Any:
        """The value of a call that no fault meets, or what the service says where the state does not allow it."""
        met = self._met_anyway(meaning, arguments)
        if met is not None:
            thing = f"{meaning.entity} {arguments[meaning.id_name or '']}"
            return said(met, thing, "", self._style, self._own(arguments))
        records = self.state.get(plural(meaning.entity), {})
        if meaning.kind == "search":
            return self._found(name, meaning, arguments)
        if meaning.id_name is not None:
            key = str(arguments[meaning.id_name])
            if meaning.kind == "delete":
                records.pop(key)
                return self._view(name, meaning, {meaning.id_name: arguments[meaning.id_name], "deleted": True}, {})
            if meaning.writes:
                records[key] = changed(
                    self.domain, meaning, records[key], arguments, self.domain.tools[name].parameters
                )
            return self._view(name, meaning, records[key], arguments)
        if meaning.writes:
            return self._created(name, meaning, arguments)
        return self._view(name, meaning, None, arguments)

    def _found(self, name: str, meaning: Meaning, arguments: Mapping[str, Any]) -> Any:
        """Every record that the filters do not speak against."""
        wanted = meaning.entity.split()[-1:]
        noun = [plural(word) for word in wanted]
        held = next((records for entity, records in self.state.items() if entity.split()[-1:] == noun), None)
        matching = [
            record for record in (held or {}).values()
            if all(record.get(key, value) == value for key, value in arguments.items() if isinstance(value, str | int))
        ]  # fmt: skip
        says_text = (self.domain.tools[name].returns or {}).get("type") == "string"
        if name in self.domain.results and not says_text:
            return self._view(name, meaning, None, arguments, matching)
        if held is not None:
            return lines_of(matching) if says_text else {"results": matching, "count": len(matching)}
        label, rng = meaning.entity or "result", self._own(arguments)
        rows = [{"title": self._title(label, rng)} for _ in range(1 + int(rng.random() * 3))]
        return lines_of(rows) if says_text else {plural(label.replace(" ", "_")): rows, "count": len(rows)}

    def _title(self, label: str, rng: Random) -> str:
        """The title of something found."""
        noun = label.split()[-1]
        if noun in ("document", "article", "page", "note", "message", "email", "post", "result"):
            return f"{text({}, 'title', rng, self.who)} ({int(rng.random() * 90) + 10})"
        if noun in ("product", "item"):
            return f"{named_text(noun, rng, self.who)} {int(rng.random() * 90) + 10}"
        return f"{label.capitalize()} {int(rng.random() * 900) + 100}"

    def _created(self, name: str, meaning: Meaning, arguments: Mapping[str, Any]) -> Any:
        """A new record (for something sent: of what was sent), with the id that is next."""
        self._made += 1
        own = Random(self._seed * 31 + self._made)
        shape = self.domain.shapes.get(meaning.entity)
        prefix = (meaning.entity or meaning.verb)[:3].upper()
        key = shape.new_id(own, self.who) if shape else f"{prefix}-{int(own.random() * 90_000) + 10_000}"
        kept = kept_of(arguments, self.domain.tools[name].parameters)
        done = "sent" if meaning.kind == "send" else "created"
        id_name = shape.id_name if shape else "id"
        record = {id_name: key, **kept, (shape.status if shape and shape.status else "status"): done}
        self.state.setdefault(plural(meaning.entity or meaning.verb), {})[str(key)] = record
        return self._view(name, meaning, record, arguments)

    def _aged(self, meaning: Meaning, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The record as it was before: another status than now, where it has one."""
        record = self.state.get(plural(meaning.entity), {}).get(str(arguments.get(meaning.id_name or "")))
        shape = self.domain.shapes.get(meaning.entity)
        if record is None or shape is None or shape.status is None:
            return record
        other = next((word for word in shape.statuses if word != record[shape.status]), record[shape.status])
        return {**record, shape.status: other}

    def _view(
        self, name: str, meaning: Meaning, record: Mapping[str, Any] | None, arguments: Mapping[str, Any],
        matching: Sequence[Mapping[str, Any]] = (),
    ) -> Any:  # fmt: skip
        """What the service shows: the declared shape filled with the record, else the record itself."""
        values = self.domain.results.get(name)
        says_text = (self.domain.tools[name].returns or {}).get("type") == "string"
        if meaning.entity == "file" and meaning.writes and record is not None and (values is None or says_text):
            lines = str(record.get("content", "")).count("\n") + 1
            return f"{arguments.get(meaning.id_name or '', 'file')}: {meaning.done}, {lines} lines now"
        if says_text:
            shown = computed(meaning, arguments, self._own(arguments), self.who) if record is None else record
            return as_text(shown)
        if values is not None:
            try:
                drawn = values.draw(self._own(arguments), self.who, full=True)
            except UnmakeableError:
                drawn = {}
            return values.fitted(drawn, {**arguments, **(record or {})}, matching)
        if record is not None:
            return dict(record)
        return computed(meaning, arguments, self._own(arguments), self.who)


def _text(value: Any) -> str:
    """A value as a service sends it."""
    return value if isinstance(value, str) else encode(value)


def _in_words(problem: Any) -> str:
    """One line about arguments that do not validate."""
    if problem is None:
        return "arguments must be an object"
    place = ".".join(str(step) for step in problem.instance_path)
    return f"{place or 'arguments'}: {problem.message}"
