"""`analyze pareto`: which configurations no other one beats on all objectives, and how sure that is."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.pareto.objectives import Objective, parse_objectives
from analytics.result import Result, Signal
from store.columns import Column, Kind
from store.query import PriceQuery, Query, RowQuery, SpanQuery
from store.tables import SPANS
from store.window import Window

F, N, T = Kind.FLOAT, Kind.INT, Kind.TEXT
AT_MOST = 1_000_000
"""Requests read; of more, a share of the traces."""
COLUMNS = (
    "ts", "trace_id", "service", "provider", "model", "status", "error_code", "input_tokens", "output_tokens",
    "cached_input_tokens", "cache_write_tokens", "reasoning_tokens", "cost_usd", "quality", "ttft_s", "tpot_s", "e2e_s",
)  # fmt: skip
TESTS = ("run", "stage", "ts", "tool", "engine", "model", "metric", "statistic", "value")


@dataclass(frozen=True, kw_only=True, slots=True)
class ParetoParams(Params):
    """Parameters of `analyze pareto`."""

    by: tuple[str, ...] = param(("model",), "labels that make a configuration; of load tests each stage is one")
    objectives: tuple[str, ...] = param(
        ("ttft_p99_s:min", "throughput_tokens_per_second:max"), "two or three, such as e2e_p99_s:min,cost_per_1k:min"
    )
    source: str = param(
        "auto",
        "requests, load tests, or auto: requests where any configuration has enough, else load tests",
        choices=("auto", "requests", "benchmarks"),
    )
    points: tuple[str, ...] = param((), "name:value:value[:value] in the order of --objectives; then nothing is read")
    reference: tuple[str, ...] = param((), "reference point, a number per objective; none: the worst value by 10 %")
    least: int = param(100, "requests below which a configuration is left out", within=(2, 1_000_000))
    draws: int = param(400, "times each value is drawn anew to see what chance does", within=(50, 10_000))

    @property
    def asked(self) -> tuple[Objective, ...]:
        """The objectives, read."""
        return parse_objectives(self.objectives)


def inputs(params: ParetoParams) -> Mapping[str, Query]:
    """Ask for requests with the prices of their tokens, and for figures of load tests; for nothing with points."""
    if params.points:
        return {}
    columns = dict.fromkeys((*COLUMNS, *(name for name in params.by if SPANS.column(name) is not None)))
    attributes = tuple(name for name in params.by if SPANS.column(name) is None)
    requests = SpanQuery(tuple(columns), attributes, where=params.where, requests_only=True, at_most=AT_MOST)
    tests = RowQuery("benchmarks", TESTS, where=params.where)
    wanted: dict[str, Query] = {}
    if params.source != "benchmarks":
        wanted |= {"requests": requests}
        if any(one.name.startswith("cost_") for one in params.asked):
            wanted |= {"prices": PriceQuery()}
    if params.source != "requests":
        wanted |= {"benchmarks": tests}
    return wanted


VALUES = (
    Column("configuration", T, "what is compared"),
    Column("values", T, "its objectives, in words"),
    Column("first", F, "value of the first objective"),
    Column("second", F, "value of the second objective"),
    Column("third", F, "value of the third objective; null: two were asked for"),
    Column("n", N, "requests it rests on; null: not stated", "requests"),
    Column("source", T, "requests, load test, or given"),
    Column("front_share", F, "share of draws in which it is on the front; null: nothing says how sure it is", "ratio"),
)
FRAMES = {
    "front": (
        *VALUES,
        Column("contribution", F, "share of the hypervolume that is lost without it", "ratio"),
        Column("tied_with", T, "others with the same values; null: none"),
        Column("verdict", T, "whether its place rests on noise"),
    ),
    "dominated": (
        *VALUES,
        Column("dominated_by", T, "a configuration that is no worse in any objective and better in one"),
        Column("verdict", T, "whether its place rests on noise"),
    ),
    "hypervolume": (
        Column("objectives", T, "objectives with their direction"),
        Column("reference", T, "reference point"),
        Column("reference_is", T, "given, or the worst value by 10 %"),
        Column("hypervolume", F, "volume between front and reference, in the units of the objectives multiplied"),
        Column("low", F, "lower 95 % limit; null: nothing says how sure it is"),
        Column("high", F, "upper 95 % limit; null: nothing says how sure it is"),
        Column("share", F, "share of the box between the best values and the reference", "ratio"),
        Column("on_front", N, "configurations on the front", "configurations"),
        Column("compared", N, "configurations compared", "configurations"),
    ),
}
SHARE = Signal("pareto_front_share", "", "share of draws in which a configuration is on the front", ("configuration",))


def run(inputs: Inputs, params: ParetoParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.pareto.answer`."""
    from analytics.pareto.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="pareto",
    title="Pareto front",
    doc=(
        "Configurations that no other one beats on two or three objectives, from requests, load tests or typed points, "
        "with the hypervolume of the front and how often chance would put each on it."
    ),
    params=ParetoParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(SHARE,),
    lookback=timedelta(days=7),
    every=timedelta(minutes=15),
)
