"""The agent's tools: typed Python functions, or definitions in any form that is met in the wild."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import typing_extensions

from etl.errors import UsageError
from etl.tools import definitions

_OUTPUTS = ("returns", "output_schema", "outputSchema", "response", "output")
"""Keys under which definitions declare the shape of what comes back."""


@dataclasses.dataclass(frozen=True)
class Tool:
    """A tool that the agent may call. Calling the object calls the function it was made from, where there is one."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = dataclasses.field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments."""
    returns: dict[str, Any] | None = None
    """JSON Schema of the result, where one is declared or was learnt from real results."""
    function: Callable[..., Any] | None = dataclasses.field(default=None, compare=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.function is None:
            raise TypeError(f"the tool {self.name} is a definition without a function")
        return self.function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """To other processes goes what the tool is, without its function."""
        return Tool, (self.name, self.description, self.parameters, self.returns)

    def definition(self) -> dict[str, Any]:
        """OpenAI function form."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    @functools.cached_property
    def validator(self) -> jsonschema_rs.Validator:
        """Checks arguments, formats included."""
        return jsonschema_rs.validator_for(self.parameters, validate_formats=True)


def tool(function: Callable[..., Any]) -> Tool:
    """Decorator: a typed function as a tool. Its arguments become JSON Schema, its docstring what the agent reads.

    The simulator never runs the function: the fake world answers, in the shape of the return annotation.

    >>> @tool
    ... def get_order(order_id: str) -> dict:
    ...     "Look up an order."
    >>> get_order.parameters["required"]
    ['order_id']
    """
    from pydantic import create_model

    hints = typing.get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or name == "self":
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (hints.get(name, Any), default)
    parameters = _untitled(create_model(function.__name__, **fields).model_json_schema())
    parameters.pop("description", None)
    parameters.setdefault("properties", {})
    description = inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0]
    return Tool(function.__name__, description, parameters, _returns(hints.get("return")), function)


def as_tools(given: Any) -> list[Tool]:
    """Tools of every kind as `Tool`: objects, plain functions, definitions (OpenAI, Anthropic, MCP, flat), a file.

    UsageError in one line where there are none, where two have one name, or where a schema is no JSON Schema.
    """
    if isinstance(given, str | Path):
        given = _read(Path(given))
    if isinstance(given, Mapping):
        given = given.get("tools", [given])
    if not isinstance(given, Iterable):
        raise UsageError(f"tools must be a list of tools, not {type(given).__name__}")
    tools = [_one(item, number) for number, item in enumerate(given)]
    if not tools:
        raise UsageError("there are no tools; give at least one, with --tools FILE or tools=[…]")
    seen: set[str] = set()
    for known in tools:
        if known.name in seen:
            raise UsageError(f"two tools are called {known.name!r}; each needs a name of its own")
        seen.add(known.name)
        check_schema(known)
    return tools


def check_schema(known: Tool) -> None:
    """UsageError where the arguments or the result of a tool are not described by JSON Schema."""
    for what, schema in (("parameters", known.parameters), ("returns", known.returns)):
        if schema is None:
            continue
        if not isinstance(schema, dict):
            raise UsageError(f"tool {known.name!r}: `{what}` is no JSON Schema: an object is needed, not {schema!r}")
        try:
            jsonschema_rs.validator_for(schema, validate_formats=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            why = str(error).splitlines()[0]
            raise UsageError(f"tool {known.name!r}: `{what}` is no valid JSON Schema: {why}") from error
    kind = known.parameters.get("type", "object")
    if kind != "object":
        raise UsageError(f"tool {known.name!r}: `parameters` must describe an object, not {kind!r}")


def _one(item: Any, number: int) -> Tool:
    if isinstance(item, Tool):
        return item
    if callable(item):
        return tool(item)
    text = definitions([item]) if isinstance(item, dict | str) else None
    function = json.loads(text)[0] if text else None
    function = function.get("function", function) if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        raise UsageError(f"tool {number + 1} of the list has no name; see the OpenAI form of a tool definition")
    returns = next((function[key] for key in _OUTPUTS if isinstance(function.get(key), dict)), None)
    parameters = function.get("parameters")
    return Tool(
        function["name"],
        str(function.get("description") or ""),
        {"type": "object", "properties": {}} if parameters in (None, {}) else parameters,
        returns,
    )


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: the tools cannot be read: {error.strerror}") from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path}: not JSON ({error}); a JSON array of tool definitions is needed") from error


def _returns(annotation: Any) -> dict[str, Any] | None:
    """The schema of a return annotation that says more than `dict`."""
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticInvalidForJsonSchema

    if annotation in (None, type(None), Any, dict, list, object):
        return None
    try:
        schema = _untitled(TypeAdapter(_for_pydantic(annotation)).json_schema())
    except (PydanticUserError, PydanticInvalidForJsonSchema):
        return None
    says_nothing = schema.get("type") == "object" and not schema.get("properties")
    return None if says_nothing or not schema else schema


def _for_pydantic(annotation: Any) -> Any:
    """The annotation; a TypedDict as one that pydantic reads in Python 3.11 too."""
    if not typing.is_typeddict(annotation):
        return annotation
    hints = typing.get_type_hints(annotation)
    needed = annotation.__required_keys__
    members = {
        name: _for_pydantic(hint) if name in needed else typing_extensions.NotRequired[_for_pydantic(hint)]
        for name, hint in hints.items()
    }
    return typing_extensions.TypedDict(annotation.__name__, members)  # type: ignore[operator]


def _untitled(schema: Any) -> Any:
    """The schema without the titles that pydantic makes of field names."""
    if isinstance(schema, dict):
        return {
            key: ({name: _untitled(value) for name, value in item.items()} if key == "properties" else _untitled(item))
            for key, item in schema.items()
            if not (key == "title" and isinstance(item, str))
        }
    return [_untitled(item) for item in schema] if isinstance(schema, list) else schema
