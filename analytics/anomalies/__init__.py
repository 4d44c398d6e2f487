"""`analyze anomalies`: which metrics left what is usual for them, since when, and why this says so."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.anomalies.exclusions import parse
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.query import Choice, MetricQuery, Query, RollupQuery, SpanQuery, in_rollups
from store.window import Window
from store.zone import zone

F, N, T, TS = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME

STEPS = {"2s": 2, "10s": 10, "1m": 60, "5m": 300, "1h": 3600}
ROLLED_S = 300
AUTO = "auto"
ROLLED_SPAN = timedelta(hours=8)
"""Window from which on rollups of five minutes give enough points (96); shorter ones are read from rows."""
SPANS_AT_MOST = 60_000
"""Spans that the calls between services are read from: whole traces, a random share of them where there are more."""
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
    step: str = param(
        AUTO, "time between points; auto: by the window and the data. 5m and 1h come from rollups, finer from rows",
        choices=(AUTO, *STEPS),
    )  # fmt: skip
    exclude: tuple[str, ...] = param(
        (), "what is no anomaly, to leave out and not to learn from: A..B, series or label=value, sat 02:00..04:00, "
        "until DATE; words of one entry narrow it",
    )  # fmt: skip
    zone: str = param("UTC", "time zone of the hours in exclusions and of those that are learnt")

    def __post_init__(self) -> None:
        """Refuse an exclusion or a zone that says nothing, where it was typed."""
        zone(self.zone)
        for text in self.exclude:
            parse(text)


def inputs(params: AnomaliesParams) -> Mapping[str, Query | Choice]:
    """Every series, requests as rate, error ratio and P99 where the labels allow, and calls between services."""
    where = tuple(pair for pair in params.where if pair[0] != "service")  # whoever it calls, or is called by
    calls = SpanQuery(CALLS, (), where, at_most=SPANS_AT_MOST)
    fine: dict[str, MetricQuery | SpanQuery] = {
        "samples": MetricQuery(params.metrics or FINE_METRICS, params.where),
        "requests": SpanQuery(
            ("ts", "service", "status", "error_code", "ttft_s", "e2e_s"),
            tuple(name for name in params.by if name != "service"), params.where, requests_only=True,
        ),
    }  # fmt: skip
    if params.step != AUTO:
        step_s = STEPS[params.step]
        some = fine if step_s < ROLLED_S else _rolled_metrics(params, step_s) | _rolled_requests(params, step_s)
        return {**some, "calls": calls}
    return {
        "samples": Choice(fine["samples"], lambda w: _rolled_metrics(params, step_of(w)), shorter_than=ROLLED_SPAN),
        "requests": Choice(fine["requests"], lambda w: _rolled_requests(params, step_of(w)), shorter_than=ROLLED_SPAN),
        "calls": calls,
    }


CALLS = ("ts", "trace_id", "span_id", "parent_span_id", "service", "duration_s", "status")


def step_of(window: Window) -> int:
    """Choose the step of a window that is read from rollups: three weeks of five minutes, then hours."""
    return ROLLED_S if window.span <= timedelta(days=21) else 3600


def _rolled_metrics(params: AnomaliesParams, step_s: int) -> dict[str, RollupQuery]:
    return {"metrics": RollupQuery("metrics", where=params.where, step_s=step_s, names=params.metrics)}


def _rolled_requests(params: AnomaliesParams, step_s: int) -> dict[str, RollupQuery]:
    if not in_rollups(params.by, params.where):
        return {}
    return {
        "requests": RollupQuery("requests", params.by, params.where, step_s),
        "latency": RollupQuery(
            "latency", params.by, params.where, step_s, measures=("ttft_s", "e2e_s"), quantiles=(0.5, 0.99)
        ),
    }


ANOMALOUS = Signal("anomalous_series", "", "series that are where they practically never are, now", ("service",))
SHIFTED = Signal("shifted_series", "", "series whose level shifted within the last day", ("service",))

BEYOND = Trigger(
    "MetricAnomalous", ANOMALOUS, 0.0, Severity.WARNING,
    "{value} metrics of {service} are where they practically never are", "metric-anomalous",
)  # fmt: skip
DRIFTING = Signal("drifting_series", "", "series that went one way for days, beyond noise and rhythm", ("service",))
DRIFT = Trigger(
    "MetricDrifting", DRIFTING, 0.0, Severity.INFO,
    "{value} metrics of {service} have drifted for days", "metric-anomalous", hold=timedelta(minutes=10),
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
        Column("kind", T, "value, hour, season, level, drift, flat or missing: see the page of methods"),
        Column(
            "level",
            T,
            "page: rests on the series' own tail or on several of an entity; notice: worth a look; usual: recurs",
        ),
        Column(
            "score", F, "share of the range (value, hour), usual spreads (season, level, drift), points (flat, missing)"
        ),
        Column("value", F, "the value that says so"),
        Column("low", F, "nearest usual value below, or lower edge of the band"),
        Column("high", F, "nearest usual value above, or upper edge"),
        Column("p", F, "probability of such a value by the series' own past; null where the kind has none"),
        Column("reason", T, "in one sentence, why this is unusual"),
    ),
    "causes": (
        Column("service", T, "service whose requests or calls were unusual"),
        Column("start", TS, "start of that incident"),
        Column("measure", T, "what got worse: latency, errors or load"),
        Column("rank", N, "place, the likeliest first"),
        Column("cause", T, "service at which it was added; of load the caller that called more"),
        Column("path", T, "calls that lead there"),
        Column("added", F, "seconds, failed calls or calls that it added within the incident, of the traces read"),
        Column("share", F, "share of all that the services below, or the callers, added", "ratio"),
        Column("moved", T, "metrics of that service that left their usual range with it"),
    ),
    "coverage": (
        Column("series", T, "metric, or a measure of requests"),
        Column("labels", Kind.JSON, "what tells the series from others of the name"),
        Column("points", N, "points within the window", "points"),
        Column("skipped_reason", T, "why it was not judged; null where it was"),
        Column("learnt", T, "what recurs in it and so does not page, with the rule; null where nothing does"),
    ),
    "values": (
        Column("series", T, "metric, or a measure of requests: the first few of the frame of anomalies"),
        Column("labels", Kind.JSON, "what tells the series from others of the name"),
        Column("ts", TS, "start of the step"),
        Column("value", F, "value, in the unit of the series; of thinned ones the most unusual of its stretch"),
        Column("low", F, "usual from, at this hour where there is a season: three spreads below the expected value"),
        Column("high", F, "usual to"),
        Column("unit", T, "unit of the three"),
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
    signals=(ANOMALOUS, SHIFTED, DRIFTING),
    triggers=(BEYOND, LEVEL, DRIFT),
    lookback=timedelta(days=7),
    every=timedelta(minutes=5),
)
