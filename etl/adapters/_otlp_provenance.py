"""What a row keeps of the spans it was read from, beside what its columns hold."""

from __future__ import annotations

import functools
import re
from typing import Any

import msgspec

from etl.adapters._otlp_facts import CHUNKS
from etl.adapters._otlp_family import Family
from etl.adapters._otlp_outside import EVALUATION, JUDGED
from etl.adapters._otlp_semconv import CHOICE, ROLES
from etl.adapters._otlp_span import Log, Span
from etl.adapters._otlp_values import put

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


class Provenance:
    """Of one row. What its spans share is said once."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._known: set[tuple[str, bytes]] = set()

    def about(self, span: Span, attributes: dict[str, Any]) -> dict[str, Any]:
        """Name, id and place of a span, and what of it nothing else holds.

        The resource and scope it comes from, and under `logged` the names of all attributes and events, those that
        columns were filled from included, are left out where the row has them already.
        """
        made: dict[str, Any] = {"span": span.name} if span.name else {}
        made["span_id"] = span.id
        path = [above.name for above in self._family.ancestors(span)]
        put(made, path=path[::-1], attributes=attributes)
        made.update({key: value for key, value in span.rest.items() if key not in made and key != "scope"})
        events = [log for log in span.events if log.name not in ROLES and log.name != CHOICE and not is_verdict(log)]
        told = [log for log in events if log.body or log.name not in CHUNKS]
        put(made, events=[{"name": log.name, **({"attributes": log.body} if log.body else {})} for log in told])
        if len(told) < len(events):
            made["stream_chunks"] = len(events) - len(told)
        names = {_unnumbered(name) for name in span.attributes} | span.details | span.resource.keys()
        names.update(log.name for log in span.events)
        put(made, **self._news(resource=span.resource, scope=span.rest.get("scope"), logged=sorted(names)))
        return made

    def _news(self, **values: Any) -> dict[str, Any]:
        """Those of these values that this row does not have yet."""
        news = {}
        for key, value in values.items():
            known = (key, msgspec.json.encode(value, order="deterministic"))
            if value and known not in self._known:
                self._known.add(known)
                news[key] = value
        return news
