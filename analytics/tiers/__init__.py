"""`analyze tiers`: which schedule of prices by quantity a bill follows, and whether a price changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from analytics.analysis import Analysis, Inputs, Params, param
from analytics.result import Result, Severity, Signal, Trigger
from store.columns import Column, Kind
from store.query import CostQuery, Query
from store.window import Window

B, F, M, N, T, TS = Kind.BOOL, Kind.FLOAT, Kind.MONEY, Kind.INT, Kind.TEXT, Kind.TIME
DAY_S = 86_400
LEAST_CHANGE = 0.005
"""Share by which what is paid must differ from the earlier schedule, beyond what rounding explains."""
ITEM = ("provider", "sku", "model", "tokens_kind", "cost_service", "unit", "billing_period")


@dataclass(frozen=True, kw_only=True, slots=True)
class TiersParams(Params):
    """Parameters of `analyze tiers`."""

    by: tuple[str, ...] = param(("account",), "labels whose quantities are counted apart; none: counted together")
    points: tuple[str, ...] = param((), "quantity:cost of whole months, such as 30:36.0,80:103.5; then no bill is read")
    currency: str = param("USD", "currency of --points")
    schedule: tuple[str, ...] = param((), "prices to check the bill against, such as 0:1.20,50:0.95,200:0.78")
    rests_on: str = param(
        "auto",
        "cumulative: each day's total of its month so far; months: totals alone; auto: what gives an answer",
        choices=("auto", "cumulative", "months"),
    )
    slack: float = param(0.0, "share of a cost that may differ besides rounding (rounded quantities)", within=(0, 0.1))
    least_impact: float = param(1.0, "money a month below which a changed price is no finding", within=(0, 1e12))
    most: int = param(300, "items looked at, those of the highest cost first", within=(1, 100_000))


def inputs(params: TiersParams) -> Mapping[str, Query]:
    """Ask for daily sums of charge lines; for nothing where points are given."""
    if params.points:
        return {}
    return {"costs": CostQuery(tuple(dict.fromkeys((*params.by, *ITEM))), params.where, DAY_S)}


KEY = (
    Column("provider", T, "who provides it"),
    Column("item", T, "what is bought: SKU, else model and kind of tokens, else service"),
    Column("unit", T, "unit of the quantity"),
    Column("currency", T, "currency of prices and costs"),
)
FRAMES = {
    "model": (
        *KEY,
        Column("model", T, "graduated, volume, one price, or unknown"),
        Column("reason", T, "what that means here, or why it is not known"),
        Column("fee", M, "cost of a month without use, in the currency; null: none"),
        Column("fee_low", F, "least fee that the bill allows"),
        Column("fee_high", F, "largest fee that the bill allows"),
        Column("minimum", M, "least cost of a month with use, in the currency; null: none"),
        Column("q_max", F, "largest quantity that supports the schedule; nothing is known beyond"),
        Column("points", N, "pairs of quantity and cost", "points"),
        Column("months", N, "billing months they are from", "months"),
        Column("rests_on", T, "cumulative, months, or given"),
        Column("since", TS, "first of these months"),
        Column("residual", F, "largest difference of schedule and bill over what rounding allows; null: no schedule"),
        Column("alternatives", N, "ways to cut the points into so few tiers that differ in a price; at most 10"),
        Column("cost", M, "cost in these months, in the currency"),
    ),
    "tiers": (
        *KEY,
        Column("tier", N, "number, from the smallest quantity"),
        Column("from_q", F, "quantity of a month from which the price holds"),
        Column("from_low", F, "least value of it that the bill allows"),
        Column("from_high", F, "largest value of it that the bill allows"),
        Column("from_identified", B, "points enough on both sides, no room for a tier between, no price change likely"),
        Column("to_q", F, "quantity up to which it holds; null: the last one seen"),
        Column("unit_price", M, "price per unit: the plainest number the bill allows; null: one point only"),
        Column("low", F, "least price that the bill allows"),
        Column("high", F, "largest price that the bill allows"),
        Column("points", N, "points in the tier", "points"),
        Column("identified", B, "three points apart from each other, and the allowed prices within 1 %"),
        Column("verdict", T, "identified, or why not"),
    ),
    "alternatives": (
        *KEY,
        Column("alternative", N, "number of another cut into as few tiers"),
        Column("tier", N, "number of the tier"),
        Column("first_q", F, "smallest quantity in it"),
        Column("last_q", F, "largest quantity in it"),
        Column("low", F, "least price; null: one point"),
        Column("high", F, "largest price; null: one point"),
        Column("points", N, "points in the tier", "points"),
    ),
    "changes": (
        *KEY,
        Column("since", TS, "first point that departs from the schedule of the months before"),
        Column("until", TS, "end of that billing month; null: it is the latest one"),
        Column("quantity", F, "quantity of that month from then on"),
        Column("expected", M, "cost of it by the schedule of the months before, in the currency"),
        Column("paid", M, "cost of it on the bill, in the currency"),
        Column("ratio", F, "paid over expected, less 1", "ratio"),
        Column("months", N, "months that the expectation rests on", "months"),
    ),
    "check": (
        *KEY,
        Column("quantity", F, "quantity of a month"),
        Column("cost", M, "cost on the bill, in the currency"),
        Column("graduated", M, "cost by --schedule, each unit at the price of its tier"),
        Column("volume", M, "cost by --schedule, all units at the price of the total's tier"),
        Column("verdict", T, "graduated, volume, both, or neither, within rounding"),
    ),
    "points": (
        *KEY,
        Column("month", TS, "billing month"),
        Column("quantity", F, "quantity of the month so far"),
        Column("cost", M, "cost of the month so far, in the currency"),
        Column("scheduled", M, "cost by the schedule; null: not known"),
    ),
}
LABELS = tuple(column.name for column in KEY)
CHANGE = Signal(
    "price_change_ratio",
    "",
    "share by which the latest month, or its part since a change, is at least off the schedule before; null: not known",
    LABELS,
)
PRICE_CHANGED = Trigger(
    "PriceChanged",
    CHANGE,
    LEAST_CHANGE,
    Severity.WARNING,
    "{item} costs at least {value} more or less than its prices of earlier months say",
    "price-changed",
    hold=timedelta(0),
)


def run(inputs: Inputs, params: TiersParams, window: Window) -> Result:
    """Answer from frames alone; see `analytics.tiers.answer`."""
    from analytics.tiers.answer import answer

    return answer(inputs, params, window)


ANALYSIS = Analysis(
    name="tiers",
    title="Price tiers",
    doc=(
        "Prices by quantity inferred from bills: limits and unit prices as exact sets, graduated or volume, and what "
        "the bill does not tell. Pairs can be typed in: --points 30:36.0,80:103.5,250:249.0 --currency USD."
    ),
    params=TiersParams,
    inputs=inputs,
    frames=FRAMES,
    run=run,
    signals=(CHANGE,),
    triggers=(PRICE_CHANGED,),
    lookback=timedelta(days=400),
    every=timedelta(hours=1),
)
