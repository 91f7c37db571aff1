"""What runs did, as OpenTelemetry metrics: `pip install "rollout-etl[otel]"`, and the exporter's own environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from etl.errors import EtlError, MissingExtraError
from etl.report import Report

TIMEOUT_S = 10


def send(reports: Sequence[Report]) -> None:
    """Sends the sums of some runs once, over OTLP/HTTP; EtlError where the endpoint does not take them."""
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricExportResult
        from opentelemetry.sdk.resources import Resource
    except ImportError:
        raise MissingExtraError(
            'metrics were not sent: they need OpenTelemetry: pip install "rollout-etl[otel]"'
        ) from None
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], resource=Resource.create({"service.name": "rollout-etl"}))
    meter = provider.get_meter("etl")
    counters: dict[str, Any] = {}
    for report in reports:
        for name, attributes, value in _sums(report):
            if name not in counters:
                counters[name] = meter.create_counter(f"etl.{name}")
            counters[name].add(value, attributes)
    gathered = reader.get_metrics_data()
    provider.shutdown()
    exporter = OTLPMetricExporter(timeout=TIMEOUT_S)
    result = exporter.export(gathered) if gathered is not None else MetricExportResult.SUCCESS
    exporter.shutdown()
    if result is not MetricExportResult.SUCCESS:
        raise EtlError("metrics were not sent: the OpenTelemetry endpoint does not take them")


def _sums(report: Report) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Name, attributes and value of every sum of a run; each with the source, where all of it is of one."""
    told = report.to_json()
    sources = report.looked_at.union(source for source, _adapter in report.sums)
    of = {"source": next(iter(sources))} if len(sources) == 1 else {}
    for state, count in told["files"].items():
        if state != "seen":
            yield "files", {**of, "state": state}, count
    for change, count in told["rows"].items():
        yield "rows", {**of, "change": change}, count
    for reason, count in told["rejects"].items():
        yield "rejects", {**of, "reason": reason}, count
    for rule, count in told["ignored"].items():
        yield "ignored", {**of, "rule": rule}, count
    for (source, adapter), sums in report.sums.items():
        if adapter is not None:
            yield "records", {"source": source, "adapter": adapter}, sums.records_in
    yield "seconds", of, told["seconds"]
    yield "bytes_read", of, told["bytes_read"]
