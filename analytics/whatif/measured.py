"""What the store says of the inputs: requests, hits, tokens, cold starts, prices of machines."""

import numpy as np
import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.latency.cold import FIRST, cold_rows
from analytics.latency.names import LOADS
from analytics.whatif import HOURS_OF_YEAR, RESPONSE_CACHE, WhatifParams
from analytics.whatif.blocks import Blocks, Estimate, ratio

_TRUE, _FALSE = ("true", "1", "hit"), ("false", "0", "miss")
LEAST = 5
"""Cold starts, and requests with or without a hit, that a mean is made of."""
NO_USAGE = ("Tax", "Credit", "Purchase", "Adjustment", "Refund")
_HOURLY = r"(?i)^(1 )?(hrs?|hours?|instance[- ]hours?|gpu[- ]hours?)$"


def per_year(hours: pl.DataFrame, blocks: Blocks) -> Estimate | None:
    """Return requests a year at the rate of the window."""
    (n,) = blocks.sums(hours, "requests")
    how = f"{int(n.sum()):,} requests in {blocks.seconds / 86_400:.3g} days, by {blocks.what}"
    found = ratio(n, np.full(blocks.count, blocks.length.total_seconds() / 3600), how)
    return found and _times(found, HOURS_OF_YEAR)


def _times(one: Estimate, factor: float) -> Estimate:
    error = None if one.error is None else one.error * factor
    return Estimate(one.value * factor, error, one.freedom, one.n, one.how, one.source, one.most)


def of_requests(hours: pl.DataFrame, blocks: Blocks) -> dict[str, Estimate]:
    """Tokens and time of a request that states them, and the share of the prompt that was cached."""
    prompt, cached, output, n, took, timed = blocks.sums(
        hours, "input_tokens", "cached_input_tokens", "output_tokens", "requests", "e2e_sum_s", "e2e_n"
    )
    stated = hours["cached_input_tokens"].count() > 0
    made = {
        "input_tokens": ratio(prompt, n, f"mean by {blocks.what}") if prompt.any() else None,
        "output_tokens": ratio(output, n, f"mean by {blocks.what}") if output.any() else None,
        "prefix_hit_ratio": ratio(cached, prompt, "cached over prompt tokens", most=1.0) if stated else None,
        "request_s": ratio(took, timed, "mean end-to-end time"),
    }
    return {name: one for name, one in made.items() if one is not None}


def marked_hits(requests: pl.DataFrame, params: WhatifParams) -> Estimate | None:
    """Share of the requests that say a cache answered them."""
    known = [pl.col(name).cast(pl.String) for name in params.cache_hit]
    text = (
        requests.select(pl.coalesce(known).str.to_lowercase()).to_series() if known else pl.Series([], dtype=pl.String)
    )
    hits, misses = int(text.is_in(_TRUE).sum()), int(text.is_in(_FALSE).sum())
    return _share(hits, hits + misses, f"{hits + misses:,} requests that say whether a cache answered")


def counted_hits(counters: pl.DataFrame) -> Estimate | None:
    """Share of lookups that a response cache answered, by its counters."""
    total: dict[str, float] = {}
    for name, increase in counters.select("name", "increase").drop_nulls().iter_rows():
        total[name] = total.get(name, 0.0) + increase
    for hit, miss in RESPONSE_CACHE.items():
        hits, misses = total.get(hit, 0.0), total.get(miss, 0.0)
        if hits + misses >= LEAST:
            return _share(hits, hits + misses, f"counters {hit} and {miss}")
    return None


def _share(hits: float, n: float, how: str) -> Estimate | None:
    """Return a share with its binomial error (of Agresti & Coull, so that none of many is not surely none)."""
    if n < LEAST:
        return None
    p = (hits + 2) / (n + 4)
    return Estimate(hits / n, float(np.sqrt(p * (1 - p) / (n + 4))), max(int(n) - 1, 1), int(n), how, most=1.0)


def cold(inputs: Inputs, requests: pl.DataFrame, hours: pl.DataFrame) -> dict[str, Estimate]:
    """Share of the requests that meet a cold start, and how much longer they take.

    First requests that say so; else loads of models, each of which one request is taken to wait for; else the first
    request after each start of an engine.
    """
    flag = requests["faas.coldstart"].cast(pl.String).str.to_lowercase()
    timed = requests.with_columns(pl.coalesce("e2e_s", "duration_s").alias("s"), flag.is_in(_TRUE).alias("cold"))
    met = timed.filter(pl.col("cold").fill_null(value=False))["s"].drop_nulls().to_numpy()
    if met.size >= LEAST:
        rest = timed.filter(~pl.col("cold").fill_null(value=False))["s"].drop_nulls().to_numpy()
        share = _share(int(flag.is_in(_TRUE).sum()), requests.height, f"faas.coldstart of {requests.height:,} requests")
        usual = float(rest.mean()) if rest.size else 0.0
        return _cold(share, met - usual, "mean time of those less that of the others")
    services = set(requests["service"].drop_nulls()) or set()
    spans = inputs["load_spans"].filter(pl.col("service").is_in(list(services)))
    named = pl.coalesce(pl.col("name").str.to_lowercase(), pl.lit("")).is_in(list(LOADS))
    loads = spans.filter(named)["duration_s"].drop_nulls().to_numpy()
    n = int(hours["requests"].sum() or 0)
    if loads.size >= LEAST and n:
        return _cold(_share(loads.size, n, f"{loads.size} loads of models among {n:,} requests"), loads, "mean load")
    return _after_starts(inputs, requests, n)


def _after_starts(inputs: Inputs, requests: pl.DataFrame, n: int) -> dict[str, Estimate]:
    rows = [row for row in cold_rows(inputs["load_spans"], requests, inputs["loads"]) if row["kind"] == FIRST]
    starts = sum(row["n"] for row in rows)
    if starts < LEAST or not n:
        return {}
    later = [max(row["p50_s"] - (row["usual_s"] or 0.0), 0.0) for row in rows for _ in range(row["n"])]
    share = _share(starts, n, f"{starts} starts of engines among {n:,} requests")
    return _cold(share, np.array(later), "median of the first request less the usual one")


def _cold(share: Estimate | None, seconds: "np.typing.NDArray[np.float64]", how: str) -> dict[str, Estimate]:
    if share is None:
        return {}
    error = float(seconds.std(ddof=1) / np.sqrt(seconds.size)) if seconds.size > 1 else None
    delay = Estimate(max(float(seconds.mean()), 0.0), error, max(seconds.size - 1, 1), seconds.size, how)
    return {"cold_start_share": share, "cold_start_s": delay}


def _usage(costs: pl.DataFrame, services: list[str], currency: str) -> pl.DataFrame:
    return costs.filter(
        pl.col("service").is_in(services), pl.col("currency").fill_null("") == currency, pl.col("cost").is_not_null(),
        ~pl.col("category").is_in(NO_USAGE).fill_null(value=False),
    )  # fmt: skip


def machine(costs: pl.DataFrame, services: list[str], currency: str) -> Estimate | None:
    """Price of an hour: lines of these services that are charged by the hour."""
    lines = _usage(costs, services, currency).filter(pl.col("unit").str.contains(_HOURLY), pl.col("quantity") > 0)
    kinds = lines.group_by("sku").agg(pl.col("cost").sum().cast(pl.Float64), pl.col("quantity").sum())
    quantity = float(kinds["quantity"].sum())
    if not quantity > 0:
        return None
    each = (kinds["cost"] / kinds["quantity"]).sort()
    kind = f" of {kinds.height} SKUs, {each[0]:.3g} to {each[-1]:.3g} each" if kinds.height > 1 else ""
    return Estimate(
        float(kinds["cost"].sum()) / quantity, None, 1, lines.height, f"billed for {quantity:,.4g} hours{kind}"
    )


def billed(costs: pl.DataFrame, hours: pl.DataFrame, services: list[str], currency: str) -> Estimate | None:
    """Cost of a request: what these services were billed on days with requests, over the requests of those days."""
    lines = _usage(costs, services, currency).with_columns(pl.col("bucket").dt.truncate("1d").alias("day"))
    money = lines.group_by("day").agg(pl.col("cost").sum().cast(pl.Float64))
    asked = hours.group_by(pl.col("bucket").dt.truncate("1d").alias("day")).agg(pl.col("requests").sum())
    both = money.join(asked, on="day").filter(pl.col("requests") > 0).sort("day")
    if not both.height:
        return None
    spent, n = both["cost"].to_numpy(), both["requests"].cast(pl.Float64).to_numpy()
    return ratio(spent, n, f"billed for {both.height} days with requests")


def services_of(hours: pl.DataFrame, requests: pl.DataFrame) -> list[str]:
    """Services that the rows name."""
    found = [frame["service"].drop_nulls() for frame in (hours, requests) if "service" in frame.columns]
    return sorted({str(name) for names in found for name in names})


def part_of(frame: pl.DataFrame, labels: dict[str, str]) -> pl.DataFrame:
    """Rows of a group."""
    made = frames.label_columns(frame, list(labels))
    return made.filter(*(pl.col(name) == value for name, value in labels.items())) if labels else made
