"""What the scanner of the kept rules finds, their signs let through: on labelled texts, and rule by rule."""

from __future__ import annotations

import functools
import json
import random
import re

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etl.redact import kept, rules, sieve
from etl.redact.escapes import View
from etl.redact.kept_signs import sign
from etl.redact.sieve import ENGINES, Engine, Scanned, Sieve
from etl.redact.texts import Texts
from tests.redaction_labelled.cases import PARTS, read, strings

SIEVES = {engine: Sieve({"none": "none of ours"}, engine, kept.SCANNED) for engine in ENGINES} | {
    "hyperscan": rules._SIEVE
}
in_one_pass = pytest.mark.skipif("hyperscan" not in ENGINES, reason="elsewhere the scanner reads all")
STEP = 16
"""Of so many cases and rules one is looked at, unless `--thorough`."""
BESIDE = ["", " ", "\n", "é", "🔑=", "x", '"', "\r\n", "\x1b"]


@pytest.fixture
def own_cache(tmp_path_factory, monkeypatch):
    """What is compiled for a test alone does not drive out what the product has compiled."""
    monkeypatch.setattr(sieve, "_CACHE", tmp_path_factory.mktemp("signs"))


def _found_by_scanner(texts: list[str]) -> set[str]:
    """By itself, text by text, as the closer look goes."""
    return {text for text in texts if list(kept.spans(View(text)))}


def _let_through(texts: list[str], engine: Engine) -> set[str]:
    """As `search.suspects` goes: what escapes may hide is sifted again as it is said."""
    places = _places(texts, engine)
    hidden = rules._SIEVE.matching(Texts(pa.array(texts, pa.string()))).get(rules.HIDDEN, [])
    said = [View(texts[place]).flat.encode("utf-8", "replace").decode() for place in hidden]
    return {texts[place] for place in places | {hidden[index] for index in _places(said, engine)}}


def _places(texts: list[str], engine: Engine) -> set[int]:
    return set(SIEVES[engine].matching(Texts(pa.array(texts, pa.string()))).get(kept.PACKAGE, []) if texts else ())


def _mixes(texts: list[str]) -> list[str]:
    """Texts in one another's company, escaped, and spoilt with what is outside ASCII."""
    dice = random.Random(7)
    mixed = ["\n".join(dice.sample(texts, 3)) for _ in range(len(texts) // 4)]
    spoilt = ["".join(dice.choice("é🔑\r\x1b") if dice.random() < 0.02 else sign for sign in text) for text in texts]
    return sorted({*texts, *mixed, *spoilt})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.stem)
def test_what_the_scanner_finds_is_let_through(part, engine, pytestconfig):
    # Where the scanner reads all, joined as it comes, a key that stands in several texts may be told of one.
    thorough = pytestconfig.getoption("--thorough") and engine == "hyperscan"
    cases = list(read(part))[:: 1 if thorough else STEP]
    texts = _mixes(sorted({text for case in cases for text in strings(case.value)}))
    found = {text for text in _found_by_scanner(texts) if "\\" not in text}
    assert found
    assert not found - _let_through(texts, engine)


@in_one_pass
def test_one_pass_lets_escaped_texts_through_that_the_scanner_finds_as_they_stand(pytestconfig):
    step = 1 if pytestconfig.getoption("--thorough") else STEP
    cases = [case for part in PARTS for case in list(read(part))[::step]]
    texts = sorted({json.dumps(json.dumps(case.value)) for case in cases})
    told = [texts[place] for place in kept.SCANNED.places(Texts(pa.array(texts, pa.string())))]
    assert not _found_by_scanner(told) - _let_through(texts, "hyperscan")


@in_one_pass
@settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=3, derandomize=True)
@pytest.mark.usefixtures("own_cache")
@given(data=st.data())
def test_what_a_pattern_matches_its_sign_matches(data, pytestconfig):
    details = kept.details()
    for detail in details[:: STEP if pytestconfig.getoption("--thorough") else STEP * 4]:
        pattern = detail["detection_regex"]
        try:
            compiled = re.compile(pattern.replace("[:alnum:]", "a-zA-Z0-9").replace(r"\z", r"\Z"), re.ASCII)
        except re.error:
            continue  # Rust's way of writing it
        made = data.draw(st.from_regex(compiled, alphabet=st.characters(codec="ascii")), label=detail["id"])
        told = "".join("é" if letter == "?" else letter for letter in made)
        edges = zip(BESIDE, BESIDE[::-1], strict=True)
        texts = [before + text + after for before, after in edges for text in (made, told)]
        plain = [text for text in texts if "\\" not in text and compiled.search(View(text).text)]
        theirs = Scanned("it", pattern.__str__, functools.partial(_signs, pattern), kept.SCANNED.places)
        places = Sieve({"none": "none of ours"}, "hyperscan", theirs).matching(Texts(pa.array(plain, pa.string())))
        assert places.get("it", []) == list(range(len(plain))), detail["id"]


def _signs(pattern: str) -> list[str]:
    return [sign(pattern)]


@in_one_pass
def test_every_kept_rule_is_in_the_one_pass():
    assert rules._SIEVE._has_their_patterns


@in_one_pass
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("pattern", [r"a(?=b)", r"(a)\1", r"\p{Lu}", "[[:punct:]]", "(", ""])
def test_where_a_pattern_cannot_be_said_the_scanner_reads_all(pattern):
    theirs = Scanned("it", pattern.__str__, functools.partial(_signs, pattern), lambda _: {1})
    texts = Texts(pa.array(["ours", "theirs"]))
    assert Sieve({"own": "ours"}, "hyperscan", theirs).matching(texts) == {"own": [0], "it": [1]}
