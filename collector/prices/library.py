"""List prices of genai-prices, from the data that its pinned release carries; nothing is fetched."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from collector.prices.price import Price, Rate, Tier, TokenKind

if TYPE_CHECKING:
    from genai_prices.types import (
        ClauseContains,
        ClauseEndsWith,
        ClauseStartsWith,
        MatchLogic,
        ModelInfo,
        ModelPrice,
        Provider,
        StartDateConstraint,
        TimeOfDateConstraint,
    )

_KEYS = {
    TokenKind.INPUT: ("input_mtok", "input_text_mtok"),
    TokenKind.CACHED_INPUT: ("cache_read_mtok", "cache_text_read_mtok"),
    TokenKind.CACHE_WRITE: ("cache_write_mtok", "cache_write_5m_mtok", "cache_text_write_mtok"),
    TokenKind.OUTPUT: ("output_mtok", "output_text_mtok"),
}
_BEFORE = re.compile(r"(^|[./:@])$")  # a region, a vendor, a path
_AFTER = re.compile(  # dates and versions
    r"([-@:_.](\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{8}|\d{3,4}|latest|preview|v\d+([:.]\d+)?))*"
)
_PROVIDERS = {"x_ai": "x-ai", "azure.ai.inference": "azure", "gcp.gen_ai": "google"}  # names the library lacks
_BATCH = {"processing": "batch"}
_BY_NAME = "litellm"  # no provider: the library then takes it from the name, as LiteLLM writes names


def library_price(provider: str | None, model: str, at: datetime) -> Price | None:
    """Return the list price of a model at a time, None where the library does not know it.

    A provider that the library does not know has no list price: the same model costs another price elsewhere. Without a
    provider the name decides, by its prefix ('openai/gpt-4o') or by what the library says of names.
    """
    name = model.lower()
    known = _known(provider, name)
    if known is None:
        return None
    owner, info = known
    moment = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    rates = _rates(info.get_prices(moment))
    if not rates:
        return None
    batch = _rates(info.get_prices(moment, _BATCH))
    names = {name, name.rpartition("/")[2]}
    if not any(_is_named(info.match, text) for text in names):
        return None
    return Price(
        f"{owner.id}/{info.id}", rates, batch if _has_batch(info, moment) else None, "USD",
        by_rule=names.isdisjoint((info.id.lower(), *_exact(info.match))), origin="genai-prices",
    )  # fmt: skip


def library_moments(provider: str | None, model: str, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield every time at which a list price may change; by time of day those from start to end (aware)."""
    known = _known(provider, model.lower())
    if known is None:
        return
    prices, variants = known[1].prices, known[1].price_variants or ()
    conditions = [price.constraint for price in prices] if isinstance(prices, list) else []
    for condition in (*conditions, *(variant.constraint for variant in variants)):
        if condition is not None:
            yield from _changes(condition, start, end)


def _changes(
    condition: "StartDateConstraint | TimeOfDateConstraint", start: datetime, end: datetime
) -> Iterator[datetime]:
    """Yield when a condition begins or ceases to hold."""
    if hasattr(condition, "start_date"):
        yield datetime.combine(condition.start_date, time(0), UTC)
        return
    first = start.astimezone(UTC).date() - timedelta(days=1)
    for day in (first + timedelta(days=number) for number in range((end.date() - first).days + 2)):
        for at in (condition.start_time, condition.end_time):
            yield datetime.combine(day, at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)


def _known(provider: str | None, name: str) -> "tuple[Provider, ModelInfo] | None":
    """Find a model by its provider and name in lower case."""
    from genai_prices.data_snapshot import get_snapshot

    owner_id = _PROVIDERS.get((provider or _BY_NAME).lower(), provider or _BY_NAME)
    try:
        owner, info = get_snapshot().find_provider_model(name, None, owner_id, None)
    except LookupError:
        return None
    return owner, info


def _rates(price: "ModelPrice") -> Mapping[TokenKind, Rate]:
    from genai_prices.types import TieredPrices

    rates: dict[TokenKind, Rate] = {}
    for kind, keys in _KEYS.items():
        value = next((found for key in keys if (found := getattr(price, key)) is not None), None)
        if isinstance(value, TieredPrices):
            rates[kind] = Rate(value.base, tuple(Tier(tier.start, tier.price) for tier in value.tiers))
        elif value is not None:
            rates[kind] = Rate(value)
    return rates


def _has_batch(info: "ModelInfo", at: datetime) -> bool:
    variants = info.price_variants or ()
    return any(
        variant.when == _BATCH and (variant.constraint is None or variant.constraint.active(at)) for variant in variants
    )


def _is_named(match: "MatchLogic", name: str) -> bool:
    """Tell whether a rule of the library names the model itself, and not only one whose name begins or ends alike.

    'claude-sonnet-4-5' names 'us.anthropic.claude-sonnet-4-5-20250929-v1:0', but not 'claude-sonnet-4-5-vision'.
    """
    from genai_prices import types

    if isinstance(match, types.ClauseOr):
        return any(_is_named(clause, name) for clause in match.or_)
    if isinstance(match, types.ClauseAnd):
        return match.is_match(name) and any(_is_named(clause, name) for clause in match.and_)
    if isinstance(match, types.ClauseEquals):
        return match.equals.lower().replace("-", "") == name.replace("-", "")  # a date may be written without dashes
    if isinstance(match, types.ClauseRegex):
        return match.regex.endswith("$") and match.is_match(name)
    before, found, after = name.partition(_literal(match).lower())
    return bool(found) and _BEFORE.search(before) is not None and _AFTER.fullmatch(after) is not None


def _literal(match: "ClauseStartsWith | ClauseEndsWith | ClauseContains") -> str:
    if hasattr(match, "starts_with"):
        return match.starts_with
    return match.ends_with if hasattr(match, "ends_with") else match.contains


def _exact(match: "MatchLogic") -> Iterator[str]:
    """Names that a rule of the library spells out, unlike its patterns."""
    from genai_prices.types import ClauseEquals, ClauseOr

    if isinstance(match, ClauseEquals):
        yield match.equals
    elif isinstance(match, ClauseOr):
        for clause in match.or_:
            yield from _exact(clause)
