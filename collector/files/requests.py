"""Request logs → rows of `spans`, one span a request."""

import polars as pl

from collector.files import fields
from collector.files.attributes import json_objects, other_columns, row_texts
from collector.files.decoded import Decoded
from collector.files.dialects import REQUEST_DIALECTS, recognise
from collector.files.identity import derived_ids, is_hex, normal_ids
from collector.files.options import ImportOptions
from collector.files.outcome import OUTCOME_FIELDS, clear_failures, negatives, outcome_of
from collector.files.plan import Plan, make_plan
from collector.files.refusals import split
from collector.files.rows import Rows
from collector.files.times import Clock, Times, constant_times, read_times
from collector.files.units import unit
from collector.files.usage import usage_tokens
from store.columns import Kind
from store.errors import UsageError
from store.nearest import nearest
from store.tables import SPANS, TOKEN_ARRIVALS

FIELDS = tuple(column.name for column in SPANS.columns if column.kind is not Kind.JSON)
"""What --map may name; the JSON columns hold what no field takes."""

_IDS = ("trace_id", "span_id", "parent_span_id")
Values = dict[str, pl.Series]
Reasons = list[tuple[str, pl.Series]]


def plan_requests(rows: Rows, options: ImportOptions) -> Plan:
    """Return which column feeds which field of `spans`.

    Raises UsageError, with the nearest field, where --map or --label cannot be used for requests.
    """
    for name in options.mapping:
        if name not in FIELDS:
            hint = nearest(name, FIELDS) or f"metric names need --as series; fields of requests: {', '.join(FIELDS)}"
            raise UsageError(f"--map: no field of a request is called {name!r}", hint)
    for name in options.labels:
        column = SPANS.column(name)
        if column is not None and column.kind is not Kind.TEXT:
            raise UsageError(f"--label {name} would set a field of numbers, times or JSON", "use --map for it")
        if options.mapping.get(name):
            raise UsageError(f"--label and --map both set {name}", "leave one of them out")
    return make_plan(rows.frame.schema, options, REQUEST_DIALECTS, recognise(rows.frame.columns))


def decode_requests(rows: Rows, options: ImportOptions, stem: str) -> Decoded:
    """Turn a request log into spans; `stem` is the service where nothing else names one.

    A failed request keeps its row: times of zero or less are null in it, so that they count as no latency. Refused are
    rows without a readable time, with text where a number should be, or with a negative value that no error explains.
    Raises UsageError where no column holds the time and `options.at` does not state one.
    """
    plan = plan_requests(rows, options)
    times = _arrivals(rows, plan, options)
    values, not_numbers = _fields(rows, plan)
    tokens, usage_doubts = usage_tokens(rows.frame, values.get("provider"), {*options.mapping, *options.labels})
    values |= tokens
    values |= outcome_of(rows.frame, plan)
    values |= clear_failures(values)
    kept, refused = split(rows, [*_untimed(rows, plan, times), *not_numbers, *negatives(values)])
    names, content = other_columns(rows, plan.columns - _foreign_ids(values, plan), options.content)
    extra = {name: text for name, text in options.labels.items() if SPANS.column(name) is None}
    attributes, cut = json_objects(rows, names, extra, options.content)
    timed = plan["ts"] is not None
    ids = _identity(rows, values, options, "" if timed else stem)
    doubts = {"quality": _doubts(cut, usage_doubts, timed=timed)}
    frame = pl.DataFrame({**values, **ids, **doubts, "ts": times.ts, "attributes": attributes}).filter(kept)
    notes = (f"ts: {times.reading}", *(f"{name} is conversation text and stays in the file" for name in content))
    spans = SPANS.conform(_complete(frame, options, stem))
    streamed = _token_arrivals(rows.frame.filter(kept), spans, plan)
    return Decoded({"spans": spans} | streamed, refused, plan, notes)


def _token_arrivals(frame: pl.DataFrame, spans: pl.DataFrame, plan: Plan) -> dict[str, pl.DataFrame]:
    """Keep the whole list where TTFT is the first of a list of numbers: these are the arrivals of a stream."""
    source = plan["ttft_s"]
    column = source.expression.columns[0] if source is not None else ""
    if source is None or source.expression.text != f"{column}[0]":
        return {}
    dtype = frame.schema[column]
    if not isinstance(dtype, pl.List) or not dtype.inner.is_numeric():
        return {}
    micros = unit(source.unit or "s").factor * 1e6
    offsets = (
        (frame[column].cast(pl.List(pl.Float64)) * micros).list.eval(pl.element().round().cast(pl.Int64)).list.sort()
    )
    rows = spans.select("trace_id", "span_id", "ts", "service").with_columns(
        pl.lit("client").alias("measured_by"), offsets.alias("offsets_us")
    )
    whole = rows.filter(pl.col("offsets_us").list.len() > 0, pl.col("ts").is_not_null())
    return {TOKEN_ARRIVALS.name: TOKEN_ARRIVALS.conform(whole)} if whole.height else {}


def _arrivals(rows: Rows, plan: Plan, options: ImportOptions) -> Times:
    """Arrival of every request; where no column holds it, `options.at` and a microsecond a row, to keep their order."""
    source = plan["ts"]
    if source is not None:
        clock = Clock(source.unit, options.time_zone, options.start)
        return read_times(rows.frame.select(source.expression.value).to_series(), clock)
    if options.at is None:
        raise UsageError(
            f"{rows.path}: no column is known as the time of a request",
            "name it with --map ts=COLUMN, or give one time for the whole file with --time",
        )
    return constant_times(options.at, rows.frame.height)


def _untimed(rows: Rows, plan: Plan, times: Times) -> Reasons:
    source, missing = plan["ts"], times.ts.is_null()
    if source is None:
        return []
    present = [rows.frame[name].is_not_null() for name in source.expression.columns]
    given = pl.DataFrame(present).select(pl.all_horizontal(pl.all())).to_series()
    return [("no time", missing & ~given), ("unreadable time", missing)]


def _fields(rows: Rows, plan: Plan) -> tuple[Values, Reasons]:
    """Values by field, and where a text stands for a number; times and outcomes are read elsewhere."""
    values: Values = {}
    reasons: Reasons = []
    for source in plan.sources:
        column = SPANS.column(source.field)
        assert column is not None
        if column.kind in (Kind.FLOAT, Kind.INT):
            values[column.name], bad = fields.read_number(rows.frame, source, column)
            reasons.append((f"{column.name} is not a number", bad))
        elif column.kind is Kind.BOOL:
            values[column.name] = fields.read_flag(rows.frame, source)
        elif column.kind is Kind.TEXT and column.name not in OUTCOME_FIELDS:
            values[column.name] = fields.read_text(rows.frame, source)
    return values, reasons


def _foreign_ids(values: Values, plan: Plan) -> frozenset[str]:
    """Columns whose ids are not of OpenTelemetry's form: hashed for the field, kept as they are in the attributes."""
    sources = [source for source in plan.sources if source.field in _IDS]
    return frozenset(s.expression.columns[0] for s in sources if not is_hex(values[s.field], s.field))


def _identity(rows: Rows, values: Values, options: ImportOptions, salt: str) -> Values:
    """Ids of the log, and derived ones where it has none. Labels count: one file may be imported for two services."""
    labels = ",".join(f"{name}={text}" for name, text in sorted(options.labels.items()))
    trace, span = derived_ids(row_texts(rows), f"{salt}\n{labels}")
    derived = {"trace_id": trace, "span_id": span}
    stated = {name: normal_ids(values[name], name) for name in _IDS if name in values}
    return derived | {n: v.zip_with(v.is_not_null(), derived.get(n, v)) for n, v in stated.items()}


def _doubts(cut: pl.Series, usage: pl.Series, *, timed: bool) -> pl.Series:
    words = [pl.col("usage"), pl.when("cut").then(pl.lit("truncated")), pl.lit(None if timed else "no_time", pl.String)]
    joined = pl.concat_str(words, separator=",", ignore_nulls=True)
    return pl.DataFrame({"cut": cut, "usage": usage}).select(pl.when(joined != "").then(joined)).to_series()


def _complete(frame: pl.DataFrame, options: ImportOptions, stem: str) -> pl.DataFrame:
    """Fill what a log leaves unsaid: operation, kind, who measured TTFT, service, and one latency from the other."""
    labels = {name: text for name, text in options.labels.items() if SPANS.column(name) is not None}
    frame = frame.with_columns(pl.lit(text).alias(name) for name, text in labels.items())
    missing = [pl.lit(None, c.kind.polars()).alias(c.name) for c in SPANS.columns if c.name not in frame.columns]
    operation = pl.col("operation").fill_null("inference")
    return frame.with_columns(missing).with_columns(
        operation=operation,
        name=pl.col("name").fill_null(operation),
        kind=pl.col("kind").fill_null("client"),
        service=pl.col("service").fill_null(stem),
        ttft_source=pl.when(pl.col("ttft_s").is_not_null()).then(pl.col("ttft_source").fill_null("client")),
        e2e_s=pl.coalesce("e2e_s", "duration_s"),
        duration_s=pl.coalesce("duration_s", "e2e_s"),
    )
