"""`analyze factorial`: what two factors and their interaction do to the mean and to the spread of a column."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.drivers import asked_for
from analytics.result import Result
from store.columns import Column, Kind
from store.query import MetricQuery, Query, SpanQuery
from store.tables import SPANS
from store.window import Window

F, N, T = Kind.FLOAT, Kind.INT, Kind.TEXT
TARGETS = ("ttft_s", "e2e_s", "tpot_s", "queue_s", "prefill_s", "decode_s", "duration_s", "output_tokens_per_s")
AT_MOST = 1_000_000
WHO = ("service", "server_address", "host")


@dataclass(frozen=True, kw_only=True, slots=True)
class FactorialParams(Params):
    """Parameters of `analyze factorial`."""

    factors: tuple[str, ...] = param((), "two of: columns, attributes, metrics; numbers are split at their median")
    target: str = param("ttft_s", "what to explain", choices=TARGETS)
    most_levels: int = param(6, "levels of a factor at most; rarer ones are left out", within=(2, 20))


def unit(target: str) -> str:
    """Name the unit of the target, and so of every effect on it."""
    return "s" if target.endswith("_s") and target != "output_tokens_per_s" else "tokens/s"


def parts(target: str) -> tuple[str, ...]:
    """Span columns that give the target."""
    return ("output_tokens", "e2e_s") if target == "output_tokens_per_s" else (target,)


def inputs(params: FactorialParams) -> Mapping[str, Query]:
    """Ask for requests with target, factors and labels, and for metrics among the factors."""
    names = dict.fromkeys(("ts", *WHO, *parts(params.target), *params.factors, *params.by))
    queries: dict[str, Query] = {
        "requests": SpanQuery(
            tuple(n for n in names if SPANS.column(n) is not None),
            tuple(n for n in names if SPANS.column(n) is None),
            where=params.where,
            not_null=parts(params.target),
            requests_only=params.target != "duration_s",
            at_most=AT_MOST,
        )
    }
    metrics = tuple(name for name in params.factors if SPANS.column(name) is None)
    if metrics:
        queries["metrics"] = MetricQuery(asked_for(metrics))
    return queries


FRAMES = {
    "effects": (
        Column("effect", T, "factor, or the interaction of both"),
        Column("on", T, "mean; spread: mean distance from the median of the cell (Brown & Forsythe 1974)"),
        Column("contrast", T, "levels of a factor with two: which minus which"),
        Column("estimate", F, "difference of cell means, cells weighing alike; of the interaction, of differences"),
        Column("ci_low", F, "lower 95 % limit, minutes together"),
        Column("ci_high", F, "upper 95 % limit"),
        Column("unit", T, "unit of the estimate and its limits"),
        Column("p", F, "p-value that fits the limits; null: a factor with more levels, see p_f"),
        Column("f", F, "F, sums of type III, covariance HC3"),
        Column("p_f", F, "its p-value, requests taken as independent"),
        Column("p_adj", F, "p, else p_f, adjusted for all effects (Benjamini-Hochberg)"),
        Column("verdict", T, "in words"),
    ),
    "cells": (
        Column("a", T, "level of the first factor"),
        Column("b", T, "level of the second factor"),
        Column("n", N, "requests", "requests"),
        Column("mean", F, "mean of the target"),
        Column("sd", F, "standard deviation"),
        Column("median", F, "median"),
        Column("spread", F, "mean distance from the median"),
        Column("cv", F, "standard deviation over mean", "ratio"),
    ),
}


def run(inputs: Inputs, params: FactorialParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.factorial.answer`."""
    from analytics.factorial.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="factorial",
    title="Two factors",
    doc=(
        "Two-way design (--factors a,b): the effect of each factor and of their interaction on the mean and on the "
        "spread of a latency. Numbers, metrics included, are split at their median."
    ),
    params=FactorialParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    lookback=timedelta(hours=6),
    every=timedelta(minutes=15),
)
