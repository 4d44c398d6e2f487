"""Budgets as one line of text each: `llm: 5000 USD per month where service=chat by tenant alert 80%`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from analytics.cost.changes import Change
from analytics.cost.periods import PERIODS
from analytics.result import Finding, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.errors import UsageError
from store.money import money_text
from store.query import CostQuery, Where
from store.window import Window

if TYPE_CHECKING:
    import polars as pl

    from analytics.tiers.schedule import Schedule

F, M, N, T, TS = Kind.FLOAT, Kind.MONEY, Kind.INT, Kind.TEXT, Kind.TIME
GRAMMAR = "NAME: AMOUNT CURRENCY per month|quarter|year [where K=V [and K=V]] [by LABEL [and LABEL]] [alert 80%]"
_LINE = re.compile(
    r"(?P<name>[^:]+):\s*(?P<amount>\S+)\s+(?P<currency>\S+)\s+per\s+(?P<period>\S+)"
    r"(?:\s+where\s+(?P<where>.+?))?(?:\s+by\s+(?P<by>.+?))?(?:\s+alert\s+(?P<alert>\S+))?\s*"
)
ALERT = 0.8
ITEMS = ("sku", "model", "tokens_kind", "unit")
MOST_GROUPS = 50
"""Groups of one budget that are shown and published: those with the largest share spent."""

COLUMNS = (
    Column("budget", T, "name"),
    Column("group", T, "what it is kept for, such as tenant=a; empty: one for all"),
    Column("currency", T, "currency of all amounts"),
    Column("period", T, "month, quarter or year, of the calendar in the report zone"),
    Column("period_start", TS, "start of the period"),
    Column("period_end", TS, "its end"),
    Column("known_until", TS, "until when the bill is known"),
    Column("amount", M, "what may be spent"),
    Column("spent", M, "cost of the period so far, net of credits, as far as the window reaches"),
    Column("spent_share", F, "spent over amount", "ratio"),
    Column("elapsed_share", F, "share of the period that is over", "ratio"),
    Column("burn", F, "spent share over elapsed share; above 1: faster than the budget lasts", "ratio"),
    Column("forecast", M, "median cost of the whole period; null: refused, why says for what reason"),
    Column("low_80", M, "lower 80 % limit"),
    Column("high_80", M, "upper 80 % limit"),
    Column("low", M, "lower 95 % limit"),
    Column("high", M, "upper 95 % limit"),
    Column("runs_out", TS, "start of the day on which it is spent, by the median; null: not within the period"),
    Column("runs_out_low", TS, "earliest such day (95 %)"),
    Column("runs_out_high", TS, "latest such day (95 %); null: it may last"),
    Column("state", T, "spent, at risk, may not last, lasts, or no forecast"),
    Column("days", N, "whole days that the forecast rests on", "days"),
    Column("method", T, "how it was made"),
    Column("why", T, "why there is none, or what it leaves out"),
)
LABELS = ("budget", "group", "currency")
SPENT = Signal("budget_spent_ratio", "", "cost of the period so far over the budget", LABELS)
NEARLY = Signal("budget_alert_ratio", "", "share of the budget that is spent over the share that alerts", LABELS)
AT_RISK = Signal("budget_forecast_low_ratio", "", "lower 95 % limit of the period's cost over the budget", LABELS)
SIGNALS = (SPENT, NEARLY, AT_RISK)


def _trigger(name: str, signal: Signal, severity: Severity, summary: str, runbook: str) -> Trigger:
    return Trigger(name, signal, 1.0, severity, summary, runbook, hold=timedelta(0))


TRIGGERS = (
    _trigger(
        "BudgetSpent", SPENT, Severity.CRITICAL, "budget {budget} {group}: {value} times as much is spent", "budget"
    ),
    _trigger(
        "BudgetAtRisk",
        AT_RISK,
        Severity.WARNING,
        "budget {budget} {group}: the period will cost at least {value} times as much",
        "budget",
    ),
    _trigger(
        "BudgetNearlySpent",
        NEARLY,
        Severity.INFO,
        "budget {budget} {group}: spent is {value} times the share that alerts",
        "budget",
    ),
)


@dataclass(frozen=True, slots=True)
class Budget:
    """An amount that may be spent in each calendar period, by each group of `by`, on what `where` names."""

    name: str
    amount: Decimal
    currency: str
    period: str = "month"
    where: Where = ()
    by: tuple[str, ...] = ()
    alert: float = ALERT

    @property
    def input(self) -> str:
        """Name of its input."""
        return f"budget {self.name}"

    def text(self) -> str:
        """Write the line that `parse` reads."""
        where = " and ".join(f"{key}={value}" for key, value in self.where)
        parts = [f"{self.name}: {money_text(self.amount)} {self.currency} per {self.period}"]
        parts += [f"where {where}"] if where else []
        parts += [f"by {' and '.join(self.by)}"] if self.by else []
        parts += [f"alert {self.alert * 100:g}%"] if self.alert != ALERT else []
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Watched:
    """What all budgets add to a Result: rows of frame `budgets`, samples, findings, notes."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    samples: dict[str, "pl.DataFrame"] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def parse(text: str) -> Budget:
    """Read one budget. Raises UsageError that names what is wrong."""
    found = _LINE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"budget {text!r} cannot be read", GRAMMAR)
    name = found["name"].strip()
    currency = found["currency"].upper()
    if not re.fullmatch(r"[A-Z]{3}", currency):
        raise UsageError(f"budget {name!r}: currency cannot be {found['currency']!r}", "three letters, such as USD")
    if found["period"] not in PERIODS:
        raise UsageError(f"budget {name!r}: period cannot be {found['period']!r}", "one of: " + ", ".join(PERIODS))
    by = tuple(part.strip() for part in re.split(r"\s+and\s+|,", found["by"] or "") if part.strip())
    return Budget(
        name, amount(found["amount"], name), currency, found["period"], _where(found["where"], name), by,
        _share(found["alert"], name),
    )  # fmt: skip


def amount(text: str, name: str) -> Decimal:
    """Read what may be spent: a number above 0."""
    try:
        value = Decimal(text.replace("_", ""))
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or value <= 0:
        raise UsageError(f"budget {name!r}: amount cannot be {text!r}", "a number above 0, such as 5000 or 1999.99")
    return value


def _where(text: str | None, name: str) -> Where:
    pairs = [part.partition("=") for part in re.split(r"\s+and\s+", text.strip())] if text else []
    if not all(sign and key.strip() and value.strip() for key, sign, value in pairs):
        raise UsageError(f"budget {name!r}: where {text!r} cannot be read", "write K=V and K=V")
    return tuple((key.strip(), value.strip()) for key, _, value in pairs)


def _share(text: str | None, name: str) -> float:
    if text is None:
        return ALERT
    try:
        value = float(text.rstrip("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= 1.0:
        raise UsageError(f"budget {name!r}: alert cannot be {text!r}", "a share of the budget, such as 80%")
    return value


def read(texts: Iterable[str]) -> list[Budget]:
    """Read several budgets. Raises UsageError where two have one name."""
    found = [parse(text) for text in texts]
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two budgets are named {twice!r}", "give each a name of its own")
    return found


def queries(texts: Iterable[str]) -> dict[str, CostQuery]:
    """Ask for the lines of each budget, whatever else an analysis is filtered by: half a budget is none."""
    return {one.input: CostQuery((*one.by, *(i for i in ITEMS if i not in one.by)), one.where) for one in read(texts)}


def watched(
    inputs: "Mapping[str, pl.DataFrame]",
    texts: Sequence[str],
    window: Window,
    now: datetime,
    zone: str,
    planned: Sequence[Change] = (),
    schedules: "Mapping[str, Schedule] | None" = None,
) -> Watched:
    """Hold the lines of each budget (inputs of `queries`) against it; `now` (aware) is until when the bill is known.

    The level of a budget's cost begins anew where a planned change that concerns it says `level`.
    """
    from analytics.cost.watch import watch

    return watch(inputs, read(texts), window, now, zone, planned, schedules)
