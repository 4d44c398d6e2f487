"""Down-sampling, gaps and typed arrays."""

from base64 import b64decode
from datetime import datetime

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dashboards import arrays

values = hnp.arrays(np.float64, st.integers(1, 9000), elements=st.floats(-1e9, 1e9) | st.just(float("nan")))


@given(values)
def test_thinning_keeps_the_extremes_the_ends_and_the_order(y: np.ndarray) -> None:
    x = np.arange(y.size, dtype=np.float64)
    kept_x, kept_y = arrays.thinned(x, y)
    assert kept_x.size <= max(arrays.POINTS, 0)
    assert (np.diff(kept_x) > 0).all()
    assert kept_x[0] == x[0]
    assert kept_x[-1] == x[-1]
    np.testing.assert_array_equal(kept_y, y[kept_x.astype(int)])
    if np.isfinite(y).any():
        assert np.nanmin(kept_y) == np.nanmin(y)
        assert np.nanmax(kept_y) == np.nanmax(y)


def test_one_spike_in_seven_days_of_samples_stays_visible() -> None:
    y = np.full(7 * 24 * 240, 70.0)
    y[23456] = 999.0
    assert 999.0 in arrays.thinned(np.arange(y.size, dtype=np.float64), y)[1]


def test_a_line_is_broken_where_points_are_missing() -> None:
    x, y = arrays.broken(np.array([0.0, 1, 2, 6, 7]), np.ones(5))
    assert np.isnan(y[x == 3]).all()
    assert np.isnan(y).sum() == 1


def test_gaps_name_the_missing_stretches_at_both_ends_too() -> None:
    assert arrays.gaps(np.arange(10.0, 20.0), 0, 40) == [(0, 10), (20, 40)]
    assert arrays.gaps(np.arange(0.0, 40.0), 0, 40) == []


def test_null_and_nan_are_gaps_and_never_zero() -> None:
    assert np.isnan(arrays.floats(pl.Series([None, float("nan")], dtype=pl.Float64))).all()


def test_times_become_utc_milliseconds_whatever_the_zone_of_the_machine() -> None:
    ms = arrays.epoch_ms(pl.Series([datetime(2026, 11, 30)], dtype=pl.Datetime("us")))
    assert ms.tolist() == [1795996800000.0]


@given(hnp.arrays(np.float64, st.integers(0, 50)))
def test_typed_arrays_decode_to_the_same_bytes(y: np.ndarray) -> None:
    np.testing.assert_array_equal(np.frombuffer(b64decode(arrays.typed(y)["bdata"]), "<f8"), y)
