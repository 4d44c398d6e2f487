"""llm-prices' files, one per vendor: USD per million tokens, with the dates between which a price holds.

A price for long prompts is a model of its own there ('grok-4-128k', 'Grok 4 >128k'); it becomes a tier of the model.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from collector.files.prices.reading import NO_ENTRY, PriceFile, day, rates_of
from collector.prices.listed import ALWAYS, Listed
from collector.prices.price import Price, TokenKind

ORIGIN = "llm_prices"
_FIGURES = {TokenKind.INPUT: "input", TokenKind.CACHED_INPUT: "input_cached", TokenKind.OUTPUT: "output"}
_LONG = re.compile(r">\s*(\d+)k$")
Model = Mapping[str, Any]


def is_llm_prices(head: str) -> bool:
    """Tell a file by names that stand together in no other list."""
    return '"vendor"' in head and '"price_history"' in head


def read_llm_prices(document: Any, file: PriceFile) -> None:
    """Take every model of a vendor."""
    models = [m for m in document.get("models") or () if isinstance(m, dict)] if isinstance(document, dict) else []
    by_id = {str(model.get("id")): model for model in models}
    long = {base: (above, model) for model in models for base, above in _base_of(model, by_id)}
    tiers = {id(model) for _, model in long.values()}
    for model in models:
        name = str(model.get("id"))
        if not isinstance(model.get("price_history"), list) or not model.get("id"):
            file.refuse(NO_ENTRY, name)
        elif id(model) not in tiers:
            file.add(name, _listed(document.get("vendor"), model, long.get(name)))
    if tiers:
        file.notes.append(f"{len(tiers)} models for long prompts are tiers of the model they are named after")


def _base_of(model: Model, by_id: Mapping[str, Model]) -> Iterator[tuple[str, int]]:
    """Yield the model of which one is the price for long prompts, and from how many tokens on."""
    long = _LONG.search(str(model.get("name")))
    if long:
        base = str(model["id"]).removesuffix(f"-{long[1]}k")
        if base != model["id"] and base in by_id:
            yield base, int(long[1]) * 1000


def _listed(vendor: Any, model: Model, long: tuple[int, Model] | None) -> Iterator[Listed]:
    above, longer = long or (0, {})
    steps = {_dates(step): step for step in longer.get("price_history") or () if isinstance(step, dict)}
    for step in model["price_history"]:
        tier = steps.get(_dates(step), {})
        base = {kind: step.get(name) for kind, name in _FIGURES.items()}
        higher = {kind: [(above, tier.get(name))] for kind, name in _FIGURES.items()}
        start, end = day(step.get("from_date")) or ALWAYS, day(step.get("to_date"))
        price = Price(model["id"], rates_of(base, higher))
        yield Listed(ORIGIN, vendor, model["id"], model["id"], price, start, end)


def _dates(step: Mapping[str, Any]) -> tuple[Any, Any]:
    return step.get("from_date"), step.get("to_date")
