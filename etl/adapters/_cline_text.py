"""The texts of Cline and Roo Code, taken apart: calls written as XML, and what stands in a user's place.

Older versions have no calls beside the text: the model writes `<read_file><path>a.py</path></read_file>`, and the
program answers in the user's name, `[read_file for 'a.py'] Result:` and the output. What a person typed stands between
tags, beside what the program says of the environment.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

TOOLS = frozenset(
    {
        "execute_command", "read_file", "write_to_file", "replace_in_file", "apply_diff", "insert_content",
        "search_and_replace", "search_files", "list_files", "list_code_definition_names", "codebase_search",
        "browser_action", "use_mcp_tool", "access_mcp_resource", "ask_followup_question", "attempt_completion",
        "new_task", "switch_mode", "fetch_instructions", "plan_mode_respond", "plan_mode_response", "act_mode_respond",
        "load_mcp_documentation", "condense", "summarize_task", "report_bug", "new_rule", "update_todo_list",
        "run_slash_command", "generate_image", "web_fetch", "web_search", "use_skill", "use_subagents", "apply_patch",
        "edit_file", "search_replace",
    }
)  # fmt: skip
"""Tools of both programs, by the names that they had over the years."""

_PERSON = re.compile(r"\s*<(task|user_message|feedback|answer|new_message)>\n?(.*?)\n?</\1>\s*\Z", re.DOTALL)
_PERSON_FIRST = re.compile(r"\s*<(task|user_message|feedback|new_message)>\n?(.*?)\n?</\1>\n", re.DOTALL)
_PROGRAM = (
    "<environment_details>", "<explicit_instructions", "<file_content", "<folder_content", "<url_content",
    "<workspace_diagnostics>", "<git_working_state>", "<terminal_output>", "[ERROR]", "[TASK RESUMPTION]",
    "# task_progress", "# TODO LIST", "<system-reminder>", "[NOTE] The previous conversation history",
)  # fmt: skip
"""How a text begins that is the program's as a whole."""
_RESULT = re.compile(r"\[(\w+)(?: for [^\n]{0,2000}?)?\] Result:[ \t]*\n?")
_THINKING = re.compile(r"\s*<thinking>\n?(.*?)\n?</thinking>\s*", re.DOTALL)
_OPENING = re.compile(r"<([A-Za-z_][\w-]{0,63})>")
_DETAILS = re.compile(r"\n*<environment_details>.*</environment_details>\s*\Z", re.DOTALL)
_FAILED = re.compile(r"\s*(?:The tool execution failed|<?error>?[:>]|Error[: ]|\{\"status\":\"error\")", re.IGNORECASE)
_DENIED = re.compile(r"\s*(?:The user denied this operation|\{\"status\":\"denied\")")
_EXIT = re.compile(r"^(?:Exit code|Command failed with exit code):? (\d+)", re.MULTILINE)


class Piece(NamedTuple):
    """A part of what stands in a user's place: a result (of `tool`), a person's words, or the program's."""

    text: str
    tool: str | None = None
    synthetic: bool = False


class Written(NamedTuple):
    """A model's text without the calls in it, and these: (tool, parameters)."""

    text: str
    reasoning: str | None
    calls: list[tuple[str, dict[str, Any]]]


def said(text: str) -> list[Piece]:
    """The parts of one text block in a user's place.

    >>> said("<task>\\nMend the fence.\\n</task>")
    [Piece(text='Mend the fence.', tool=None, synthetic=False)]
    >>> said("[read_file for 'a.py'] Result:\\n\\nprint(1)")
    [Piece(text='print(1)', tool='read_file', synthetic=False)]
    """
    header = _RESULT.match(text)
    if header is not None:
        details = _DETAILS.search(text, header.end())
        end = len(text) if details is None else details.start()
        beside = [] if details is None else [Piece(details.group().lstrip("\n"), None, True)]
        return [Piece(text[header.end() : end].strip("\n"), header.group(1)), *beside]
    person = _PERSON.match(text)
    if person is not None:
        return [Piece(person.group(2))]
    if text.lstrip().startswith(_PROGRAM):
        return [Piece(text, None, True)]
    details = _DETAILS.search(text)
    if details is not None and details.start() > 0:
        return [*said(text[: details.start()]), Piece(details.group().lstrip("\n"), None, True)]
    first = _PERSON_FIRST.match(text)
    if first is not None:
        rest = text[first.end() :].strip("\n")
        return [Piece(first.group(2)), *(said(rest) if rest else ())]
    return [Piece(text)]


def is_harness(text: str) -> bool:
    """Whether a text can only stand in a user's place of these two programs."""
    found = text.lstrip()
    return bool(found.startswith(("<task>", "<user_message>", "<environment_details>")) or _RESULT.match(found))


def written(text: str, answered: frozenset[str]) -> Written:
    """The calls in a model's text: known tools, and those that the next results answer.

    >>> written("First.\\n\\n<list_files>\\n<path>src</path>\\n</list_files>", frozenset())
    Written(text='First.', reasoning=None, calls=[('list_files', {'path': 'src'})])
    """
    reasoning: list[str] = []
    calls: list[tuple[str, dict[str, Any]]] = []

    def thought(match: re.Match[str]) -> str:
        reasoning.append(match.group(1))
        return "\n"

    text = _THINKING.sub(thought, text, count=20)
    kept: list[str] = []
    place = 0
    while True:
        opening = next(
            (m for m in _OPENING.finditer(text, place) if m.group(1) in TOOLS or m.group(1) in answered), None
        )
        if opening is None:
            break
        name = opening.group(1)
        end = text.find(f"</{name}>", opening.end())
        if end < 0:
            break
        kept.append(text[place : opening.start()])
        calls.append((name, _parameters(text[opening.end() : end])))
        place = end + len(name) + 3
    kept.append(text[place:])
    left = "\n\n".join(part for piece in kept if (part := piece.strip()))
    return Written(left, "\n".join(reasoning) or None, calls)


def _parameters(inner: str) -> dict[str, Any]:
    """Parameters by name; a value may hold anything, also its own closing tag (then the last one ends it)."""
    found: dict[str, Any] = {}
    place = 0
    while (opening := _OPENING.search(inner, place)) is not None:
        name = opening.group(1)
        closing = f"</{name}>"
        end = inner.rfind(closing, opening.end()) if name in ("content", "diff") else inner.find(closing, opening.end())
        if end < 0:
            place = opening.end()
            continue
        found[name] = inner[opening.end() : end].removeprefix("\n").removesuffix("\n")
        place = end + len(closing)
    if not found and inner.strip():
        return {"input": inner.strip()}
    return found


class Outcome(NamedTuple):
    """How a call went, as its result words it."""

    failed: bool | None = None
    condition: str | None = None
    error: str | None = None


def outcome(text: str) -> Outcome:
    """What the program's own words say of a result.

    >>> outcome("The user denied this operation.").condition, outcome("Exit code: 2\\nOutput:").error
    ('permission_denied', 'exit 2')
    """
    if _DENIED.match(text):
        return Outcome(True, "permission_denied")
    if _FAILED.match(text):
        return Outcome(True)
    code = _EXIT.search(text[:400])
    if code is not None:
        return Outcome(code.group(1) != "0", None, f"exit {code.group(1)}" if code.group(1) != "0" else None)
    return Outcome()
