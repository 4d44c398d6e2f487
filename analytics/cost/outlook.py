"""What a calendar period will cost: spent so far, what is drawn for the rest, limits, and when an amount is reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from analytics.cost.daily import Daily, daily
from analytics.cost.items import named
from analytics.cost.levels import newest
from analytics.cost.periods import days_from
from analytics.cost.projection import LEAST_DAYS, SEASON_DAYS, fit, paths
from analytics.cost.schedules import schedules as schedules_of
from analytics.cost.tiered import daily_costs
from analytics.stats.smoothed import Array
from analytics.tiers.schedule import Schedule
from store.money import money_text
from store.window import Window, format_time
from store.zone import day_start

CENT, FINE = Decimal("0.01"), Decimal("0.000001")
LOOK = timedelta(days=95)
"""Days that a forecast looks back over: more change nothing in the level and little in the pattern of the week."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """A period as seen at `now`. `drawn` (paths, days) are costs of the days ahead; None where that is refused."""

    period: Window
    now: datetime
    known_from: datetime | None
    spent: Decimal
    history: int
    ahead: tuple[date, ...]
    drawn: Array | None
    method: str
    why: str

    def total(self, share: float) -> Decimal | None:
        """Return the quantile of the whole period's cost, to a cent (below 1 to a millionth); None: no forecast."""
        if self.drawn is None:
            return None
        rest = float(np.quantile(self.drawn.sum(axis=1), share)) if self.ahead else 0.0
        whole = self.spent + Decimal(repr(rest))
        return whole.quantize(CENT if abs(whole) >= 1 else FINE)

    def reached(self, amount: Decimal, share: float, where: ZoneInfo) -> datetime | None:
        """Return the quantile of the day on which the cost exceeds an amount; None: not within the period."""
        if self.drawn is None or not self.ahead:
            return None
        over = float(self.spent) + np.cumsum(self.drawn, axis=1) > float(amount)
        first = np.sort(np.where(over.any(axis=1), over.argmax(axis=1), len(self.ahead)))
        day = int(first[min(int(share * first.size), first.size - 1)])
        return day_start(self.ahead[day], where).astimezone(UTC) if day < len(self.ahead) else None


def outlook(
    lines: pl.DataFrame,
    period: Window,
    now: datetime,
    where: ZoneInfo,
    restarts: Sequence[datetime] = (),
    schedules: Mapping[str, Schedule] | None = None,
) -> Outlook:
    """Look at a period from `now`, until when the bill is known, by lines of one currency from before and within it.

    Usage goes on as its days are, since the newest of `restarts` and of the levels that the days show; credits, taxes
    and purchases count when they come and are not expected again. Items that have a schedule of prices (by name; None:
    those that the lines show) are forecast in quantity and priced by it.
    """
    known = lines.filter(pl.col("cost").is_not_null() & (pl.col("bucket") < _naive(now)))
    inside = known.filter((pl.col("bucket") >= _naive(period.start)) & (pl.col("bucket") < _naive(period.end)))
    spent, first = _sum(inside), known["bucket"].min()
    since = first.replace(tzinfo=UTC) if isinstance(first, datetime) else None
    recent = named(known.filter(pl.col("bucket") >= _naive(now - LOOK)))
    usage = recent.filter(pl.col("usage"))
    ahead = tuple(days_from(now, period.end, where)) if now < period.end else ()
    history = daily(usage, now, where)
    n = len(history.days)

    def made(drawn: Array | None, method: str, why: str) -> Outlook:
        return Outlook(period, now, since, spent, n, ahead, drawn, method, why)

    if not ahead:
        return made(np.zeros((1, 0)), "the period is over", "")
    if n < LEAST_DAYS:
        return made(None, "", f"{n} whole days of usage are known before {format_time(now)}; {LEAST_DAYS} are needed")
    if history.cost.any() and not history.cost[-LEAST_DAYS:].any():
        return made(np.zeros((1, len(ahead))), "no usage in the last 7 days", "expects none in the days ahead either")
    given = schedules_of(usage) if schedules is None else schedules
    tiered = {name: one for name, one in given.items() if name in set(usage["item"])}
    drawn, method = _drawn(usage, history, now, where, ahead, restarts, tiered)
    return made(drawn, method, _left_out(recent, n))


def _drawn(
    usage: pl.DataFrame,
    history: Daily,
    now: datetime,
    where: ZoneInfo,
    ahead: Sequence[date],
    restarts: Sequence[datetime],
    tiered: Mapping[str, Schedule],
) -> tuple[Array, str]:
    if not tiered:
        return _going_on(history, history.cost, ahead, where, restarts)
    total, methods = np.zeros((1, len(ahead))), []
    plain = daily(usage.filter(~pl.col("item").is_in(list(tiered))), now, where)
    if len(plain.days) >= LEAST_DAYS:
        total, method = _going_on(plain, plain.cost, ahead, where, restarts)
        methods.append(method)
    month = _naive(datetime(now.year, now.month, 1, tzinfo=UTC))
    for name, schedule in tiered.items():
        own = usage.filter(pl.col("item") == name)
        history = daily(own, now, where)
        before = float(own.filter(pl.col("bucket") >= month)["quantity"].sum())
        if len(history.days) >= LEAST_DAYS:
            quantities, _ = _going_on(history, history.quantity, ahead, where, ())  # a new price is no new quantity
            total = total + daily_costs(schedule, quantities, ahead, before)
    return total, "; ".join([*methods, f"quantity by price tiers of {', '.join(sorted(tiered))}"])


def _going_on(
    history: Daily, amounts: Array, ahead: Sequence[date], where: ZoneInfo, restarts: Sequence[datetime]
) -> tuple[Array, str]:
    begins = [at for at in restarts if at < day_start(history.days[-1], where) + timedelta(hours=1)]
    known = next((i for i, day in enumerate(history.days) if begins and day_start(day, where) >= max(begins)), 0)
    restart = max(known, newest(amounts))
    weekdays = np.array([day.weekday() for day in history.days])
    fitted = fit(amounts, weekdays, restart)
    drawn = paths(fitted, [day.weekday() for day in ahead], history.left)
    days = len(history.days)
    told = "days of the week" if days >= SEASON_DAYS else "the days as they were (weekdays show from two weeks on)"
    count = f"{days - restart} day{'s' if days - restart != 1 else ''}"
    level = f"level of {count} since {history.days[restart]}" if restart else f"level of {count}"
    return drawn, f"{told}, {level}"


def _left_out(recent: pl.DataFrame, days: int) -> str:
    """Say what the limits do not hold for."""
    once = recent.filter(~pl.col("usage"))
    parts = [f"wide: {days} days only"] if days < SEASON_DAYS else []
    if once.height:
        parts.append(
            f"credits, taxes and purchases ({money_text(_sum(once))} in {LOOK.days} days) are not expected again"
        )
    return "; ".join(parts)


def _sum(lines: pl.DataFrame) -> Decimal:
    found = lines["cost"].sum()
    return found if isinstance(found, Decimal) else Decimal(str(found or 0))


def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)
