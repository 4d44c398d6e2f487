"""What `--label` says, on spans and on OTLP metrics: a column or resource of that name, else an attribute."""

from collections.abc import Mapping
from typing import Any

import orjson
import polars as pl

from store.columns import Kind
from store.errors import UsageError
from store.tables import SPANS, TOKEN_ARRIVALS

_RESOURCE_LABELS = {"service": "service.name", "host": "host.name", "environment": "deployment.environment.name"}


def label_requests(frames: Mapping[str, pl.DataFrame], labels: Mapping[str, str]) -> dict[str, pl.DataFrame]:
    """Return frames with labels set on their spans, and the service on what is kept apart of them.

    Raises UsageError for a label that names a column of numbers, times or JSON.
    """
    found = dict(frames)
    if SPANS.name in found:
        found[SPANS.name] = _label_spans(found[SPANS.name], labels)
    if TOKEN_ARRIVALS.name in found and "service" in labels:
        found[TOKEN_ARRIVALS.name] = found[TOKEN_ARRIVALS.name].with_columns(service=pl.lit(labels["service"]))
    return found


def _label_spans(spans: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
    """Return spans with the labels set; they win over what the file says, for the person at the terminal knows."""
    columns = {name: text for name, text in labels.items() if _is_text(name)}
    rest = {name: text for name, text in labels.items() if name not in columns}
    spans = spans.with_columns(pl.lit(text).alias(name) for name, text in columns.items())
    if not rest:
        return spans
    merged = [orjson.dumps({**orjson.loads(text or "{}"), **rest}).decode() for text in spans["attributes"]]
    return spans.with_columns(pl.Series("attributes", merged, pl.String))


def _is_text(name: str) -> bool:
    column = SPANS.column(name)
    if column is not None and column.kind is not Kind.TEXT:
        raise UsageError(f"--label {name} would set a field of numbers, times or JSON", "leave that label out")
    return column is not None


def label_metrics(document: dict[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Set labels in an OTLP/JSON document of metrics: those of a resource in each resource, others in each point."""
    resources = {_RESOURCE_LABELS[name]: text for name, text in labels.items() if name in _RESOURCE_LABELS}
    points = {name: text for name, text in labels.items() if name not in _RESOURCE_LABELS}
    for group in _maps(document["resourceMetrics"]):
        resource = group.setdefault("resource", {})
        if isinstance(resource, dict):
            _set(resource, resources)
        _label_points(group, points)
    return document


def _label_points(part: Any, labels: Mapping[str, str]) -> None:
    if isinstance(part, list):
        for item in part:
            _label_points(item, labels)
    elif isinstance(part, dict):
        for point in _maps(part.get("dataPoints")):
            _set(point, labels)
        for value in part.values():
            _label_points(value, labels)


def _set(holder: dict[str, Any], labels: Mapping[str, str]) -> None:
    """Set attributes of a resource or a data point; they win over those of the same name."""
    kept = [pair for pair in _maps(holder.get("attributes")) if pair.get("key") not in labels]
    holder["attributes"] = kept + [{"key": name, "value": {"stringValue": text}} for name, text in labels.items()]


def _maps(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
