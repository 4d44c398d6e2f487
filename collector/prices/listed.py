"""`Listed`: one price of an imported list, and its row of the table `prices`; every figure is the same both ways."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import orjson

from collector.otlp.values import provider as well_known
from collector.prices.price import Price, Rate, Tier, TokenKind

if TYPE_CHECKING:
    import polars as pl

OWN = "own"
"""List of a person's own file: its names may be patterns, and it goes before all others."""
ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
"""Start of a price that a list gives without a date."""
FIGURES = (*(f"{kind}_per_1m" for kind in TokenKind), "currency", "tiers", "batch")
"""Columns that make a price what it is."""
_ABOVE = "above_input_tokens"
_PROVIDERS = {
    "amazon": "aws.bedrock",
    "azure_ai": "azure.ai.inference",
    "azure_text": "azure.ai.openai",
    "bedrock_converse": "aws.bedrock",
    "cohere_chat": "cohere",
    "gcp.gen_ai": "gcp.gemini",
    "google": "gcp.gemini",
    "moonshot": "moonshot_ai",
    "moonshot-ai": "moonshot_ai",
    "moonshotai": "moonshot_ai",
    "text-completion-codestral": "codestral",
    "text-completion-openai": "openai",
    "x-ai": "x_ai",
}
"""Names of providers in price lists that spans do not use."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A price that a list states for a model; `start` None: without a date. `name` is the model's name in the list."""

    origin: str
    provider: str | None
    model: str
    name: str
    price: Price
    start: datetime | None = None
    end: datetime | None = None


def billed_by(name: str | None) -> str | None:
    """Return a provider as all lists and spans agree to call it, in lower case; None for none."""
    if not name:
        return None
    lower = name.lower()
    if lower.startswith(("vertex_ai", "vertexai")):
        return "gcp.vertex_ai"
    return (well_known(_PROVIDERS.get(lower, lower)) or lower).lower()


def rows_of(listed: Iterable[Listed], source: str) -> "pl.DataFrame":
    """Return conforming rows of `prices`; valid_from is null where the list has no date."""
    import polars as pl

    from store.tables import PRICES

    schema = PRICES.schema()
    return pl.DataFrame([_row(one, source) for one in listed], schema=schema)


def price_of(row: Mapping[str, Any]) -> Price:
    """Return the price that a row of `prices` holds."""
    batch = orjson.loads(row["batch"]) if row["batch"] else None
    tiers = orjson.loads(row["tiers"]) if row["tiers"] else ()
    return Price(
        row["listed_as"],
        _rates(row, tiers),
        None if batch is None else _rates(batch, batch.get("tiers", ())),
        row["currency"],
        origin=row["list"],
    )


def _row(one: Listed, source: str) -> dict[str, Any]:
    price, provider, model = one.price, billed_by(one.provider), one.model.lower()
    identity = orjson.dumps([one.origin, provider, model])
    tiers = _tiers(price.rates)
    return {
        "price_id": blake2b(identity, digest_size=16).hexdigest(),
        "list": one.origin,
        "provider": provider,
        "model": model,
        "listed_as": one.name,
        "valid_from": _naive(one.start),
        "valid_to": _naive(one.end),
        "currency": price.currency,
        **_figures(price.rates),
        "tiers": orjson.dumps(tiers).decode() if tiers else None,
        "batch": None if price.batch is None else _batch(price.batch),
        "source": source,
    }


def _figures(rates: Mapping[TokenKind, Rate]) -> dict[str, float]:
    return {f"{kind}_per_1m": float(rates[kind].per_million) for kind in TokenKind if kind in rates}


def _tiers(rates: Mapping[TokenKind, Rate]) -> list[dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    for kind, rate in rates.items():
        for tier in rate.tiers:
            found.setdefault(tier.above_input_tokens, {})[f"{kind}_per_1m"] = float(tier.per_million)
    return [{_ABOVE: above, **dict(sorted(found[above].items()))} for above in sorted(found)]


def _batch(rates: Mapping[TokenKind, Rate]) -> str:
    tiers = _tiers(rates)
    return orjson.dumps({**_figures(rates), **({"tiers": tiers} if tiers else {})}).decode()


def _rates(figures: Mapping[str, Any], tiers: Iterable[Mapping[str, Any]]) -> dict[TokenKind, Rate]:
    steps = list(tiers)
    rates = {}
    for kind in TokenKind:
        name = f"{kind}_per_1m"
        if figures.get(name) is not None:
            higher = tuple(Tier(int(tier[_ABOVE]), _exact(tier[name])) for tier in steps if name in tier)
            rates[kind] = Rate(_exact(figures[name]), higher)
    return rates


def _exact(value: float) -> Decimal:
    """Return the decimal that was written: a price has far fewer digits than a float keeps."""
    return Decimal(repr(value))


def _naive(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC).replace(tzinfo=None)
