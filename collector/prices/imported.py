"""`ImportedPrices`: the price of a model at a time, from the lists that were imported."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from collector.prices.listed import OWN, billed_by, price_of
from collector.prices.price import Price

Row = Mapping[str, Any]


class ImportedPrices:
    """Rows of the table `prices`, by model.

    A person's own list goes first; of the others the one whose price started last, then by name of the list. A name
    that only looks like a listed one has no price.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        """Index the rows (times are naive UTC)."""
        self._named: dict[str, list[Row]] = defaultdict(list)
        self._patterns: list[Row] = []
        for row in rows:
            if row["list"] == OWN and not {"*", "?"}.isdisjoint(row["model"]):
                self._patterns.append(row)
            for name in {row["model"], row["listed_as"].lower()}:
                self._named[name].append(row)

    def price(self, provider: str | None, model: str, at: datetime) -> Price | None:
        """Return the price in force at a time (naive: UTC); None where no list knows the model.

        Without a provider the name must be the one that the list uses.
        """
        moment = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
        newest: dict[str, Row] = {}
        for row in sorted(self._about(provider, model), key=lambda row: row["valid_from"]):
            if row["valid_from"] <= moment:
                newest[row["price_id"]] = row
        held = [row for row in newest.values() if row["valid_to"] is None or moment < row["valid_to"]]
        return price_of(min(held, key=_rank)) if held else None

    def moments(self, provider: str | None, model: str) -> Iterator[datetime]:
        """Yield every time (aware) at which a price of a model starts or ends."""
        for row in self._about(provider, model):
            yield from (at.replace(tzinfo=UTC) for at in (row["valid_from"], row["valid_to"]) if at is not None)

    def _about(self, provider: str | None, model: str) -> list[Row]:
        """Return the rows whose names and patterns mean that model."""
        name, who = model.lower(), billed_by(provider)
        named = [row for row in self._named.get(name, ()) if _is_about(row, who, name)]
        return named + [row for row in self._patterns if fnmatchcase(name, row["model"]) and _bills(row, who)]


def _bills(row: Row, provider: str | None) -> bool:
    return row["provider"] is None or row["provider"] == provider


def _is_about(row: Row, provider: str | None, name: str) -> bool:
    if row["model"] == name and _bills(row, provider):
        return True
    return row["listed_as"].lower() == name and (provider is None or _bills(row, provider))


def _rank(row: Row) -> tuple[bool, float, str, str]:
    started_s = row["valid_from"].replace(tzinfo=UTC).timestamp()
    return row["list"] != OWN, -started_s, row["list"], row["price_id"]
