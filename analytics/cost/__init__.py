"""`analyze cost`: what things cost by the hour, where that drifts, why, and what the month will come to."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.cost import budgets, explained, forecast
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.errors import UsageError
from store.query import ROLLUP_DIMENSIONS, CostQuery, PriceQuery, Query, RollupQuery, Where
from store.window import Window

F, M, N, T, TS, B = Kind.FLOAT, Kind.MONEY, Kind.INT, Kind.TEXT, Kind.TIME, Kind.BOOL
ITEMS = ("sku", "model", "tokens_kind", "unit")
"""What a charge is made of: drifts are explained by these."""
NO_LABELS = ("currency", "category", "basis", "grain")
"""Columns that every frame has anyway."""
REQUESTS = ("service", "provider", "model", "environment", "cloud_region")
RENAMED = {"region": "cloud_region"}
"""Columns of bills that requests have under another name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CostParams(Params):
    """Parameters of `analyze cost`."""

    by: tuple[str, ...] = param(
        ("service", "region", "environment"),
        "labels to group by: columns of costs (model, tenant, provider, account, sku, …) or tag keys; none: one group",
    )
    method: str = param(
        "seasonal",
        "seasonal: median of the same hour of the week, sums and change points; rolling: mean + k sd of 7 days",
        choices=("seasonal", "rolling"),
    )
    empty: str = param(
        "auto",
        "hours without a line: skip, zero, or auto (seasonal: zero where other lines are of that hour; rolling: skip)",
        choices=("auto", "skip", "zero"),
    )
    least_money: float = param(1.0, "least impact of a drift, in the currency of the bill (seasonal)", within=(0, 1e12))
    least_percent: float = param(10.0, "least impact of a drift, in percent (seasonal)", within=(0, 1e6))
    k: float = param(2.5, "standard deviations above the mean (rolling)", within=(0, 100))
    kinds: tuple[str, ...] = param(
        ("database=2.0/0.18", "serverless=3.5/0.45"),
        "NAME=K/TOLERANCE: k and least rise of groups one of whose labels contains NAME (rolling)",
    )
    explain: int = param(10, "drifts to explain, the largest first", within=(0, 1000))
    attribution: str = param(
        "sequential",
        "order of the factors: sequential (volume, mix, price at new quantities) or shapley (mean over all orders)",
        choices=explained.ATTRIBUTIONS,
    )
    zone: str = param("UTC", "time zone of hours of the week, days and months; default: the report zone")
    budgets: tuple[str, ...] = param(
        (), "such as 'llm: 5000 USD per month where service=chat'; default: budgets of infractl.yaml"
    )
    changes: tuple[str, ...] = param(
        (), "planned changes, such as '2026-12-01..2026-12-03 service=chat \"migration\"'; default: of infractl.yaml"
    )

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that groups have."""
        return tuple(dict.fromkeys(name for name in self.by if name not in NO_LABELS))


def inputs(params: CostParams) -> Mapping[str, Query]:
    """Ask for charge lines by hour, label and item, for tokens and prices to compute spend, and for budgets' lines."""
    labels = params.labels
    taken = [name for name in labels if name in _TAKEN]
    if taken:
        raise UsageError(f"costs cannot be grouped by {taken[0]}", "a column of the answer is called so")
    queries: dict[str, Query] = {
        "lines": CostQuery((*labels, *(name for name in ITEMS if name not in labels)), params.where)
    }
    where = _of_requests(params.where)
    if where is not None:
        queries["requests"] = RollupQuery("requests", REQUESTS, where, 3600)
        queries["prices"] = PriceQuery()
    return queries | budgets.queries(params.budgets)


def _of_requests(where: Where) -> Where | None:
    """Return the same conditions on requests; None where requests do not know one of the fields."""
    named = tuple((RENAMED.get(field, field), value) for field, value in where)
    return named if all(field in ROLLUP_DIMENSIONS for field, _ in named) else None


LABELS = ("service", "region", "environment", "currency", "basis")
DRIFT = Signal(
    "cost_drift_ratio", "", "cost above what was usual before a level or trend that lasts, as a share of it; 0: none",
    LABELS,
)  # fmt: skip
SPIKE = Signal("cost_spike_ratio", "", "the same of a spike that lasts; 0: none", LABELS)
PEAK = Signal(
    "cost_baseline_ratio", "", "highest cost of an hour over what is expected, of a drift that lasts; 0: none", LABELS
)
NEW = Signal("cost_new_spend", "", "cost per hour of what cost nothing before, in the currency; 0: none", LABELS)
STOPPED = Signal("cost_stopped", "", "usual cost per hour of what costs nothing any more; 0: none", LABELS)
_WHO = "{service} {region} {environment}"
_AT_ONCE = timedelta(0)
"""An hour of a bill is known once and stays: waiting would only delay."""
TRIGGERS = (
    Trigger(
        "CostP0", PEAK, 3.0, Severity.CRITICAL, f"An hour of {_WHO} costs {{value}} times what is expected",
        "cost-drift", hold=_AT_ONCE,
    ),
    Trigger(
        "CostDrift", DRIFT, 0.0, Severity.WARNING, f"{_WHO} costs {{value}} more than before, as a share, and it lasts",
        "cost-drift", hold=_AT_ONCE,
    ),
    Trigger(
        "CostSpike", SPIKE, 0.0, Severity.WARNING, f"{_WHO} costs {{value}} more than expected, as a share",
        "cost-drift", hold=_AT_ONCE,
    ),
    Trigger(
        "NewSpend", NEW, 0.0, Severity.INFO, f"{_WHO} costs {{value}} {{currency}} per hour and cost nothing before",
        "new-spend", hold=_AT_ONCE,
    ),
    Trigger(
        "SpendStopped", STOPPED, 0.0, Severity.INFO, f"{_WHO} costs nothing any more; usual is {{value}} per hour",
        "new-spend", hold=_AT_ONCE,
    ),
)  # fmt: skip
_BASIS = Column(
    "basis",
    T,
    "billed (hourly lines), billed daily, billed monthly, or computed (tokens at list prices): never added up",
)
_CURRENCY = Column("currency", T, "currency of all amounts; null: not stated")
FRAMES = {
    "drifts": (
        _CURRENCY,
        _BASIS,
        Column("kind", T, "spike (back within a day), level, trend, new (nothing before) or stopped"),
        Column("since", TS, "start of the first hour; of daily lines the first day"),
        Column("until", TS, "end of the last one; null while it lasts"),
        Column("impact", M, "cost less what was usual before, over that time"),
        Column("impact_ratio", F, "that over what was usual; null: nothing was", "ratio"),
        Column("expected", F, "usual cost of an hour (day) of that time"),
        Column("peak_ratio", F, "highest hour (day) over what was usual for it; null: nothing was", "ratio"),
        Column("size", F, "change of the level, of a trend at its end; null for a spike", "ratio"),
        Column("size_low", F, "lower 95 % limit", "ratio"),
        Column("size_high", F, "upper 95 % limit", "ratio"),
        Column("compared_with", T, "what it is held against"),
        Column("found_by", T, "hours, days, change points, or rolling"),
        Column("usual_since", TS, "from when the new level counts as the usual one; null: not yet"),
        Column("planned", T, "planned change in which it begins: no alert"),
        Column("explanation", T, "what the change goes with, see frame explained"),
    ),
    "explained": explained.COLUMNS,
    "totals": (
        _CURRENCY,
        _BASIS,
        Column("category", T, "FOCUS charge category; null: not stated (usage reports)"),
        Column("cost", M, "sum of what was billed, of lines without it the effective cost; null: no line has a cost"),
        Column("effective", M, "sum of the effective (amortised) costs"),
        Column("net", M, "sum of all categories of this group and currency"),
        Column("lines", N, "charge lines", "lines"),
    ),
    "forecast": forecast.COLUMNS,
    "budgets": budgets.COLUMNS,
    "days": (
        _CURRENCY,
        _BASIS,
        Column("day", TS, "start of the local day"),
        Column("cost", M, "usage of the day"),
        Column("hours", N, "hours of the day: 23 or 25 where a clock changes", "h"),
        Column("per_hour", F, "cost over hours; null: lines are known for a part of the day only"),
    ),
    "hours": (
        _CURRENCY,
        _BASIS,
        Column("bucket", TS, "start of the hour (of daily lines: the day)"),
        Column("cost", M, "usage (rolling: all lines); null: no line"),
        Column("expected", F, "usual cost; null: too little history"),
        Column("low", F, "lower edge of the expected band"),
        Column("high", F, "upper edge: beyond it a single hour is a spike"),
        Column("score", F, "robust standard deviations (of log cost; rolling: of cost) from expected"),
        Column("alert", B, "part of a spike or a drift upwards"),
    ),
}


_TAKEN = {column.name for name in FRAMES if name != "budgets" for column in FRAMES[name]} - {"unit"}


def run(inputs: Inputs, params: CostParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.cost.answer`."""
    from analytics.cost.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="cost",
    title="What it costs",
    doc=(
        "Hourly and daily cost per group and currency, where it drifts (spike, level, trend, new), what the change "
        "goes with (price, volume, mix), a forecast to the month's end, and budgets."
    ),
    params=CostParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(DRIFT, SPIKE, PEAK, NEW, STOPPED, *budgets.SIGNALS),
    triggers=(*TRIGGERS, *budgets.TRIGGERS),
    lookback=timedelta(days=42),
    every=timedelta(minutes=30),
)
