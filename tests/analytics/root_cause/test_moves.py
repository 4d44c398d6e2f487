"""What else moved: shifts, ends and beginnings of series are found, in order, and usual noise is not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.root_cause import moved, scores
from store.window import Window
from tests.analytics.frames_of import times

CALM, MINUTES = 240, 300
START = datetime(2026, 11, 30, 12, tzinfo=UTC)
BEFORE = Window(START, START + timedelta(minutes=CALM))
INCIDENT = Window(BEFORE.end, START + timedelta(minutes=MINUTES))


def noise(seed: int) -> Any:
    return np.random.default_rng(seed).normal(10, 1, MINUTES)


def frame(**series: Any) -> pl.DataFrame:
    """One series an argument, a value a minute; missing ones are NaN."""
    ts = times(np.arange(MINUTES) * 60.0)
    parts = [pl.DataFrame({"ts": ts, "entity": name, "name": "load", "value": v}) for name, v in series.items()]
    return pl.concat(parts).select("ts", "entity", "name", "value")


def test_series_that_moved_come_first_with_their_way_and_time() -> None:
    up, down, early = noise(1), noise(2), noise(3)
    up[CALM:] += 20
    down[CALM + 10 :] -= 8
    early[CALM - 5 :] += 12
    found = moved(frame(up=up, down=down, early=early, calm=noise(4)), INCIDENT, BEFORE, 10)
    assert found["entity"].to_list() == ["up", "early", "down"]
    assert found["direction"].to_list() == ["up", "up", "down"]
    assert found["lag_s"].to_list() == [0.0, -300.0, 600.0]
    assert found["since"][1] == (INCIDENT.start - timedelta(minutes=5)).replace(tzinfo=None)
    assert abs(found["before"][0] - 10) < 0.5
    assert abs(found["during"][0] - 30) < 0.5


def test_noise_alone_is_not_listed_whatever_its_tail() -> None:
    rng = np.random.default_rng(0)
    every = {f"s{i}": noise(i) for i in range(100)} | {f"heavy{i}": rng.lognormal(0, 1, MINUTES) for i in range(100)}
    assert moved(frame(**every), INCIDENT, BEFORE, 10).height == 0


def test_a_series_that_ends_and_one_that_begins_are_listed() -> None:
    gone, begun = noise(1), noise(2)
    gone[CALM:] = np.nan
    begun[: CALM + 20] = np.nan
    found = {row["entity"]: row for row in moved(frame(gone=gone, begun=begun), INCIDENT, BEFORE, 10).to_dicts()}
    assert found["gone"]["direction"] == "gone"
    assert found["gone"]["during"] is None
    assert found["begun"]["direction"] == "appeared"
    assert found["begun"]["before"] is None
    assert found["begun"]["lag_s"] == 1200.0


def test_a_counter_of_errors_that_was_always_zero_is_listed() -> None:
    errors = np.zeros(MINUTES)
    errors[CALM + 5 :] = 3
    (row,) = moved(frame(errors=errors, flat=np.full(MINUTES, 7.0)), INCIDENT, BEFORE, 10).to_dicts()
    assert (row["entity"], row["direction"], row["during"], row["lag_s"]) == ("errors", "up", 3.0, 300.0)


def test_one_stray_point_of_many_is_no_incident_but_one_of_few_is() -> None:
    spike = noise(1)
    spike[CALM + 30] = 100
    assert moved(frame(spike=spike), INCIDENT, BEFORE, 10).height == 0
    short = Window(INCIDENT.start + timedelta(minutes=28), INCIDENT.start + timedelta(minutes=33))
    assert moved(frame(spike=spike), short, BEFORE, 10)["during"].to_list() == [100.0]


def test_a_window_that_is_detected_late_still_finds_what_moved() -> None:
    shifted = noise(1)
    shifted[CALM - 48 :] += 15  # a fifth of the calm time is not calm
    assert moved(frame(shifted=shifted), INCIDENT, BEFORE, 10)["score"][0] > 3


def test_a_series_that_hardly_ever_left_zero_and_now_stays_above_is_listed() -> None:
    errors = np.zeros(MINUTES)
    errors[::40] = 1
    usual = errors.copy()
    errors[CALM:] = 1
    assert moved(frame(errors=errors, usual=usual), INCIDENT, BEFORE, 10)["entity"].to_list() == ["errors"]


def test_too_little_before_gives_no_score() -> None:
    late = noise(1)
    late[: CALM - 2] = np.nan
    (row,) = scores(frame(late=late), INCIDENT, BEFORE).to_dicts()
    assert row["score"] is None
    assert row["direction"] is None


def test_an_empty_frame_gives_an_empty_answer() -> None:
    found = moved(frame(a=noise(1)).clear(), INCIDENT, BEFORE, 10)
    assert found.height == 0
    columns = ["entity", "name", "score", "direction", "before", "during", "since", "lag_s"]
    assert found.columns == columns


@settings(max_examples=25, deadline=None)
@given(scale=st.floats(1e-6, 1e6), seed=st.integers(0, 1000), shift=st.floats(-50, 50))
def test_scores_do_not_depend_on_the_unit_and_turn_with_the_sign(scale: float, seed: int, shift: float) -> None:
    values = noise(seed)
    values[CALM:] += shift
    (one,) = scores(frame(a=values), INCIDENT, BEFORE).to_dicts()
    (scaled,) = scores(frame(a=values * scale), INCIDENT, BEFORE).to_dicts()
    (turned,) = scores(frame(a=-values), INCIDENT, BEFORE).to_dicts()
    assert np.isclose(one["score"], scaled["score"])
    assert np.isclose(one["score"], turned["score"])
    assert {one["direction"], turned["direction"]} == {"up", "down"}
