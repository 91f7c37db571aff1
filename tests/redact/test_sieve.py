"""One pass of Hyperscan lets through what RE2 would, sign by sign, whatever stands beside a text, in any letters."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from etl.redact import personal, rules, sieve
from etl.redact.expressions import in_bytes
from etl.redact.sieve import ENGINES, Sieve
from etl.redact.texts import Texts
from tests.redaction_labelled.cases import PARTS, read, strings

LETTERS = "éß密пП\u00a0🔑"
SIEVES = {"secrets": rules.SIGNS, "personal": personal.SIGNS}
ONE_PASS = {"secrets": rules._SIEVE, "personal": personal._SIEVE}
"""Those that the product asks, as they are."""
_SECOND = {engine: [pytest.mark.slow] if engine == "pyperscan" and "hyperscan" in ENGINES else [] for engine in ENGINES}
"""Where both are there, all signs are compiled for the first alone in `make test`."""


def _texts(step: int) -> list[str]:
    """Labelled texts, and the same with letters outside ASCII here and there."""
    dice = random.Random(0)
    made = [text for part in PARTS for case in list(read(part))[::step] for text in strings(case.value)]
    spoilt = ["".join(dice.choice(LETTERS) if dice.random() < 0.06 else letter for letter in text) for text in made]
    return sorted({*made, *spoilt})


@pytest.mark.parametrize("name", SIEVES)
@pytest.mark.parametrize(
    "engine", [pytest.param(engine, marks=_SECOND[engine]) for engine in ENGINES if engine != "re2"]
)
def test_one_pass_finds_what_sign_by_sign_finds(name, engine, pytestconfig):
    texts = Texts(pa.array(_texts(1 if pytestconfig.getoption("--thorough") else 16)))
    asked = ONE_PASS[name] if engine == "hyperscan" else Sieve(SIEVES[name], engine)
    in_one_pass = asked.matching(texts)
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
def test_a_sign_means_the_same_among_joined_texts(sign, found, not_found, engine, tmp_path, monkeypatch):
    monkeypatch.setattr(sieve, "_CACHE", tmp_path)
    signs = Sieve({"it": sign}, engine)
    texts = [text for each in (*found, *not_found) for text in ("xx", each)]
    assert signs.matching(Texts(pa.array(texts))).get("it", []) == [2 * place + 1 for place in range(len(found))]


def test_every_branch_is_an_expression_of_its_own():
    assert in_bytes("a|(?i:b|c(?:d|e))f") == ["a", "(?i:b)f", "(?i:c(?:d|e))f"]


@pytest.mark.skipif("hyperscan" not in ENGINES, reason="the only one whose compiled signs can be kept")
@pytest.mark.parametrize("spoilt", [b"", b"no signs", "half", "flipped"])
def test_compiled_signs_that_are_spoilt_are_compiled_again(tmp_path, monkeypatch, spoilt):
    monkeypatch.setattr(sieve, "_CACHE", tmp_path / "signs")
    texts = Texts(pa.array(["x", "a pass"]))
    assert Sieve({"it": "pass"}, "hyperscan").matching(texts) == {"it": [1]}
    [kept] = (tmp_path / "signs").iterdir()
    good = kept.read_bytes()
    middle = len(good) // 2
    flipped = good[:middle] + bytes([good[middle] ^ 0xFF]) + good[middle + 1 :]
    kept.write_bytes({"half": good[:middle], "flipped": flipped}.get(spoilt, spoilt))
    assert Sieve({"it": "pass"}, "hyperscan").matching(texts) == {"it": [1]}
    assert [file.read_bytes() for file in (tmp_path / "signs").iterdir()] == [good]


@pytest.mark.skipif("hyperscan" not in ENGINES, reason="the only one whose compiled signs can be kept")
def test_compiled_signs_are_not_read_where_others_may_write(tmp_path, monkeypatch):
    monkeypatch.setattr(sieve, "_CACHE", tmp_path / "signs")
    texts = Texts(pa.array(["x", "a pass", "other"]))
    Sieve({"it": "other"}, "hyperscan").matching(texts)
    [foreign] = (tmp_path / "signs").iterdir()
    planted = foreign.read_bytes()
    Sieve({"it": "pass"}, "hyperscan").matching(texts)
    for kept in (tmp_path / "signs").iterdir():
        kept.write_bytes(planted)
    (tmp_path / "signs").chmod(0o777)
    assert Sieve({"it": "pass"}, "hyperscan").matching(texts) == {"it": [1]}
