"""From points to the answer of `analyze tiers`: schedules, what else the bill allows, price changes, and a check."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from analytics import frames
from analytics.analysis import Inputs
from analytics.result import Finding, Result, Status, ranked
from analytics.tiers import CHANGE, FRAMES, PRICE_CHANGED, TiersParams
from analytics.tiers.bills import Item, Left, Month, half_unit, items, usage
from analytics.tiers.infer import infer, rise
from analytics.tiers.regimes import Change, Followed, follow, points
from analytics.tiers.rows import alternative_rows, change_rows, check_rows, model_row, point_rows, tier_rows
from analytics.tiers.schedule import Schedule, parse_schedule
from store.errors import UsageError
from store.money import amount_text, minor_places
from store.window import Window, format_time

ORDER = ("graduated", "volume", "unknown", "one price")
MOST_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class Answered:
    """An item and what its months follow."""

    item: Item
    followed: Followed
    rests_on: str


def answer(inputs: Inputs, params: TiersParams, window: Window) -> Result:
    """Answer for every item. Status: empty without usage that has a quantity and a cost."""
    schedule = parse_schedule(params.schedule) if params.schedule else None
    if params.points:
        found, notes = [_given(params)], []
        by: list[str] = []
    else:
        by = list(params.by)
        lines, left = usage(inputs["costs"], by, window.start.replace(tzinfo=None))
        found = [_follow(item, params) for item in items(lines, by, params.most)]
        notes = _left_out(left, params, len(found))
    found.sort(key=lambda one: (ORDER.index(one.followed.inferred.model), -one.item.cost))
    if not found:
        said = (*notes, f"no usage with a quantity and a cost in whole billing months of {window}")
        return Result("tiers", Status.EMPTY, window, asdict(params), frames.empty(by, FRAMES), notes=said)
    return Result(
        analysis="tiers",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames=_frames(found, by, schedule),
        samples={CHANGE.name: frames.samples([*by, *CHANGE.labels], _samples(found, params))},
        findings=tuple(ranked(f for one in found for f in _findings(one, params))),
        notes=(*notes, *_notes(found)),
    )


def _given(params: TiersParams) -> Answered:
    pairs = [_pair(text) for text in params.points]
    start = datetime.fromtimestamp(0, UTC).replace(tzinfo=None)
    months = tuple(Month(start, (start,), (q,), (c,), (1,)) for q, c in pairs)
    places = [-exponent for _, c in pairs if isinstance(exponent := c.as_tuple().exponent, int)]
    half = half_unit(max(minor_places(params.currency), *places))
    item = Item({}, {"provider": "", "item": "given", "unit": "", "currency": params.currency}, months, half)
    inferred = infer(*points(months, half, params.slack))
    return Answered(item, Followed(inferred, months, (), judged=False), "given")


def _pair(text: str) -> tuple[float, Decimal]:
    first, colon, second = text.partition(":")
    try:
        quantity, cost = Decimal(first.strip()), Decimal(second.strip())
    except InvalidOperation:
        quantity = cost = Decimal("nan")
    if not colon or not quantity.is_finite() or not cost.is_finite() or quantity <= 0:
        raise UsageError(f"{text!r} is no quantity with its cost", "write points like 30:36.0,80:103.5,250:249.0")
    return float(quantity), cost


def _follow(item: Item, params: TiersParams) -> Answered:
    daily = any(len(month.days) > 1 for month in item.months)
    whole = tuple(month.total() for month in item.months)
    if params.rests_on == "months" or not daily:
        return Answered(item, follow(item, whole, params.slack), "months")
    found = Answered(item, follow(item, item.months, params.slack), "cumulative")
    if found.followed.inferred.model == "unknown" and params.rests_on == "auto" and len(whole) > 2:
        other = Answered(item, follow(item, whole, params.slack), "months")
        return other if other.followed.inferred.model != "unknown" else found
    return found


def _frames(found: Sequence[Answered], by: list[str], schedule: Schedule | None) -> dict[str, Any]:
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in FRAMES}
    for one in found:
        labels = {**one.item.labels, **one.item.key}
        rows["model"].append(model_row(one.followed, one.rests_on, labels))
        rows["tiers"] += tier_rows(one.followed.inferred, labels)
        rows["alternatives"] += alternative_rows(one.followed.inferred, labels)
        rows["changes"] += change_rows(one.followed, labels)
        if one.followed.inferred.model != "one price":
            rows["points"] += point_rows(one.followed, labels, len(rows["points"]))
        if schedule is not None:
            rows["check"] += check_rows(one.item, schedule, labels)
    return {name: frames.build(by, columns, rows[name]) for name, columns in FRAMES.items()}


def _value(one: Answered, params: TiersParams) -> float | None:
    """Return how far the latest month is at least off the schedule before it; 0 where it follows it."""
    changes = one.followed.changes
    if not one.followed.judged:
        return None
    if not changes or changes[-1].until is not None:
        return 0.0
    last = changes[-1]
    return last.sure_ratio if abs(last.paid - last.expected) >= Decimal(repr(params.least_impact)) else 0.0


def _samples(found: Sequence[Answered], params: TiersParams) -> list[dict[str, Any]]:
    """Return what is known of the items of the highest cost, those that changed before the others."""
    rows = [(_value(one, params), one) for one in found]
    known = [(value, one) for value, one in rows if value is not None]
    known.sort(key=lambda pair: (pair[0] <= PRICE_CHANGED.bound, -pair[1].item.cost))
    return [{**one.item.labels, **one.item.key, "value": value} for value, one in known[:MOST_SAMPLES]]


def _findings(one: Answered, params: TiersParams) -> list[Finding]:
    made = []
    for change in one.followed.changes:
        lasts = change.until is None
        if abs(change.paid - change.expected) < Decimal(repr(params.least_impact)):
            continue
        ratio = float(change.paid / change.expected) - 1 if change.expected else None
        currency, who = (
            one.item.key["currency"],
            ", ".join(filter(None, (*one.item.labels.values(), one.item.key["provider"]))),
        )
        said = f"{abs(ratio):.1%} {'more' if ratio > 0 else 'less'}" if ratio is not None else "something, not nothing"
        made.append(
            Finding(
                trigger=PRICE_CHANGED.name,
                severity=PRICE_CHANGED.severity,
                labels={**one.item.labels, **one.item.key},
                value=change.sure_ratio,
                expected=(0.0, PRICE_CHANGED.bound),
                since=_utc(change.since),
                until=None if lasts or change.until is None else _utc(change.until),
                summary=(
                    f"{one.item.key['item']}{f' ({who})' if who else ''} costs {said} since "
                    f"{format_time(change.since)}: {change.quantity:.6g} {one.item.key['unit'] or 'units'} cost "
                    f"{_amount(change.paid, currency)}, {_amount(change.expected, currency)} by the prices "
                    f"{_before(change)}"
                ),
                evidence={
                    "quantity": change.quantity, "paid": _amount(change.paid, currency),
                    "expected": _amount(change.expected, currency),
                    "next": "infractl analyze tiers --where ..., frame changes; hold it against the price list",
                },
            )
        )  # fmt: skip
    return made


def _before(change: Change) -> str:
    """Say what the expectation rests on."""
    if change.first_time:
        return "before that day; no other month reached this quantity, so that it may be a dearer tier"
    return f"of {change.months} months before"


def _amount(amount: Decimal, currency: str) -> str:
    return amount_text(amount.quantize(Decimal(1).scaleb(-minor_places(currency))), currency)


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)


def _left_out(left: Left, params: TiersParams, n: int) -> list[str]:
    said = []
    if left.no_usage:
        said.append(f"{left.no_usage:,} lines that are no usage (credits, taxes, purchases, ...) are left out")
    if left.no_quantity:
        said.append(f"{left.no_quantity:,} lines without a quantity or a cost are left out")
    if left.cut_months:
        said.append(f"{left.cut_months:,} lines of billing months that began before the window are left out")
    if n == params.most:
        said.append(f"only the {n:,} items of the highest cost were looked at (--most)")
    return said


def _notes(found: Sequence[Answered]) -> list[str]:
    said = [
        "each set holds for the fewest tiers that explain the bill; a price is called identified from 3 points apart"
    ]
    for one in found:
        inferred, name = one.followed.inferred, one.item.key["item"]
        rises = rise(inferred.q, inferred.low, inferred.high) if inferred.model == "unknown" else None
        if rises is not None:
            i, j = rises
            average = (inferred.low + inferred.high) / 2 / inferred.q
            said.append(
                f"{name}: the average price rises from {average[i]:.4g} at {inferred.q[i]:.6g} to {average[j]:.4g} at "
                f"{inferred.q[j]:.6g}: inconsistent with prices that only fall with quantity"
            )
        if len(said) > 20:
            break
    known = [one for one in found if one.followed.inferred.model in ("graduated", "volume")]
    said += [f"{one.item.key['item']}: nothing is known beyond {one.followed.inferred.q[-1]:.6g}" for one in known[:10]]
    return said
