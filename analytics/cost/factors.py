"""Parts of a change by factor: volume x mix x price of items, requests x tokens x cached share x price of tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext

from analytics.cost.items import EXACT, NOTHING, Bought, Item
from analytics.stats.product_change import sequential, shapley

Pair = tuple[Bought, Bought]
Attribution = Callable[[Sequence[Decimal], Sequence[Decimal]], list[Decimal]]

OF_ITEMS = ("volume", "mix", "price")
OF_TOKENS = ("requests", "mix", "tokens_per_request", "cached_share", "price")
"""In this order the factors change where one order is asked for: the price comes last, at new quantities."""
ATTRIBUTIONS: Mapping[str, Attribution] = {"sequential": sequential, "shapley": shapley}
_MOST = 1_000_000
"""Parts of more than so many times what a pool costs say that a quantity does not measure what the cost is for."""
_REPLACED = Decimal("0.1")
"""Share of the larger movement, up or down, that the smaller has to be for items to have replaced each other."""
_PROMPT = frozenset({"input", "cached_input", "cache_write"})


@dataclass(frozen=True, slots=True)
class Explained:
    """The change of an item by factor. Without a unit it states no quantity, and all its change is volume."""

    name: str
    unit: str | None
    before: Decimal
    after: Decimal
    parts: Mapping[str, Decimal]


def explain(pairs: Mapping[Item, Pair], attribution: str) -> list[Explained]:
    """Return every item with the parts of its change, which add up to it but for the 60th digit.

    A model whose lines say how many requests it served is one item with the factors of tokens.
    """
    with localcontext(EXACT):
        split = ATTRIBUTIONS[attribution]
        served = _served(pairs)
        plain = {item: pair for item, pair in pairs.items() if item.model not in served}
        return _of_tokens(served, split) + _of_items(_apart(plain), split)


def _apart(pairs: Mapping[Item, Pair]) -> dict[Item, Pair]:
    """Put each item into a pool of its own where those of a pool did not take each other's place.

    Hours of unlike machines have a unit in common and no mix that means anything, unless one fell as another rose.
    Tokens of models always have: each request could go to another model.
    """
    moved: dict[str | None, list[Decimal]] = {}
    for item, (old, new) in pairs.items():
        up_down = moved.setdefault(item.pool, [NOTHING, NOTHING])
        up_down[0 if new.quantity > old.quantity else 1] += abs(new.quantity - old.quantity)
    replaced = {pool for pool, up_down in moved.items() if min(up_down) >= _REPLACED * max(up_down)}
    return {
        item
        if item.pool in replaced or item.model is not None
        else replace(item, pool=f"{item.pool}\0{item.name}"): pair
        for item, pair in pairs.items()
        if item.pool is not None
    } | {item: pair for item, pair in pairs.items() if item.pool is None}


def _of_items(pairs: Mapping[Item, Pair], split: Attribution) -> list[Explained]:
    """C = Q sum(s p): quantity of the pool, share of it, price of a unit; without a quantity all is volume.

    The part of the quantity is put to the items that moved it, each at the average price of the pool; what an item
    costs more or less than that average is its mix. Sums are those of the formula, and what did not move has no part.
    """
    averages = _averages(pairs, split)
    made = []
    for item, (old, new) in pairs.items():
        change = new.cost - old.cost
        unit, found = None, {"volume": change}
        if item.pool is not None:
            pool = averages[item.pool]
            price = split(*_ends(old, new, pool.quantities))[-1]
            volume = (new.quantity - old.quantity) * pool.price
            parts = {"volume": volume, "mix": change - volume - price, "price": price}
            if max(map(abs, parts.values())) <= _MOST * pool.cost:
                unit, found = item.unit or "units", parts
        made.append(Explained(item.name, unit, old.cost, new.cost, found))
    return made


@dataclass(slots=True)
class _Pool:
    """Quantities before and after, costs of both, and the average price at which the quantity is valued."""

    quantities: list[Decimal]
    cost: Decimal
    price: Decimal


def _averages(pairs: Mapping[Item, Pair], split: Attribution) -> dict[str | None, _Pool]:
    pools: dict[str | None, _Pool] = {}
    for item, pair in pairs.items():
        pool = pools.setdefault(item.pool, _Pool([NOTHING, NOTHING], NOTHING, NOTHING))
        for when in (0, 1):
            pool.quantities[when] += pair[when].quantity
            pool.cost += abs(pair[when].cost)
    for item, (old, new) in pairs.items():
        if item.pool is not None:
            before, after = _ends(old, new, pools[item.pool].quantities)
            pools[item.pool].price += _per_unit(before, after, split)
    return pools


def _ends(old: Bought, new: Bought, total: Sequence[Decimal]) -> tuple[list[Decimal], list[Decimal]]:
    """Return the factors of an item before and after, in the order of OF_ITEMS."""
    share = _both(old.quantity, total[0], new.quantity, total[1])
    price = _both(old.cost, old.quantity, new.cost, new.quantity)
    return [total[0], share[0], price[0]], [total[1], share[1], price[1]]


def _per_unit(before: Sequence[Decimal], after: Sequence[Decimal], split: Attribution) -> Decimal:
    """Return what a change of the first factor by one would be worth, the others changing as they do."""
    return split([NOTHING, *before[1:]], [Decimal(1), *after[1:]])[0]


def _both(top0: Decimal, bottom0: Decimal, top1: Decimal, bottom1: Decimal) -> tuple[Decimal, Decimal]:
    """Return two ratios; one that is undefined (nothing was bought) is taken as the other, so it explains nothing."""
    first = top0 / bottom0 if bottom0 else None
    second = top1 / bottom1 if bottom1 else None
    if first is None or second is None:
        known = first if second is None else second
        return (NOTHING, NOTHING) if known is None else (known, known)
    return first, second


def _served(pairs: Mapping[Item, Pair]) -> dict[str | None, dict[str, Pair]]:
    """Models whose tokens can be counted per request: one unit, and requests wherever something was bought."""
    models: dict[str, list[tuple[Item, Pair]]] = {}
    for item, pair in pairs.items():
        if item.model is not None:
            models.setdefault(item.model, []).append((item, pair))
    served: dict[str | None, dict[str, Pair]] = {}
    for model, found in models.items():
        kinds = {item.tokens_kind or "tokens": pair for item, pair in found}
        one = len({item.pool for item, _ in found}) == 1 and len(kinds) == len(found)
        used = [any(pair[when].quantity for pair in kinds.values()) for when in (0, 1)]
        asked = [_requests(kinds, when) for when in (0, 1)]
        if one and any(used) and all(asked[when] > 0 or not used[when] for when in (0, 1)):
            served[model] = kinds
    return served


def _requests(kinds: Mapping[str, Pair], when: int) -> Decimal:
    return sum((pair[when].requests for pair in kinds.values()), NOTHING)


def _of_tokens(served: Mapping[str | None, Mapping[str, Pair]], split: Attribution) -> list[Explained]:
    """C = R sum over models of m sum over kinds of t k p: requests, model, tokens, share of the prompt, price."""
    total = [sum((_requests(kinds, when) for kinds in served.values()), NOTHING) for when in (0, 1)]
    parts = {model: _parts(kinds, total, split) for model, kinds in served.items()}
    average = sum((one.pop("per_request") for one in parts.values()), NOTHING)
    made = []
    for model, kinds in served.items():
        costs = [sum((pair[when].cost for pair in kinds.values()), NOTHING) for when in (0, 1)]
        found = parts[model]
        found["requests"] = (_requests(kinds, 1) - _requests(kinds, 0)) * average
        found["mix"] = costs[1] - costs[0] - sum((part for name, part in found.items() if name != "mix"), NOTHING)
        made.append(Explained(str(model), "requests", costs[0], costs[1], found))
    return made


def _parts(kinds: Mapping[str, Pair], total: Sequence[Decimal], split: Attribution) -> dict[str, Decimal]:
    """Return the parts of a model, those of requests and mix yet to be set, and what a request is worth here."""
    asked = [_requests(kinds, when) for when in (0, 1)]
    mix = _both(asked[0], total[0], asked[1], total[1])
    prompt = [sum((p[when].quantity for kind, p in kinds.items() if kind in _PROMPT), NOTHING) for when in (0, 1)]
    found = dict.fromkeys((*OF_TOKENS, "per_request"), NOTHING)
    for kind, (old, new) in kinds.items():
        of = prompt if kind in _PROMPT else [old.quantity, new.quantity]
        tokens = _both(of[0], asked[0], of[1], asked[1])
        share = _both(old.quantity, of[0], new.quantity, of[1])
        price = _both(old.cost, old.quantity, new.cost, new.quantity)
        before, after = ([total[w], mix[w], tokens[w], share[w], price[w]] for w in (0, 1))
        for name, part in zip(OF_TOKENS, split(before, after), strict=True):
            found[name] += part
        found["per_request"] += _per_unit(before, after, split)
    return found
