"""What every analysis of the catalog promises, whatever the rows: an answer or a refusal, never a crash."""

from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest

from analytics import codec
from analytics.analysis import Analysis, Params
from analytics.catalog import load_all
from analytics.result import Result, Status
from infractl.priced import SCHEMA as PRICE_SCHEMA
from store.columns import Kind
from store.database import Database
from store.query import Choice, CostQuery, MetricQuery, PriceQuery, Query, RollupQuery, RowQuery, SpanQuery
from store.tables import BY_NAME, SPANS, TABLES
from store.window import Window
from tests.analytics.frames_of import METRIC_SCHEMA

WINDOW = Window(datetime(2026, 11, 30, 12, tzinfo=UTC), datetime(2026, 11, 30, 13, tzinfo=UTC))
AT = datetime(2026, 11, 30, 12, 30)
JSON = {column.name for table in TABLES for column in table.columns if column.kind is Kind.JSON}


def given(name: str, dtype: Any) -> Any:
    """A value that a column of this name and type may hold."""
    if isinstance(dtype, pl.List):
        return [7, 8, 9]
    plain: dict[Any, Any] = {pl.Int64(): 7, pl.UInt64(): 7, pl.Float64(): 0.5, pl.Boolean(): True}
    plain |= {pl.Datetime("us"): AT, pl.Decimal(38, 18): Decimal(1), pl.String(): "{}" if name in JSON else "x"}
    return plain[dtype]


@cache
def schema(query: Query) -> dict[str, Any]:
    if isinstance(query, MetricQuery):
        return dict(METRIC_SCHEMA)
    if isinstance(query, PriceQuery):
        return {name: kind.polars() for name, kind in PRICE_SCHEMA.items()}
    if isinstance(query, RollupQuery | CostQuery):
        with TemporaryDirectory() as directory, Database(Path(directory)) as database:
            return dict(database.read(query, WINDOW).schema)
    stored = (BY_NAME[query.table] if isinstance(query, RowQuery) else SPANS).schema()
    attributes = () if isinstance(query, RowQuery) else query.attributes
    sampled = isinstance(query, SpanQuery) and query.at_most is not None
    more = dict.fromkeys(attributes, pl.String()) | ({"share_read": pl.Float64()} if sampled else {})
    return {name: stored[name] for name in query.columns} | more


def frame(query: Query | Choice, rows: int, value: bool) -> pl.DataFrame:
    """Rows of a query: all columns given, or all null but the time."""
    types = schema(query.raw if isinstance(query, Choice) else query)
    always = ("ts", "bucket", "n")
    columns = {name: [given(name, t) if value or name in always else None] * rows for name, t in types.items()}
    return pl.DataFrame(columns, schema=types)


def answer(analysis: Analysis[Any], params: Params, rows: int, value: bool) -> Result:
    inputs = {name: frame(query, rows, value) for name, query in analysis.inputs(params).items()}
    result = analysis.run(inputs, params, WINDOW)
    assert codec.to_json(codec.from_json(codec.to_json(result), analysis.frames)) == codec.to_json(result)
    return result


@pytest.fixture(params=load_all(), ids=lambda analysis: analysis.name)
def analysis(request: pytest.FixtureRequest) -> Analysis[Any]:
    found: Analysis[Any] = request.param
    return found


@pytest.fixture(params=[{}, {"by": "none"}, {"by": "model,team"}], ids=["default", "none", "two"])
def params(request: pytest.FixtureRequest, analysis: Analysis[Any]) -> Params:
    made: Params = analysis.make_params(request.param)
    return made


def test_no_rows_are_empty_and_say_so(analysis: Analysis[Any], params: Params) -> None:
    result = answer(analysis, params, 0, value=True)
    assert result.status is Status.EMPTY
    assert result.notes
    assert result.findings == ()


def test_one_row_and_rows_of_nulls_are_answered_or_refused_in_words(analysis: Analysis[Any], params: Params) -> None:
    for rows, value in ((1, True), (1, False), (50, False), (50, True)):
        result = answer(analysis, params, rows, value)
        assert result.status is Status.OK or result.notes


def test_frames_are_the_declared_ones_after_the_labels(analysis: Analysis[Any], params: Params) -> None:
    for rows in (0, 1, 50):
        result = answer(analysis, params, rows, value=True)
        assert set(result.frames) == set(analysis.frames)
        for name, columns in analysis.frames.items():
            declared = {c.name: c.kind.polars() for c in columns}
            found = dict(result.frames[name].schema)
            labels = list(found)[: len(found) - len(declared)]
            assert {name: found[name] for name in declared} == declared
            assert set(labels) <= set(params.by)


def test_samples_are_of_declared_signals_and_findings_of_declared_triggers(
    analysis: Analysis[Any], params: Params
) -> None:
    result = answer(analysis, params, 50, value=True)
    signals = {signal.name: signal for signal in analysis.signals}
    assert set(result.samples) <= set(signals)
    for name, sample in result.samples.items():
        assert sample.columns[-1] == "value"
        assert set(sample.columns[:-1]) <= {*signals[name].labels, *params.by}
    assert {finding.trigger for finding in result.findings} <= {trigger.name for trigger in analysis.triggers}


def test_lasting_findings_are_those_whose_trigger_holds(analysis: Analysis[Any], params: Params) -> None:
    result = answer(analysis, params, 50, value=True)
    for trigger in analysis.triggers:
        sample = result.samples.get(trigger.signal.name)
        holding = 0 if sample is None else sum(trigger.holds(v) for v in sample["value"])
        assert holding == sum(f.trigger == trigger.name and f.until is None for f in result.findings)


def test_metric_names_are_unique_and_runbooks_are_slugs(analysis: Analysis[Any]) -> None:
    names = [signal.metric for signal in analysis.signals]
    assert len(set(names)) == len(names)
    assert all(trigger.signal in analysis.signals for trigger in analysis.triggers)
    assert all(set(trigger.runbook) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for trigger in analysis.triggers)
