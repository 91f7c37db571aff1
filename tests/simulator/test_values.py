"""Whatever a JSON Schema allows can be drawn, and what is drawn is allowed."""

import json
from random import Random

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.errors import UsageError
from etl.simulator.domain import Domain
from etl.simulator.meaning import meaning
from etl.simulator.people import person
from etl.simulator.tools import as_tools, tool
from etl.simulator.values import Values, wrong
from tests.examples import examples
from tests.simulator.schemas import SCHEMAS


@examples(80)
@given(SCHEMAS, st.integers(0, 2**40))
def test_what_is_drawn_validates(schema, seed):
    rng = Random(seed)
    value = Values(schema).draw(rng, person(rng))
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(value)


@examples(60)
@given(SCHEMAS, st.integers(0, 2**40))
def test_what_is_wrong_does_not_validate(schema, seed):
    rng = Random(seed)
    right = Values(schema).draw(rng, person(rng))
    checked = jsonschema_rs.validator_for(schema, validate_formats=True)
    bad = wrong(schema, right, checked, rng)
    assert bad is None or not checked.is_valid(bad)


def test_references_and_combinations_are_followed():
    schema = {
        "type": "object",
        "properties": {
            "to": {"$ref": "#/$defs/place"},
            "pay": {"oneOf": [{"$ref": "#/$defs/card"}, {"$ref": "#/$defs/cash"}]},
            "all": {"allOf": [{"$ref": "#/$defs/place"}, {"properties": {"floor": {"type": "integer"}},
                                                          "required": ["floor"]}]},
        },
        "required": ["to", "pay", "all"],
        "$defs": {
            "place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "card": {"type": "object", "properties": {"kind": {"const": "card"}, "last4": {"type": "string",
                                                                                           "pattern": "^\\d{4}$"}},
                     "required": ["kind", "last4"], "additionalProperties": False},
            "cash": {"type": "object", "properties": {"kind": {"const": "cash"}}, "required": ["kind"],
                     "additionalProperties": False},
        },
    }  # fmt: skip
    rng = Random(4)
    drawn = [Values(schema).draw(rng, person(rng)) for _ in range(20)]
    assert {value["pay"]["kind"] for value in drawn} == {"card", "cash"}
    assert all(isinstance(value["all"]["floor"], int) and value["all"]["city"] for value in drawn)


def test_a_schema_that_allows_nothing_is_one_line():
    impossible = {"type": "object", "properties": {"n": {"type": "string", "not": {}}}, "required": ["n"]}
    with pytest.raises(UsageError, match="tool 'f': no arguments could be made that its `parameters` allow"):
        Domain(as_tools([{"name": "f", "parameters": impossible}]), "")


@pytest.mark.parametrize(
    ("given_tools", "said"),
    [
        ([], "there are no tools"),
        ([{"description": "x"}], "tool 1 of the list has no name"),
        ([{"name": "f", "parameters": {"type": "foo"}}], "tool 'f': `parameters` is no valid JSON Schema"),
        ([{"name": "f", "parameters": {"type": "array"}}], "must describe an object"),
        ([{"name": "f"}, {"name": "f"}], "two tools are called 'f'"),
        (7, "tools must be a list"),
    ],
)
def test_bad_tools_are_one_line(given_tools, said):
    with pytest.raises(UsageError, match=said):
        as_tools(given_tools)


def test_definitions_in_every_form_are_one_tool():
    schema = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}

    @tool
    def get_order(order_id: str) -> dict[str, object]:
        """Look up an order."""
        raise AssertionError("never run")

    forms = [
        {
            "type": "function",
            "function": {"name": "get_order", "description": "Look up an order.", "parameters": schema},
        },
        {"name": "get_order", "description": "Look up an order.", "input_schema": schema},
        {"name": "get_order", "description": "Look up an order.", "inputSchema": schema},
        {"name": "get_order", "description": "Look up an order.", "parameters": schema},
        get_order,
    ]
    assert len({json.dumps(as_tools([form])[0].definition(), sort_keys=True) for form in forms}) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "entity", "id_name"),
    [
        ("get_order", ["order_id"], "read", "order", "order_id"),
        ("mcp__shop__cancelOrder", ["orderId", "reason"], "act", "order", "orderId"),
        ("search_flights", ["origin", "date"], "search", "flight", None),
        ("delete_calendar_event", ["event_id"], "delete", "event", "event_id"),
        ("create_ticket", ["subject"], "create", "ticket", None),
        ("Read", ["file_path"], "read", "file", "file_path"),
        ("calculate", ["expression"], "compute", "", None),
        ("get_weather", ["city"], "read", "weather", None),
    ],
)
def test_what_a_tool_does_is_told_from_its_name(name, arguments, kind, entity, id_name):
    properties = {argument: {"type": "string"} for argument in arguments}
    (made,) = as_tools(
        [{"name": name, "parameters": {"type": "object", "properties": properties, "required": arguments}}]
    )
    told = meaning(made)
    assert (told.kind, told.entity, told.id_name) == (kind, entity, id_name)
