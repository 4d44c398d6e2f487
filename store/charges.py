"""Charge lines added up by time and labels, as SQL text for DuckDB: what a CostQuery asks for."""

from typing import Any

from store.errors import UsageError
from store.manifest import Files, source
from store.query import CostQuery
from store.sqltext import Statement, column_or_json, matches, within
from store.tables import COSTS
from store.window import Window

_JSON = ("tags",)
_SUMS = (
    "sum(coalesce(billed_cost, effective_cost)) AS cost, sum(effective_cost) AS effective, "
    "sum(quantity) AS quantity, sum(requests)::BIGINT AS requests, count(*) AS lines, "
    "max(epoch_us(end_ts) - epoch_us(ts)) / 1e6 AS span_s"
)
_SPAN_H = "date_diff('hour', ts, end_ts)"
_GRAIN = (
    f"CASE WHEN {_SPAN_H} < 23 THEN 'hour' WHEN {_SPAN_H} < 24 * 8 THEN 'day' "
    f"WHEN {_SPAN_H} IS NOT NULL THEN 'month' END"
)
"""A day of 23 hours is one; what is charged for more than a week is of a month."""
RESERVED = ("bucket", "grain", "cost", "effective", "quantity", "requests", "lines", "span_s")
"""Columns that the sums have; no label can be called so."""


def select(query: CostQuery, window: Window, files: Files) -> Statement:
    """SELECT of the sums within a window, ordered by bucket. Raises UsageError for a label named like a sum."""
    taken = [name for name in query.by if name in RESERVED]
    if taken:
        raise UsageError(f"costs cannot be grouped by {taken[0]}", "that is what is added up")
    step = round(query.step_s * 1_000_000)
    fields = [f"make_timestamp((epoch_us(ts) // {step}) * {step}) AS bucket"]
    values: list[Any] = []
    for name in dict.fromkeys((*query.by, "currency", "category")):
        text, args = column_or_json(name, COSTS.names, _JSON)
        quoted = name.replace('"', '""')
        fields.append(f'{text} AS "{quoted}"')
        values += args
    bounds, times = within("ts", window)
    matched, args = matches(query.where, COSTS.names, "", _JSON)
    fields.append(f"{_GRAIN} AS grain")
    groups = ", ".join(str(number) for number in range(1, len(fields) + 1))
    rows = source(COSTS, files(COSTS, window))
    text = f"SELECT {', '.join(fields)}, {_SUMS} FROM {rows} WHERE {bounds}{matched} GROUP BY {groups} ORDER BY 1"
    return text, [*values, *times, *args]
