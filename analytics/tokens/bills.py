"""What was billed by day against what the stored requests cost: how much of the spend is seen at all."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from analytics import frames
from analytics.result import Finding
from analytics.tokens import DAY_S, NOT_TRACED
from analytics.tokens.cards import Cards
from analytics.tokens.exact import WIDE, ratio, sums
from analytics.tokens.names import same_model
from store.money import amount_text, rounded
from store.window import Window, format_time

DAY = timedelta(seconds=DAY_S)
LEAST_DAYS = 3
"""Whole days a verdict rests on: the lines of one may be late, or of one job that nobody traces."""
CLOSE = 0.05
LONGEST_S = 90_000
"""25 hours: charges for longer cannot be laid beside the requests of a day."""
MONTHLY = "charge lines for more than a day are left out of the comparison with requests"
LABELS = ("provider", "source", "currency")
_BILLED = (
    (r"^openai", r"", "openai"),
    (r"^anthropic", r"", "anthropic"),
    (r"^(aws|amazon)", r"bedrock", "aws.bedrock"),
    (r"^(microsoft|azure)", r"openai|cognitive|foundry", "azure.ai.openai"),
    (r"^(google|gcp)", r"vertex|gemini|generative", "gcp.vertex_ai"),
)
"""Provider and service of a bill that sells models, and its name in spans; other lines count if they name a model."""
_SAME = {"gcp.gemini": "gcp.vertex_ai", "gcp.gen_ai": "gcp.vertex_ai", "azure.ai.inference": "azure.ai.openai"}
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Compared:
    """Rows of frame bills, and what days there were to compare."""

    rows: list[Row]
    notes: tuple[str, ...]


def compare(bills: pl.DataFrame, rows: pl.DataFrame, cards: Cards, window: Window) -> Compared:
    """Compare the charge lines of a CostQuery by day with charged requests, on days wholly within the window."""
    short = bills.filter(pl.col("span_s").fill_null(0) <= LONGEST_S)
    lines = _lines(short)
    if not lines:
        return Compared([], (MONTHLY,) if _lines(bills) else ())
    days = sorted({line["day"] for line in lines if _whole(line["day"], window)})
    if not days:
        return Compared([], ("a bill is compared day by day, and no whole day (UTC) lies in the window: --since 30d",))
    seen = _spent(rows, cards)
    groups = sorted({tuple(line[name] for name in LABELS) for line in lines if line["day"] in days}, key=str)
    made: list[Row] = []
    for provider, source, currency in groups:
        mine = [
            line
            for line in lines
            if (line["provider"], line["source"], line["currency"]) == (provider, source, currency)
        ]
        for model in sorted({"", *(line["model"] for line in mine)}):
            made += _days(
                mine, seen, days, {"provider": provider, "source": source, "model": model, "currency": currency}
            )
    return Compared(made, (MONTHLY,) if len(_lines(bills)) > len(lines) else ())


def _days(lines: Sequence[Row], seen: Sequence[Row], days: Sequence[datetime], about: Row) -> list[Row]:
    """Rows of one provider, or of one model of its bill: all days together, then day by day."""
    model = about["model"]
    mine = [line for line in lines if not model or line["model"] == model]
    own = [
        one
        for one in seen
        if one["provider"] == about["provider"] and (not model or same_model(model, one["model"] or ""))
    ]
    rows = [
        _row(
            about | {"day": day},
            [line for line in mine if line["day"] == day],
            [one for one in own if one["day"] == day],
        )
        for day in days
        if any(line["day"] == day for line in mine)
    ]
    billed = {row["day"] for row in rows}
    inside = [line for line in mine if line["day"] in billed], [one for one in own if one["day"] in billed]
    return [_row(about | {"day": None}, *inside), *rows] if rows else []


def _row(about: Row, lines: Sequence[Row], seen: Sequence[Row]) -> Row:
    billed = _add(line["cost"] for line in lines)
    spent = [one["money"][about["currency"]] for one in seen if about["currency"] in one["money"]]
    computed = _add(spent) if spent or not seen else None
    unpriced = sum(one["unpriced_tokens"] for one in seen)
    capture = None if computed is None else ratio(computed, billed)
    requests = sum(one["requests"] for one in seen)
    return about | {
        "billed": rounded(billed), "computed": None if computed is None else rounded(computed), "capture": capture,
        "requests": requests, "unpriced_tokens": unpriced, "reading": _reading(capture, requests, unpriced),
    }  # fmt: skip


def _reading(capture: float | None, requests: int, unpriced: int) -> str:
    if not requests:
        return "no request of it is stored: nobody traces this spend"
    if unpriced:
        return f"{unpriced} tokens of it have no price: see frame doubts"
    if capture is None:
        return "no request of it has a price in this currency"
    if capture < 1 - CLOSE:
        return "requests that are not traced, or charges that are no tokens (images, tools, tuning)"
    if capture > 1 + CLOSE:
        return "discounts and batch or cache prices that the price list or the spans lack, or another account's bill"
    return "agrees within 5 %"


def _lines(bills: pl.DataFrame) -> list[Row]:
    """Lines of usage of models, with the provider as spans name it."""
    usage = bills.filter(pl.col("category").fill_null("Usage") == "Usage", pl.col("cost").is_not_null())
    made = []
    for row in usage.iter_rows(named=True):
        provider = _provider(row["provider"] or "", row["cost_service"] or "", row["model"])
        if provider is not None:
            made.append(
                {
                    "day": row["bucket"], "provider": provider, "source": row["source"] or "",
                    "currency": row["currency"] or "", "model": row["model"] or "", "cost": row["cost"],
                }
            )  # fmt: skip
    return made


def _provider(name: str, service: str, model: str | None) -> str | None:
    for vendor, sells, known in _BILLED:
        if re.search(vendor, name.lower()) and (model or re.search(sells, service.lower())):
            return known
    return _spans_name(name) if model else None


def _spans_name(provider: str | None) -> str:
    name = (provider or "").lower()
    return _SAME.get(name, name)


def _whole(day: datetime, window: Window) -> bool:
    start = day.replace(tzinfo=UTC)
    return window.start <= start and start + DAY <= window.end


def _spent(rows: pl.DataFrame, cards: Cards) -> list[Row]:
    """Return requests, unpriced tokens and money by currency, of each day, provider and model."""
    keys = ["_day", "provider", "model"]
    dated = rows.with_columns(pl.col("ts").dt.truncate("1d").alias("_day"))
    tokens = pl.col("input_tokens").fill_null(0) + pl.col("output_tokens").fill_null(0)
    without = pl.col("lacks").is_not_null() & pl.col("told")
    counts = dated.group_by(keys).agg(
        pl.col("weight").sum().alias("requests"), tokens.filter(without).sum().alias("unpriced_tokens")
    )
    money: dict[tuple[Any, ...], dict[str, Decimal]] = {}
    for key, one in sums(dated, keys, cards).items():
        money.setdefault(key[:-1], {})[key[-1]] = one.total
    return [
        row
        | {
            "day": row["_day"],
            "provider": _spans_name(row["provider"]),
            "money": money.get((row["_day"], row["provider"], row["model"]), {}),
        }
        for row in counts.iter_rows(named=True)
    ]


def _add(amounts: Any) -> Decimal:
    whole = Decimal(0)
    for amount in amounts:
        whole = WIDE.add(whole, amount)
    return whole


def best_days(found: Compared) -> Sequence[tuple[Mapping[str, str], Row, Row | None]]:
    """Of each provider, source and currency: labels, the row of all days, and the day with the highest capture.

    None for that day where fewer than LEAST_DAYS have one.
    """
    made = []
    for whole in (row for row in found.rows if row["day"] is None and not row["model"]):
        labels = {name: whole[name] for name in LABELS}
        days = [
            row for row in found.rows
            if row["day"] is not None and not row["model"] and row["capture"] is not None
            and all(row[name] == value for name, value in labels.items())
        ]  # fmt: skip
        best = max(days, key=lambda row: float(row["capture"])) if len(days) >= LEAST_DAYS else None
        made.append((labels, whole, best))
    return made


def samples(found: Compared) -> pl.DataFrame:
    """Capture on the best day."""
    rows = [dict(labels) | {"value": None if best is None else best["capture"]} for labels, _, best in best_days(found)]
    return frames.samples(LABELS, rows)


def findings(found: Compared) -> list[Finding]:
    """Return a finding for each bill of which most is not seen, on every day of at least three."""
    made = []
    for labels, whole, best in best_days(found):
        if best is None or not NOT_TRACED.holds(best["capture"]):
            continue
        days = [row["day"] for row in found.rows if row["day"] and row["provider"] == labels["provider"]]
        first = min(days).replace(tzinfo=UTC)
        billed, computed = (
            amount_text(round(whole[name] or Decimal(0), 2), labels["currency"]) for name in ("billed", "computed")
        )
        made.append(
            Finding(
                trigger=NOT_TRACED.name,
                severity=NOT_TRACED.severity,
                labels=labels,
                value=best["capture"],
                expected=(NOT_TRACED.bound, None),
                since=first,
                summary=f"{billed} were billed for {labels['provider']} since {format_time(first)}, "
                f"the requests stored cost {computed}: at most {best['capture']:.0%} of a day's bill is traced",
                evidence={"billed": whole["billed"], "computed": whole["computed"], "reading": whole["reading"]},
            )
        )
    return made
