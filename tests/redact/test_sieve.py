"""One pass of Hyperscan lets through what RE2 would, sign by sign, whatever stands beside a text, in any letters."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from etl.redact import personal, rules
from etl.redact.expressions import in_bytes
from etl.redact.sieve import ENGINES, Sieve
from etl.redact.texts import Texts
from tests.redaction_labelled.cases import PARTS, read, strings

LETTERS = "éß密пП\u00a0🔑"
SIEVES = {"secrets": rules.SIGNS, "personal": personal.SIGNS}


def _texts(step: int) -> list[str]:
    """Labelled texts, and the same with letters outside ASCII here and there."""
    dice = random.Random(0)
    made = [text for part in PARTS for case in list(read(part))[::step] for text in strings(case.value)]
    spoilt = ["".join(dice.choice(LETTERS) if dice.random() < 0.06 else letter for letter in text) for text in made]
    return sorted({*made, *spoilt})


@pytest.mark.parametrize("name", SIEVES)
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "re2"])
def test_one_pass_finds_what_sign_by_sign_finds(name, engine, pytestconfig):
    texts = Texts(pa.array(_texts(1 if pytestconfig.getoption("--thorough") else 16)))
    in_one_pass = Sieve(SIEVES[name], engine).matching(texts)
    for sign, places in Sieve(SIEVES[name], "re2").matching(texts).items():
        missed = set(places) - set(in_one_pass.get(sign, ()))
        assert not missed, (sign, texts.padded[min(missed)].as_py())


@pytest.mark.parametrize(
    ("sign", "found", "not_found"),
    [
        ("(?:^|[^a-z.+-])pw", ["pw", "=pw", "épw"], ["apw", "-pw"]),
        ("pw(?:$|[^a-z])", ["pw", "pw=", "pwé"], ["pwa"]),
        ("a.b", ["aéb", "a🔑b"], ["a\nb", "a  b", "ab"]),
        ("a[^-x]{2}b", ["aé🔑b", "azzb"], ["aéb", "a-zb", "azzzb"]),
        ("(?i:пароль)", ["Пароль", "ПАРОЛЬ"], ["парол"]),
        (r"a\S{2,64}b", ["aééb"], ["ab", "a  b"]),
        ("(?:[^a]b){2}c", ["ébébc"], ["abébc"]),
        ("(?i:(?:x|y)z|w)q?", ["XZ", "w"], ["x"]),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_sign_means_the_same_among_joined_texts(sign, found, not_found, engine):
    sieve = Sieve({"it": sign}, engine)
    texts = [text for each in (*found, *not_found) for text in ("xx", each)]
    assert sieve.matching(Texts(pa.array(texts))).get("it", []) == [2 * place + 1 for place in range(len(found))]


def test_every_branch_is_an_expression_of_its_own():
    assert in_bytes("a|(?i:b|c(?:d|e))f") == ["a", "(?i:b)f", "(?i:c(?:d|e))f"]
