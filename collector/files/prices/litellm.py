"""LiteLLM's model_prices_and_context_window.json: an object by model, prices in USD per token, no dates."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from collector.files.prices.reading import NO_ENTRY, NO_TOKEN_PRICE, NoPriceError, PriceFile, rates_of
from collector.prices.listed import Listed
from collector.prices.price import Price, Rate, TokenKind

ORIGIN = "litellm"
_MILLION = Decimal(1_000_000)
_SAMPLE = "sample_spec"  # the list's own documentation
_BASE = {
    TokenKind.INPUT: ("input_cost_per_token",),
    TokenKind.CACHED_INPUT: ("cache_read_input_token_cost", "input_cost_per_token_cache_hit"),
    TokenKind.CACHE_WRITE: ("cache_creation_input_token_cost",),
    TokenKind.OUTPUT: ("output_cost_per_token",),
    TokenKind.REASONING: ("output_cost_per_reasoning_token",),
}
_ABOVE = re.compile(r"_above_(\d+)k_tokens$")
_OTHER = re.compile(r"_(priority|flex|ultrafast|balanced)$|audio|image_token|video_token|above_(1hr|12hr)")
_BATCH = "_batches"


def is_litellm(head: str) -> bool:
    """Tell the list by names that stand together in no other."""
    return '"litellm_provider"' in head and '_cost_per_token"' in head


def read_litellm(document: Any, file: PriceFile) -> None:
    """Take every model with a price per token."""
    partly = 0
    for name, entry in document.items() if isinstance(document, dict) else ():
        if name == _SAMPLE or not isinstance(entry, dict):
            file.refuse(NO_ENTRY, name)
            continue
        before = len(file.listed)
        file.add(name, _listed(name, entry))
        partly += len(file.listed) > before and any("cost" in key and _OTHER.search(key) for key in entry)
    if partly:
        file.notes.append(f"of {partly} models the prices of other service tiers, audio, images, long caches left out")


def _listed(name: str, entry: Mapping[str, Any]) -> Iterator[Listed]:
    rates = _rates(entry, "")
    if rates is None:
        raise NoPriceError(NO_TOKEN_PRICE)
    prefix, _, rest = name.partition("/")
    provider = entry.get("litellm_provider") or (prefix if rest else None)
    own = bool(rest) and provider is not None and provider.startswith(prefix)
    yield Listed(ORIGIN, provider, rest if own else name, name, Price(name, rates, _rates(entry, _BATCH)))


def _rates(entry: Mapping[str, Any], ending: str) -> dict[TokenKind, Rate] | None:
    """Return the rates whose keys have an ending; None where the list states none."""
    base: dict[TokenKind, Any] = {}
    steps: dict[TokenKind, list[tuple[int, Any]]] = defaultdict(list)
    for kind, names in _BASE.items():
        base[kind] = next((entry[f"{n}{ending}"] for n in names if entry.get(f"{n}{ending}") is not None), None)
        for key, value in entry.items():
            cut = key.removesuffix(ending) if key.endswith(ending) else ""
            above = _ABOVE.search(cut)
            if above and cut[: above.start()] in names:
                steps[kind].append((int(above[1]) * 1000, value))
    if not ending and base[TokenKind.INPUT] is None:
        _tiered(entry.get("tiered_pricing"), base, steps)
    if all(value is None for value in base.values()):
        return None
    return rates_of(base, steps, _MILLION)


def _tiered(ranges: Any, base: dict[TokenKind, Any], steps: dict[TokenKind, list[tuple[int, Any]]]) -> None:
    """Read prices by range of the prompt's length: the lowest is the base, the others are tiers."""
    whole = [one for one in ranges or () if isinstance(one, dict) and isinstance(one.get("range"), list)]
    for number, one in enumerate(sorted(whole, key=lambda one: one["range"][0])):
        for kind, names in _BASE.items():
            value = next((one[name] for name in names if one.get(name) is not None), None)
            if number == 0:
                base[kind] = value if value is not None else base[kind]
            elif value is not None and base[kind] is not None:
                steps[kind].append((int(one["range"][0]), value))
