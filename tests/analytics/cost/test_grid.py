"""Lines become a matrix that loses no cent and no hour, whatever the zone."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.cost.grid import USAGE, Grid, grid, grouped
from store.window import Window
from tests.analytics.cost.asked import START, hours

KEYS = ("service", "currency", "basis")


def laid(lines: pl.DataFrame, zone: str = "UTC", empty: str = "auto") -> Grid:
    made = grouped(lines.with_columns(basis=pl.lit("billed")), KEYS)
    window = Window(START.replace(tzinfo=UTC), (START + timedelta(days=400)).replace(tzinfo=UTC))
    return grid(made, USAGE, made.groups, "hour", zone, window, empty)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.sampled_from("abc"), st.decimals(0, 1000, places=2)), min_size=1))
def test_every_line_is_in_its_cell(rows: list[tuple[int, str, Decimal]]) -> None:
    lines = pl.concat(hours({name: [None] * hour + [float(cost)]}) for hour, name, cost in rows)
    made = laid(lines)
    for series, key in enumerate(made.keys):
        for row, start in enumerate(made.starts):
            hour = int((start - START) / timedelta(hours=1))
            wanted = [float(cost) for at, name, cost in rows if at == hour and name == key["service"]]
            found = made.values[row, series]
            known = any(at == hour for at, _, _ in rows)
            assert (found == pytest.approx(sum(wanted))) if known else np.isnan(found)


def test_empty_hours_are_zero_missing_or_as_the_bill_has_them() -> None:
    lines = hours({"a": [1.0, None, 3.0, None, 5.0], "b": [1.0, 2.0, None, None, 5.0]})
    assert laid(lines).values[:, 0].tolist()[:3] == [1.0, 0.0, 3.0]
    assert np.isnan(laid(lines).values[3]).all()
    assert np.isnan(laid(lines, empty="skip").values[1, 0])
    assert laid(lines, empty="zero").values[3].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("zone", "day", "count"), [("Europe/Berlin", 20, 25), ("UTC", 20, 24), ("Asia/Kolkata", 20, 24)]
)
def test_days_have_the_hours_of_their_zone(zone: str, day: int, count: int) -> None:
    made = laid(hours({"a": [1.0] * 24 * 30}), zone)
    lengths = {index: part.stop - part.start for index, part in made.calendar.rows()}
    assert lengths[day] == count
    assert sum(lengths.values()) == 24 * 30
    assert made.calendar.slot.max() == 23


def test_groups_are_numbered_without_gaps_and_keep_what_is_null() -> None:
    lines = pl.concat([hours({"b": [1.0]}), hours({"a": [1.0]}), hours({"a": [1.0]}, currency=None)])
    made = grouped(lines.with_columns(basis=pl.lit("billed")), KEYS)
    assert sorted(made.frame["group"].unique()) == [0, 1, 2]
    assert made.of({"service": "a", "currency": None}, ("service", "currency")).height == 1
    back = made.frame.join(made.groups, on="group", suffix="_of")
    assert back["service"].equals(back["service_of"].alias("service"))
    assert datetime(2026, 10, 5) == START
