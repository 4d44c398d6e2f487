"""Prices of the models: those in force at the end of the window, given ones, and who is priced as whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import polars as pl

from store.errors import UsageError

KINDS = ("input", "cached_input", "cache_write", "output", "reasoning")
Rates = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Prices:
    """Price of a million tokens by kind: of (provider, model), and of a model whoever provides it."""

    by_pair: Mapping[tuple[str, str], Rates]
    by_model: Mapping[str, Rates]
    currency: str
    left_out: tuple[str, ...]

    def of(self, provider: str, model: str) -> Rates | None:
        """Rates of a model that requests name; one that was given counts before the stored one."""
        return self.by_pair.get((provider, model)) or self.by_model.get(model.lower())


def known(prices: pl.DataFrame, given: Mapping[str, Rates], currency: str, used: pl.DataFrame) -> Prices:
    """Take the base price of plain requests that begins last; of several currencies that of most requests.

    `used` has provider, model and requests. `given` are prices in `currency` (else in that of the stored ones).
    """
    plain = prices.filter(
        ~pl.col("batch").fill_null(value=False), pl.col("above_input_tokens").fill_null(0) == 0,
        pl.col("per_million").is_not_null(), pl.col("tokens_kind").is_in(KINDS),
    )  # fmt: skip
    named = plain.with_columns(pl.col("provider", "model", "currency").fill_null("")).sort("valid_from")
    weighed = named.join(used, on=["provider", "model"], how="left").with_columns(pl.col("requests").fill_null(0))
    most = (
        weighed.group_by("currency")
        .agg(pl.col("requests").sum())
        .sort("requests", "currency", descending=[True, False])
    )
    chosen = currency or (str(most["currency"][0]) if most.height else "USD")
    pairs: dict[tuple[str, str], dict[str, float]] = {}
    models: dict[str, dict[str, float]] = {}
    for row in named.filter(pl.col("currency") == chosen).iter_rows(named=True):
        pairs.setdefault((row["provider"], row["model"]), {})[row["tokens_kind"]] = float(row["per_million"])
        models.setdefault(row["model"].lower(), {})[row["tokens_kind"]] = float(row["per_million"])
    for name, rates in given.items():
        models[name.lower()] = dict(rates)
        pairs = {pair: rates if pair[1].lower() == name.lower() else old for pair, old in pairs.items()}  # type: ignore[misc]
    others = named.filter(pl.col("currency") != chosen).select("model", "currency").unique().sort("model")
    return Prices(pairs, models, chosen, tuple(f"{model} ({other})" for model, other in others.iter_rows()))


def given(texts: tuple[str, ...]) -> dict[str, Rates]:
    """Read `--price`. Raises UsageError for what is no MODEL=INPUT/OUTPUT[/CACHED]."""
    made: dict[str, Rates] = {}
    for text in texts:
        name, sign, amounts = text.partition("=")
        try:
            numbers = [float(Decimal(part)) for part in amounts.split("/")]
        except InvalidOperation:
            numbers = []
        if not sign or not name or len(numbers) not in (2, 3) or not all(0 <= number < 1e12 for number in numbers):
            raise UsageError(f"price cannot be {text!r}", "MODEL=INPUT/OUTPUT[/CACHED], of a million tokens")
        made[name] = dict(zip(("input", "output", "cached_input"), numbers, strict=False))
    return made


def swaps(texts: tuple[str, ...]) -> dict[str, tuple[str, float]]:
    """Read `--swap` as model → (other, share). Raises UsageError for what is none."""
    made: dict[str, tuple[str, float]] = {}
    for text in texts:
        name, sign, rest = text.partition("=")
        other, colon, share = rest.rpartition(":")
        try:
            part = float(share) if colon else 1.0
        except ValueError:  # a name may hold a colon itself
            other, colon, part = rest, "", 1.0
        other = other if colon else rest
        if not sign or not name or not other or not 0 <= part <= 1:
            raise UsageError(f"swap cannot be {text!r}", "MODEL=OTHER, or MODEL=OTHER:0.5 for half of its requests")
        made[name.lower()] = (other, part)
    return made


def mixed(own: Rates, other: Rates, share: float) -> Rates:
    """Price of requests of which a share is another model's."""
    whole, instead = filled(own), filled(other)
    return {kind: (1 - share) * whole[kind] + share * instead[kind] for kind in KINDS}


def filled(rates: Rates) -> dict[str, float]:
    """Give every kind a price: cached and written tokens cost what the prompt does, reasoning what output does."""
    base = {"cached_input": "input", "cache_write": "input", "reasoning": "output"}
    return {kind: rates.get(kind, rates.get(base.get(kind, kind), 0.0)) for kind in KINDS}
