"""The fake world holds together: what is changed stays changed, results have their shape, faults come on schedule."""

import json
from random import Random
from typing import TypedDict

import pytest

from etl.simulator.domain import Domain
from etl.simulator.faults import ALL, Fault
from etl.simulator.people import person
from etl.simulator.records import new_record
from etl.simulator.tools import as_tools, tool
from etl.simulator.world import World
from tests.simulator.shop import PROMPT, TEXT, TOOLS, defined

RNG = Random(5)
WHO = person(RNG)


class Parcel(TypedDict):
    """What a carrier says."""

    parcel_id: str
    status: str
    weight: float
    stops: list[str]


@tool
def get_parcel(parcel_id: str) -> Parcel:
    """Look up a parcel."""
    raise AssertionError("the simulator never runs a tool")


def world(tools, entity, faults=(), **status):
    domain = Domain(as_tools(tools), PROMPT)
    shape = domain.shapes[entity]
    record = {**new_record(domain, shape, Random(3), WHO, "pending"), **status}
    return World(domain, {entity + "s": {str(record[shape.id_name]): record}}, list(faults), WHO, 11, 0), record[
        shape.id_name
    ]


def told(result):
    return json.loads(result.said.content)


def test_cancel_then_get_shows_cancelled_and_again_is_already_done():
    shop, order = world(TOOLS, "order")
    assert told(shop.call("get_order", {"order_id": order}))["status"] == "pending"
    done = shop.call("cancel_order", {"order_id": order, "reason": "by mistake"})
    assert (told(done)["status"], done.said.condition) == ("cancelled", "success")
    assert told(shop.call("get_order", {"order_id": order}))["status"] == "cancelled"
    again = shop.call("cancel_order", {"order_id": order, "reason": "by mistake"})
    assert (again.said.condition, again.said.failed) == ("already_done", True)


def test_update_create_delete_and_search_change_and_see_one_state():
    tools = [*TOOLS, defined("delete_order", order_id=TEXT), defined("list_orders")]
    shop, order = world(tools, "order")
    home = {"street": "Long Lane 1", "city": "York", "zip": "12345"}
    shop.call("update_order_address", {"order_id": order, "address": home})
    assert told(shop.call("get_order", {"order_id": order}))["address"] == home
    assert [row["order_id"] for row in told(shop.call("list_orders", {}))["results"]] == [order]
    assert told(shop.call("delete_order", {"order_id": order}))["deleted"] is True
    assert shop.call("get_order", {"order_id": order}).said.condition == "not_found"
    assert told(shop.call("list_orders", {}))["count"] == 0
    item = [{"sku": "AB-1", "quantity": 2}]
    made = told(shop.call("create_ticket", {"subject": "x", "due": "2026-03-01", "items": item}))
    assert shop.state["tickets"][made["id"]]["items"] == item


def test_results_have_the_declared_shape():
    post, parcel = world([get_parcel], "parcel")
    first, again = (told(post.call("get_parcel", {"parcel_id": parcel})) for _ in range(2))
    assert first == again
    assert set(first) == set(Parcel.__annotations__)
    assert (first["parcel_id"], first["status"]) == (parcel, "pending")
    assert isinstance(first["weight"], float)


@pytest.mark.parametrize(
    "condition", ["timeout", "rate_limited", "permission_denied", "malformed_result", "stale_result", "error"]
)
def test_faults_come_on_schedule_and_change_nothing(condition):
    shop, order = world(TOOLS, "order", [Fault("get_order", condition, (2,), 0.3)])
    met = [shop.call("get_order", {"order_id": order}).said.condition for _ in range(3)]
    assert met == ["success", condition, "success"]
    stuck, order = world(TOOLS, "order", [Fault("cancel_order", condition, ALL, 0.3)])
    before = json.dumps(stuck.state)
    for _ in range(3):
        assert stuck.call("cancel_order", {"order_id": order, "reason": "by mistake"}).said.condition == condition
    assert json.dumps(stuck.state) == before


def test_arguments_that_do_not_validate_are_refused_and_are_no_call():
    shop, order = world(TOOLS, "order", [Fault("cancel_order", "timeout", (1,), 0.0)])
    refused = shop.call("cancel_order", {"order_id": order, "reason": "whim"})
    assert refused.said.condition == "invalid_arguments"
    assert "whim" in refused.said.content
    assert shop.call("cancel_order", {"order_id": order, "reason": "by mistake"}).said.condition == "timeout"
    assert shop.call("no_such_tool", {}).said.failed


def test_sums_are_right():
    shop, _ = world(TOOLS, "order")
    assert told(shop.call("calculate", {"expression": "(12 - 2) * 3"})) == {"result": 30}
    assert told(shop.call("calculate", {"expression": "8 / 4 + 1"})) == {"result": 3}
    number = {"type": "number"}
    sums, _ = world([*TOOLS, defined("add", a=number, b=number)], "order")
    assert told(sums.call("add", {"a": 2, "b": 40})) == {"result": 42}
