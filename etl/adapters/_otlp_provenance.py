"""What a row keeps of the spans it was read from, beside what its columns hold."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from etl.adapters._otlp_facts import CHUNKS
from etl.adapters._otlp_family import Family
from etl.adapters._otlp_outside import EVALUATION, JUDGED
from etl.adapters._otlp_semconv import CHOICE, ROLES
from etl.adapters._otlp_span import Log, Span
from etl.adapters._otlp_values import put

_encode = msgspec.json.Encoder(order="deterministic").encode
_NUMBERED = re.compile(r"\.\d+\..*\Z")


@functools.lru_cache(4096)
def _unnumbered(name: str) -> str:
    """The name of an attribute up to the number in it.

    >>> _unnumbered("gen_ai.prompt.10.content")
    'gen_ai.prompt'
    """
    return _NUMBERED.sub("", name)


def is_verdict(log: Log) -> bool:
    """Whether a judgment of the row says all that the event does."""
    return log.name == EVALUATION and log.body.keys() <= JUDGED


def _tell_events(made: dict[str, Any], logs: Sequence[Log]) -> None:
    """Add the events that are no messages and no judgments."""
    events = [log for log in logs if log.name not in ROLES and log.name != CHOICE and not is_verdict(log)]
    told = [log for log in events if log.body or log.name not in CHUNKS]
    put(made, events=[{"name": log.name, **({"attributes": log.body} if log.body else {})} for log in told])
    if len(told) < len(events):
        made["stream_chunks"] = len(events) - len(told)


class Provenance:
    """Of one row. What its spans share is said once."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._known: set[tuple[str, bytes]] = set()
        self._logged: set[tuple[str, ...]] = set()
        """Names as they came: spans of a kind have the same."""

    def about(self, span: Span, attributes: dict[str, Any]) -> dict[str, Any]:
        """Name, id and place of a span, and what of it nothing else holds.

        The resource and scope it comes from, and under `logged` the names of all attributes and events, those that
        columns were filled from included, are left out where the row has them already.
        """
        made: dict[str, Any] = {"span": span.name} if span.name else {}
        made["span_id"] = span.id
        if above := self._family.ancestors(span):
            made["path"] = [each.name for each in reversed(above)]
        if attributes:
            made["attributes"] = attributes
        for key, value in span.rest.items():
            if key not in made and key != "scope":
                made[key] = value
        if span.events:
            _tell_events(made, span.events)
        names = (*span.attributes, *sorted(span.details), *span.resource, *[log.name for log in span.events])
        self._news(made, "resource", span.resource)
        self._news(made, "scope", span.rest.get("scope"))
        if names not in self._logged:
            self._logged.add(names)
            self._news(made, "logged", sorted(set(map(_unnumbered, names))))
        return made

    def _news(self, made: dict[str, Any], key: str, value: Any) -> None:
        """Say what this row does not have yet."""
        if value:
            known = (key, _encode(value))
            if known not in self._known:
                self._known.add(known)
                made[key] = value
