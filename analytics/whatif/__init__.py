"""`analyze whatif`: what a year costs, and what it would cost with another hit ratio, price, model or machine."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.latency.names import LOADS
from analytics.result import Result
from analytics.whatif.assumption import Assumption, read
from store.columns import Column, Kind
from store.errors import UsageError
from store.query import ROLLUP_DIMENSIONS, CostQuery, PriceQuery, Query, RollupQuery, SpanQuery, in_rollups
from store.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

F, N, T, M = Kind.FLOAT, Kind.INT, Kind.TEXT, Kind.MONEY
AT_MOST = 200_000
"""Requests read for cold starts and answers from a cache; of more, those of a random share of the traces."""
HOURS_OF_YEAR = 8_760
RESPONSE_CACHE = {
    "response_cache_hits_total": "response_cache_misses_total",
    "gateway_cache_hits_total": "gateway_cache_misses_total",
}
"""Counters of caches of answers: hits → misses."""
_HOW = "NEW, OLD..NEW, +10%, -10% or x2 of what is measured"


@dataclass(frozen=True, kw_only=True, slots=True)
class WhatifParams(Params):
    """Parameters of `analyze whatif`. What is not given is measured; what is given is the scenario's."""

    by: tuple[str, ...] = param((), "labels that each have a bill of their own; none: one")
    requests_per_year: str = param("", f"requests, those that a cache answers included: {_HOW}")
    hit_ratio: str = param("", f"share of requests that a cache answers without the model: {_HOW}, or +5pp")
    prefix_hit_ratio: str = param("", f"share of prompt tokens that are priced as cached: {_HOW}, or +5pp")
    input_tokens: str = param("", f"prompt tokens of a request: {_HOW}")
    output_tokens: str = param("", f"generated tokens of a request: {_HOW}")
    price_change: str = param("", "change of all token prices, such as -0.1 or -10%")
    swap: tuple[str, ...] = param((), "MODEL=OTHER[:SHARE]: requests of a model at the other's price, same tokens")
    price: tuple[str, ...] = param((), "MODEL=INPUT/OUTPUT[/CACHED]: price of a million tokens, in --currency")
    base_cost: str = param("", f"cost of a request that reaches the model, instead of tokens x price: {_HOW}")
    cold_start_share: str = param("", f"share of requests that meet a cold start: {_HOW}, or +5pp")
    cold_start_s: str = param("", f"delay of such a request in seconds: {_HOW}")
    resource_per_hour: str = param("", f"price of an hour of the machine that starts or serves: {_HOW}")
    concurrency: str = param("", "requests that one machine serves at once: adds the time of serving to the bill")
    request_s: str = param("", f"time of a request on the machine: {_HOW}")
    gpus: str = param("", "GPUs of your own to compare with; default: as many as the busiest hour needs")
    gpu_per_hour: str = param("", "price of an hour of one of these")
    requests_per_gpu_hour: str = param("", "requests that one of these serves in an hour")
    currency: str = param("", "of the prices given here; default: the currency of most requests")
    cache_hit: tuple[str, ...] = param(
        ("gen_ai.cache.hit", "cache_hit", "metadata.cache_hit"),
        "attributes of spans that say whether a cache of answers had this one",
    )
    draws: int = param(4_000, "draws of the measured inputs", within=(200, 100_000))
    seed: int = param(1, "seed of the draws")

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that rollups know."""
        return tuple(name for name in self.by if name in ROLLUP_DIMENSIONS)


NUMBERS = (
    "requests_per_year", "hit_ratio", "prefix_hit_ratio", "input_tokens", "output_tokens", "base_cost",
    "cold_start_share", "cold_start_s", "resource_per_hour", "concurrency", "request_s",
)  # fmt: skip
"""Inputs that have a baseline and a scenario."""


def assumptions(params: WhatifParams) -> "Mapping[str, Assumption]":
    """Read the given inputs by name. Raises UsageError that names what cannot be read."""
    return {name: read(name, text) for name in NUMBERS if (text := getattr(params, name))}


def inputs(params: WhatifParams) -> "Mapping[str, Query]":
    """Ask for requests by the hour and model, prices, costs, cold starts and answers from caches."""
    assumptions(params)
    if not in_rollups((), params.where):
        raise UsageError("whatif rests on rollups, which do not know that field", ", ".join(ROLLUP_DIMENSIONS))
    by = tuple(dict.fromkeys((*params.labels, "service", "provider", "model")))
    service = tuple(pair for pair in params.where if pair[0] == "service")
    loads = ("model_load_seconds", "process_start_time_seconds")
    starts = tuple(("name", name) for name in sorted(LOADS))
    named = tuple(dict.fromkeys(("ts", "service", "e2e_s", "duration_s", *params.labels)))
    return {
        "hours": RollupQuery("requests", by, params.where, 3600),
        "prices": PriceQuery(),
        "costs": CostQuery(("service", "sku", "unit"), where=service, step_s=86_400),
        "requests": SpanQuery(
            named, tuple(dict.fromkeys(("faas.coldstart", *params.cache_hit))), params.where, requests_only=True,
            at_most=AT_MOST,
        ),
        "load_spans": SpanQuery(
            ("ts", "service", "name", "operation", "duration_s"), where=(*service, *starts)
        ),
        "loads": RollupQuery("metrics", (), service, None, names=loads),
        "response_cache": RollupQuery("metrics", (), service, 3600, names=(*RESPONSE_CACHE, *RESPONSE_CACHE.values())),
    }  # fmt: skip


def _money(name: str, doc: str) -> Column:
    return Column(name, M, doc)


FRAMES = {
    "inputs": (
        Column("input", T, "name, as on the command line"),
        Column("baseline", F, "as measured, or as given (OLD..NEW)"),
        Column("low", F, "lower 95 % limit where measured"),
        Column("high", F, "upper 95 % limit where measured"),
        Column("n", N, "what it was measured from: requests, starts, stretches of time (see how)"),
        Column("scenario", F, "value in the scenario"),
        Column("unit", T, "unit"),
        Column("source", T, "measured, given, or assumed"),
        Column("how", T, "what it rests on"),
    ),
    "yearly": (
        Column("part", T, "model: requests that reach it; cold_starts; serving: time on machines; total"),
        Column("currency", T, "currency"),
        _money("baseline", "cost of a year as it is"),
        _money("baseline_low", "lower 95 % limit"),
        _money("baseline_high", "upper 95 % limit"),
        _money("scenario", "cost of a year in the scenario"),
        _money("scenario_low", "lower 95 % limit"),
        _money("scenario_high", "upper 95 % limit"),
        _money("difference", "scenario less baseline"),
        _money("difference_low", "lower 95 % limit, both drawn together"),
        _money("difference_high", "upper 95 % limit"),
        Column("change", F, "difference over baseline", "ratio"),
    ),
    "sensitivity": (
        Column("input", T, "input that is varied, the others as in the scenario"),
        Column("elasticity", F, "percent that the yearly cost changes per percent of the input"),
        Column("currency", T, "currency"),
        _money("less", "change of the yearly cost at 10 % less of it"),
        _money("more", "change at 10 % more"),
    ),
    "models": (
        Column("provider", T, "provider"),
        Column("model", T, "model"),
        Column("share", F, "share of the requests", "ratio"),
        Column("input_tokens", F, "prompt tokens per request", "tokens"),
        Column("output_tokens", F, "generated tokens per request", "tokens"),
        Column("cached_share", F, "share of the prompt tokens served from a cache", "ratio"),
        Column("currency", T, "currency"),
        _money("per_request", "cost of a request at today's prices; null: no price"),
        Column("priced_as", T, "model whose prices the scenario takes"),
        _money("per_request_scenario", "cost of a request in the scenario"),
    ),
    "break_even": (
        Column("option", T, "what is compared"),
        Column("currency", T, "currency"),
        Column("gpus", N, "GPUs"),
        _money("yearly", "their cost for a year"),
        _money("instead_of", "cost of the year's requests in the scenario without cold starts and serving"),
        Column("break_even_requests", F, "requests a year at which both cost the same", "requests"),
        Column("capacity", F, "requests a year that these GPUs serve; null: not given", "requests"),
        Column("chance", F, "share of the draws in which the GPUs cost less", "ratio"),
        Column("verdict", T, "in words"),
    ),
}


def run(inputs: Inputs, params: WhatifParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.whatif.answer`."""
    from analytics.whatif.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="whatif",
    title="A year's cost, and what if",
    doc=(
        "Yearly cost from what is stored - requests, tokens, prices, cache hits, cold starts - and the same with other "
        "values: hit ratio, price, model, concurrency, machines of one's own. With intervals and sensitivity."
    ),
    params=WhatifParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    lookback=timedelta(days=28),
    every=timedelta(days=1),
)
