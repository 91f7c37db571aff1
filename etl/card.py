"""The dataset card of a lake: a README.md that makes Hugging Face `datasets` read the folder as it is.

The card names the data files (so that nothing of `_delta_log` is taken for one) and the features. In its default
configuration three columns of JSON text are declared `json`: a trainer then gets call arguments and tool definitions as
objects, which chat templates need, while the files keep the exact text. The configuration `text` leaves them as they
are: the JSON reader of `datasets` cannot hold integers beyond 64 bits, and raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

import pyarrow as pa

from etl.schema import SCHEMA_VERSION, arrow_schema

DATA_FILES = "rollouts/source=*/day=*/*.parquet"
"""The one pattern that matches data files and nothing else."""

_OBJECTS = frozenset({"messages.tool_calls.function.arguments", "tools", "rewards"})
"""Columns of JSON text that the default configuration reads as objects."""

_DTYPES: dict[pa.DataType, str] = {
    pa.string(): "string",
    pa.int8(): "int8",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float32(): "float32",
    pa.float64(): "float64",
    pa.bool_(): "bool",
    pa.timestamp("us", tz="UTC"): "timestamp[us, tz=UTC]",
}

_STATE = re.compile(r"^(  description: rollouts of state )\w+$", re.MULTILINE)

_TEXT = f"""
# Rollouts

One row per conversation with an agent (schema `{SCHEMA_VERSION}`): what was asked, every tool call and what came back,
what was finally said. Written by `rollout-etl`.

```python
from datasets import load_dataset  # 4.7 or newer

rows = load_dataset("path/to/this/folder", split="train")  # arguments, tools and rewards as objects
rows = load_dataset("path/to/this/folder", "text", split="train")  # as the JSON text they were logged as
```

The first raises `Value is too big!` where arguments hold an integer beyond 64 bits; the second reads every row.
Versions of `datasets` before 4.7 do not know the type `json` of this card. They read the files alone, JSON as text:
`load_dataset("parquet", data_files="path/to/this/folder/{DATA_FILES}")`.

A turn with `message_info[i].inherited` belongs to another row: leave it out of the loss. `messages[:prompt_len]` is the
prompt. `reward` is null where nobody scored the row.

SQL, with only the live files and every view: `duckdb -init views.sql` in this folder.
"""


def card(state: str = "none") -> str:
    """The text of a lake's README.md: it follows from the schema, but for the name of the state the lake is in.

    `datasets` caches a folder under the text of its card alone: without it, the rows of any lake that was read before
    would be served for this one.
    """
    lines = ["---", "configs:", *_config("default"), *_config("text"), "dataset_info:"]
    lines += _info("default", _OBJECTS) + _info("text", frozenset())
    return restated("\n".join([*lines, "---"]) + "\n" + _TEXT, state)


def restated(text: str, state: str) -> str:
    """A card, which people may have changed, for another state of the lake (a word)."""
    return _STATE.sub(rf"\g<1>{state}", text)


def _config(name: str) -> list[str]:
    return [f"- config_name: {name}", "  data_files:", "  - split: train", f"    path: {DATA_FILES}"]


def _info(name: str, objects: Set[str]) -> list[str]:
    """The features of one configuration."""
    return [
        f"- config_name: {name}",
        "  description: rollouts of state none",
        "  features:",
        *features(arrow_schema("rollouts"), "", "  ", objects),
    ]


def features(fields: pa.Schema | pa.StructType, prefix: str, indent: str, objects: Set[str]) -> Iterator[str]:
    """YAML lines of the fields, in the form that `datasets` writes itself; `objects` are dotted paths of JSON text."""
    for field in fields:
        yield f"{indent}- name: {field.name}"
        yield from _feature(field.type, prefix + field.name, indent + "  ", objects)


def _feature(arrow: pa.DataType, path: str, indent: str, objects: Set[str]) -> Iterator[str]:
    if path in objects:
        yield f"{indent}dtype: json"
    elif pa.types.is_list(arrow) and pa.types.is_struct(arrow.value_type):
        yield f"{indent}list:"
        yield from features(arrow.value_type, f"{path}.", indent, objects)
    elif pa.types.is_list(arrow):
        yield f"{indent}list: {_DTYPES[arrow.value_type]}"
    elif pa.types.is_struct(arrow):
        yield f"{indent}struct:"
        yield from features(arrow, f"{path}.", indent, objects)
    else:
        yield f"{indent}dtype: {_DTYPES[arrow.value_type if pa.types.is_dictionary(arrow) else arrow]}"
