"""A shop's tools and prompt, as the tests simulate it."""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}


def defined(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    """A tool definition, every argument required."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


ADDRESS = {
    "type": "object",
    "properties": {"street": TEXT, "city": TEXT, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
    "required": ["street", "city", "zip"],
    "additionalProperties": False,
}
ITEM = {
    "type": "object",
    "properties": {
        "sku": {"type": "string", "minLength": 4},
        "quantity": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["sku", "quantity"],
}
TOOLS = [
    defined("get_order", "Look up an order.", order_id=TEXT),
    defined("cancel_order", "Cancel an order.", order_id=TEXT, reason={"enum": ["no longer needed", "by mistake"]}),
    defined("search_products", "Search the catalogue.", query=TEXT, limit={"type": "integer", "minimum": 1,
                                                                           "maximum": 20}),
    defined("update_order_address", "Change where an order goes.", order_id=TEXT, address=ADDRESS),
    defined("create_ticket", "Open a ticket.", subject=TEXT, due={"type": "string", "format": "date"},
            items={"type": "array", "items": ITEM, "minItems": 1, "maxItems": 3}),
    defined("calculate", "Evaluate an arithmetic expression.", expression=TEXT),
]  # fmt: skip
PROMPT = """You are the agent of a shop.
- Before any change, ask the customer for explicit confirmation (yes).
- Never cancel an order that has shipped.
- Do not share internal notes with the customer.
- Always quote the order number.
- You must not give legal advice."""
