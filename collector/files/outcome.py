"""How requests ended: status and error of each row, and what a failed request may still say about latency."""

from collections.abc import Mapping, Sequence

import polars as pl

from collector.files import fields
from collector.files.plan import Plan, Source
from store.columns import Kind
from store.tables import SPANS

OUTCOME_FIELDS = ("error_code", "status", "status_message")
_NUMBERS = tuple(column.name for column in SPANS.columns if column.kind in (Kind.INT, Kind.FLOAT))
_SECONDS = tuple(column.name for column in SPANS.columns if column.unit == "s")


def outcome_of(frame: pl.DataFrame, plan: Plan) -> dict[str, pl.Series]:
    """Return status, error_code and status_message of every row.

    The error code comes from the column of codes, else from the column of outcomes, else (where neither says anything)
    from the message.
    """
    none = pl.repeat(None, frame.height, dtype=pl.String, eager=True)
    code_from, status_from, message_from = (plan[name] for name in OUTCOME_FIELDS)
    columns = {
        "code": fields.read_error(frame, code_from) if code_from else none,
        "failure": fields.read_status(frame, status_from) if status_from else none,
        "message": fields.read_text(frame, message_from) if message_from else none,
        "stated": _stated(frame, [source for source in (code_from, status_from) if source]),
    }
    columns["silent"] = fields.error_of_message(columns["message"])
    error = pl.coalesce("code", "failure", pl.when(~pl.col("stated")).then("silent"))
    fine = pl.when("stated").then(pl.lit("ok")).otherwise(pl.lit("unset"))
    table = pl.DataFrame(columns).select(
        error_code=error,
        status=pl.when(error.is_not_null()).then(pl.lit("error")).otherwise(fine),
        status_message="message",
    )
    return table.to_dict()


def _stated(frame: pl.DataFrame, sources: Sequence[Source]) -> pl.Series:
    """Rows in which a column of codes or outcomes says something; a column of codes is empty where all went well."""
    if any(source.field == "error_code" for source in sources):
        return pl.repeat(True, frame.height, eager=True)
    words = [source.expression.value.cast(pl.String).str.to_lowercase() for source in sources]
    tests = [word.is_not_null() & ~word.is_in(fields.UNFINISHED) for word in words]
    return (
        frame.select(stated=pl.any_horizontal([pl.lit(False), *tests])).to_series()
        if tests
        else pl.repeat(False, frame.height, eager=True)
    )


def clear_failures(values: Mapping[str, pl.Series]) -> dict[str, pl.Series]:
    """Return the seconds without those, zero or less, of a request that failed or has not ended: they measure nothing.

    In a log that states outcomes a row without one has not ended.
    """
    unset = values["status"] == "unset"
    void = values["error_code"].is_not_null() | (unset & (not unset.all()))
    return {name: values[name].set(void & (values[name] <= 0), None) for name in _SECONDS if name in values}


def negatives(values: Mapping[str, pl.Series]) -> list[tuple[str, pl.Series]]:
    """Reasons to refuse: numbers below zero, by field."""
    return [(f"{name} is negative", values[name] < 0) for name in _NUMBERS if name in values]
