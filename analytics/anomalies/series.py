"""From rollups or rows to evenly spaced points of many series: levels as means, counters as growth per second."""

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics import frames
from analytics.analysis import Inputs
from analytics.anomalies import AUTO, ROLLED_S, STEPS, AnomaliesParams, step_of
from analytics.anomalies.exclusions import parse
from analytics.anomalies.masks import at_times, of_series
from analytics.metrics import counters
from analytics.root_cause import entries
from store.window import Window

Floats = NDArray[np.float64]
MOST_POINTS = 2400
"""Points of a series from which on a coarser step is chosen; as many as eight days of five minutes."""
CALL_TIME, CALL_ERRORS = "call duration p50", "call error ratio"
MOST_SERIES = 5000
"""Series judged in one run, those with the most points first."""
LEAST_POINTS = 60
LEAST_REQUESTS = 20
"""Requests in a step with fewer of which it has no error ratio and no quantile."""
KEYS = ("source", "name", "unit", "entity", "labels")
FIRST = ("host", "instance", "gpu", "device", "direction", "outcome", "code")
"""Labels that tell series apart best, for the reader; then by name."""
_CUMULATIVE = "_total$|_sum$|_count$"
_SKIPPED = "_info$|_created$|_bucket$"


@dataclass(frozen=True)
class Series:
    """What a column of the grid is: its name, unit, entity (instance or service), labels as JSON, and those of `by`."""

    name: str
    unit: str
    entity: str
    labels: str
    by: dict[str, str]


@dataclass(frozen=True)
class Grid:
    """Points x series with the times of the rows, the long rows they came from, and series that are not judged.

    `withheld` says which points an exclusion of that series took; `step` is the time between rows in seconds,
    `taken` how many points of single series were left out by an exclusion, of those not judged for that too.
    """

    values: Floats
    seconds: NDArray[np.int64]
    series: list[Series]
    rows: pl.DataFrame
    skipped: list[tuple[Series, int, str]]
    withheld: NDArray[np.bool_]
    step: int
    taken: int


def step_for(inputs: Inputs, params: AnomaliesParams, window: Window) -> int:
    """Return the step in seconds: as given, of the rollups where these are read, else by how often samples came.

    Of rows: the least step that no series comes more rarely than and that gives at most MOST_POINTS.
    """
    if params.step != AUTO:
        return STEPS[params.step]
    if "metrics" in inputs:
        return step_of(window)
    apart = _spacing(inputs["samples"])
    fine = [step for step in STEPS.values() if step < ROLLED_S]
    enough = (step for step in fine if step >= 0.9 * apart and window.span.total_seconds() <= MOST_POINTS * step)
    return next(enough, fine[-1])


def _spacing(samples: pl.DataFrame) -> float:
    """Median time between samples of a series, of the series the largest but a tenth; 10 s where there are none."""
    gaps = samples.drop_nulls("ts").group_by("series_id").agg(pl.col("ts").unique().sort().diff().median().alias("gap"))
    usual = gaps.select(pl.col("gap").dt.total_microseconds().quantile(0.9)).item() if gaps.height else None
    return float(usual) / 1e6 if usual is not None else 10.0


def grid(inputs: Inputs, params: AnomaliesParams, window: Window) -> Grid:
    """Put all series on the steps that lie wholly within the window and outside of excluded times."""
    step = step_for(inputs, params, window)
    long = _long(inputs, params, step)
    first = -(-int(window.start.timestamp()) // step) * step
    last = int(window.end.timestamp()) // step * step
    rules = [parse(text) for text in params.exclude]
    gone = [at_times(rule, step, params.zone) for rule in rules if rule.everywhere]
    every = pl.DataFrame({"s": np.arange(first, max(last, first), step, dtype=np.int64)})
    seconds = every.filter(~pl.any_horizontal(pl.lit(value=False), *gone))["s"].to_numpy()
    long = long.filter(pl.col("s").is_in(seconds.tolist()))
    some, whole = [rule for rule in rules if not rule.everywhere], long.height
    left_out = [of_series(rule) for rule in some if rule.always]
    long = long.filter(~pl.any_horizontal(pl.lit(value=False), *left_out))
    at_hours = [of_series(rule) & at_times(rule, step, params.zone) for rule in some if not rule.always]
    taken = long.filter(pl.any_horizontal(pl.lit(value=False), *at_hours)) if at_hours else long.clear()
    long = long.filter(~pl.any_horizontal(pl.lit(value=False), *at_hours)) if at_hours else long
    known = long.group_by([*KEYS, *params.by], maintain_order=True).agg(
        pl.col("value").count().alias("points"), pl.col("value").n_unique().alias("different")
    )
    known = known.sort("points", *KEYS, descending=[True, *[False] * len(KEYS)])
    judged = known.filter(pl.col("points") >= LEAST_POINTS, pl.col("different") > 1).head(MOST_SERIES)
    judged = judged.with_row_index("column")
    placed = long.join(judged, on=[*KEYS, *params.by], nulls_equal=True)
    values = np.full((len(seconds), judged.height), np.nan)
    rows = np.searchsorted(seconds, placed["s"].to_numpy())
    values[rows, placed["column"].to_numpy()] = placed["value"].fill_null(np.nan).to_numpy()
    values[~np.isfinite(values)] = np.nan
    withheld = np.zeros(values.shape, bool)
    held = taken.join(judged, on=[*KEYS, *params.by], nulls_equal=True)
    withheld[np.searchsorted(seconds, held["s"].to_numpy()), held["column"].to_numpy()] = True
    there = np.isfinite(values).any(axis=1)  # nothing at all was collected in the other rows: no series is to blame
    values, seconds, withheld = values[there], seconds[there], withheld[there]
    rest = known.join(judged, on=[*KEYS, *params.by], how="anti", nulls_equal=True)
    both = [*judged.iter_rows(named=True), *rest.iter_rows(named=True)]
    series = _distinguished([_series(row, params) for row in both])
    left = zip(series[judged.height :], both[judged.height :], strict=True)
    skipped = [(one, int(row["points"]), _reason(row, step)) for one, row in left]
    return Grid(values, seconds, series[: judged.height], placed, skipped, withheld, step, whole - long.height)


def _distinguished(series: list[Series]) -> list[Series]:
    """Keep, of the labels of each, the service and the fewest others that tell the series of its name apart."""
    by_name: dict[str, list[dict[str, str]]] = defaultdict(list)
    read = [json.loads(one.labels) for one in series]
    for one, labels in zip(series, read, strict=True):
        by_name[one.name].append(labels)
    kept = {name: _telling(labels) for name, labels in by_name.items()}
    return [
        replace(one, labels=json.dumps({key: labels[key] for key in kept[one.name] if key in labels}))
        for one, labels in zip(series, read, strict=True)
    ]


def _telling(labels: list[dict[str, str]]) -> list[str]:
    """Label keys that, added one by one, split the series further."""
    chosen, parts = ["service"], len({one.get("service") for one in labels})
    keys = {key for one in labels for key in one if key != "service"}
    for key in sorted(keys, key=lambda k: (FIRST.index(k) if k in FIRST else len(FIRST), k)):
        split = len({tuple(one.get(k) for k in (*chosen, key)) for one in labels})
        if split > parts:
            chosen, parts = [*chosen, key], split
    return chosen


def _reason(row: dict[str, object], step: int) -> str:
    if int(str(row["points"])) < LEAST_POINTS:
        return f"fewer than {LEAST_POINTS} points of {named(step)}"
    return "one value only" if row["different"] == 1 else f"beyond the {MOST_SERIES} series with the most points"


def _series(row: dict[str, object], params: AnomaliesParams) -> Series:
    name, unit, entity, labels = (str(row[key] or "") for key in KEYS[1:])
    return Series(name, unit, entity, labels, {key: str(row[key]) for key in params.by})


def named(step: int) -> str:
    """Write a step as the parameter does."""
    return next(name for name, seconds in STEPS.items() if seconds == step)


def _long(inputs: Inputs, params: AnomaliesParams, step: int) -> pl.DataFrame:
    """Rows of s (Unix seconds of the step), value, KEYS and the labels of `by`."""
    parts = []
    if "samples" in inputs:
        parts = [_sampled(inputs["samples"], params, step), _requested(inputs["requests"], params, step)]
    else:
        parts = [_metrics(inputs["metrics"], params, step)]
        if "latency" in inputs:
            parts += [_rolled(inputs["requests"], inputs["latency"], params, step)]
    if "calls" in inputs and "service" in params.by:
        asking = inputs["requests"]["service"].unique().to_list() if "requests" in inputs else []
        parts += [_called(inputs["calls"], asking, params, step)]
    columns = ["s", "value", *KEYS, *params.by]
    return pl.concat([part.select(columns) for part in parts], how="vertical_relaxed")


def _cumulative() -> pl.Expr:
    by_name = pl.col("name").str.contains(_CUMULATIVE) | pl.col("raw").str.contains(_CUMULATIVE)
    return by_name | pl.col("kind").eq_missing("counter")


def _named(rows: pl.DataFrame, params: AnomaliesParams) -> pl.DataFrame:
    """Add what a metric's series is called: unit (per second of counters), entity, all its labels as JSON, `by`."""
    unit = pl.col("unit").fill_null("")
    rows = rows.with_columns(
        pl.when(pl.col("cumulative")).then(pl.format("{}/s", unit)).otherwise(unit).alias("unit"),
        pl.coalesce("instance", "service", pl.lit("")).alias("entity"),
        pl.lit("metrics").alias("source"),
    )
    labelled = [_label(name).cast(pl.String).fill_null("").alias(f"by:{name}") for name in params.by]
    rows = rows.with_columns(labelled)
    told = rows.select("series_id", "labels", "instance", "service").unique("series_id", maintain_order=True)
    texts = [_labels(text, instance, service) for _, text, instance, service in told.iter_rows()]
    told = told.select("series_id").with_columns(pl.Series("all", texts, pl.String))
    rows = rows.join(told, on="series_id", how="left", nulls_equal=True).with_columns(pl.col("all").alias("labels"))
    return rows.drop([name for name in params.by if name in rows.columns]).rename({f"by:{n}": n for n in params.by})


def _label(name: str) -> pl.Expr:
    return (
        pl.col(name) if name in ("service", "instance", "job") else pl.col("labels").str.json_path_match(f"$['{name}']")
    )


def _labels(text: str | None, instance: str | None, service: str | None) -> str:
    try:
        labels = json.loads(text or "{}")
    except ValueError:
        labels = {}
    more = {k: v for k, v in (("service", service), ("instance", instance)) if v}
    return json.dumps((labels if isinstance(labels, dict) else {}) | more, sort_keys=True)


def _metrics(rolled: pl.DataFrame, params: AnomaliesParams, step: int) -> pl.DataFrame:
    rows = rolled.filter(~pl.col("name").str.contains(_SKIPPED)).with_columns(
        _cumulative().fill_null(value=False).alias("cumulative"), _seconds("bucket", step)
    )
    mean = pl.when(pl.col("n") > 0).then(pl.col("sum") / pl.col("n"))
    rows = rows.sort("series_id", "bucket")
    apart = (pl.col("last_ts") - pl.col("last_ts").shift(1).over("series_id")).dt.total_microseconds() / 1e6
    growth = pl.when((pl.col("n") > 0) & (apart > 0)).then(pl.col("increase") / apart)
    rows = rows.with_columns(pl.when(pl.col("cumulative")).then(growth).otherwise(mean).alias("value"))
    return _named(rows, params)


def _seconds(name: str, step: int) -> pl.Expr:
    return (pl.col(name).dt.epoch("s") // step * step).alias("s")


def _sampled(samples: pl.DataFrame, params: AnomaliesParams, step: int) -> pl.DataFrame:
    """Raw samples by step: mean of levels; growth of counters, shared out where scrapes are farther apart."""
    kinds = ("unit", "kind", "raw")
    rows = samples.with_columns(
        *(pl.lit(None, pl.String).alias(name) for name in kinds if name not in samples.columns)
    ).with_columns(_cumulative().fill_null(value=False).alias("cumulative"))
    grown = counters.steps(rows.filter("cumulative")).select("series_id", "ts", "step", "since")
    apart = (pl.col("ts") - pl.col("since")).dt.total_microseconds() / 1e6
    grown = grown.with_columns(pl.when(apart > 0).then(pl.col("step") / apart).alias("growth"))
    rows = rows.join(grown.select("series_id", "ts", "growth"), on=["series_id", "ts"], how="left", nulls_equal=True)
    value = pl.when(pl.col("cumulative")).then(pl.col("growth")).otherwise(pl.col("value"))
    rows = rows.filter(~pl.col("name").str.contains(_SKIPPED)).with_columns(value.alias("value"), _seconds("ts", step))
    about = [pl.col(c).first() for c in rows.columns if c not in ("ts", "value", "growth", "series_id", "s", "name")]
    return _named(
        rows.group_by("series_id", "s", "name", maintain_order=True).agg(pl.col("value").mean(), *about), params
    )


def _rolled(requests: pl.DataFrame, latency: pl.DataFrame, params: AnomaliesParams, step: int) -> pl.DataFrame:
    counts = frames.label_columns(requests, params.by).with_columns(_seconds("bucket", step))
    times = frames.label_columns(latency, params.by).with_columns(_seconds("bucket", step))
    n = pl.col("requests")
    parts = [(counts, "request rate", "requests/s", n / step)]
    parts += [(counts.filter(n >= LEAST_REQUESTS), "error ratio", "ratio", pl.col("errors") / n)]
    for measure in ("ttft_s", "e2e_s"):
        some = times.filter(pl.col("measure") == measure, pl.col("n") >= LEAST_REQUESTS)
        parts += [(some, f"{measure[:-2]} {q}", "s", pl.col(q)) for q in ("p50", "p99")]
    return _measures(parts, params)


def _requested(requests: pl.DataFrame, params: AnomaliesParams, step: int) -> pl.DataFrame:
    failed = pl.col("status").eq_missing(pl.lit("error")) | pl.col("error_code").is_not_null()
    rows = frames.label_columns(requests, params.by).drop_nulls("ts").with_columns(_seconds("ts", step))
    counts = rows.group_by([*params.by, "s"], maintain_order=True).agg(
        pl.len().alias("requests"), failed.sum().alias("errors"), pl.col("ttft_s").median().alias("ttft"),
        pl.col("e2e_s").median().alias("e2e"),
    )  # fmt: skip
    n = pl.col("requests")
    parts = [(counts, "request rate", "requests/s", n / step)]
    parts += [(counts.filter(n >= 5), "error ratio", "ratio", pl.col("errors") / n)]
    return _measures([*parts, *((counts, f"{name} p50", "s", pl.col(name)) for name in ("ttft", "e2e"))], params)


def _measures(parts: list[tuple[pl.DataFrame, str, str, pl.Expr]], params: AnomaliesParams) -> pl.DataFrame:
    by = list(params.by)
    labels = pl.struct(by).struct.json_encode() if by else pl.lit("{}")
    entity = pl.concat_str(by, separator=", ") if by else pl.lit("all requests")
    return pl.concat(
        rows.select(
            "s", *by, value.cast(pl.Float64).alias("value"), pl.lit("requests").alias("source"),
            pl.lit(name).alias("name"), pl.lit(unit).alias("unit"), entity.alias("entity"), labels.alias("labels"),
        )
        for rows, name, unit, value in parts
    )  # fmt: skip


def _called(spans: pl.DataFrame, asking: list[str], params: AnomaliesParams, step: int) -> pl.DataFrame:
    """Measure calls of services that make no model requests (others have better): median duration, error ratio."""
    asked = [value for key, value in params.where if key == "service"]
    others = ~pl.col("service").is_in(asking) & (pl.col("service").is_in(asked) if asked else pl.lit(value=True))
    rows = entries(spans.filter(others)).drop_nulls(["ts", "service"])
    rows = frames.label_columns(rows, params.by).with_columns(_seconds("ts", step))
    counts = rows.group_by([*params.by, "s"], maintain_order=True).agg(
        pl.len().alias("calls"), pl.col("duration_s").median().alias("middle"),
        pl.col("status").eq_missing(pl.lit("error")).mean().alias("failed"),
    ).filter(pl.col("calls") >= LEAST_REQUESTS)  # fmt: skip
    parts = [(counts, CALL_TIME, "s", pl.col("middle")), (counts, CALL_ERRORS, "ratio", pl.col("failed"))]
    return _measures(parts, params)


def at(seconds: int) -> datetime:
    """Naive UTC time of Unix seconds."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
