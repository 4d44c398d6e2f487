"""Why a cost changed: price x volume x mix per item (of tokens: requests x tokens x cached share x price), exact."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

from analytics.cost.rounding import adding_up, table
from store.columns import Column, Kind
from store.window import Window

if TYPE_CHECKING:
    import polars as pl

    from analytics.cost.factors import Explained

M, T, TS = Kind.MONEY, Kind.TEXT, Kind.TIME
ATTRIBUTIONS = ("sequential", "shapley")
PARTS = ("price", "volume", "mix", "requests", "tokens_per_request", "cached_share")
COLUMNS = (
    Column("since", TS, "since when: the start of the time after"),
    Column("currency", T, "currency of all amounts"),
    Column("item", T, "SKU, else model and kind of tokens, else service of the provider"),
    Column("unit", T, "unit of the quantity; null: no quantity (credits, fees), so that all is volume"),
    Column("price", M, "part of the change that goes with the price of a unit"),
    Column("volume", M, "part with the quantity of all items of this unit together; null: requests say it"),
    Column("mix", M, "part with this item's share of it (of the requests)"),
    Column("requests", M, "of tokens: part with the number of requests of all models"),
    Column("tokens_per_request", M, "of tokens: part with tokens per request"),
    Column("cached_share", M, "of tokens: part with the share of the prompt that was read from a cache"),
    Column("total", M, "after less before; the sum of the parts to the last digit"),
    Column("before", M, "cost of the time before, scaled to the length of the time after"),
    Column("after", M, "cost of the time after"),
)
NOTE = (
    "explained: amounts are rounded to a cent (below 1 to a millionth), and what that leaves is put to the largest, so "
    "that parts, rows and columns add up; a line without a quantity is volume"
)
MOST_ITEMS = 20
"""Rows of one drift; smaller changes are one row, "other"."""
_CENT, _FINE = Decimal("0.01"), Decimal("0.000001")


def rows(
    lines: "pl.DataFrame",
    before: tuple[datetime, datetime],
    after: tuple[datetime, datetime],
    labels: Mapping[str, str],
    attribution: str = "sequential",
) -> list[dict[str, Any]]:
    """Explain the change of one group from `before` to `after`, both [start, end): the largest changes first.

    `lines` are those of a CostQuery by sku, model, tokens_kind and unit (and cost_service where asked for), of this
    group alone. The time before is scaled to the length of the time after. Each currency is explained by itself.
    """
    from analytics.cost.factors import explain
    from analytics.cost.items import bought, paired, ratio_of

    ratio, made = ratio_of(before, after), []
    for (currency,), part in sorted(lines.partition_by("currency", as_dict=True).items(), key=str):
        old = {item: one.scaled(ratio) for item, one in bought(part, Window(*before)).items()}
        found = explain(paired(old, bought(part, Window(*after))), attribution)
        since = after[0].astimezone(UTC).replace(tzinfo=None)
        made += [dict(labels) | {"since": since, "currency": currency} | row for row in _rounded(found)]
    return made


def _rounded(found: "Sequence[Explained]") -> list[dict[str, Any]]:
    """Round parts and totals so that they still add up, largest change first; a change of nothing has no row."""
    moved = sorted(
        (one for one in found if any(one.parts.values())), key=lambda one: (-_size(one), one.name, one.unit or "")
    )
    kept = moved[:MOST_ITEMS] + _others(moved[MOST_ITEMS:])
    if not kept:
        return []
    place = unit(kept)
    totals = adding_up([one.after - one.before for one in kept], place)
    made = []
    for one, total, parts in zip(kept, totals, table([one.parts for one in kept], totals, place), strict=True):
        after = one.after.quantize(place, ROUND_HALF_EVEN)
        amounts = {"total": total, "before": after - total, "after": after}
        made.append(dict.fromkeys(PARTS) | parts | {"item": one.name, "unit": one.unit} | amounts)
    return [row for row in made if any(row[name] for name in PARTS)]


def _size(one: "Explained") -> Decimal:
    return max(abs(one.after - one.before), *map(abs, one.parts.values()))


def unit(found: "Iterable[Explained]") -> Decimal:
    """Return the place to round to: cents, and millionths where nothing is as much as 1."""
    return _CENT if any(_size(one) >= 1 for one in found) else _FINE


def _others(rest: "Sequence[Explained]") -> "list[Explained]":
    from analytics.cost.factors import Explained

    if not rest:
        return []
    parts: dict[str, Decimal] = {}
    for one in rest:
        for name, part in one.parts.items():
            parts[name] = parts.get(name, Decimal(0)) + part
    before, after = (sum((getattr(one, when) for one in rest), Decimal(0)) for when in ("before", "after"))
    return [Explained(f"other ({len(rest)} items)", None, before, after, parts)]


def sentence(explained: Sequence[Mapping[str, Any]]) -> str:
    """Say in words what the rows of one drift and currency add up to, largest part first."""
    from store.money import amount_text

    sums = {name: sum((row[name] for row in explained if row[name] is not None), Decimal(0)) for name in PARTS}
    if not explained or not any(sums.values()):
        return ""
    currency, most = explained[0]["currency"], max(explained, key=lambda row: abs(row["total"]))
    told = sorted(((name, part) for name, part in sums.items() if part), key=lambda pair: -abs(pair[1]))
    parts = ", ".join(f"{name.replace('_', ' ')} {part:+}" for name, part in told)
    total = sum((row["total"] for row in explained), Decimal(0))
    sign = "+" if total > 0 else ""
    return f"{sign}{amount_text(total, currency)} = {parts}; most of it {most['item']} ({most['total']:+})"
