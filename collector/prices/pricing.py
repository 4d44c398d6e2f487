"""`Pricing`: the price of a model at a time, from a person's own file first, else from the library."""

from collections.abc import Iterable
from datetime import UTC, datetime

from collector.prices.library import library_price
from collector.prices.override import Entry
from collector.prices.price import Price


class Pricing:
    """Prices by provider, model and time.

    An unknown model has none; no model takes the price of one with a similar name. `library` False leaves the list
    prices out.
    """

    def __init__(self, own: Iterable[Entry] = (), *, library: bool = True) -> None:
        self._own = tuple(own)
        self._library = library

    def price(self, provider: str | None, model: str | None, at: datetime) -> Price | None:
        """Return the price in force at a time (naive: UTC).

        The own file's last entry that had started by then wins; before its first one, the list price holds.
        """
        if not model:
            return None
        moment = at if at.tzinfo else at.replace(tzinfo=UTC)
        started = [
            entry
            for entry in self._own
            if entry.names_model(provider, model) and (entry.valid_from is None or entry.valid_from <= moment)
        ]
        if started:
            return max(started, key=lambda entry: entry.valid_from or datetime.min.replace(tzinfo=UTC)).price
        return library_price(provider, model, moment) if self._library else None
