"""genai-prices' data.json: providers with their models, USD per million tokens, prices by date and of batches."""

from collections.abc import Iterator, Mapping
from typing import Any

from collector.files.prices.reading import NO_ENTRY, NO_TOKEN_PRICE, NoPriceError, PriceFile, day, rates_of
from collector.prices.listed import ALWAYS, Listed
from collector.prices.price import Price, Rate, TokenKind

ORIGIN = "genai_prices"
BY_HOUR = "a price by the time of day"
_KEYS = {
    TokenKind.INPUT: ("input_mtok", "input_text_mtok"),
    TokenKind.CACHED_INPUT: ("cache_read_mtok", "cache_text_read_mtok"),
    TokenKind.CACHE_WRITE: ("cache_write_mtok", "cache_write_5m_mtok", "cache_text_write_mtok"),
    TokenKind.OUTPUT: ("output_mtok", "output_text_mtok"),
}
_BATCH = {"processing": "batch"}


def is_genai(head: str) -> bool:
    """Tell the list by names that stand together in no other."""
    return '"api_pattern"' in head and '"models"' in head and '_mtok"' in head


def read_genai(document: Any, file: PriceFile) -> None:
    """Take every model of every provider."""
    for owner in document if isinstance(document, list) else ():
        for model in owner.get("models") or () if isinstance(owner, dict) else ():
            if not isinstance(model, dict) or not isinstance(model.get("id"), str):
                file.refuse(NO_ENTRY, str(owner.get("id")))
            else:
                file.add(f"{owner.get('id')}/{model['id']}", _listed(str(owner.get("id")), model))
    file.notes.append("names that the list knows by a pattern are left to the price library, which has its rules")


def _listed(provider: str, model: Mapping[str, Any]) -> Iterator[Listed]:
    stated = model.get("prices")
    batch = next((v["prices"] for v in model.get("price_variants") or () if v.get("when") == _BATCH), None)
    names = dict.fromkeys((model["id"], *_exact(model.get("match"))))
    for step in stated if isinstance(stated, list) else [{"prices": stated}]:
        constraint = step.get("constraint") or {}
        if constraint and "start_date" not in constraint:
            raise NoPriceError(BY_HOUR)
        start = day(constraint.get("start_date")) or ALWAYS
        price = Price(model["id"], _rates(step["prices"]), None if batch is None else _rates(batch))
        for name in names:
            yield Listed(ORIGIN, provider, name, f"{provider}/{name}", price, start)


def _rates(prices: Any) -> dict[TokenKind, Rate]:
    if not isinstance(prices, dict):
        raise NoPriceError(NO_TOKEN_PRICE)
    base, steps = {}, {}
    for kind, keys in _KEYS.items():
        value = next((prices[key] for key in keys if prices.get(key) is not None), None)
        tiers = value.get("tiers") or () if isinstance(value, dict) else ()
        base[kind] = value.get("base") if isinstance(value, dict) else value
        steps[kind] = [(int(tier["start"]), tier["price"]) for tier in tiers]
    return rates_of(base, steps)


def _exact(match: Any) -> Iterator[str]:
    """Names that a rule of the list spells out."""
    if isinstance(match, dict):
        if isinstance(match.get("equals"), str):
            yield match["equals"]
        for clause in match.get("or") or ():
            yield from _exact(clause)
