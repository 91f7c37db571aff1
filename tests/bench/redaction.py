"""How well redaction does on labelled cases (`tests/redaction_labelled`).

`python -m tests.bench.redaction` prints the tables; `make bench` keeps them. Every case goes through a whole ingest as
a message, arguments or a result of a conversation, and what stands in the lake afterwards is looked at.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import etl
from etl.errors import MissingExtraError
from etl.intervals import Rate
from etl.policies import check_policy
from tests.bench import results
from tests.redaction_labelled.cases import BLIND, PARTS, Case, leaked, read, strings

HEADING = "Redaction of labelled cases"
KEY = b"only for measuring: 32 bytes long"
GROUPS: dict[str, Callable[[Case], bool]] = {
    "secrets": lambda case: case.family == "secret" and case.kind != "password_prose",
    "passwords said in sentences": lambda case: case.kind == "password_prose",
    "e-mail, phone, card, IBAN": lambda case: case.kind in ("email", "card", "iban") or case.kind.startswith("phone_"),
    "IP addresses": lambda case: case.kind in ("ip_v4", "ip_v6"),
    "national ids": lambda case: (
        case.family == "personal"
        and case.kind not in ("email", "card", "iban", "ip_v4", "ip_v6")
        and not case.kind.startswith("phone_")
    ),
    "names of people": lambda case: case.kind == "name",
    "postal addresses": lambda case: case.kind == "address",
}
"""The lines of the table: each positive case belongs to one."""
MARKS = {
    "secrets": {"SECRET"},
    "passwords said in sentences": {"SECRET"},
    "e-mail, phone, card, IBAN": {"EMAIL", "PHONE", "CARD", "IBAN"},
    "IP addresses": {"IP"},
    "national ids": {"NATIONAL"},
    "names of people": {"PERSON"},
    "postal addresses": {"ADDRESS"},
}
"""How the labels begin that the rules of a line put in place of what they take."""
_MARK = re.compile(r"<([A-Z]+)_")
_OF_SECRETS = ("secrets", "passwords said in sentences")
_OF_STRICT = ("names of people", "postal addresses")


def policy_of(group: str) -> str:
    """The mildest policy that takes out what a line is about."""
    return "secrets" if group in _OF_SECRETS else "strict" if group in _OF_STRICT else "pii"


def measured_policies() -> list[str]:
    """Those that can be measured here: `strict` needs an extra."""
    found = ["secrets", "pii"]
    with contextlib.suppress(MissingExtraError):
        check_policy("strict")
        found.append("strict")
    return found


class Verdict(NamedTuple):
    """What became of one case."""

    case: Case
    output: Any
    gone: bool
    """Of a positive: no span of it is left."""
    spoilt: bool
    """Something is gone that had to stay: anything of a negative, of a positive what is neither span nor allowed."""

    def by(self, group: str) -> bool:
        """Whether it was the rules of this line that put something in: a label of theirs, or one that none shows."""
        before, after = (Counter(_MARK.findall(" ".join(strings(value)))) for value in (self.case.value, self.output))
        marks = set(after - before)
        return not marks or bool(marks & MARKS[group])


class Quality(NamedTuple):
    """A line of the table."""

    group: str
    recall: Rate
    precision: Rate
    """Of the cases in which something was masked, those in which nothing was that had to stay."""


def verdicts(cases: Iterable[Case], redact: str) -> list[Verdict]:
    """Every case through an ingest into a lake of its own."""
    given = list(cases)
    with tempfile.TemporaryDirectory(prefix="etl-redaction-") as folder:
        log, lake = Path(folder, "log.jsonl"), Path(folder, "lake")
        log.write_text("".join(json.dumps(_conversation(case)) + "\n" for case in given), encoding="utf-8")
        etl.ingest([log], lake=lake, format="openai_messages", redact=redact, pseudonym_key=KEY)
        rows = etl.scan(lake).select("conversation_id", "messages").collect()
    landed = dict(zip(rows["conversation_id"].to_list(), rows["messages"].to_list(), strict=True))
    return [_judged(case, landed[case.id]) for case in given]


def _conversation(case: Case) -> dict[str, Any]:
    """A text as what a user says, an object as what a tool is called with, any other JSON as what it gave."""
    value = case.value
    if isinstance(value, str):
        return {"id": case.id, "messages": [{"role": "user", "content": value}]}
    is_object = isinstance(value, dict)
    arguments = json.dumps(value, ensure_ascii=False) if is_object else "{}"
    call = {"id": "c1", "type": "function", "function": {"name": "do", "arguments": arguments}}
    result = "done" if is_object else json.dumps(value, ensure_ascii=False)
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]
    return {"id": case.id, "messages": messages}


def _judged(case: Case, messages: list[dict[str, Any]]) -> Verdict:
    if isinstance(case.value, str):
        output: Any = messages[0]["content"]
    elif isinstance(case.value, dict):
        output = json.loads(messages[1]["tool_calls"][0]["function"]["arguments"])
    else:
        output = json.loads(messages[2]["content"])
    if case.label == "negative":
        return Verdict(case, output, False, output != case.value)
    return Verdict(case, output, not leaked(case, output), not _stayed(case, output))


def _stayed(case: Case, output: Any) -> bool:
    """Whether all that is no span is there, in its order: what may go is taken out of both."""
    texts = dict(_by_path(case.value))
    after = dict(_by_path(output))
    marked: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for span in (*case.spans, *case.allowed):
        marked.setdefault(span.path, []).append((span.start, span.end))
    if texts.keys() != after.keys():
        return False
    for path, text in texts.items():
        rest, done, found = after[path], 0, 0
        for start, end in (*sorted(marked.get(path, [])), (len(text), len(text))):
            piece = text[done:start]
            found = rest.find(piece, found)
            if found < 0:
                return False
            found, done = found + len(piece), max(done, end)
    return True


def _by_path(value: Any, path: tuple[Any, ...] = ()) -> Iterable[tuple[tuple[Any, ...], str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _by_path(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _by_path(item, (*path, at))
    else:
        yield path, "".join(strings(value))


def quality(judged: Mapping[str, list[Verdict]]) -> list[Quality]:
    """The table of `policy → verdicts`: positives by what they hold; precision over them and all negatives."""
    lines = []
    for group, belongs in GROUPS.items():
        policy = policy_of(group)
        if policy not in judged:
            continue
        of = [each for each in judged[policy] if each.case.label == "positive" and belongs(each.case)]
        negatives = [each for each in judged[policy] if each.case.label == "negative"]
        right = sum(each.gone and not each.spoilt for each in of)
        wrong = sum(each.spoilt and (each.by(group) or each in of) for each in (*of, *negatives))
        recall = Rate(sum(each.gone for each in of), len(of))
        lines.append(Quality(group, recall, Rate(right, right + wrong)))
    return lines


def main() -> None:
    """Print the tables, and with `--misses` the cases that went wrong."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cases", type=Path, help="one part of the cases, not all that rules may be made with")
    arguments.add_argument("--misses", action="store_true", help="print what went wrong, case by case")
    given = arguments.parse_args()
    for part in [given.cases] if given.cases else PARTS:
        cases = list(read(part))
        judged = {policy: verdicts(cases, policy) for policy in measured_policies()}
        print(f"\n{part.name}, {len(cases):,} cases:\n\n{table(quality(judged))}")
        if "strict" not in judged:
            print('\nNames and addresses were not measured: pip install "rollout-etl[ner]"')
        if given.misses:
            for policy, found in judged.items():
                for each in found:
                    _print_miss(policy, each)


def section() -> str:
    """The section of RESULTS.md: the part that no rule was made with, then those that rules may be made with."""
    texts = [
        f"{results.machine()}. Cases of `tests/redaction_labelled` through a whole ingest; intervals are Wilson's, "
        "95 %. Precision counts what the rules of a line took."
    ]
    for part in (BLIND, *PARTS):
        cases = list(read(part))
        judged = {policy: verdicts(cases, policy) for policy in measured_policies()}
        said = "no rule was made with it" if part == BLIND else "rules were made with it"
        texts.append(f"`{part.name}`, {len(cases):,} cases; {said}:\n\n{table(quality(judged))}")
    return "\n\n".join(texts)


def table(lines: Iterable[Quality]) -> str:
    """As Markdown."""
    rows = [f"| {line.group} | {line.recall} | {line.precision} |" for line in lines]
    return "\n".join(["| what | recall | precision |", "| --- | --- | --- |", *rows])


def _print_miss(policy: str, each: Verdict) -> None:
    case = each.case
    due = {"secrets": ("secret",), "pii": ("secret", "personal")}.get(policy, (case.family,))
    missed = case.label == "positive" and case.family in due and not each.gone
    if missed or each.spoilt:
        print(f"\n{policy} {'MISS' if missed else 'SPOILT'} {case.kind} {case.id} {case.template}")
        print("  in ", json.dumps(case.value, ensure_ascii=False)[:400])
        print("  out", json.dumps(each.output, ensure_ascii=False)[:400])


if __name__ == "__main__":
    main()
