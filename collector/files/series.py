"""Time-series tables → `metric_series` and `metric_samples`: a time column, labels, a series a numeric column."""

import re
from dataclasses import replace

import polars as pl

from collector.files.content import stem_of
from collector.files.decoded import Decoded
from collector.files.dialects import SERIES_DIALECTS, time_column
from collector.files.expression import number
from collector.files.measure import Measure
from collector.files.options import ImportOptions
from collector.files.plan import Plan, Source, make_plan
from collector.files.refusals import Refusal, split
from collector.files.rows import Rows
from collector.files.samples import tabulate
from collector.files.times import Clock, read_times
from collector.files.units import UNITS, factor_to, snake, unit, unit_of_name
from collector.presets.catalog import canonical
from store.errors import UsageError

_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_MOST_LABELS = 0.5  # a text column with more different values than this share of the rows would make a series a row
_FEW_ROWS = 20  # below this many rows neither that share nor counting up by one says anything


def plan_series(rows: Rows, options: ImportOptions) -> Plan:
    """Return the time column and the columns that have a canonical name.

    Raises UsageError where --map names no metric or no column is the time.
    """
    for name in options.mapping:
        if not _NAME.fullmatch(name):
            raise UsageError(f"--map: {name!r} is no metric name", "letters, digits, _ and : only")
    schema = rows.frame.schema
    temporal = next((name for name, kind in schema.items() if kind.is_temporal()), None)
    found = time_column(schema) or temporal
    plan = make_plan(schema, options, SERIES_DIALECTS, {"ts": found} if found else {})
    if plan["ts"] is None:
        raise UsageError(f"{rows.path}: no column is known as the time", "name it with --map ts=COLUMN")
    return plan


def decode_series(rows: Rows, options: ImportOptions) -> Decoded:
    """Turn a table into series and samples; text columns are labels, beside those of `options`.

    Empty cells are no samples. Refused are rows without a readable time, and cells with a text where a number should
    be. Left out, with a note, are the row number, nested values and text that differs in (nearly) every row.
    """
    plan = plan_series(rows, options)
    source = plan["ts"]
    assert source is not None
    column = rows.frame.select(source.expression.value).to_series()
    times = read_times(column, Clock(source.unit, options.time_zone, options.start))
    kept, refused = split(rows, [("no time", column.is_null()), ("unreadable time", times.ts.is_null())])
    measures, cells, notes = _measures(rows, plan, kept)
    labels, unlike = _labels(rows, {source.expression.columns[0], *(measure.name for measure in measures)})
    unknown = [f"{s.field} is no canonical name of a preset" for s in plan.sources if not _is_known(s.field)]
    frames = tabulate(measures, times.ts.filter(kept), rows.frame.filter(kept).select(labels), options.labels)
    return Decoded(frames, {**refused, **cells}, plan, (f"ts: {times.reading}", *unknown, *notes, *unlike))


def _is_known(field: str) -> bool:
    return field == "ts" or canonical(field) is not None


def _measures(rows: Rows, plan: Plan, kept: pl.Series) -> tuple[list[Measure], dict[str, Refusal], list[str]]:
    """Return the series names of the kept rows, the cells refused, and what was left out."""
    mapped = {source.expression.columns[0]: source for source in plan.sources if source.expression.plain}
    computed = [s for s in plan.sources if not s.expression.plain and s.field != "ts"]
    measures = [_computed(rows, source, kept) for source in computed]
    refused: dict[str, Refusal] = {}
    notes: list[str] = []
    for name in rows.frame.columns:
        source = mapped.get(name)
        if source is not None and source.field == "ts":
            continue
        if source is None and _is_row_number(rows.frame[name]):
            notes.append(f"{name} is the row number: left out")
        elif source is not None or _is_measure(rows, name):
            values, bad = rows.frame.select(*_aliased(name, rows.frame.schema)).get_columns()
            _, cells = split(rows, [(f"{name} is not a number", bad & kept)])
            refused |= cells
            measures.append(_measure(name, values.filter(kept), source))
    if not measures:
        raise UsageError(f"{rows.path}: no column of numbers beside the time", "see --map, or --as requests")
    return _named(rows, measures), refused, notes


def _named(rows: Rows, measures: list[Measure]) -> list[Measure]:
    """Name a lone column `value` after the file: two files of such a kind would make one series of two things."""
    if len(measures) != 1 or snake(measures[0].name) != "value":
        return measures
    return [replace(measures[0], name=snake(stem_of(rows.path)) or measures[0].name)]


def _aliased(name: str, schema: pl.Schema) -> tuple[pl.Expr, pl.Expr]:
    value, bad = number(name, schema)
    return value.cast(pl.Float64).alias("value"), bad.alias("bad")


def _computed(rows: Rows, source: Source, kept: pl.Series) -> Measure:
    values = rows.frame.select(source.expression.value.cast(pl.Float64)).to_series()
    return _measure(source.field, values.filter(kept), source)


def _measure(name: str, values: pl.Series, source: Source | None) -> Measure:
    finite = values.set(~values.is_finite().fill_null(True), None)
    if source is None:
        return Measure(name, finite)
    stated = unit_of_name(source.field)
    base = UNITS[stated].base if stated else ""
    if source.unit is None:
        return Measure(name, finite, source.field, base or None, 1.0)
    scale = factor_to(base, source.unit, source.field)
    return Measure(name, finite, source.field, unit(source.unit).base, scale)


def _is_measure(rows: Rows, name: str) -> bool:
    """Numbers, flags, or text that mostly is numbers (a broken cell must not turn a series into labels)."""
    column = rows.frame[name]
    if not isinstance(column.dtype, pl.String) or name in rows.json:
        return column.dtype.is_numeric() or isinstance(column.dtype, pl.Boolean)
    numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    present = column.len() - column.null_count()
    return present > 0 and numbers.len() - numbers.null_count() > present / 2


def _is_row_number(column: pl.Series) -> bool:
    if not column.dtype.is_integer() or column.len() < _FEW_ROWS or column.null_count():
        return False
    return column[0] in (0, 1) and bool((column.diff().drop_nulls() == 1).all())


def _labels(rows: Rows, used: set[str]) -> tuple[list[str], list[str]]:
    """Text columns that are labels, and a note for each column that is neither label nor number."""
    labels, notes = [], []
    height = rows.frame.height
    for name, kind in rows.frame.schema.items():
        if name in used or kind.is_numeric() or isinstance(kind, pl.Boolean):
            continue
        if not isinstance(kind, pl.String) or name in rows.json:
            notes.append(f"{name} holds neither numbers nor labels: left out")
        elif height >= _FEW_ROWS and rows.frame[name].n_unique() > height * _MOST_LABELS:
            notes.append(f"{name} differs from row to row, so it is no label: left out")
        elif rows.frame[name].null_count() < height:
            labels.append(name)
    return labels, notes
