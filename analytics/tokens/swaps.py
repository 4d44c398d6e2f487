"""Requests that another model answered than was asked for: since when, how many, and what that does to the cost.

A router answers for its name by many models from its first request on, and a deployment by one: neither is news. What
is news is a model that begins to answer after enough requests for the same name were answered without it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from analytics import frames
from analytics.result import Finding
from analytics.stats.proportion import wilson
from analytics.tokens import SWAPPED
from analytics.tokens.cards import Cards
from analytics.tokens.charged import ADDED, TOKENS, charged
from analytics.tokens.exact import WIDE, sums
from analytics.tokens.names import same_model
from store.money import rounded
from store.window import format_time

LATEST = 100
"""Requests for a model, counted back from the end, that say how things are now: 11 of them put the limit above 5 %."""
CHANCE = 0.001
"""Chance, at most, that the earlier requests missed the other model by luck alone."""
LEAST_BEFORE, LEAST_AFTER = 20, 10
EXAMPLES = 5
PAIR = ["provider", "request_model", "response_model"]
_CHARGED = (*PAIR, *TOKENS, "ts", "batch", "length", *ADDED)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Swap:
    """One pair of names: a row of frame swaps, the lower limit of its latest share, and example traces."""

    row: Row
    latest_low: float
    traces: Sequence[str]
    before: int

    @property
    def news(self) -> bool:
        """Whether another model began to answer."""
        return self.row["kind"] == "other" and bool(self.row["began"])


def swaps(rows: pl.DataFrame, cards: Cards) -> list[Swap]:
    """Return every pair of different names, most requests first. `rows` are charged ones, ordered by ts."""
    asked = ["provider", "request_model"]
    said = pl.col("request_model").is_not_null() & pl.col("response_model").is_not_null()
    told = rows.lazy().filter(said).select(*PAIR, "ts", "trace_id")
    differs = pl.col("request_model") != pl.col("response_model")
    differing = told.filter(differs).select(asked).unique()
    whole = told.join(differing, on=asked, how="semi", nulls_equal=True, maintain_order="left").collect()
    if not whole.height:
        return []
    money = _money(rows.lazy().filter(said & differs).select(_CHARGED).collect(), cards)
    found = []
    for part in whole.partition_by(asked, maintain_order=True):
        names = part.filter(pl.col("response_model") != pl.col("request_model"))["response_model"].unique().sort()
        found += [_swap(part, name, money) for name in names]
    return sorted(found, key=lambda swap: (-swap.row["requests"], str(swap.row["request_model"])))


def _swap(part: pl.DataFrame, name: str, money: Mapping[Any, Row]) -> Swap:
    """Describe one model that answers for another. `part` are all requests for that name, ordered by ts."""
    hits = (part["response_model"] == name).to_numpy()
    inside = part.filter(pl.Series(hits))
    before, after = int(np.argmax(hits)), hits[int(np.argmax(hits)) :]
    latest = hits[-LATEST:]
    row: Row = {key: part[key][0] for key in ("provider", "request_model")} | {"response_model": name}
    row |= {
        "kind": "version" if same_model(row["request_model"], name) else "other",
        "requests": inside.height, "share": inside.height / part.height, "first_ts": inside["ts"][0],
        "last_ts": inside["ts"][-1], "began": _began(before, int(after.sum()), after.size),
        **money.get((row["provider"], row["request_model"], name), {}),
    }  # fmt: skip
    traces = inside.drop_nulls("trace_id")["trace_id"].tail(EXAMPLES).to_list()
    return Swap(row, float(wilson(int(latest.sum()), latest.size)[0]), traces, before)


def _began(before: int, hits: int, after: int) -> bool:
    """Tell whether so many requests without the model, before its first, are no chance at the share it has since."""
    if hits < LEAST_AFTER or before < LEAST_BEFORE:
        return False
    low = float(wilson(hits, after)[0])
    return (1.0 - low) ** before < CHANCE


def _money(differing: pl.DataFrame, cards: Cards) -> dict[Any, Row]:
    """Return what the swapped requests cost, and at the price of the model asked for; by pair, of its main currency."""
    as_asked = charged(differing.drop(ADDED), cards, "request_model")
    both = (differing["lacks"].is_null() & as_asked["lacks"].is_null()).fill_null(value=False)
    same = (differing["currency"] == as_asked["currency"]).fill_null(value=False)
    paid, asked = sums(differing, PAIR, cards), sums(as_asked, PAIR, cards)
    paid_both, asked_both = (sums(frame.filter(both & same), PAIR, cards) for frame in (differing, as_asked))
    found: dict[Any, Row] = {}
    for key in sorted({*paid, *asked}, key=str):
        *pair, currency = key
        if key in paid or tuple(pair) not in found:
            found[tuple(pair)] = {
                "cost": _total(paid.get(key)), "cost_as_asked": _total(asked.get(key)), "currency": currency,
                "effect": _less(paid_both.get(key), asked_both.get(key)),
            }  # fmt: skip
    return found


def _total(one: Any) -> Decimal | None:
    return None if one is None else rounded(one.total)


def _less(one: Any, other: Any) -> Decimal | None:
    return None if one is None or other is None else rounded(WIDE.subtract(one.total, other.total))


def samples(found: Sequence[Swap]) -> pl.DataFrame:
    """Latest share of each model that began to answer for another."""
    rows = [{name: swap.row[name] or "" for name in PAIR} | {"value": swap.latest_low} for swap in found if swap.news]
    return frames.samples(PAIR, rows)


def findings(found: Sequence[Swap]) -> list[Finding]:
    """One finding for each model that began to answer for another within the window."""
    return [_finding(swap) for swap in found if swap.news]


def _finding(swap: Swap) -> Finding:
    row, lasting = swap.row, SWAPPED.holds(swap.latest_low)
    first, last = (row[name].replace(tzinfo=UTC) for name in ("first_ts", "last_ts"))
    until: datetime | None = None if lasting else last + timedelta(microseconds=1)
    when = f"since {_at(first)}" if lasting else f"from {_at(first)} to {_at(last)}"
    effect = row.get("effect")
    cost = "the price of one of both is not known" if effect is None else _effect(effect, row["currency"])
    return Finding(
        trigger=SWAPPED.name,
        severity=SWAPPED.severity,
        labels={name: row[name] or "" for name in PAIR},
        value=swap.latest_low,
        expected=(0.0, SWAPPED.bound),
        since=first,
        until=until,
        summary=f"{row['requests']} requests for {row['request_model']} were answered by {row['response_model']} "
        f"{when}, none of the {swap.before} before; {cost}",
        evidence={"trace_ids": list(swap.traces), "before": swap.before},
    )


def _effect(effect: Decimal, currency: str) -> str:
    amount = f"{abs(effect):.4f} {currency}"
    return f"that is {amount} {'more' if effect > 0 else 'less'} than at its price" if effect else "at the same price"


def _at(moment: datetime) -> str:
    return format_time(moment.replace(microsecond=0))
