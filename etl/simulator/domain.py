"""What an agent works in, made ready once: its tools and what they mean, its rules, the shape of its records."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from random import Random  # noqa: TID251  (seeded)
from typing import Any, NamedTuple

from etl.errors import UsageError
from etl.identity import digest
from etl.simulator.meaning import Meaning, meaning, words_of
from etl.simulator.naming import masked, named_text
from etl.simulator.people import Person, person
from etl.simulator.rules import Rule, rules_of
from etl.simulator.tools import Tool
from etl.simulator.values import UnmakeableError, Values, number, text

_STATUSES = {
    "order": ("pending", "processing", "shipped", "delivered"),
    "reservation": ("pending", "confirmed", "checked in"), "booking": ("pending", "confirmed", "checked in"),
    "ticket": ("open", "in progress", "waiting for customer"), "issue": ("open", "in progress", "in review"),
    "invoice": ("open", "sent", "overdue"), "payment": ("pending", "authorised", "settled"),
    "account": ("active", "limited", "dormant"), "user": ("active", "invited", "dormant"),
    "shipment": ("packed", "in transit", "out for delivery"), "task": ("open", "in progress", "in review"),
    "subscription": ("active", "trial", "past due"), "appointment": ("requested", "scheduled", "checked in"),
}  # fmt: skip
_STATUS_OF_ANY = ("active", "pending", "open")
_FIELDS = {
    "order": ("customer_name", "total_amount", "delivery_date", "item_count"),
    "reservation": ("guest_name", "start_date", "party_size", "total_price"),
    "booking": ("guest_name", "start_date", "party_size", "total_price"),
    "ticket": ("title", "priority_level", "opened_at"), "issue": ("title", "assignee", "opened_at"),
    "invoice": ("total_amount", "due_date", "customer_name"), "payment": ("amount", "created_at", "customer_name"),
    "user": ("name", "email", "city"), "customer": ("name", "email", "city"), "account": ("owner", "balance",
                                                                                          "opened_at"),
    "shipment": ("destination_city", "weight", "expected_date"), "product": ("title", "price", "color"),
}  # fmt: skip
_FIELDS_OF_ANY = ("owner", "created_at", "updated_at")
STATUS_NAMES = ("status", "state", "stage", "phase")


class UnusableToolError(UsageError):
    """A tool that nothing can be called with."""

    def __init__(self, tool: str, why: str) -> None:
        super().__init__(f"tool {tool!r}: {why}; simplify the schema")
        self.tool, self.why = tool, why


class Shape(NamedTuple):
    """Records of one entity."""

    entity: str
    id_name: str
    """The argument (and field) that names a record."""
    fields: dict[str, Any]
    """Field → JSON Schema (`{}`: anything that suits the name)."""
    status: str | None
    """The field that says how far it is; None where the declared shape has none."""
    statuses: tuple[str, ...]
    """What it can be before anybody acts."""
    id_schema: Any
    id_example: str | None
    """A real id whose make new ones have."""

    def new_id(self, rng: Random, who: Person) -> Any:
        """An id."""
        if self.id_schema.get("type") == "integer":
            return number(self.id_schema, self.id_name, rng, whole=True)
        if self.id_example is not None and "pattern" not in self.id_schema:
            return masked(self.id_example, rng, who)
        if {"pattern", "format", "examples", "description"} & set(self.id_schema):
            return text(self.id_schema, self.id_name, rng, who)
        if self.entity in ("file", "page") or "_" in self.id_name or self.id_name != words_of(self.id_name)[0]:
            return text(self.id_schema, self.id_name, rng, who)
        prefix = "".join(word[0] for word in self.entity.split()) if " " in self.entity else self.entity[:3]
        return text(self.id_schema, f"{prefix}_{self.id_name}", rng, who)


class Domain:
    """One agent's world."""

    def __init__(self, tools: Sequence[Tool], system_prompt: str, id_examples: Mapping[str, str] | None = None) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.meanings = {tool.name: meaning(tool) for tool in tools}
        self.system_prompt = system_prompt
        self.rules: dict[str, Rule] = {rule.name: rule for rule in rules_of(system_prompt, self.meanings)}
        self._id_examples = dict(id_examples or {})
        self.shapes = {known.entity: self._shape(name) for name, known in self.meanings.items() if known.id_name}
        self.arguments = {name: Values(tool.parameters, self._hints()) for name, tool in self.tools.items()}
        self.results = {name: Values(tool.returns) for name, tool in self.tools.items() if tool.returns}
        self.definitions = [tool.definition() for tool in tools]
        self._check()

    @functools.cached_property
    def name(self) -> str:
        """A digest of tools and system prompt."""
        said = [(tool.name, tool.description, tool.parameters, tool.returns) for tool in self.tools.values()]
        whole = [self.system_prompt, said, self._id_examples]
        return digest(json.dumps(whole, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass"))[:12]

    def reader_of(self, entity: str) -> str | None:
        """The tool that reads a record of an entity."""
        return next(
            (n for n, m in self.meanings.items() if m.kind == "read" and m.entity == entity and m.id_name), None
        )

    def finder_of(self, entity: str) -> str | None:
        """The tool that looks for records of an entity."""
        wanted = entity.split()[-1]
        return next(
            (n for n, m in self.meanings.items() if m.kind == "search" and m.entity.split()[-1:] == [wanted]), None
        )

    def writers_of(self, entity: str) -> list[Meaning]:
        """What can be done to records of an entity."""
        return [known for known in self.meanings.values() if known.entity == entity and known.kind == "act"]

    def asks_first(self, name: str) -> bool:
        """Whether people are asked before this tool is called: always where it destroys, else as the rules say."""
        known = self.meanings[name]
        return known.destructive or (known.writes and any(rule.kind == "confirm" for rule in self.rules.values()))

    def _hints(self) -> dict[str, Any]:
        """Ids of other records, wherever an argument asks for one."""
        return {shape.id_name: shape.new_id for shape in self.shapes.values()}

    def _shape(self, name: str) -> Shape:
        known = self.meanings[name]
        assert known.id_name is not None
        siblings = [n for n, m in self.meanings.items() if m.entity == known.entity]
        declared: dict[str, Any] = {}
        for sibling in siblings:
            declared |= _result_fields(self.tools[sibling], self.meanings[sibling])
        id_schema = self.tools[name].parameters["properties"][known.id_name]
        asked: dict[str, Any] = {}
        for sibling in siblings:
            if self.meanings[sibling].kind == "update":
                asked |= self.tools[sibling].parameters.get("properties") or {}
        last = known.entity.split()[-1]
        if not declared and last not in ("file", "page"):
            declared = {field: {} for field in _FIELDS.get(last, _FIELDS_OF_ANY)} | {"status": {}} | asked
        elif not declared:
            declared = {"content": {}}
        status = next((field for field in declared if words_of(field)[-1] in STATUS_NAMES), None)
        enum = declared[status].get("enum") if status and isinstance(declared[status], dict) else None
        statuses = tuple(str(value) for value in enum if value) if enum else _STATUSES.get(last, _STATUS_OF_ANY)
        fields = {field: schema for field, schema in declared.items() if field not in (known.id_name, status)}
        return Shape(
            known.entity, known.id_name, fields, status, statuses, id_schema, self._id_examples.get(known.id_name)
        )

    def _check(self) -> None:
        """UnusableToolError where a tool's schema allows no arguments that could be found."""
        rng = Random(0)
        who = person(rng)
        for name, values in self.arguments.items():
            try:
                values.draw(rng, who)
            except UnmakeableError as error:
                why = f"no arguments could be made that its `parameters` allow ({error})"
                raise UnusableToolError(name, why) from error


def _result_fields(tool: Tool, known: Meaning) -> dict[str, Any]:
    """The fields of a record that the declared result of a reading tool tells of."""
    schema: Any = tool.returns
    if schema is None or known.kind not in ("read", "search"):
        return {}
    for _ in range(4):
        if not isinstance(schema, dict):
            return {}
        if "$ref" in schema:
            part: Any = tool.returns
            for step in schema["$ref"].removeprefix("#/").split("/"):
                part = part.get(step, {}) if isinstance(part, dict) else {}
            schema = part
            continue
        properties = schema.get("properties") or {}
        arrays = [item for item in properties.values() if isinstance(item, dict) and item.get("type") == "array"]
        if known.kind == "search" and arrays:
            schema = arrays[0].get("items")
        elif schema.get("type") == "array":
            schema = schema.get("items")
        else:
            return dict(properties)
    return {}


def field_value(shape: Shape, name: str, schema: Any, rng: Random, who: Person, values: Values | None) -> Any:
    """A value for one field of a record."""
    if values is not None:
        return values.one(name, schema, rng, who)
    words = words_of(name)
    if words[-1] in ("amount", "price", "balance", "total", "weight"):
        return number({}, name, rng, whole=False)
    if words[-1] in ("count", "size", "quantity", "level"):
        return number({"minimum": 1, "maximum": 6}, name, rng, whole=True)
    return named_text(name, rng, who)
