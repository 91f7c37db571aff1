"""What sifts texts natively lets through all that the rules would find: kind by kind, over the labelled cases."""

from __future__ import annotations

import pyarrow as pa
import pytest

from etl.redact import rules
from etl.redact.escapes import View
from etl.redact.search import suspects
from etl.redact.spans import mask
from etl.redact.texts import Texts
from tests.redaction_labelled.cases import PARTS, read, strings

STEP = 8
"""Of so many cases one is looked at, unless `--thorough`."""


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.stem)
def test_rules_asked_where_they_may_find_something_find_all(part, pytestconfig):
    cases = list(read(part))[:: 1 if pytestconfig.getoption("--thorough") else STEP]
    texts = sorted({text for case in cases for text in strings(case.value)})
    sought = suspects(pa.array(texts, pa.string()), None)
    assert sought
    for index, text in enumerate(texts):
        view = View(text)
        assert index not in sought or sought[index].data == view.data
        asked = rules.spans(view, sought[index].sought if index in sought else frozenset())
        assert mask(text, list(asked)).text == mask(text, list(rules.spans(view))).text


def test_counts_of_tokens_are_not_worth_a_closer_look():
    counts = '{"usage": {"input_tokens": 9, "cache_read_input_tokens": 12, "key": "llm.output_tokens"}, "id": "a1b2"}'
    assert rules.suspects(Texts(pa.array([counts, counts.replace('"', '\\"')]))) == {}


SEED = "the seed phrase of the test wallet is: " + " ".join(["board", "agree", "hill", "despair"] * 3)
SALT = 'AUTH_SALT = "' + "v3Qz 8Wk! r2Lp #9Tx " * 2 + 'm4Kd"'


@pytest.mark.parametrize("text", [SEED, SALT], ids=["seed", "salt"])
def test_a_tab_is_as_good_as_a_space(text):
    """A view has both."""
    texts = [text, *(text[:at] + "\t" + text[at + 1 :] for at, sign in enumerate(text) if sign == " ")]
    sought = suspects(pa.array(texts, pa.string()), None)
    found = [bool(list(rules.spans(View(each)))) for each in texts]
    asked = [
        bool(list(rules.spans(View(each), sought[n].sought if n in sought else frozenset())))
        for n, each in enumerate(texts)
    ]
    assert found[0]
    assert asked == found


@pytest.mark.parametrize("words", ["battery.staple_horse.horse_", "battery.correct.horse.horse."])
def test_a_long_value_is_as_good_as_a_short_one(words):
    text = f"set my credential is {words}42"
    sought = suspects(pa.array([text], pa.string()), None)
    found = list(rules.spans(View(text)))
    assert found
    assert list(rules.spans(View(text), sought[0].sought if 0 in sought else frozenset())) == found
