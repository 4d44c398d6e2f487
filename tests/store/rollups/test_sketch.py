"""Quantiles of a log-bucket histogram are within 1 % of the exact ones, in every language it is written in."""

import math
from collections import Counter

import duckdb
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from store.rollups import sketch

VALUES = st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=60)
ROUNDING = 1 + 1e-9


def exact(values: list[float], q: float) -> float:
    text = f"SELECT quantile_disc(v, {q}) FROM (SELECT unnest(?::DOUBLE[]) AS v)"
    return duckdb.execute(text, [values]).fetchone()[0]


@given(VALUES, st.sampled_from([0.01, 0.07, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0]))
def test_a_quantile_is_within_one_percent_of_the_exact_one(values: list[float], q: float):
    found = sketch.quantile(Counter(map(sketch.index, values)), q)
    assert abs(found - exact(values, q)) <= sketch.ERROR * exact(values, q) * ROUNDING


@given(VALUES, VALUES, VALUES)
def test_histograms_merge_in_any_order(a: list[float], b: list[float], c: list[float]):
    first, second, third = (Counter(map(sketch.index, values)) for values in (a, b, c))
    assert (first + second) + third == third + (second + first) == Counter(map(sketch.index, a + b + c))


@given(VALUES)
def test_sql_and_polars_give_the_buckets_that_python_gives(values: list[float]):
    given_zero = [*values, 0.0, -1.0]
    expected = [sketch.index(value) for value in given_zero]
    rows = duckdb.execute(f"SELECT {sketch.index_sql('v')} FROM (SELECT unnest(?::DOUBLE[]) AS v)", [given_zero])
    assert [row[0] for row in rows.fetchall()] == expected
    assert pl.DataFrame({"v": given_zero}).select(sketch.index_expr(pl.col("v")))["v"].to_list() == expected


@given(st.one_of(st.none(), st.integers(-900, 900)), st.sampled_from([0.07, 0.5, 0.999]), st.integers(1, 10**6))
def test_sql_estimates_and_ranks_as_python_does(bucket: int | None, q: float, n: int):
    text = f"SELECT {sketch.estimate_sql('i')}, {sketch.rank_sql(q, 'n')} FROM (SELECT ?::BIGINT AS i, ?::BIGINT AS n)"
    value, rank = duckdb.execute(text, [bucket, n]).fetchone()
    assert math.isclose(value, sketch.estimate(bucket), rel_tol=1e-12)
    assert rank == sketch.rank(q, n)


def test_the_seventh_of_a_hundred_is_the_seven_percent_quantile():
    assert sketch.rank(0.07, 100) == 7  # in binary 0.07 * 100 is more than 7
    assert sketch.rank(0.0, 10) == 1


def test_values_at_or_under_zero_count_below_all_others():
    counts = Counter(map(sketch.index, [0.0, -2.0, 5.0]))
    assert sketch.quantile(counts, 0.5) == 0.0
    assert abs(sketch.quantile(counts, 0.99) - 5.0) <= 0.05
    assert sketch.quantile({}, 0.5) is None
