"""`Pricing`: the price of a model at a time: a person's own prices first, then imported lists, then the library."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum

from collector.prices.imported import ImportedPrices
from collector.prices.library import library_moments, library_price
from collector.prices.override import Entry
from collector.prices.price import Price


class PriceSource(StrEnum):
    """Where a price came from, in the order they are asked."""

    OVERRIDE = "override"
    IMPORTED = "imported"
    LIBRARY = "genai-prices"


class Pricing:
    """Prices by provider, model and time.

    An unknown model has none; no model takes the price of one with a similar name. `library` False leaves the list
    prices of genai-prices out.
    """

    def __init__(
        self, own: Iterable[Entry] = (), imported: ImportedPrices | None = None, *, library: bool = True
    ) -> None:
        self._own = tuple(own)
        self._imported = imported
        self._library = library

    def price(self, provider: str | None, model: str | None, at: datetime) -> Price | None:
        """Return the price in force at a time (naive: UTC).

        The own file's last entry that had started by then wins; before its first one, the list price holds.
        """
        found = self.found(provider, model, at)
        return None if found is None else found[1]

    def found(self, provider: str | None, model: str | None, at: datetime) -> tuple[PriceSource, Price] | None:
        """Return the price in force at a time and where it came from."""
        if not model:
            return None
        moment = at if at.tzinfo else at.replace(tzinfo=UTC)
        if price := self._override(provider, model, moment):
            return PriceSource.OVERRIDE, price
        if self._imported is not None and (price := self._imported.price(provider, model, moment)):
            return PriceSource.IMPORTED, price
        if self._library and (price := library_price(provider, model, moment)):
            return PriceSource.LIBRARY, price
        return None

    def moments(self, provider: str | None, model: str, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield every time (UTC) at which the price of a model may change; by time of day those from start to end."""
        for entry in self._own:
            if entry.valid_from is not None and entry.names_model(provider, model):
                yield entry.valid_from.astimezone(UTC)
        if self._imported is not None:
            yield from self._imported.moments(provider, model)
        if self._library:
            yield from library_moments(provider, model, start, end)

    def _override(self, provider: str | None, model: str, moment: datetime) -> Price | None:
        started = [
            entry
            for entry in self._own
            if entry.names_model(provider, model) and (entry.valid_from is None or entry.valid_from <= moment)
        ]
        latest = max(started, key=lambda entry: entry.valid_from or datetime.min.replace(tzinfo=UTC), default=None)
        return None if latest is None else latest.price
