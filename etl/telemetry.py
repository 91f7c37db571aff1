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
    """Name, attributes and value of every sum of a run."""
    told = report.to_json()
    for state, count in told["files"].items():
        if state != "seen":
            yield "files", {"state": state}, count
    for change, count in told["rows"].items():
        yield "rows", {"change": change}, count
    for reason, count in told["rejects"].items():
        yield "rejects", {"reason": reason}, count
    for rule, count in told["ignored"].items():
        yield "ignored", {"rule": rule}, count
    for adapter, sums in told["by_adapter"].items():
        yield "records", {"adapter": adapter}, sums["records_in"]
    yield "seconds", {}, told["seconds"]
    yield "bytes_read", {}, told["bytes_read"]
