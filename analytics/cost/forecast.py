"""What the month will cost: spent so far, and the rest as its days usually are, with an interval."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from store.columns import Column, Kind

if TYPE_CHECKING:
    import polars as pl

    from analytics.cost.outlook import Outlook
    from analytics.tiers.schedule import Schedule

M, N, T, TS = Kind.MONEY, Kind.INT, Kind.TEXT, Kind.TIME
COLUMNS = (
    Column("currency", T, "currency of all amounts"),
    Column("period_start", TS, "start of the calendar month in the report zone"),
    Column("period_end", TS, "its end"),
    Column("known_until", TS, "until when the bill is known; from here on it is forecast"),
    Column("spent", M, "cost of the month so far, as far as the window reaches"),
    Column("forecast", M, "median cost of the whole month; null: refused, why says for what reason"),
    Column("low_80", M, "lower 80 % limit"),
    Column("high_80", M, "upper 80 % limit"),
    Column("low", M, "lower 95 % limit"),
    Column("high", M, "upper 95 % limit"),
    Column("days", N, "whole days that the forecast rests on", "days"),
    Column("method", T, "how it was made"),
    Column("why", T, "why there is none, or what it leaves out"),
)


def rows(
    hours: "pl.DataFrame",
    labels: Mapping[str, str],
    currency: str | None,
    now: datetime,
    zone: str,
    restarts: Sequence[datetime] = (),
    schedules: "Mapping[str, Schedule] | None" = None,
) -> list[dict[str, Any]]:
    """Forecast one group to the end of the calendar month that `now` is in; at midnight of the first it is the new one.

    `hours` has `bucket` (naive UTC) and `cost`, one currency alone; of a CostQuery also `category`, `quantity`, `sku`,
    `model`, `unit` are used. `now` (aware) is until when the bill is known. `restarts` are times from which the level
    counts anew. `schedules` are prices by quantity, by name of the item (`analytics.cost.items`); None: those that the
    lines show.
    """
    from analytics.cost.outlook import outlook
    from analytics.cost.periods import period
    from store.zone import zone as named_zone

    where = named_zone(zone)
    month = period("month", now, where)
    seen = outlook(hours, month, now, where, restarts, schedules)
    return [dict(labels) | {"currency": currency} | row(seen)]


def row(seen: "Outlook") -> dict[str, Any]:
    """Return the columns that a forecast and a budget share."""
    partial = seen.known_from is None or seen.known_from > seen.period.start
    begins = f"the lines begin at {seen.known_from:%Y-%m-%d}, within the period" if seen.known_from and partial else ""
    return {
        "period_start": _naive(seen.period.start),
        "period_end": _naive(seen.period.end),
        "known_until": _naive(seen.now),
        "spent": seen.spent,
        "forecast": seen.total(0.5),
        "low_80": seen.total(0.1),
        "high_80": seen.total(0.9),
        "low": seen.total(0.025),
        "high": seen.total(0.975),
        "days": seen.history,
        "method": seen.method or None,
        "why": "; ".join(filter(None, [seen.why, begins])) or None,
    }


def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)
