"""`analyze slo`: how much of each error budget is left, and whether it burns too fast."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.result import Result, Severity, Signal, Trigger
from analytics.slo.objective import Slo, parse
from store.columns import Column, Kind
from store.errors import UsageError
from store.query import ROLLUP_DIMENSIONS, Query, RollupQuery, SpanQuery, in_rollups
from store.tables import SPANS
from store.window import Window

F, N, T, TS = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.TIME
AT_MOST = 1_000_000
STEP_S = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class SloParams(Params):
    """Parameters of `analyze slo`."""

    by: tuple[str, ...] = param((), "labels that each have a budget of their own; none: one per SLO")
    slos: tuple[str, ...] = param(
        (), "such as 'chat-ttft: ttft_s<=2 @0.99 over 30d where service=chat'; default: slos of infractl.yaml"
    )
    failed: str = param(
        "bad",
        "requests that failed and state no latency, where one limit is the indicator",
        choices=("bad", "left out"),
    )

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that budgets can be kept by."""
        return tuple(name for name in self.by if name in ROLLUP_DIMENSIONS)


def inputs(params: SloParams) -> Mapping[str, Query]:
    """Ask, per SLO, for its good and all requests in buckets of 5 minutes; without SLOs, for what to suggest."""
    if not params.slos:
        return {"suggest": RollupQuery("latency", ("service",), params.where, None, ("ttft_s", "e2e_s"), (0.95, 0.99))}
    slos = [parse(text) for text in params.slos]
    names = [slo.name for slo in slos]
    if len(set(names)) < len(names):
        raise UsageError(f"two SLOs have one name: {', '.join(names)}", "give each a name of its own")
    asked = {slo.name: query(slo, params) for slo in slos}
    for slo in slos:
        if params.failed == "bad" and isinstance(asked[slo.name], RollupQuery) and slo.limits and not _of_tokens(slo):
            asked[beside(slo)] = RollupQuery("requests", params.labels, (*params.where, *slo.where), STEP_S)
    return asked


def beside(slo: Slo) -> str:
    """Name of the input that counts all requests of an SLO on one limit."""
    return f"{slo.name}: requests"  # no SLO has a colon in its name


def _of_tokens(slo: Slo) -> bool:
    return slo.measures == ("gap_s",)


def query(slo: Slo, params: SloParams) -> Query:
    """Ask for the requests of one SLO: rollups where one limit or errors say it, rows where limits go together."""
    where = (*params.where, *slo.where)
    if slo.counters is not None:
        return RollupQuery("metrics", (), where, STEP_S, names=slo.counters.names)
    if not in_rollups((), where) or len(slo.limits) > 1:
        names = dict.fromkeys(("ts", "status", "error_code", *slo.measures, *params.labels))
        return SpanQuery(tuple(n for n in names if SPANS.column(n)), where=where, requests_only=True, at_most=AT_MOST)
    if not slo.limits:
        return RollupQuery("requests", params.labels, where, STEP_S)
    (measure, limit), *_ = slo.limits
    return RollupQuery("latency", params.labels, where, STEP_S, (measure,), limits=(limit,))


LABELS = ("slo",)
LEFT = Signal("slo_budget_left_ratio", "", "share of the error budget that is left; negative: overspent", LABELS)
FAST = Signal(
    "slo_burn_fast", "", "burn rate that both 1h (its lower 95 % limit) and 5m show; null: too few requests", LABELS
)
SLOW = Signal(
    "slo_burn_slow", "", "burn rate that both 6h (its lower 95 % limit) and 30m show; null: too few requests", LABELS
)
STEADY = Signal(
    "slo_burn_steady", "", "burn rate that both 3d (its lower 95 % limit) and 6h show; null: too few requests", LABELS
)


@dataclass(frozen=True, slots=True)
class Rule:
    """A pair of windows and the burn rate both must exceed (Google SRE workbook, chapter 5, table 5-8)."""

    signal: Signal
    trigger: Trigger
    long: timedelta
    short: timedelta


def _rule(
    signal: Signal, name: str, factor: float, severity: Severity, long_h: int, short_m: int, runbook: str
) -> Rule:
    summary = "SLO {slo} burns its budget at least {value} times as fast as it lasts"
    trigger = Trigger(name, signal, factor, severity, summary, runbook, hold=timedelta(0))
    return Rule(signal, trigger, timedelta(hours=long_h), timedelta(minutes=short_m))


RULES = (
    _rule(FAST, "SloBurnsFast", 14.4, Severity.CRITICAL, 1, 5, "slo-burn"),
    _rule(SLOW, "SloBurns", 6.0, Severity.CRITICAL, 6, 30, "slo-burn"),
    _rule(STEADY, "SloBurnsSteadily", 1.0, Severity.WARNING, 72, 360, "slo-burn"),
)
"""2 % of a 30-day budget in an hour, 5 % in six hours, 10 % in three days."""
LEAST_LONG = 100
"""Requests in the long window below which no alert is given: with six, a single slow one is a burn rate of 17."""
LEAST_SLICES = 6
"""Slices of time in the long window: each stands for all of its requests."""

BURN = {
    "burn_5m": timedelta(minutes=5),
    "burn_30m": timedelta(minutes=30),
    "burn_1h": timedelta(hours=1),
    "burn_2h": timedelta(hours=2),
    "burn_6h": timedelta(hours=6),
    "burn_3d": timedelta(days=3),
}
FRAMES = {
    "slos": (
        Column("slo", T, "name"),
        Column("objective", F, "share that must be good", "ratio"),
        Column("sli", F, "share that was good; null without requests", "ratio"),
        Column("sli_low", F, "lower 95 % Wilson limit", "ratio"),
        Column("sli_high", F, "upper 95 % Wilson limit", "ratio"),
        Column("budget_left", F, "1 - bad / allowed; negative: overspent", "ratio"),
        Column("bad", N, "requests that were not good", "requests"),
        Column("n", N, "requests that count", "requests"),
        *(Column(name, F, f"share bad over what is allowed, last {name[5:]}; null without requests") for name in BURN),
        Column(
            "exhausted_in_s", F, "until the budget is spent at the rate of the last 6h; null: not at this rate", "s"
        ),
        Column("indicator", T, "what makes a request good"),
        Column("over_s", F, "time the budget is for", "s"),
        Column("covered_s", F, "of that: from the first stored request on, within the window", "s"),
        Column("state", T, "ok, burning, overspent, or no verdict"),
    ),
    "timeline": (
        Column("slo", T, "name"),
        Column("ts", TS, "start of the bucket"),
        Column("n", N, "requests", "requests"),
        Column("bad", N, "of these: not good", "requests"),
        Column("burn_1h", F, "burn rate of the hour up to the bucket's end; null without requests"),
        Column("budget_left", F, "share of the budget left at the bucket's end", "ratio"),
    ),
}


def run(inputs: Inputs, params: SloParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.slo.answer`."""
    from analytics.slo.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="slo",
    title="SLO budgets",
    doc=(
        "Error budgets of service level objectives (--slos, or slos of infractl.yaml) and how fast they burn over "
        "5m to 3d. Alerts need a long and a short window to agree, and enough requests."
    ),
    params=SloParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(LEFT, FAST, SLOW, STEADY),
    triggers=tuple(rule.trigger for rule in RULES),
    lookback=timedelta(days=30),
    every=timedelta(minutes=2),
)
