"""Rollups answer as the raw rows do, whatever came late, twice or not at all."""

import itertools
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from store.database import Database
from store.lake.seal import seal
from store.query import RollupQuery
from store.rollups.sketch import ERROR
from tests.store.rollups.raw import (
    LATER,
    NOON,
    SAMPLE,
    SPAN,
    STREAM,
    arrivals,
    query,
    roll_all,
    samples,
    seconds,
    spans,
    store,
)

WINDOW = st.tuples(st.integers(0, 4 * 3600), st.integers(0, 4 * 3600)).filter(lambda w: w[0] != w[1]).map(sorted)
NOW = st.one_of(st.just(LATER), st.integers(0, 4 * 3600).map(lambda s: NOON.replace(tzinfo=UTC) + timedelta(seconds=s)))
STEP = st.sampled_from([None, 300, 3600])
few = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # each example is a database: shrinking would take minutes
)
REQUESTS = "operation IN ('chat', 'embeddings')"
LIMIT = 0.5


def within(window: list[int]) -> str:
    low, high = (NOON + timedelta(seconds=second) for second in window)
    return f"ts >= TIMESTAMP '{low}' AND ts < TIMESTAMP '{high}'"


def bucket(step: int | None) -> str:
    return f"time_bucket(INTERVAL {step} SECOND, ts) AS bucket, " if step else ""


@few
@given(
    st.lists(SPAN, min_size=1, max_size=30),
    st.lists(SPAN, max_size=10),
    st.lists(STREAM, max_size=10),
    WINDOW,
    NOW,
    STEP,
)
def test_requests_and_latency_are_those_of_the_raw_rows(rows, late, streams, window, now, step):
    with tempfile.TemporaryDirectory() as directory, Database(Path(directory)) as database:
        store(database, spans=spans(rows))
        roll_all(database, now)
        store(database, spans=spans(rows), token_arrivals=arrivals(rows, streams))  # again: duplicates
        roll_all(database, now)
        store(database, spans=spans([*rows[:1], *late], first=len(rows)))  # after the last roll: read from raw rows
        assert_requests(database, window, step)
        assert_latency(database, window)
        roll_all(database, LATER)
        assert_requests(database, window, step)
        assert_latency(database, window)
        assert roll_all(database, LATER)[0].buckets == 0


def assert_requests(database: Database, window: list[int], step: int | None) -> None:
    rolled = database.read(RollupQuery("requests", by=("service", "error_code"), step_s=step), seconds(*window))
    raw = query(
        database,
        f"SELECT {bucket(step)}service, error_code, count(*) AS requests, "
        "count(*) FILTER (status = 'error' OR error_code IS NOT NULL) AS errors, "
        "sum(input_tokens)::BIGINT AS input_tokens, sum(cost_usd) AS cost_usd, count(ttft_s) AS ttft_n, "
        "count(*) FILTER (ttft_s <= 0) AS ttft_zero, sum(ttft_s) AS ttft_sum_s, min(ttft_s) AS ttft_min_s, "
        f"max(ttft_s) AS ttft_max_s, max(ts) AS last_ts FROM spans WHERE {REQUESTS} AND {within(window)} GROUP BY ALL",
    )
    found = rolled.filter(pl.col("requests") > 0)  # a stream whose request is no model request has gaps alone
    names = list(raw[0]) if raw else ["requests"]
    order = lambda row: [(value is not None, value) for value in row.values()][:3]  # noqa: E731
    assert sorted(found.select(names).to_dicts(), key=order) == sorted(raw, key=order)


def assert_latency(database: Database, window: list[int]) -> None:
    wanted = RollupQuery("latency", by=("model",), measures=("e2e_s",), quantiles=(0.5, 0.99), limits=(LIMIT,))
    found = {row["model"]: row for row in database.read(wanted, seconds(*window)).to_dicts()}
    raw = query(
        database,
        "SELECT model, count(e2e_s) AS n, quantile_disc(e2e_s, 0.5) AS p50, quantile_disc(e2e_s, 0.99) AS p99, "
        f"count(*) FILTER (e2e_s <= {LIMIT * (1 - ERROR)}) AS surely, "
        f"count(*) FILTER (e2e_s <= {LIMIT * (1 + 2 * ERROR)}) AS perhaps "
        f"FROM spans WHERE {REQUESTS} AND e2e_s IS NOT NULL AND {within(window)} GROUP BY ALL",
    )
    assert {row["model"]: row["n"] for row in raw} == {model: row["n"] for model, row in found.items()}
    for row in raw:
        for name in ("p50", "p99"):
            assert abs(found[row["model"]][name] - row[name]) <= ERROR * row[name] * (1 + 1e-9)
        assert row["surely"] <= found[row["model"]]["within_0.5"] <= row["perhaps"]


@few
@given(st.lists(SPAN, min_size=1, max_size=20), st.lists(STREAM, min_size=1, max_size=10), STEP)
def test_gaps_are_those_between_the_parts_of_the_answers(rows, streams, step):
    with tempfile.TemporaryDirectory() as directory, Database(Path(directory)) as database:
        store(database, token_arrivals=arrivals(rows, streams))
        roll_all(database)
        store(database, spans=spans(rows))  # the request comes after its stream
        roll_all(database)
        found = database.read(RollupQuery("requests", by=("service",)), seconds(0, 4 * 3600))
        gaps: dict[str | None, list[float]] = {}
        for service, offsets in arrivals(rows, streams).select("service", "offsets_us").iter_rows():
            gaps.setdefault(service, []).extend((b - a) / 1e6 for a, b in itertools.pairwise(offsets))
        for row in found.to_dicts():
            expected = gaps.get(row["service"], [])
            assert (row["gap_n"], row["gap_zero"]) == (len(expected), sum(gap <= 0 for gap in expected))
            assert (row["gap_sum_s"] or 0, row["gap_max_s"] or 0) == (sum(expected), max(expected, default=0))
            assert (row["gap_sum_squares"] or 0) == sum(gap * gap for gap in expected)


@few
@given(st.lists(SPAN, min_size=1, max_size=30), WINDOW, NOW)
def test_errors_are_those_of_the_raw_rows(rows, window, now):
    with tempfile.TemporaryDirectory() as directory, Database(Path(directory)) as database:
        store(database, spans=spans(rows))
        roll_all(database, now)
        found = database.read(RollupQuery("errors", by=("cloud_region", "error_code")), seconds(*window))
        raw = query(
            database,
            f"SELECT cloud_region, error_code, count(*) AS n FROM spans WHERE {REQUESTS} AND {within(window)} "
            "AND (status = 'error' OR error_code IS NOT NULL) GROUP BY ALL",
        )
        assert {tuple(row.values()) for row in raw} == set(found.select("cloud_region", "error_code", "n").iter_rows())


def increase(values: list[float]) -> float:
    return sum(b - a if b >= a else b for a, b in itertools.pairwise(values))


@few
@given(st.lists(SAMPLE, min_size=1, max_size=60, unique_by=lambda s: s[:2]), st.integers(0, 60), WINDOW, NOW, STEP)
def test_metrics_are_those_of_the_samples_and_increases_add_up(rows, cut, window, now, step):
    series = pl.DataFrame(
        {"series_id": [1, 2, 3], "name": ["m"] * 3, "canonical": ["c", "c", None], "scale": [0.5, 1.0, None]}
    )
    with tempfile.TemporaryDirectory() as directory, Database(Path(directory)) as database:
        store(database, metric_series=series.cast({"series_id": pl.UInt64}), metric_samples=samples(rows[:cut]))
        roll_all(database, now)
        store(database, metric_samples=samples(rows[cut:]))
        roll_all(database, now)
        found = database.read(RollupQuery("metrics", names=("c", "m"), step_s=step), seconds(*window))
        for ident, factor in ((1, 0.5), (2, 1.0), (3, 1.0)):
            inside = sorted((at, v) for s, at, v in rows if s == ident and window[0] <= at < window[1])
            values = [value * factor for _, value in inside if value is not None]
            mine = found.filter(pl.col("series_id") == ident)
            assert mine["n"].sum() == len(values)
            assert mine["n_null"].sum() == len(inside) - len(values)
            if values:
                assert (mine["min"].min(), mine["max"].max()) == (min(values), max(values))
                assert mine["sum"].sum() == sum(values)
                assert mine["sum_squares"].sum() == sum(value * value for value in values)
                assert mine["increase"].sum() == increase(values)
                known = mine.filter(pl.col("n") > 0).sort("first_ts")
                assert (known["first"][0], known["last"][-1]) == (values[0], values[-1])


def test_infinite_values_do_not_stop_a_bucket_and_leave_no_nan(tmp_path: Path):
    with Database(tmp_path) as database:
        store(database, metric_samples=samples([(1, 0, float("inf")), (1, 1, float("-inf")), (1, 2, 3)]))
        store(database, spans=spans([{"at": 0, "operation": "chat", "ttft_s": float("inf")}]))
        roll_all(database, datetime(2026, 12, 1, tzinfo=UTC))
        assert query(database, "SELECT n, sum, max FROM rollup_metrics WHERE step_s = 300") == [
            {"n": 3, "sum": None, "max": float("inf")}
        ]
        assert query(database, "SELECT requests, ttft_n FROM rollup_requests WHERE step_s = 300") == [
            {"requests": 1, "ttft_n": 0}
        ]


@few
@given(
    st.lists(SPAN, min_size=1, max_size=20), st.lists(SPAN, max_size=10), st.lists(SAMPLE, max_size=20), WINDOW, STEP
)
def test_rollups_are_the_same_when_the_raw_rows_move_to_sealed_files(rows, late, measured, window, step):
    unique = list({sample[:2]: sample for sample in measured}.values())
    with tempfile.TemporaryDirectory() as directory, Database(Path(directory)) as database:
        store(database, spans=spans(rows), metric_samples=samples(unique))
        seal(database, LATER)
        roll_all(database, LATER)
        store(database, spans=spans(late, first=len(rows)))
        assert_requests(database, window, step)
        seal(database, LATER)
        assert_latency(database, window)
        roll_all(database, LATER)
        assert_requests(database, window, step)
        assert_latency(database, window)
        assert roll_all(database, LATER)[0].buckets == 0
