"""From daily sums of charge lines to points: quantity and cost of a billing month so far, per item."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import polars as pl

from analytics.cost.items import named
from analytics.frames import groups, label_columns
from analytics.tiers import LABELS
from store.money import minor_places, shifted

_MONTH = "month"


@dataclass(frozen=True, slots=True)
class Month:
    """One billing month of one item: quantity, cost and number of lines so far, by day; day of each."""

    start: datetime
    days: tuple[datetime, ...]
    quantities: tuple[float, ...]
    costs: tuple[Decimal, ...]
    lines: tuple[int, ...]

    def until(self, day: datetime) -> "Month":
        """Keep the days before a day."""
        n = sum(one < day for one in self.days)
        return Month(self.start, self.days[:n], self.quantities[:n], self.costs[:n], self.lines[:n])

    def total(self) -> "Month":
        """Keep the whole month alone."""
        return Month(self.start, self.days[-1:], self.quantities[-1:], self.costs[-1:], self.lines[-1:])


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a group with its months, in order; `half` is half a unit of what each line was rounded to."""

    labels: Mapping[str, str]
    key: Mapping[str, str]
    months: tuple[Month, ...]
    half: float

    @property
    def cost(self) -> Decimal:
        """Cost of all months."""
        return sum((month.costs[-1] for month in self.months), Decimal(0))


@dataclass(frozen=True, slots=True)
class Left:
    """What was left out of the points, in lines."""

    no_usage: int
    no_quantity: int
    cut_months: int


def usage(costs: pl.DataFrame, by: Sequence[str], start: datetime) -> tuple[pl.DataFrame, Left]:
    """Return usage with a quantity and a cost in months that began within the window, and what was left out."""
    own = named(costs)
    used = own.filter("usage")
    known = used.filter(pl.col("quantity").is_finite() & pl.col("cost").is_not_null())
    period = pl.col("billing_period").str.to_datetime(strict=False, time_unit="us")
    month = pl.coalesce(period, pl.col("bucket").dt.truncate("1mo"))
    known = label_columns(known, [*by, *LABELS]).with_columns(month.alias(_MONTH))
    whole = known.filter(pl.col(_MONTH) >= start)
    lines = [int(frame["lines"].sum()) for frame in (own, used, known, whole)]
    return whole, Left(lines[0] - lines[1], lines[1] - lines[2], lines[2] - lines[3])


def items(lines: pl.DataFrame, by: Sequence[str], most: int) -> Iterator[Item]:
    """Yield the items of the highest cost, each with its points."""
    key = list(dict.fromkeys([*by, *LABELS]))
    places = pl.col("cost").cast(pl.String).str.strip_chars_end("0").str.split(".").list.get(1, null_on_oob=True)
    days = (
        lines.with_columns(places.str.len_chars().fill_null(0).alias("places"))
        .group_by([*key, _MONTH, "bucket"])
        .agg(pl.col("quantity").sum(), pl.col("cost").sum(), pl.col("lines").sum(), pl.col("places").max())
        .sort([*key, _MONTH, "bucket"])
    )
    sums = days.group_by(key).agg(pl.col("cost").sum().alias("sum")).sort(["sum", *key], descending=True)
    so_far = days.with_columns(pl.col("quantity", "cost", "lines").cum_sum().over([*key, _MONTH]))
    so_far = so_far.with_columns(pl.col("quantity").round_sig_figs(12))  # what binary sums add beyond says nothing
    kept = so_far.join(sums.head(most).select(key), on=key, how="semi", maintain_order="left")
    for labels, part in groups(kept, key):
        places_seen = part["places"].max()
        finest = max(minor_places(labels["currency"]), places_seen if isinstance(places_seen, int) else 0)
        months = tuple(_month(month) for month in part.partition_by(_MONTH, maintain_order=True))
        key_only = {name: labels[name] for name in LABELS}
        yield Item({n: labels[n] for n in by if n not in LABELS}, key_only, months, half_unit(finest))


def half_unit(places: int) -> float:
    """Return half a unit of the last place that an amount is rounded to."""
    return float(shifted(Decimal("0.5"), -places))


def _month(part: pl.DataFrame) -> Month:
    columns = (tuple(part[name].to_list()) for name in ("bucket", "quantity", "cost", "lines"))
    return Month(part[_MONTH][0], *columns)
