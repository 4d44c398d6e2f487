"""Requests with their target and drivers as numbers, whatever the drivers came from."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.drivers import join_metrics, matching, stated_units
from analytics.p99 import AUTO_COLUMNS, AUTO_COVARIATES, AUTO_METRICS, WHO, P99Params, wanted_covariates, wanted_drivers
from store.columns import Kind
from store.query import Where
from store.tables import SPANS

_RESERVED = ("ts", "y", "n", "bucket", "fitted", "trace_id", "span_id", "_row")
"""Columns of the rows themselves; a driver of such a name is shown with its prefix."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """`rows` has ts (sorted), y, labels, trace_id, span_id, _row and one float column per driver.

    `covariates` are those of the drivers that are only adjusted for. `refusal` names drivers that have no data
    anywhere; `dropped` counts requests without a usable target; `units` are those that metrics state.
    """

    rows: pl.DataFrame
    drivers: tuple[str, ...]
    covariates: tuple[str, ...]
    dropped: Mapping[str, int]
    notes: tuple[str, ...]
    refusal: str
    units: Mapping[str, str]


def gather(inputs: Inputs, params: P99Params) -> Gathered:
    """Put the inputs of `analytics.p99.inputs` together. Text that is no finite number counts as missing."""
    requests = inputs["requests"]
    stated = (
        requests["share_read"].drop_nulls() if "share_read" in requests.columns else pl.Series([], dtype=pl.Float64)
    )
    share = float(stated[0]) if stated.len() else 1.0
    needed = ("ts", "service", "trace_id", "span_id", params.target)
    requests = requests.with_columns(pl.lit(None).alias(name) for name in needed if name not in requests.columns)
    usable = requests.with_columns(_number(params.target).alias("y")).drop_nulls(["ts", "y"]).sort("ts")
    lost = requests.height - usable.height
    dropped = {f"{params.target} is not a number": lost} if lost else {}
    metrics = inputs.get("metrics")
    samples = metrics if metrics is not None else pl.DataFrame()
    found, missing = _drivers(usable, samples, params)
    missing = [name for name in missing if _named(name, params)]
    labelled = frames.label_columns(usable, params.by).select("ts", "y", "trace_id", "span_id", *params.by)
    return Gathered(
        rows=labelled.with_columns(found).with_row_index("_row"),
        drivers=tuple(series.name for series in found),
        covariates=tuple(series.name for series in found if series.name in wanted_covariates(params)),
        dropped=dropped,
        notes=(*(f"{n} requests left out: {reason}" for reason, n in dropped.items()), *_sampled(share)),
        refusal=_unknown(missing) if missing and usable.height else "",
        units=stated_units(samples),
    )


def _sampled(share: float) -> tuple[str, ...]:
    return (f"read from {share:.1%} of the traces, chosen by their id: counts are of these",) if share < 1 else ()


def _number(name: str) -> pl.Expr:
    value = pl.col(name).cast(pl.Float64, strict=False)
    return pl.when(value.is_finite()).then(value)


def _drivers(requests: pl.DataFrame, samples: pl.DataFrame, params: P99Params) -> tuple[list[pl.Series], list[str]]:
    """Values of each driver that has any, and the names that have none. A metric goes before an attribute."""
    columns, attributes, names = wanted_drivers(params)
    who = [pl.col(name).cast(pl.String) for name in WHO if name in requests.columns]
    key = requests.select("ts", *who)
    joined = join_metrics(key, matching(samples, _metric_filter(key, params)), names) if samples.height else key
    found: dict[str, pl.Series] = {}
    for source, wanted in ((joined, names), (requests, (*columns, *attributes))):
        for name in wanted:
            if name in source.columns and name not in found and name not in params.by:
                series = source.select(_number(name).alias(_shown(name, params))).to_series()
                if series.null_count() < series.len():
                    found[name] = series
    return list(found.values()), [n for n in dict.fromkeys((*columns, *attributes, *names)) if n not in found]


def _metric_filter(key: pl.DataFrame, params: P99Params) -> Where:
    """Filter of the metrics: that of the requests, but a client's service says nothing of the engine it calls."""
    calls = "server_address" in key.columns and key["server_address"].null_count() < key.height
    return tuple(one for one in params.where if not (calls and one[0] == "service"))


def _named(name: str, params: P99Params) -> bool:
    """Whether a person asked for this name; what `auto` would like may be missing."""
    drivers, covariates = params.drivers != ("auto",), params.covariates != ("auto",)
    return covariates if name in wanted_covariates(params) else drivers


def _shown(name: str, params: P99Params) -> str:
    return f"attr:{name}" if name in _RESERVED or name in params.by else name


def _unknown(missing: list[str]) -> str:
    numeric = [c.name for c in SPANS.columns if c.kind in (Kind.INT, Kind.FLOAT)]
    known = list(dict.fromkeys((*AUTO_COLUMNS, *AUTO_COVARIATES, *AUTO_METRICS, *numeric)))
    parts = []
    for name in missing:
        near = get_close_matches(name, known, 3, 0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"drivers known by name: {', '.join(known[:10])}"
        parts.append(f"driver {name} has no data here: no span column, attribute or metric with values; {hint}")
    return "; ".join(parts)
