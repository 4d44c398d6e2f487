"""Prices of a person's own file: YAML or JSON, model → prices by unit, valid from a date."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from collector.prices.listed import billed_by
from collector.prices.price import Price, Rate, Tier, TokenKind
from store.errors import ConfigError
from store.nearest import nearest

_PER = {"per_1m": Decimal(1), "per_million": Decimal(1), "per_1k": Decimal(1000), "per_token": Decimal(1_000_000)}
_PRICES = {f"{kind}_{unit}": (kind, factor) for kind in TokenKind for unit, factor in _PER.items()}
_ENTRY = frozenset({"model", "aliases", "provider", "valid_from", "batch_factor", "currency", "tiers", *_PRICES})
_TIER = frozenset({"above_input_tokens", *_PRICES})
_HINT = "see docs/sources/bills.md"
Where = Callable[..., str]
"""Names the place of an entry (its number from 0) and of a key path within it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A price and what it holds for: names (with * and ? where a person wrote them), provider, from when."""

    names: tuple[str, ...]
    provider: str | None
    valid_from: datetime | None
    price: Price

    def names_model(self, provider: str | None, model: str) -> bool:
        """Tell whether the entry is about that model: its name or an alias, never a name that only looks like it."""
        if self.provider is not None and self.provider != billed_by(provider):
            return False
        return any(fnmatchcase(model.lower(), name) for name in self.names)


def read_prices(path: Path) -> tuple[Entry, ...]:
    """Read a file of prices. Raises ConfigError, naming line and entry, for what cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "check the path") from error
    return parse_prices(text, str(path))


def parse_prices(text: str, name: str) -> tuple[Entry, ...]:
    """Read the text of such a file: a list of entries, alone or under the key `prices`. Raises as `read_prices`."""
    document, lines = _document(text, name)
    root: tuple[str | int, ...] = ()
    if isinstance(document, Mapping):
        document, root = document.get("prices"), ("prices",)
    if not isinstance(document, Sequence) or isinstance(document, str):
        raise ConfigError(f"{name}: no list of prices", _HINT)

    def where(number: int, *keys: str | int) -> str:
        path = (*root, number, *keys)
        line = next((lines[path[:size]] for size in range(len(path), 0, -1) if path[:size] in lines), None)
        return f"{name}{f':{line}' if line else ''} entry {number + 1}"

    return read_entries(document, where)


def read_entries(entries: Sequence[Any], where: Where) -> tuple[Entry, ...]:
    """Read entries as they stand in a file; `where(number, key, …)` names the place of one, counted from 0.

    Raises ConfigError.
    """
    return tuple(_entry(entry, partial(where, number)) for number, entry in enumerate(entries))


def _document(text: str, name: str) -> tuple[Any, dict[tuple[str | int, ...], int]]:
    """Return the document, its numbers exact, and the line of each key path."""
    import yaml

    document = None
    if text.lstrip()[:1] in ("[", "{"):
        try:
            document = json.loads(text, parse_float=Decimal)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{name}:{error.lineno}: broken JSON ({error.msg})", _HINT) from error
    try:
        node = yaml.compose(text.replace("\t", " "), Loader=yaml.SafeLoader)  # JSON may be indented with tabs
        document = yaml.safe_load(text) if document is None else document
    except yaml.YAMLError as error:
        if document is not None:
            return document, {}
        raise ConfigError(f"{name}: broken YAML ({str(error).splitlines()[0]})", _HINT) from error
    return document, dict(_lines(node, ()))


def _lines(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """Yield the line of every key and item below a node of YAML."""
    kind = getattr(node, "id", None)
    pairs = [(key.value, key, value) for key, value in node.value] if kind == "mapping" else []
    items = [(index, item, item) for index, item in enumerate(node.value)] if kind == "sequence" else []
    for key, at, value in (*pairs, *items):
        yield (*path, key), at.start_mark.line + 1
        yield from _lines(value, (*path, key))


def _entry(entry: Any, where: Callable[..., str]) -> Entry:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("model"), str):
        raise ConfigError(f"{where()}: no model", "each entry names one: model: my-model")
    _known(entry, _ENTRY, where)
    tiers = entry.get("tiers") or ()
    for number, tier in enumerate(tiers):
        _known(tier, _TIER, partial(where, "tiers", number))
    rates = _rates(entry, tiers, where)
    if not rates:
        raise ConfigError(f"{where()}: no price", "give at least input_per_1m or output_per_1m")
    factor = _decimal(entry["batch_factor"], "batch_factor", where) if "batch_factor" in entry else None
    batch = None if factor is None else {kind: rate.times(factor) for kind, rate in rates.items()}
    names = tuple(str(text).lower() for text in (entry["model"], *(entry.get("aliases") or ())))
    provider = entry.get("provider")
    currency = str(entry.get("currency", "USD")).upper()
    price = Price(entry["model"], rates, batch, currency, origin=where())
    return Entry(names, billed_by(str(provider)) if provider else None, _moment(entry.get("valid_from"), where), price)


def _known(entry: Any, keys: frozenset[str], where: Callable[..., str]) -> None:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where()}: no mapping of keys", f"keys: {', '.join(sorted(keys))}")
    for key in entry:
        if key not in keys:
            known = f"keys: {', '.join(sorted(keys))}"
            raise ConfigError(f"{where(key)}: unknown key {key!r}", nearest(str(key), keys, known))


def _rates(
    entry: Mapping[str, Any], tiers: Sequence[Mapping[str, Any]], where: Callable[..., str]
) -> dict[TokenKind, Rate]:
    rates: dict[TokenKind, Rate] = {}
    for kind, base in _stated(entry, where).items():
        steps = [(tier, _stated(tier, where)) for tier in tiers]
        higher = tuple(Tier(_above(tier, where), given[kind]) for tier, given in steps if kind in given)
        rates[kind] = Rate(base, higher)
    return rates


def _above(tier: Mapping[str, Any], where: Callable[..., str]) -> int:
    above = tier.get("above_input_tokens")
    if not isinstance(above, int) or isinstance(above, bool) or above < 0:
        raise ConfigError(f"{where('tiers')}: a tier needs above_input_tokens, a whole number", _HINT)
    return above


def _stated(entry: Mapping[str, Any], where: Callable[..., str]) -> dict[TokenKind, Decimal]:
    """Prices per million tokens, whatever unit they are written in."""
    stated: dict[TokenKind, Decimal] = {}
    for key, (kind, factor) in _PRICES.items():
        if entry.get(key) is not None:
            if kind in stated:
                raise ConfigError(f"{where(key)}: {kind} has two prices", "give one unit only")
            stated[kind] = _decimal(entry[key], key, where) * factor
    return stated


def _decimal(value: Any, key: str, where: Callable[..., str]) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise ConfigError(f"{where(key)} {key}: {value!r} is no number", _HINT) from None
    if not number.is_finite() or number < 0:
        raise ConfigError(f"{where(key)} {key}: a price cannot be {value}", _HINT)
    return number


def _moment(value: Any, where: Callable[..., str]) -> datetime | None:
    """Time a price starts; a date starts at 00:00 UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ConfigError(
                f"{where('valid_from')}: valid_from {value!r} is no date", "write it like 2026-11-15"
            ) from None
    if value is None or isinstance(value, datetime):
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise ConfigError(f"{where('valid_from')}: valid_from {value!r} is no date", "write it like 2026-11-15")
