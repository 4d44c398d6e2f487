"""From requests, prices and bills to the answer of `analyze tokens`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from analytics import frames
from analytics.analysis import Inputs
from analytics.result import Result, Status
from analytics.tokens import CAPTURE, FRAMES, HOURLY, KEYS, PER_1K, SWAP, UNPRICED, TokensParams, bills, rollup, swaps
from analytics.tokens import charged as charging
from analytics.tokens import rolled as rollups
from analytics.tokens.cards import Cards, cards_of
from analytics.tokens.compression import compression_rows
from analytics.tokens.models import doubt_rows, kind_rows, model_rows, totals, unpriced_ratio
from analytics.tokens.twice import once
from analytics.tokens.units import dearest_rows, per_rows, unit_rows
from store.money import amount_text
from store.window import Window

Row = dict[str, Any]
LABELLED = ("models", "kinds", "dearest")
"""Frames that have the labels of `by`."""
NAMED = 10
"""Models without a price that a note names; frame doubts has all."""


def answer(inputs: Inputs, params: TokensParams, window: Window) -> Result:
    """Price the requests. Status: empty without requests."""
    raw = "requests" in inputs
    labels = params.labels
    cards = cards_of(inputs["prices"])
    rows = charging.requests(inputs["requests"], params) if raw else rollups.rows(inputs["rolled"], labels)
    rows, again = once(rows) if raw else (rows, 0)
    if not rows.height:
        note = f"no model requests in {window}"
        return Result("tokens", Status.EMPTY, window, asdict(params), _framed(labels, {}), notes=(note,))
    rows = charging.charged(rows, cards)
    models = model_rows(rows, labels, cards, raw=raw)
    compared, why_not = _compared(inputs["bills"], rows, cards, params, window)
    swapped = swaps.swaps(rows, cards) if raw else []
    compression, remarks = compression_rows(rows, params) if raw else ([], ())
    found = {
        "models": models,
        "kinds": kind_rows(rows, labels, cards),
        "bills": compared.rows,
        "swaps": [swap.row for swap in swapped],
        "compression": compression,
        "doubts": doubt_rows(rows),
        "prices": _price_rows(inputs["prices"]),
        **(_single(rows, cards, params) if raw else {}),
    }
    return Result(
        analysis="tokens",
        status=Status.OK,
        window=window,
        params=asdict(params),
        frames=_framed(labels, found),
        samples=_samples(models, labels, window)
        | {SWAP.name: swaps.samples(swapped), CAPTURE.name: bills.samples(compared)},
        findings=(*swaps.findings(swapped), *bills.findings(compared)),
        notes=(*_notes(models, rows, again), *_read(rows, cards, params, window, raw=raw), *why_not, *remarks),
    )


def _single(rows: pl.DataFrame, cards: Cards, params: TokensParams) -> dict[str, list[Row]]:
    """Frames that need single requests."""
    return {
        "per": per_rows(rows, cards),
        "dearest": dearest_rows(rows, cards, params.top),
        "tenants": unit_rows(rows, "tenant", cards, params.top),
        "conversations": unit_rows(rows, "conversation", cards, params.top),
    }


def _compared(
    lines: pl.DataFrame, rows: pl.DataFrame, cards: Cards, params: TokensParams, window: Window
) -> tuple[bills.Compared, tuple[str, ...]]:
    """Compare with the bill, unless only a part of the requests was read."""
    if lines.height and (params.where or _share(rows) < 1):
        return bills.Compared([], ()), ("a bill is for all requests, and only a part of them is looked at here",)
    compared = bills.compare(lines, rows, cards, window)
    return compared, compared.notes


def _share(rows: pl.DataFrame) -> float:
    found = rows["share_read"].min() if "share_read" in rows.columns else None
    return float(found) if isinstance(found, int | float) else 1.0


def _price_rows(prices: pl.DataFrame) -> list[Row]:
    ordered = prices.sort("provider", "model", "valid_from", "batch", "tokens_kind", "above_input_tokens")
    return [row | {"kind": row["tokens_kind"]} for row in ordered.iter_rows(named=True)]


def _framed(labels: Sequence[str], found: dict[str, list[Row]]) -> dict[str, pl.DataFrame]:
    return {
        name: frames.build(labels if name in LABELLED else (), columns, found.get(name, ()))
        for name, columns in FRAMES.items()
    }


def _samples(models: Sequence[Row], labels: Sequence[str], window: Window) -> dict[str, pl.DataFrame]:
    names = [*labels, *KEYS, "currency"]
    hours = window.span.total_seconds() / 3600
    priced = [row for row in models if row["cost"] is not None]
    about = [{name: row[name] or "" for name in names} for row in priced]
    hourly = [key | {"value": float(row["cost"]) / hours} for key, row in zip(about, priced, strict=True)]
    per_1k = [key | {"value": _float(row["cost_per_1k"])} for key, row in zip(about, priced, strict=True)]
    return {
        HOURLY.name: frames.samples(names, hourly),
        PER_1K.name: frames.samples(names, per_1k),
        UNPRICED.name: frames.samples((), [{"value": unpriced_ratio(models)}]),
    }


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _notes(models: Sequence[Row], rows: pl.DataFrame, again: int) -> tuple[str, ...]:
    """Say what it costs in all, what has no price, and that stated costs differ where they do."""
    cost = ", ".join(amount_text(round(total, 6), currency) for currency, total in sorted(totals(models).items()))
    notes = [f"cost of the tokens: {cost}"] if cost else ["no request has a price: infractl doctor says what to add"]
    unpriced: dict[str | None, int] = {}
    for row in models:
        if row["unpriced_tokens"]:
            unpriced[row["model"]] = unpriced.get(row["model"], 0) + row["unpriced_tokens"]
    if unpriced and cost:
        most = sorted(unpriced.items(), key=lambda item: (-item[1], str(item[0])))
        named = ", ".join(f"{model or 'no model'}: {tokens}" for model, tokens in most[:NAMED])
        more = f" and {len(most) - NAMED} more models" if len(most) > NAMED else ""
        notes.append(f"tokens without a price, not in any cost: {named}{more}")
    silent = sum(row["silent_requests"] or 0 for row in models)
    if silent:
        notes.append(f"{silent} requests state no tokens and are in no cost")
    if again:
        notes.append(f"{again} requests are reported by two spans (client and engine, or a proxy) and counted once")
    far = rows.select(charging.far_above().sum()).item()
    if far:
        notes.append(f"{far} requests state over 100 times what their tokens can cost: their unit is another one")
    return tuple(notes)


def _read(rows: pl.DataFrame, cards: Cards, params: TokensParams, window: Window, *, raw: bool) -> tuple[str, ...]:
    if not raw:
        return rollups.notes(rows, cards, rollup(params, window).step_s or 300)
    share = _share(rows)
    return (f"{share:.1%} of the traces were read: requests, tokens and cost are of these",) if share < 1 else ()
