"""Models and kinds of tokens: requests, tokens, exact cost, what has no price, and what requests state themselves."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from analytics.tokens import KEYS
from analytics.tokens.cards import KINDS, Cards
from analytics.tokens.charged import DOUBTS, doubted, far_above
from analytics.tokens.exact import Key, Sum, over, ratio, sums
from store.money import rounded

LEAST_FOR_P99 = 100
_OWN = {
    "input": "input_tokens", "output": "output_tokens", "cached": "cached_input_tokens",
    "cache_write": "cache_write_tokens", "reasoning": "reasoning_tokens",
}  # fmt: skip
Row = dict[str, Any]


def model_rows(rows: pl.DataFrame, labels: Sequence[str], cards: Cards, *, raw: bool) -> list[Row]:
    """Rows of frame models, the dearest first. Tokens without a price count with the one currency of their model."""
    keys = [*labels, *KEYS]
    sole = _in_sole_currency(rows, keys)
    group = [*keys, "_currency"]
    measured = sole.group_by(group).agg(*_measures(raw=raw), *(_quantiles() if raw else ())).collect()
    cost = sums(rows, keys, cards)
    stated = sums(rows.filter(_states()), keys, cards) if raw else {}
    made = [_model_row(row, keys, cost, stated) for row in measured.iter_rows(named=True)]
    return sorted(made, key=lambda row: (*(row[name] for name in labels), -(row["cost"] or 0), str(row["model"])))


def kind_rows(rows: pl.DataFrame, labels: Sequence[str], cards: Cards) -> list[Row]:
    """Rows of frame kinds: each token charged once, in the kind that it is charged as."""
    keys = [*labels, *KEYS]
    found = sums(rows, keys, cards)
    return [
        dict(zip(keys, key, strict=False))
        | {
            "kind": kind, "tokens": one.tokens[kind], "cost": rounded(one.money[kind]), "currency": key[-1],
            "per_million": over(one.money[kind] * 1_000_000, one.tokens[kind]),
            "share": ratio(one.money[kind], one.total),
        }
        for key, one in sorted(found.items(), key=lambda item: [str(part) for part in item[0]])
        for kind in KINDS
        if one.tokens[kind]
    ]  # fmt: skip


def doubt_rows(rows: pl.DataFrame) -> list[Row]:
    """Rows of frame doubts: what was put right, assumed or left out, counted per model."""
    tokens = pl.col("input_tokens").fill_null(0) + pl.col("output_tokens").fill_null(0)
    tests = doubted(rows)
    any_doubt = rows.lazy().filter(pl.any_horizontal(tests.values()).fill_null(value=False))
    doubtful = any_doubt.with_columns(*(test.fill_null(value=False).alias(f"_{name}") for name, test in tests.items()))
    counts = (
        doubtful.group_by(KEYS)
        .agg(
            *(pl.col("weight").filter(pl.col(f"_{name}")).sum().alias(f"{name} requests") for name in tests),
            *(tokens.filter(pl.col(f"_{name}")).sum().alias(f"{name} tokens") for name in tests),
        )
        .collect()
    )
    return [
        {
            "reason": name, "provider": row["provider"], "model": row["model"], "requests": row[f"{name} requests"],
            "tokens": row[f"{name} tokens"], "meaning": DOUBTS[name],
        }
        for name in tests
        for row in counts.sort(KEYS).iter_rows(named=True)
        if row[f"{name} requests"]
    ]  # fmt: skip


def _in_sole_currency(rows: pl.DataFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Add column _currency: that of the cost, for rows without one that of their model where it has just one."""
    seen = rows.lazy().select(*keys, "currency").filter(pl.col("currency").is_not_null()).unique().collect()
    if seen["currency"].n_unique() == 1 and not rows["currency"].null_count():
        return rows.lazy().with_columns(pl.col("currency").alias("_currency"))
    single = seen.group_by(keys).agg(pl.col("currency").first().alias("_sole"), pl.len().alias("_n"))
    known = single.filter(pl.col("_n") == 1).drop("_n").lazy()
    joined = rows.lazy().join(known, on=keys, how="left", nulls_equal=True)
    return joined.with_columns(pl.coalesce("currency", "_sole").alias("_currency"))


def _states() -> pl.Expr:
    return pl.col("cost_usd").is_not_null() & ~far_above()


def _measures(*, raw: bool) -> list[pl.Expr]:
    tokens = pl.col("input_tokens").fill_null(0) + pl.col("output_tokens").fill_null(0)
    priced, silent = pl.col("lacks").is_null(), ~pl.col("told")
    weight, unpriced = pl.col("weight"), ~priced & ~silent
    said = pl.col("cached_input_tokens").is_not_null() & pl.col("input_tokens").is_not_null()
    return [
        weight.sum().alias("requests"),
        *(pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(own) for own, name in _OWN.items()),
        (pl.col("cached_input_tokens").filter(said).sum() / pl.col("input_tokens").filter(said).sum()).alias("share"),
        weight.filter(priced).sum().alias("priced"),
        tokens.filter(priced).sum().alias("priced_tokens"),
        weight.filter(unpriced).sum().alias("unpriced_requests"),
        tokens.filter(unpriced).sum().alias("unpriced_tokens"),
        weight.filter(silent).sum().alias("silent_requests"),
        (weight.filter(pl.col("batch")).sum() if raw else pl.lit(None, pl.Int64)).alias("batch_requests"),
        pl.when(_states().any()).then(pl.col("cost_usd").filter(_states()).sum()).alias("stated_usd"),
        (_states().sum() if raw else pl.lit(None, pl.Int64)).alias("stated_requests"),
    ]


def _quantiles() -> list[pl.Expr]:
    cost = pl.col("cost")
    p99 = pl.when(cost.count() >= LEAST_FOR_P99).then(cost.quantile(0.99, "linear"))
    return [cost.quantile(0.5, "linear").alias("per_request_p50"), p99.alias("per_request_p99")]


def _model_row(row: Row, keys: Sequence[str], cost: dict[Key, Sum], stated: dict[Key, Sum]) -> Row:
    key = (*(row[name] for name in keys), row["_currency"])
    one, also = cost.get(key), stated.get(key)
    total = None if one is None else one.total
    return row | {
        "cost": None if total is None else rounded(total),
        "currency": row["_currency"],
        "cached_share": row["share"],
        "cost_per_1k": None if total is None else over(total * 1000, row["priced_tokens"]),
        "per_request": None if total is None else over(total, row["priced"]),
        "computed_of_stated": None if also is None else rounded(also.total),
    }


def unpriced_ratio(models: Sequence[Row]) -> float | None:
    """Share of the tokens that no price is known of; null without tokens."""
    tokens = sum((row["input"] or 0) + (row["output"] or 0) for row in models)
    return sum(row["unpriced_tokens"] or 0 for row in models) / tokens if tokens else None


def totals(models: Sequence[Row]) -> dict[str, Decimal]:
    """Cost per currency; currencies are never added."""
    found: dict[str, Decimal] = {}
    for row in models:
        if row["cost"] is not None:
            found[row["currency"]] = found.get(row["currency"], Decimal(0)) + row["cost"]
    return found
