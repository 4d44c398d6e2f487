"""Ticks of a time axis on the clock of a zone."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.drawing import line, time_axis
from dashboards.theme import named
from dashboards.ticks import MOST, moments, ticks
from store.window import Window
from store.zone import zone

BERLIN = zone("Europe/Berlin")
AUTUMN = Window(datetime(2026, 10, 24, 23, tzinfo=UTC), datetime(2026, 10, 25, 3, tzinfo=UTC))


def test_the_hour_shown_twice_stands_there_twice():
    _, texts = ticks(AUTUMN, BERLIN)
    assert texts[0] == "01:00<br>25 Oct"
    assert texts.count("02:00") == 2


@given(
    start=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),
    span=st.timedeltas(timedelta(seconds=10), timedelta(days=400)),
)
def test_ticks_lie_within_the_axis_and_do_not_crowd(start: datetime, span: timedelta):
    window = Window(start, start + span)
    values, texts = ticks(window, BERLIN)
    assert len(values) == len(texts) <= MOST + 2
    assert values == sorted(set(values))
    assert all(window.start.timestamp() * 1000 <= value <= window.end.timestamp() * 1000 for value in values)


@pytest.mark.parametrize("name", ["UTC", "Asia/Shanghai"])
def test_the_axis_names_its_zone(name: str):
    axis = time_axis(named("dark"), AUTUMN, np.array([]), zone(name))
    assert axis["title"]["text"] == f"time ({name})"
    assert ("ticktext" in axis) is (name != "UTC")


def test_a_hover_names_the_local_time_with_its_offset():
    at = datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp() * 1000
    assert moments([at, at + 3_600_000, float("nan")], BERLIN) == ["02:30:00 +0200", "02:30:00 +0100", ""]
    drawn = line(np.array([at]), np.array([1.0]), "P99", "red", "%{y} s", BERLIN)
    assert drawn["customdata"] == ["02:30:00 +0200"]
    assert "%{customdata}" in drawn["hovertemplate"]
