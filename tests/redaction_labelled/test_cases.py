"""The labelled halves read as they should: every span lies where it says, and no label contradicts another."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.redaction_labelled.cases import Case, leaked, read

HERE = Path(__file__).parent
# By other hands, without sight of the rules.
LATER = [HERE / f"{name}.jsonl" for name in ("third", "fourth", "fifth", "sixth")]
PARTS = sorted(HERE.glob("*.jsonl"))
each_later = pytest.mark.parametrize("part", LATER, ids=lambda part: part.stem)


def at(value: Any, path: tuple[str | int, ...]) -> str:
    for step in path:
        value = value[step]
    return str(value)


def outside(case: Case) -> list[str]:
    """What is left of every string that holds a span, with the spans cut out."""
    left = []
    for path in {span.path for span in case.spans}:
        text = at(case.value, path)
        for span in sorted((span for span in case.spans if span.path == path), key=lambda span: -span.start):
            text = text[: span.start] + "\n" + text[span.end :]
        left.append(text)
    return left


def luhn(text: str) -> bool:
    digits = [int(digit) for digit in re.sub(r"\D", "", text)][::-1]
    return sum(digits[::2] + [sum(divmod(digit * 2, 10)) for digit in digits[1::2]]) % 10 == 0


def mod_97(text: str) -> bool:
    plain = re.sub(r"\W", "", text).upper()
    return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.stem)
def test_every_case_of_a_part_reads_with_its_spans_in_place(part):
    cases = list(read(part))
    assert [case.id for case in cases] == [f"{part.stem}-{number:04d}" for number in range(len(cases))]
    for case in cases:
        assert case.spans or case.label == "negative", case.id
        assert leaked(case, case.value) == case.spans, case.id
        for span in (*case.spans, *case.allowed):
            assert at(case.value, span.path)[span.start : span.end] == span.text, case.id


@each_later
def test_a_later_part_has_what_was_asked_of_it(part):
    cases = list(read(part))
    assert min(Counter(case.label for case in cases).values()) >= 700
    assert max(Counter(case.template for case in cases).values()) <= 3


@each_later
def test_a_value_to_be_taken_out_stands_nowhere_else_in_its_case(part):
    for case in read(part):
        if case.label == "positive":
            assert not [span.text for span in case.spans if any(span.text in text for text in outside(case))], case.id


@each_later
def test_check_digits_of_cards_and_ibans_are_right_where_the_label_says_so(part):
    checks = {"card": luhn, "iban": mod_97, "luhn_invalid": lambda text: not luhn(text)}
    spans = [span for case in read(part) for span in case.spans if span.kind in checks]
    assert not [span.text for span in spans if not checks[span.kind](span.text)]


def test_no_known_key_shape_stands_whole_in_the_files():
    shape = re.compile(
        r"AKIA[A-Z0-9]{16}|gh[pousr]_\w{36}|sk-ant-api\w{20}|xox[bp]-\d{10,}|AIza[\w-]{35}|BEGIN \w+ PRIVATE KEY"
    )
    assert not [part.stem for part in PARTS if shape.search(part.read_text(encoding="utf-8"))]
