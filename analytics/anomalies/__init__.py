"""`analyze anomalies`: which metrics left what is usual for them, since when, and why this says so."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.query import MetricQuery, Query, RollupQuery, SpanQuery, in_rollups
from store.window import Window

F, N, T, TS = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME

STEPS = {"2s": 2, "10s": 10, "1m": 60, "5m": 300, "1h": 3600}
ROLLED_S = 300
FINE_METRICS = (
    "requests_waiting", "requests_running", "kv_cache_usage_ratio", "preemptions_total", "prompt_tokens_total",
    "generation_tokens_total", "gpu_utilization_ratio", "gpu_temperature_celsius", "gpu_power_watts",
    "gpu_memory_used_bytes", "cpu_utilization_ratio", "cpu_pressure_ratio", "host_pressure_ratio",
)  # fmt: skip
"""Metrics read at steps finer than the rollups where none are named: all of them would be every raw sample."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnomaliesParams(Params):
    """Parameters of `analyze anomalies`."""

    metrics: tuple[str, ...] = param((), "metrics to look at; none for all (at steps below 5m: a choice of them)")
    step: str = param("5m", "time between points: 5m and 1h come from rollups, finer from rows", choices=tuple(STEPS))
    exclude: tuple[str, ...] = param(
        (), "known incidents or maintenance to leave out and not to learn from (A..B), or series (name, label=value)"
    )


def inputs(params: AnomaliesParams) -> Mapping[str, Query]:
    """Every series, and requests as rate, error ratio and P99 where the labels allow."""
    step_s = STEPS[params.step]
    if step_s < ROLLED_S:
        return {
            "samples": MetricQuery(params.metrics or FINE_METRICS, params.where),
            "requests": SpanQuery(
                ("ts", "service", "status", "error_code", "ttft_s", "e2e_s"),
                tuple(name for name in params.by if name != "service"), params.where, requests_only=True,
            ),
        }  # fmt: skip
    asked: dict[str, Query] = {
        "metrics": RollupQuery("metrics", where=params.where, step_s=step_s, names=params.metrics)
    }
    if in_rollups(params.by, params.where):
        asked["requests"] = RollupQuery("requests", params.by, params.where, step_s)
        asked["latency"] = RollupQuery(
            "latency", params.by, params.where, step_s, measures=("ttft_s", "e2e_s"), quantiles=(0.5, 0.99)
        )
    return asked


ANOMALOUS = Signal("anomalous_series", "", "series that are where they practically never are, now", ("service",))
SHIFTED = Signal("shifted_series", "", "series whose level shifted within the last day", ("service",))

BEYOND = Trigger(
    "MetricAnomalous", ANOMALOUS, 0.0, Severity.WARNING,
    "{value} metrics of {service} are where they practically never are", "metric-anomalous",
)  # fmt: skip
LEVEL = Trigger(
    "MetricLevelShifted", SHIFTED, 0.0, Severity.INFO,
    "the level of {value} metrics of {service} shifted", "metric-anomalous", hold=timedelta(minutes=10),
)  # fmt: skip

FRAMES = {
    "anomalies": (
        Column("series", T, "metric, or a measure of requests"),
        Column("labels", Kind.JSON, "what tells the series from others of the name"),
        Column("start", TS, "first point of the episode"),
        Column("end", TS, "end of its last point; null while it lasts"),
        Column("kind", T, "value, hour, season, level, flat or missing: see the page of methods"),
        Column("level", T, "page: rests on the series' own tail or on several of an entity; notice: worth a look"),
        Column("score", F, "share of the range (value, hour), usual spreads (season, level), points (flat, missing)"),
        Column("value", F, "the value that says so"),
        Column("low", F, "nearest usual value below, or lower edge of the band"),
        Column("high", F, "nearest usual value above, or upper edge"),
        Column("p", F, "probability of such a value by the series' own past; null where the kind has none"),
        Column("reason", T, "in one sentence, why this is unusual"),
    ),
    "coverage": (
        Column("series", T, "metric, or a measure of requests"),
        Column("labels", Kind.JSON, "what tells the series from others of the name"),
        Column("points", N, "points within the window", "points"),
        Column("skipped_reason", T, "why it was not judged; null where it was"),
    ),
}


def run(inputs: Inputs, params: AnomaliesParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.anomalies.answer`."""
    from analytics.anomalies.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="anomalies",
    title="What is unusual",
    doc=(
        "Looks at every metric and at requests for values never seen before, unusual ones for the hour, shifts of "
        "level, series that stand still or stop; without a look at the future, quiet on noise, each with its reason."
    ),
    params=AnomaliesParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(ANOMALOUS, SHIFTED),
    triggers=(BEYOND, LEVEL),
    lookback=timedelta(days=7),
    every=timedelta(minutes=5),
)
