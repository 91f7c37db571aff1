"""What detection may spare itself: asking adapters of which a few records show that they are not the one."""

from __future__ import annotations

import copy

import pytest

from etl.adapter import Adapter, adapters
from etl.conversation import Record
from etl.detection import choose, detect, sample
from etl.framing import LIMITS, frame
from etl.opening import blocks, small_text
from tests.contract.harness import sample_logs

SEEN = [sample(log.path, None, str(log.path)) for log in sample_logs()]


@pytest.mark.parametrize("adapter", adapters().values(), ids=lambda adapter: adapter.name)
def test_a_score_is_bounded_by_the_share_of_the_first_values(adapter: Adapter) -> None:
    for seen in SEEN:
        count = len(seen.values)
        whole = adapter.score(seen)
        for few in range(1, count):
            most = adapter.share(seen._replace(values=seen.values[:few]))
            assert whole <= (most + count - few) / count + 1e-9, (seen.uri, few)


def test_a_likely_adapter_changes_no_choice() -> None:
    names = [log.adapter.name for log in sample_logs()]
    for number, (name, seen) in enumerate(zip(names, SEEN, strict=True)):
        for likely in (name, names[number - 1]):
            assert choose(seen, likely).adapter.name == name, likely


def test_scoring_leaves_the_records_as_they_are() -> None:
    for seen in SEEN:
        before = copy.deepcopy(seen)
        for adapter in adapters().values():
            adapter.score(seen)
        assert seen == before


def test_a_text_that_is_given_is_detected_and_framed_as_its_file() -> None:
    whole = 0
    for log, seen in zip(sample_logs(), SEEN, strict=True):
        text = small_text(log.path)
        if text is not None:
            whole += 1
            assert b"".join(blocks(log.path)) == text
            found = detect(log.path, text=text)
            assert (found.adapter.name, found.sample) == (log.adapter.name, seen)
            assert found.framed is not None
            assert list(found.framed) == list(frame(iter([text]), LIMITS))
            assert any(isinstance(each, Record) for each in frame(iter([text]), LIMITS)) == bool(seen.values)
    assert whole > 50
