"""What an analysis may ask of the store, as values: no SQL outside `store`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from store.window import Window

Where = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SpanQuery:
    """Rows of `spans`, ordered by ts.

    `columns` are stored columns; each of `attributes` is read from the attributes (else the resource) as text into a
    column of that name, null where a row lacks it. `where` holds (column or attribute, value): equal values of one
    field are or-ed, fields are and-ed. Rows with a null in any of `not_null` are left out. Where a window holds more
    spans than `at_most`, those of a random share of the traces are read (by the hash of the trace id: the same ones
    each time); column `share_read` then says which share that is, 1 where all are read.
    """

    columns: tuple[str, ...]
    attributes: tuple[str, ...] = ()
    where: Where = ()
    not_null: tuple[str, ...] = ()
    requests_only: bool = False
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """Samples of series whose canonical or raw name is in `names`, ordered by ts.

    Gives ts, name (as asked for), series_id, value (in the canonical unit where asked by canonical name), unit (of that
    value; null where not known), combine, kind (type that was declared: counter, gauge, …), raw (name on the wire),
    service, instance, job, labels (JSON). Samples that are not available (null) are kept: they end a series. `where`
    compares with a label, service, instance or job.
    """

    names: tuple[str, ...]
    where: Where = ()


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Rows of a table that has a time of its own (token_arrivals, events, costs, benchmarks, …), ordered by it.

    `where` holds (column, value) as in a SpanQuery; what is no column is read from the JSON columns of the table.
    """

    table: str
    columns: tuple[str, ...]
    where: Where = ()


@dataclass(frozen=True, slots=True)
class CostQuery:
    """Charge lines (`costs`) added up in the database by time, labels, currency, category and grain, ordered by bucket.

    `by` are columns of costs, else keys of its tags, as text; `where` compares as in a RowQuery. Gives bucket (start of
    the charge period cut to a multiple of `step_s`; naive UTC), the columns of `by`, currency, category (FOCUS
    ChargeCategory; null where a report has none), grain (length of the charge periods: hour, day or month, whose lines
    are never added up here; null where not known), cost (Decimal: what was billed, of lines without it the effective
    cost; null where no line has one), effective (Decimal), quantity, requests, lines (how many) and span_s (longest
    charge period among them; null: not known). A line counts in full in the bucket in which its charge period starts.
    """

    by: tuple[str, ...] = ()
    where: Where = ()
    step_s: int = 3600


Rollup = Literal["requests", "latency", "errors", "metrics"]
ROLLUP_DIMENSIONS = ("service", "provider", "model", "cloud_provider", "cloud_region", "environment")
"""Columns of spans that the rollups of requests and latency keep; others are in the raw rows only."""


@dataclass(frozen=True, slots=True)
class RollupQuery:
    """Summaries of requests or samples, from rollups and, where those do not reach or are not built yet, raw rows.

    Counts, sums and extremes are exact; quantiles are within 1 %. `by` and `where` name dimensions of the kind
    (requests also have error_code; of metrics, where compares as in a MetricQuery and rows are of one series each).
    Metrics without `names` are all series but the buckets of histograms, each by its canonical name where it has one.
    `step_s` 300 or 3600 gives a row per bucket, which begins at a multiple of it (column bucket), the first and last
    cut by the window; None one row for the whole window. Latency gives a row per measure (of `measures`; none: all)
    with n and a column for each of `quantiles` (0.99: p99) and `limits` (0.5: within_0.5, how many of the n are no
    longer than that, in seconds; exact but for values within 1 % of the limit). Metrics are of the series in `names`
    and give n, n_null, first, last, min, max, sum, sum_squares and increase, which adds up over buckets.
    """

    kind: Rollup
    by: tuple[str, ...] = ()
    where: Where = ()
    step_s: int | None = None
    measures: tuple[str, ...] = ()
    quantiles: tuple[float, ...] = ()
    limits: tuple[float, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PriceQuery:
    """Prices in force within the window of the models that requests in it name, each with the time in which it holds.

    A price comes from a person's own list, an imported one or the library that infractl ships with, so it is answered
    by a reader above the store. Gives provider, model (as in spans; also those asked for, unless spans are very many),
    valid_from and valid_to (naive UTC; null: open), tokens_kind (input, cached_input, cache_write, output, reasoning),
    batch (the price of batch requests, where one is stated), above_input_tokens (0: the base; else the price of
    requests with a longer prompt), per_million (Decimal), currency, source (override, imported, genai-prices), origin
    (the list), by_rule (the list knows the model by a pattern). A model without a price has no row.
    """


@dataclass(frozen=True, slots=True)
class Choice:
    """An input that can be read as raw rows or, where a window holds many of them, as rollups.

    An analysis finds `raw` under the name of the input, or each that `rolled` gives for the window under its own. A
    window of no more than `raw_up_to` rows is read from raw rows however long it is. With `shorter_than` nothing but
    the length decides: raw rows below it.
    """

    raw: SpanQuery | MetricQuery | RowQuery
    rolled: Callable[[Window], Mapping[str, RollupQuery]]
    raw_up_to: int = 0
    shorter_than: timedelta | None = None


StoredQuery = SpanQuery | MetricQuery | RollupQuery | RowQuery | CostQuery
"""What the store answers by itself."""
Query = StoredQuery | PriceQuery


def in_rollups(by: tuple[str, ...], where: Where) -> bool:
    """Say whether rollups of requests can answer by these columns."""
    return all(name in ROLLUP_DIMENSIONS for name in (*by, *(field for field, _ in where)))
