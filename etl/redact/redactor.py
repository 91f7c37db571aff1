"""The stage itself: a table in, a table that may be written out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, final

import pyarrow as pa

from etl.errors import UsageError
from etl.policies import KEYED, check_policy
from etl.redact import kept, rules
from etl.redact.leaves import COPIES, NAMING, UNMASKED, URIS, BytesAsText, Plan, masked_array, string_leaves
from etl.redact.search import masked_texts
from etl.redact.spans import Masked
from etl.redact.uris import masked_uris
from etl.schema import TABLES

if TYPE_CHECKING:
    from etl.redact.personal import Personal

_SEAL = object()
_COUNTS = "redactions"


@final
class Redacted:
    """A table that went through a `Redactor`. Writers take nothing else, so nothing unredacted can be written."""

    __slots__ = ("_name", "_rules", "_table")

    def __init__(self, name: str, table: pa.Table, rules: str, seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError("a Redacted table comes from Redactor.table() only")
        self._name = name
        self._table = table
        self._rules = rules

    @property
    def name(self) -> str:
        """Which table of the lake the rows are for."""
        return self._name

    @property
    def table(self) -> pa.Table:
        """The rows."""
        return self._table

    @property
    def rules(self) -> str:
        """The version of the rules they went through."""
        return self._rules


class Redactor:
    """Applies one policy. Cheap to make, safe in any process.

    `key` makes the pseudonyms of personal data, the same in every table of a lake (`etl.keys`). `name_key` gives the
    one that tells names of files apart, by default the same; it is asked for where such a name changes. `version`
    names the rules, so that a lake can tell which of its rows older rules have seen.
    """

    def __init__(
        self, policy: str = "secrets", key: bytes | None = None, name_key: Callable[[], bytes] | None = None
    ) -> None:
        check_policy(policy)
        self._name_key = (lambda: key) if key else cache(name_key) if name_key else None
        self.policy = policy
        self.version = rules_version(policy)
        self._personal = None
        if policy in KEYED:
            if not key:
                raise UsageError(f"the redaction policy {policy} needs a key for its pseudonyms")
            self._personal = _personal_rules(policy, key)

    def table(self, name: str, table: pa.Table) -> Redacted:
        """The rows with every secret replaced by its label, and `redactions` counting them, added to what it held."""
        if name not in TABLES:
            raise UsageError(f"no table is called {name!r}; tables: {', '.join(TABLES)}")
        if self.policy == "none":
            return Redacted(name, table, self.version, _SEAL)
        masked = _masked(name, self._named(table, URIS[name], NAMING.get(name)), self._personal)
        return Redacted(name, masked, self.version, _SEAL)

    def uris(self, uris: Sequence[str]) -> dict[str, str]:
        """The names of files that change, each with the one that the lake knows its file by."""
        if self.policy == "none":
            return {}
        return {uri: masked.text for uri, masked in masked_uris(uris, self._personal, self._name_key).items()}

    def _named(self, table: pa.Table, column: str, telling: str | None) -> pa.Table:
        """The rows with what is left of the names of their files, also in the column `telling` of them."""
        names = table[column].unique().drop_null().to_pylist()
        found = masked_uris(names, self._personal, self._name_key)
        if not found:
            return table
        plan = Plan(frozenset(), frozenset([column]), pa.array(list(found), pa.string()), list(found.values()))
        arrays = [masked_array(chunk, column, plan).array for chunk in table[column].chunks]
        before = table[column]
        position = table.schema.get_field_index(column)
        table = table.set_column(position, table.schema.field(position), pa.chunked_array(arrays, pa.string()))
        return table if telling is None else _told_by_name(table, telling, before.to_pylist(), found)

    def text(self, text: str) -> tuple[str, dict[str, int]]:
        """One text with its secrets replaced, and how often each rule did so.

        >>> Redactor().text("postgres://app:hunter2fake@db.example/orders")
        ('postgres://app:<SECRET_url_password>@db.example/orders', {'url_password': 1})
        """
        if self.policy == "none":
            return text, {}
        try:
            found = masked_texts(pa.chunked_array([pa.array([text], pa.string())]), self._personal)
        except UnicodeEncodeError:
            raw = text.encode("utf-8", "surrogatepass").decode("latin-1")
            masked, counts = self.text(raw)
            return masked.encode("latin-1").decode("utf-8", "surrogatepass"), counts
        masked_text = found.get(text, Masked(text, Counter()))
        return masked_text.text, dict(masked_text.counts)


def rules_version(policy: str) -> str:
    """What the rules of a policy are called, down to the packages they come from; MissingExtraError as `check_policy`.

    A lake notes it with its rows, so that it can be told which of them older rules have seen.
    """
    if policy == "none":
        return policy
    sets = [rules.VERSION, kept.version()]
    if policy in KEYED:
        from etl.redact import personal

        sets.append(personal.VERSION)
    if policy == "strict":
        from etl.redact import strict

        sets.append(strict.version())
    return "+".join(sets)


def _personal_rules(policy: str, key: bytes) -> Personal:
    if policy == "strict":
        from etl.redact.strict import Strict

        return Strict(key)
    from etl.redact.personal import Personal

    return Personal(key)


def _masked(name: str, table: pa.Table, personal: Personal | None) -> pa.Table:
    unmasked = UNMASKED[name] | {URIS[name]}
    found = masked_texts(_texts(table, unmasked), personal)
    if not found:
        return table
    plan = Plan(unmasked, COPIES[name], pa.array(list(found), pa.string()), list(found.values()))
    del found
    counts: dict[int, Counter[str]] = {}
    for position, field in enumerate(table.schema):
        changes = [masked_array(chunk, field.name, plan) for chunk in table.column(position).chunks]
        start = 0
        for change in changes:
            for row, counter in change.counts.items():
                counts.setdefault(start + row, Counter()).update(counter)
            start += len(change.array)
        if any(change.counts for change in changes):
            arrays = [change.array for change in changes]
            table = table.set_column(position, field, pa.chunked_array(arrays, field.type))
    return _with_counts(table, counts) if _COUNTS in table.column_names else table


def _told_by_name(
    table: pa.Table, column: str, uris: Sequence[str | None], found: Mapping[str, Masked]
) -> pa.Table:  # fmt: skip
    """The rows whose texts name their files as these are called now."""
    texts = [
        text.replace(uri, found[uri].text) if text and uri is not None and uri in found else text
        for text, uri in zip(table[column].to_pylist(), uris, strict=True)
    ]
    position = table.schema.get_field_index(column)
    return table.set_column(position, table.schema.field(position), pa.array(texts, pa.string()))


def _texts(table: pa.Table, unmasked: frozenset[str]) -> pa.ChunkedArray:
    """Every text of the table, the bytes of rejects included."""
    columns: list[pa.Array] = []
    for field in table.schema:
        for chunk in table.column(field.name).chunks:
            for leaf in string_leaves(chunk, field.name, unmasked):
                if pa.types.is_binary(leaf.type):
                    texts = [BytesAsText.of(value).text for value in leaf.to_pylist() if value is not None]
                    columns.append(pa.array(texts, pa.string()))
                else:
                    columns.append(leaf)
    return pa.chunked_array(columns, pa.string())


def _with_counts(table: pa.Table, counts: dict[int, Counter[str]]) -> pa.Table:
    """The `redactions` column with new counts added to those that rows came with."""
    values = table.column(_COUNTS).to_pylist()
    for row, counter in counts.items():
        total = counter + Counter(json.loads(values[row])) if values[row] else counter
        if total:
            values[row] = json.dumps(dict(sorted(total.items())), separators=(",", ":"))
    position = table.schema.get_field_index(_COUNTS)
    return table.set_column(position, table.schema.field(position), pa.array(values, pa.string()))
