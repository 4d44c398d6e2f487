"""A traced request, and how many of them become rows of `spans` and `request_blocks`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import polars as pl

from collector.files.identity import derived_ids
from collector.files.options import ImportOptions
from collector.files.times import Clock, read_times
from store.errors import UsageError
from store.tables import INFERENCE_OPERATIONS, REQUEST_BLOCKS, SPANS

CONVERSATION = "gen_ai.conversation.id"
"""Attribute of a span for the session it belongs to, as OpenTelemetry calls it."""
_OPERATION = INFERENCE_OPERATIONS[-1]


@dataclass(frozen=True, slots=True)
class Traced:
    """One request of a trace: what identifies it, its time (in the unit of its trace), and the blocks of its prompt."""

    text: str
    time: float
    blocks: Sequence[int]
    service: str | None = None
    conversation: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """What a form of trace says by being one: unit of its times, size of a block and what that is counted in."""

    clock_unit: str
    block_size: int
    block_unit: str


def frames_of(
    requests: Sequence[Traced], layout: Layout, options: ImportOptions, stem: str
) -> tuple[dict[str, pl.DataFrame], str]:
    """Return the rows of requests by table, and how their times were read; `stem` is the service none is named for."""
    labels = _labels(options)
    times = read_times(
        pl.Series("ts", [request.time for request in requests]),
        Clock(layout.clock_unit, options.time_zone, options.start),
    )
    salt = ",".join(f"{name}={text}" for name, text in sorted(options.labels.items()))
    trace_ids, span_ids = derived_ids(pl.Series([request.text for request in requests], dtype=pl.String), salt)
    service = [labels.get("service") or request.service or stem for request in requests]
    common = {"trace_id": trace_ids, "span_id": span_ids, "ts": times.ts, "service": service}
    extra = {name: text for name, text in options.labels.items() if name not in labels}
    spans = pl.DataFrame(
        {
            **common,
            "input_tokens": pl.Series([request.input_tokens for request in requests], dtype=pl.Int64),
            "output_tokens": pl.Series([request.output_tokens for request in requests], dtype=pl.Int64),
            "attributes": [_attributes(request, extra) for request in requests],
        }
    ).with_columns(
        pl.lit(_OPERATION).alias("operation"),
        pl.lit(_OPERATION).alias("name"),
        pl.lit("client").alias("kind"),
        pl.lit("unset").alias("status"),
        *(pl.lit(text).alias(name) for name, text in labels.items() if name != "service"),
    )
    blocks = pl.DataFrame(
        {
            **common,
            "conversation": pl.Series([request.conversation for request in requests], dtype=pl.String),
            "block_hashes": pl.Series([request.blocks for request in requests], dtype=pl.List(pl.UInt64)),
        }
    ).with_columns(block_size=pl.lit(layout.block_size), unit=pl.lit(layout.block_unit))
    return {SPANS.name: SPANS.conform(spans), REQUEST_BLOCKS.name: REQUEST_BLOCKS.conform(blocks)}, times.reading


def _labels(options: ImportOptions) -> dict[str, str]:
    """Return the labels that are columns of a request. Raises UsageError for one that a trace itself fills."""
    found = {name: text for name, text in options.labels.items() if SPANS.column(name) is not None}
    for name in found:
        if name not in ("service", "environment", "host", "cluster", "model", "provider", "server_address"):
            raise UsageError(f"--label {name} is nothing that can be said of every request of a trace")
    return found


def _attributes(request: Traced, extra: Mapping[str, str]) -> str | None:
    session = {} if request.conversation is None else {CONVERSATION: request.conversation}
    known = {**request.attributes, **session, **extra}
    return orjson.dumps(known).decode() if known else None
