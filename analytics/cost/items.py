"""Charge lines of a period as items: what was bought, how much of it, and what that cost; exact."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal

import polars as pl

from store.window import Window

EXACT = Context(prec=60)
"""Digits kept between reading and rounding: parts of amounts of 38 digits add up far below the last one."""
NOTHING = Decimal(0)
_TEXTS = ("sku", "model", "tokens_kind", "cost_service", "unit", "category")
_KEYS = ("item", "model", "tokens_kind", "unit", "pool")


@dataclass(frozen=True, slots=True)
class Item:
    """What is bought. Shares are taken within a `pool`: items whose quantities may be added up.

    Without a pool it states no quantity (credits, taxes, fees): its cost is its quantity, at a price of 1.
    """

    name: str
    model: str | None
    tokens_kind: str | None
    unit: str | None
    pool: str | None


@dataclass(frozen=True, slots=True)
class Bought:
    """Quantity, requests and cost of an item over a period."""

    quantity: Decimal = NOTHING
    requests: Decimal = NOTHING
    cost: Decimal = NOTHING

    def scaled(self, ratio: Decimal) -> "Bought":
        """Return what it would be over a period `ratio` times as long."""
        return Bought(
            *(EXACT.multiply(number, ratio) for number in (self.quantity, self.requests, self.cost)),
        )


def bought(lines: pl.DataFrame, period: Window) -> dict[Item, Bought]:
    """Add up the lines of a period by item. `lines` are those of a CostQuery in one currency."""
    start, end = (at.astimezone(UTC).replace(tzinfo=None) for at in (period.start, period.end))
    found = named(lines.filter((pl.col("bucket") >= start) & (pl.col("bucket") < end)))
    sums = found.group_by(_KEYS).agg(pl.col("cost").sum(), pl.col("quantity").sum(), pl.col("requests").sum())
    made = {}
    for row in sums.iter_rows(named=True):
        quantity = _exact(row["quantity"]) if row["pool"] is not None else NOTHING
        key = Item(row["item"], row["model"], row["tokens_kind"], row["unit"], row["pool"])
        made[key] = Bought(quantity, _exact(row["requests"]), _exact(row["cost"]))
    return made


def named(lines: pl.DataFrame) -> pl.DataFrame:
    """Name the `item` of each line; say whether it is `usage` (no credit, tax, purchase) and in which `pool` it is.

    Columns that the lines lack are taken as null; a line without a quantity, and all that is no usage, has no pool.
    """
    texts = [(pl.col(n) if n in lines.columns else pl.lit(None)).cast(pl.String).alias(n) for n in _TEXTS]
    numbers = [_finite(pl.col(n) if n in lines.columns else pl.lit(None)).alias(n) for n in ("quantity", "requests")]
    usage = pl.col("category").is_null() | (pl.col("category") == "Usage")
    measured = usage & pl.col("quantity").is_not_null()
    model = pl.concat_str(["model", "tokens_kind"], separator=" ", ignore_nulls=True)
    name = pl.coalesce("sku", pl.when(pl.col("model").is_not_null()).then(model), "cost_service", "tokens_kind")
    kind = pl.when(~usage).then(pl.concat_str(pl.lit(" ("), pl.col("category"), pl.lit(")"))).otherwise(pl.lit(""))
    pool = pl.concat_str([pl.col("cost_service").fill_null(""), pl.col("unit").fill_null("")], separator="\0")
    return lines.with_columns(*texts, *numbers).with_columns(
        usage.alias("usage"),
        pl.concat_str(pl.coalesce(name, pl.lit("not named")), kind).alias("item"),
        pl.when(measured).then(pl.col("unit")).alias("unit"),
        pl.when(measured).then(pool).alias("pool"),
        pl.when(measured).then(pl.col("model")).alias("model"),
        pl.when(measured).then(pl.col("tokens_kind")).alias("tokens_kind"),
    )


def _finite(column: pl.Expr) -> pl.Expr:
    number = column.cast(pl.Float64)
    return pl.when(number.is_finite()).then(number)


def _exact(number: float | Decimal | None) -> Decimal:
    return NOTHING if number is None else number if isinstance(number, Decimal) else Decimal(repr(number))


def paired(before: Mapping[Item, Bought], after: Mapping[Item, Bought]) -> dict[Item, tuple[Bought, Bought]]:
    """Bring both periods together; an item that one lacks was bought for nothing there.

    An item that cost something in a period without a quantity there has no unit price: it counts as one without any.
    """
    made: dict[Item, tuple[Bought, Bought]] = {}
    for item in dict.fromkeys([*before, *after]):
        pair = before.get(item, Bought()), after.get(item, Bought())
        priced = not any(one.cost and one.quantity <= 0 for one in pair)
        key = item if priced else Item(item.name, None, None, None, None)
        known = made.get(key, (Bought(), Bought()))
        made[key] = (_added(known[0], pair[0]), _added(known[1], pair[1]))
    return made


def _added(a: Bought, b: Bought) -> Bought:
    return Bought(EXACT.add(a.quantity, b.quantity), EXACT.add(a.requests, b.requests), EXACT.add(a.cost, b.cost))


def ratio_of(before: tuple[datetime, datetime], after: tuple[datetime, datetime]) -> Decimal:
    """Return how many times as long the time after is as the time before."""
    lengths = [Decimal(round((end - start).total_seconds() * 1_000_000)) for start, end in (before, after)]
    return EXACT.divide(lengths[1], lengths[0])
