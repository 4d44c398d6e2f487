"""Cost per request, conversation and tenant: the dearest of each, exact, and how the cost of one is distributed."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from analytics.tokens.cards import KINDS, Cards
from analytics.tokens.exact import over, ratio, sums
from analytics.tokens.models import LEAST_FOR_P99
from store.money import rounded

Row = dict[str, Any]
_NEEDED = (*KINDS, "card", "lacks", "currency", "cost", "_tenant", "_conversation")
UNITS = {"tenant": "_tenant", "conversation": "_conversation"}


def dearest_rows(rows: pl.DataFrame, cards: Cards, top: int) -> list[Row]:
    """Return the dearest requests of each currency."""
    numbered = rows.with_row_index("_row").lazy().filter(pl.col("cost").is_not_null())
    chosen = numbered.select("_row", "currency", "cost").collect()
    kept = [part.top_k(top, by="cost")["_row"] for part in _by_currency(chosen)]
    found = rows.with_row_index("_row")[pl.concat(kept).sort()] if kept else rows.clear().with_row_index("_row")
    exact = sums(found, ["_row"], cards)
    made = [
        row
        | {
            "input": row["input_tokens"], "cached": row["cached_input_tokens"], "output": row["output_tokens"],
            "cost": rounded(exact[row["_row"], row["currency"]].total),
        }
        for row in found.iter_rows(named=True)
    ]  # fmt: skip
    return sorted(made, key=lambda row: (row["currency"], -row["cost"], row["ts"]))


def unit_rows(rows: pl.DataFrame, unit: str, cards: Cards, top: int) -> list[Row]:
    """Rows of frame tenants or conversations: the dearest of each currency; none where no request names one."""
    name = UNITS[unit]
    if rows[name].null_count() == rows.height:
        return []
    grouped = _grouped(rows, name)
    kept = pl.concat([part.top_k(top, by="cost") for part in _by_currency(grouped)])
    inside = rows.select(_NEEDED).join(kept.select(name).unique(), on=name, how="semi", nulls_equal=True)
    exact, whole = sums(inside, [name], cards), sums(rows, [], cards)
    made = []
    for row in kept.iter_rows(named=True):
        one = exact.get((row[name], row["currency"]))
        total = None if one is None else one.total
        made.append(
            row
            | {
                unit: row[name] or "",
                "cost": None if total is None else rounded(total),
                "share": None if total is None else ratio(total, whole[(row["currency"],)].total),
                "per_request": None if total is None else over(total, row["priced"]),
            }
        )
    return sorted(made, key=lambda row: (row["currency"] or "~", -(row["cost"] or 0), row[unit]))


def per_rows(rows: pl.DataFrame, cards: Cards) -> list[Row]:
    """Rows of frame per: what a request, a conversation and a tenant cost."""
    made = []
    for currency in rows["currency"].drop_nulls().unique().sort():
        priced = rows.select(_NEEDED).filter(pl.col("currency") == currency)
        made.append(_per("request", priced["cost"], priced, cards, currency))
        for unit, name in UNITS.items():
            named = priced.drop_nulls(name)
            if named.height:
                costs = named.group_by(name).agg(pl.col("cost").sum())["cost"]
                made.append(_per(unit, costs, named, cards, currency))
    return made


def _per(unit: str, costs: pl.Series, rows: pl.DataFrame, cards: Cards, currency: str) -> Row:
    return {
        "unit": unit, "n": len(costs), "mean": over(sums(rows, [], cards)[(currency,)].total, len(costs)),
        "p50": costs.quantile(0.5, "linear"), "max": costs.max(), "currency": currency,
        "p99": costs.quantile(0.99, "linear") if len(costs) >= LEAST_FOR_P99 else None,
    }  # fmt: skip


def _grouped(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Measures of each tenant or conversation; a currency of its own where it pays in several."""
    priced = pl.col("lacks").is_null()
    return (
        rows.lazy()
        .group_by(name, "currency")
        .agg(
            pl.col("weight").sum().alias("requests"),
            *(_sum(f"{side}_tokens").alias(side) for side in ("input", "output")),
            pl.col("cost").sum(),
            pl.col("weight").filter(priced).sum().alias("priced"),
            pl.col("weight").filter(~priced & pl.col("told")).sum().alias("unpriced_requests"),
            pl.col("ts").min().alias("first_ts"),
            pl.col("ts").max().alias("last_ts"),
        )
        .sort("cost", name, descending=[True, False])
        .collect()
    )


def _sum(name: str) -> pl.Expr:
    """Sum that is null where no request says."""
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum())


def _by_currency(frame: pl.DataFrame) -> Sequence[pl.DataFrame]:
    return frame.partition_by("currency", maintain_order=True) if frame.height else ()
