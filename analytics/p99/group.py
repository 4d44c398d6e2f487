"""One set of labels: its requests fitted and cut into windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import polars as pl

from analytics import buckets
from analytics.p99 import P99Params
from analytics.p99.model import Model, fit_requests
from analytics.p99.selection import Selection, select
from analytics.p99.windowed import LEAST_WINDOWS, fit_windows, windowed
from analytics.p99.windows import by_window
from store.window import Window, format_duration

MEDIAN_REQUESTS = 50
"""Requests that the median window should hold: of fewer, the P99 is the maximum."""


@dataclass(frozen=True, slots=True)
class Group:
    """Everything found for one set of labels; `rows` are its requests, `table` its windows.

    `units` are those that its drivers' metrics state.
    """

    labels: dict[str, str]
    rows: pl.DataFrame
    size: timedelta
    table: pl.DataFrame
    selection: Selection
    model: Model | None
    notes: tuple[str, ...]
    units: Mapping[str, str] = field(default_factory=dict)


def examine(
    labels: dict[str, str],
    rows: pl.DataFrame,
    drivers: tuple[str, ...],
    params: P99Params,
    window: Window,
    *,
    fit: bool,
) -> Group:
    """Fit (unless told not to) and cut into windows."""
    size = _size(rows, params, window)
    look = _by_windows if params.method == "ols" else _by_requests
    table, selection, model, refusal = look(rows, drivers, params, window, size, fit=fit)
    notes = [_windows_note(table, size)]
    notes += [f"no fit: {refusal}", *selection.notes] if refusal else []
    notes += model.notes if model else ()
    return Group(labels, rows, size, table, selection, model, tuple(notes))


_Found = tuple[pl.DataFrame, Selection, Model | None, str]


def _by_requests(
    rows: pl.DataFrame, drivers: tuple[str, ...], params: P99Params, window: Window, size: timedelta, *, fit: bool
) -> _Found:
    selection = select(rows, drivers, params.tau, params.tail_rows, auto=params.drivers == ("auto",), per_window=False)
    if not fit or selection.refusal:
        return by_window(rows, window, size, params.tau), selection, None, selection.refusal
    model = fit_requests(selection, params.resamples, params.seed)
    known = rows
    if model.tau == params.tau:
        fitted = selection.rows.select("_row", pl.Series("fitted", model.fitted))
        known = rows.join(fitted, on="_row", how="left", maintain_order="left")
    return by_window(known, window, size, params.tau), selection, model, ""


def _by_windows(
    rows: pl.DataFrame, drivers: tuple[str, ...], params: P99Params, window: Window, size: timedelta, *, fit: bool
) -> _Found:
    numbered = rows.with_columns(buckets.bucket_index(window, size))
    points = windowed(numbered, list(drivers), params.tau)
    selection = select(points, drivers, params.tau, params.tail_rows, auto=params.drivers == ("auto",), per_window=True)
    table = by_window(rows, window, size, params.tau)
    refusal = selection.refusal
    if not refusal and selection.rows.height < LEAST_WINDOWS:
        refusal = f"{selection.rows.height} windows, least squares needs {LEAST_WINDOWS}"
    if not fit or refusal:
        return table, selection, None, refusal
    model = fit_windows(selection, numbered.select("bucket", "y"), params.resamples, params.seed)
    fitted = selection.rows.select("bucket", pl.Series("fitted_p99", model.fitted))
    table = table.drop("fitted_p99").join(fitted, on="bucket", how="left", maintain_order="left")
    return table, selection, model, ""


def _size(rows: pl.DataFrame, params: P99Params, window: Window) -> timedelta:
    if params.bucket == "auto":
        return buckets.choose(rows, window, MEDIAN_REQUESTS)
    return buckets.named(params.bucket, window)


def _windows_note(table: pl.DataFrame, size: timedelta) -> str:
    middle = table.filter(pl.col("n") > 0).select(pl.col("n").median()).item()
    text = f"windows of {format_duration(size)}, {middle:.0f} requests in the median one"
    if middle >= MEDIAN_REQUESTS:
        return text
    return f"{text}: insufficient samples (P99 needs {MEDIAN_REQUESTS}); the P99 of fewer is close to their maximum"
