"""JSON Schemas of tool arguments, drawn."""

from hypothesis import strategies as st

NAMES = st.sampled_from(["order_id", "amount", "date", "email", "address", "items", "kind", "note", "count", "x"])
STRINGS = st.one_of(
    st.just({"type": "string"}),
    st.sampled_from(["date", "date-time", "email", "uri", "uuid", "ipv4", "time", "hostname"]).map(
        lambda word: {"type": "string", "format": word}
    ),
    st.tuples(st.integers(0, 20), st.integers(0, 20)).map(
        lambda pair: {"type": "string", "minLength": min(pair), "maxLength": max(pair) + 1}
    ),
    st.sampled_from(["^[A-Z]{3}-[0-9]{4}$", "^#W\\d{7}$", "^(low|high)$", "^[a-f0-9]{8}$"]).map(
        lambda pattern: {"type": "string", "pattern": pattern}
    ),
)
NUMBERS = st.tuples(
    st.sampled_from(["integer", "number"]), st.integers(-500, 500), st.integers(1, 400), st.sampled_from([None, 1, 5])
).map(
    lambda four: (
        {"type": four[0], "minimum": four[1], "maximum": four[1] + four[2] + 5}
        | ({"multipleOf": four[3]} if four[3] else {})
    )
)
LEAVES = st.one_of(
    STRINGS, NUMBERS, st.just({"type": "boolean"}), st.just({"enum": ["red", "green", 3, None]}),
    st.just({"const": "v1"}),
    st.just({"type": ["string", "null"]}), st.just({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 7}]}),
)  # fmt: skip


def _objects(inner):
    def made(members, needed, closed):
        properties = dict(members)
        schema = {"type": "object", "properties": properties, "required": sorted(properties)[:needed]}
        return schema | ({"additionalProperties": False} if closed else {})

    return st.builds(made, st.lists(st.tuples(NAMES, inner), max_size=4), st.integers(0, 4), st.booleans())


def _arrays(inner):
    return st.builds(
        lambda items, least, more: {"type": "array", "items": items, "minItems": least, "maxItems": least + more},
        inner, st.integers(0, 3), st.integers(0, 3),
    )  # fmt: skip


SCHEMAS = _objects(st.recursive(LEAVES, lambda inner: st.one_of(_objects(inner), _arrays(inner)), max_leaves=6))
