"""Prices of a person's own file: YAML or JSON, model → prices by unit, valid from a date."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from collector.prices.price import Price, Rate, Tier, TokenKind
from store.errors import ConfigError
from store.nearest import nearest

_PER = {"per_1m": Decimal(1), "per_million": Decimal(1), "per_1k": Decimal(1000), "per_token": Decimal(1_000_000)}
_PRICES = {f"{kind}_{unit}": (kind, factor) for kind in TokenKind for unit, factor in _PER.items()}
_ENTRY = frozenset({"model", "aliases", "provider", "valid_from", "batch_factor", "currency", "tiers", *_PRICES})
_TIER = frozenset({"above_input_tokens", *_PRICES})
_HINT = "see docs/sources/bills.md"


@dataclass(frozen=True, slots=True)
class Entry:
    """A price and what it holds for: names (with * and ? where a person wrote them), provider, from when."""

    names: tuple[str, ...]
    provider: str | None
    valid_from: datetime | None
    price: Price

    def names_model(self, provider: str | None, model: str) -> bool:
        """Tell whether the entry is about that model: its name or an alias, never a name that only looks like it."""
        if self.provider is not None and self.provider != (provider or "").lower():
            return False
        return any(fnmatchcase(model.lower(), name) for name in self.names)


def read_prices(path: Path) -> tuple[Entry, ...]:
    """Read a file of prices. Raises ConfigError, naming the entry, for what cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "check the path") from error
    return parse_prices(text, str(path))


def parse_prices(text: str, name: str) -> tuple[Entry, ...]:
    """Read the text of such a file: a list of entries, alone or under the key `prices`. Raises as `read_prices`."""
    document = _document(text, name)
    if isinstance(document, Mapping):
        document = document.get("prices")
    if not isinstance(document, Sequence) or isinstance(document, str):
        raise ConfigError(f"{name}: no list of prices", _HINT)
    return tuple(_entry(entry, f"{name} entry {number}") for number, entry in enumerate(document, 1))


def _document(text: str, name: str) -> Any:
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text, parse_float=Decimal)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{name}:{error.lineno}: broken JSON ({error.msg})", _HINT) from error
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{name}: broken YAML ({str(error).splitlines()[0]})", _HINT) from error


def _entry(entry: Any, where: str) -> Entry:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("model"), str):
        raise ConfigError(f"{where}: no model", "each entry names one: model: my-model")
    _known(entry, _ENTRY, where)
    tiers = entry.get("tiers") or ()
    for tier in tiers:
        _known(tier, _TIER, f"{where} tiers")
    rates = _rates(entry, tiers, where)
    if not rates:
        raise ConfigError(f"{where}: no price", "give at least input_per_1m or output_per_1m")
    factor = _decimal(entry["batch_factor"], f"{where} batch_factor") if "batch_factor" in entry else None
    batch = None if factor is None else {kind: rate.times(factor) for kind, rate in rates.items()}
    names = tuple(str(text).lower() for text in (entry["model"], *(entry.get("aliases") or ())))
    provider = entry.get("provider")
    price = Price(entry["model"], rates, batch, str(entry.get("currency", "USD")).upper(), origin=where)
    return Entry(names, str(provider).lower() if provider else None, _moment(entry.get("valid_from"), where), price)


def _known(entry: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    for key in entry:
        if key not in keys:
            raise ConfigError(f"{where}: unknown key {key!r}", nearest(str(key), keys) or f"keys: {', '.join(keys)}")


def _rates(entry: Mapping[str, Any], tiers: Sequence[Mapping[str, Any]], where: str) -> dict[TokenKind, Rate]:
    rates: dict[TokenKind, Rate] = {}
    for kind, base in _stated(entry, where).items():
        steps = [(tier, _stated(tier, where)) for tier in tiers]
        higher = tuple(Tier(int(tier["above_input_tokens"]), given[kind]) for tier, given in steps if kind in given)
        rates[kind] = Rate(base, higher)
    return rates


def _stated(entry: Mapping[str, Any], where: str) -> dict[TokenKind, Decimal]:
    """Prices per million tokens, whatever unit they are written in."""
    stated: dict[TokenKind, Decimal] = {}
    for key, (kind, factor) in _PRICES.items():
        if entry.get(key) is not None:
            if kind in stated:
                raise ConfigError(f"{where}: {kind} has two prices", "give one unit only")
            stated[kind] = _decimal(entry[key], f"{where} {key}") * factor
    return stated


def _decimal(value: Any, where: str) -> Decimal:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise ConfigError(f"{where}: {value!r} is no number", _HINT) from None
    if not number.is_finite() or number < 0:
        raise ConfigError(f"{where}: a price cannot be {value}", _HINT)
    return number


def _moment(value: Any, where: str) -> datetime | None:
    """Time a price starts; a date starts at 00:00 UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ConfigError(f"{where}: valid_from {value!r} is no date", "write it like 2026-11-15") from None
    if value is None or isinstance(value, datetime):
        return value if value is None or value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise ConfigError(f"{where}: valid_from {value!r} is no date", "write it like 2026-11-15")
