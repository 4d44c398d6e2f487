"""A person's own prices of infractl.yaml, and which models of stored requests have a price, and whose."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infractl.configfile import ConfigFile, Prices
from store.window import Window, format_time

if TYPE_CHECKING:
    from datetime import datetime

    from collector.prices import Pricing
    from collector.prices.override import Entry
    from store.database import Database

BACK = timedelta(days=1)
"""How far back `infractl status` looks for models."""
UNPRICED = "unpriced"
_MODELS = """
SELECT provider, model, count(*)::BIGINT AS requests,
       sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0))::BIGINT AS tokens, max(ts) AS last_ts
FROM spans WHERE operation IN ({operations}) AND model IS NOT NULL
  AND ts >= TIMESTAMP '{start}' AND ts < TIMESTAMP '{end}'
GROUP BY provider, model HAVING tokens > 0 ORDER BY tokens DESC, model, provider
"""


def own_prices(config: ConfigFile) -> "tuple[Entry, ...]":
    """Prices of the section prices: entries, then those of its file. Raises ConfigError naming file, line and key."""
    given: Prices | None = config.section("prices", Prices)
    if given is None:
        return ()
    from collector.prices.override import read_entries, read_prices

    def where(number: int, *keys: str | int) -> str:
        return f"{config.where('prices', 'entries', number, *keys)}: prices.entries[{number}]"

    entries = read_entries(given.entries, where)
    if given.file is None:
        return entries
    folder = config.path.parent if config.path else Path()
    return entries + read_prices(folder / given.file)


def priced_from(database: "Database", own: "Sequence[Entry]") -> "Pricing":
    """Return prices as every reader looks them up: a person's own, then imported lists, then the library's."""
    from collector.prices import ImportedPrices, Pricing

    return Pricing(own, ImportedPrices(database.table("prices").iter_rows(named=True)))


def bounds(window: Window) -> dict[str, str]:
    """Fill-ins of a query over the model requests of a window."""
    from store.tables import INFERENCE_OPERATIONS

    start, end = (format_time(at).removesuffix("Z").replace("T", " ") for at in (window.start, window.end))
    return {"operations": ", ".join(map(repr, INFERENCE_OPERATIONS)), "start": start, "end": end}


def priced_models(database: "Database", window: Window, own: "Sequence[Entry]") -> list[dict[str, Any]]:
    """Models of the requests in a window with their tokens, most first, and the source of their price or 'unpriced'.

    A price is looked up at the time of a model's last request.
    """
    import polars as pl

    found = pl.DataFrame(database.sql(_MODELS.format(**bounds(window))))
    if not found.height:
        return []
    pricing = priced_from(database, own)
    return [_told(row, pricing.found(row["provider"], row["model"], row["last_ts"])) for row in found.to_dicts()]


def recent_models(database: "Database", now: "datetime", own: "Sequence[Entry]") -> list[dict[str, Any]]:
    """Return `priced_models` of the last day before `now` (aware)."""
    return priced_models(database, Window(now - BACK, now + timedelta(microseconds=1)), own)


def _told(row: dict[str, Any], found: Any) -> dict[str, Any]:
    source, price = found or (UNPRICED, None)
    return {
        "provider": row["provider"],
        "model": row["model"],
        "requests": row["requests"],
        "tokens": row["tokens"],
        "source": str(source),
        "price": "" if price is None else price.origin,
    }
