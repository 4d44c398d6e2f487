"""Pages of one target to one batch: parsed and resolved by the scraper's own code, with the times of the pages."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from collector.prometheus.series import Resolver, sample_frame, series_frame
from collector.prometheus.text import PageMemo
from sample_data.scrapes import Scrape
from store.batch import Batch
from store.tables import METRIC_SAMPLES, METRIC_SERIES


def batch(source: str, scrapes: Iterable[Scrape], target: Mapping[str, str]) -> Batch:
    """Return all samples of the pages; `target` are the labels put on every series (job, instance, service)."""
    import polars as pl

    memo, resolver = PageMemo(), Resolver(target, honor_labels=True)
    rows: dict[int, dict[str, Any]] = {}
    first: dict[int, datetime] = {}
    samples: list[pl.DataFrame] = []
    drops: dict[str, int] = {}
    for ts_ms, text in scrapes:
        at = datetime.fromtimestamp(ts_ms / 1000, UTC)
        resolved = resolver.resolve((page := memo.parse(text.encode())).series)
        frame, refused = sample_frame(page, resolved, at)
        samples.append(frame)
        for number in resolved.rows.keys() - rows.keys():
            rows[number], first[number] = resolved.rows[number], at.replace(tzinfo=None)
        for reason, n in (refused | ({"unreadable_line": len(page.rejected)} if page.rejected else {})).items():
            drops[reason] = drops.get(reason, 0) + n
    described = series_frame(list(rows.values()), first)
    return Batch(source, {METRIC_SERIES.name: described, METRIC_SAMPLES.name: pl.concat(samples)}, drops)
