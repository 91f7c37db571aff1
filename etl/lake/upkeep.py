"""Which rows go and which come in the tables that are not rollouts: events, rejects, sources."""

from __future__ import annotations

from collections.abc import Mapping, Set

import pyarrow as pa

from etl.lake.lookup import REDACTED, Lookup


def decide_events(lookup: Lookup) -> int:
    """Drops the staged events that are live already or staged twice; returns how many stay.

    An event is looked up in its own partition only: its day is part of the record. A live one goes where redaction
    replaced more in the staged one: its source was read again under a stricter policy.
    """
    keys = f"source::VARCHAR AS source, conversation_key, record_key, {REDACTED}"
    lookup.load("staged", f"{keys}, source_uri, source_offset")
    staged = {tuple(sorted(file.partition.items())) for file in lookup.files["staged"]}
    same = "record_key IN (SELECT record_key FROM staged)"
    lookup.load(
        "live",
        keys,
        where=same,
        only=lookup.in_partitions(lambda partition: tuple(sorted(partition.items())) in staged),
    )
    lookup.run(
        """
        INSERT INTO dropped SELECT 'staged', file, position FROM (
            SELECT *, row_number() OVER (PARTITION BY source, conversation_key, record_key
                ORDER BY source_uri, source_offset, file, position) AS place FROM staged
        ) new WHERE place > 1 OR EXISTS (FROM live WHERE live.redacted >= new.redacted AND live.source = new.source
            AND live.conversation_key = new.conversation_key AND live.record_key = new.record_key)
        """
    )
    [(kept,)] = lookup.run("SELECT (SELECT count(*) FROM staged) - (SELECT count(*) FROM dropped)")
    lookup.run(
        """
        INSERT INTO dropped SELECT DISTINCT 'live', live.file, live.position FROM live
        JOIN staged USING (source, conversation_key, record_key) WHERE staged.redacted > live.redacted
        """
    )
    return int(kept)


def decide_rejects(
    lookup: Lookup, files: Set[tuple[str, str]], after: Mapping[tuple[str, str], int]
) -> dict[tuple[str, str], int]:
    """Drops every live reject of these files (source, uri), if it does not lie before byte `after`, and staged ones
    that are there twice; returns how many staged ones of each file stay.
    """
    pairs = sorted(files)
    columns = {"source": [source for source, _ in pairs], "uri": [uri for _, uri in pairs]}
    named = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    lookup.table_of("files", pa.table(named | {"after": pa.array([after.get(pair, 0) for pair in pairs], pa.int64())}))
    lookup.load("staged", "reject_id, source::VARCHAR AS source, source_uri")
    sources = {source for source, _ in pairs}
    of_files = "(source::VARCHAR, source_uri) IN (SELECT source, uri FROM files)"
    lookup.load(
        "live",
        "reject_id, source::VARCHAR AS source, source_uri, source_offset",
        where=of_files,
        only=lookup.in_partitions(lambda partition: partition["source"] in sources),
    )
    lookup.run(
        """
        INSERT INTO dropped SELECT 'live', live.file, live.position FROM live
        JOIN files ON live.source = files.source AND live.source_uri = files.uri
        WHERE coalesce(source_offset, 0) >= files."after" OR reject_id IN (SELECT reject_id FROM staged)
        """
    )
    lookup.run(
        """
        INSERT INTO dropped SELECT 'staged', file, position FROM (
            SELECT *, row_number() OVER (PARTITION BY reject_id ORDER BY file, position) AS place FROM staged
        ) WHERE place > 1
        """
    )
    kept = lookup.run("SELECT source, source_uri, count(DISTINCT reject_id) FROM staged GROUP BY ALL")
    return {(source, uri): count for source, uri, count in kept}


def decide_sources(lookup: Lookup, former: Set[tuple[str, str]]) -> None:
    """Drops the live rows of the files (source, uri) that are staged, and of the former ones; of two staged ones the
    later stays.
    """
    lookup.load("staged", "source::VARCHAR AS source, uri")
    sources = {file.partition["source"] for file in lookup.files["staged"]}
    pairs = sorted(former)
    columns = {"source": [source for source, _ in pairs], "uri": [uri for _, uri in pairs]}
    lookup.table_of("former", pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}))
    staged = "(source::VARCHAR, uri) IN (SELECT source, uri FROM staged UNION ALL SELECT source, uri FROM former)"
    lookup.load(
        "live", "uri", where=staged, only=lookup.in_partitions(lambda partition: partition["source"] in sources)
    )
    lookup.run("INSERT INTO dropped SELECT 'live', file, position FROM live")
    lookup.run(
        """
        INSERT INTO dropped SELECT 'staged', file, position FROM (
            SELECT *, row_number() OVER (PARTITION BY source, uri ORDER BY file DESC, position DESC) AS place
            FROM staged
        ) WHERE place > 1
        """
    )
