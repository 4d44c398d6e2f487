"""Days and hours of a zone, and times read and written there."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import UsageError
from store.window import Window, parse_time
from store.zone import DEFAULT, bucket_of, day_start, days, hours, local_text, local_time, utc_window, zone

ZONES = (
    "UTC", "Europe/Berlin", "Asia/Shanghai", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe",
    "Pacific/Apia", "Africa/Cairo", "America/Havana",
)  # fmt: skip
TIMES = st.datetimes(datetime(2005, 1, 1), datetime(2030, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))


def local_day(text: str, name: str) -> Window:
    start, end = utc_window(text, zone(name)).split("..")
    return Window(parse_time(start), parse_time(end))


@pytest.mark.parametrize(
    ("day", "name", "count"),
    [("2026-10-25..2026-10-26", "Europe/Berlin", 25), ("2026-03-29..2026-03-30", "Europe/Berlin", 23),
     ("2026-11-01..2026-11-02", "America/New_York", 25), ("2026-10-25..2026-10-26", "Asia/Shanghai", 24)],
)  # fmt: skip
def test_a_day_has_the_hours_of_its_place(day: str, name: str, count: int):
    window = local_day(day, name)
    assert window.span == timedelta(hours=count)
    assert days(window, zone(name)) == [window.start, window.end]
    assert len(hours(window, zone(name))) == count + 1


@given(start=TIMES, span=st.timedeltas(timedelta(seconds=1), timedelta(days=40)), name=st.sampled_from(ZONES))
def test_days_cover_the_window_and_every_instant_has_the_date_of_its_bucket(
    start: datetime, span: timedelta, name: str
):
    window, where = Window(start, start + span), zone(name)
    bounds = days(window, where)
    assert bounds[0] <= window.start < bounds[1]
    assert bounds[-2] < window.end <= bounds[-1]
    for low, high in pairwise(bounds):
        dates = {at.astimezone(where).date() for at in (low, low + (high - low) / 2, high - timedelta(microseconds=1))}
        assert len(dates) == 1
        assert (low - timedelta(microseconds=1)).astimezone(where).date() not in dates
    assert set(bounds) >= {at for at in hours(window, where) if bounds[0] < at < bounds[-1]} & set(bounds)


def test_a_day_that_a_place_skipped_is_no_bucket():
    window = Window(datetime(2011, 12, 29, 10, tzinfo=UTC), datetime(2011, 12, 31, 10, tzinfo=UTC))
    local = [at.astimezone(zone("Pacific/Apia")).date() for at in days(window, zone("Pacific/Apia"))]
    assert date(2011, 12, 30) not in local
    assert len(local) == len(set(local))


def test_rows_outside_the_bounds_have_no_bucket():
    bounds = [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)]
    frame = pl.DataFrame({"ts": [datetime(2025, 12, 31), datetime(2026, 1, 1, 5), datetime(2026, 1, 2), None]})
    assert frame.select(bucket_of("ts", bounds)).to_series().to_list() == [None, datetime(2026, 1, 1), None, None]


def test_times_are_written_with_the_offset_of_the_place():
    berlin = zone("Europe/Berlin")
    assert local_time(datetime(2026, 10, 25, 0, 30), berlin) == "2026-10-25T02:30:00+02:00"
    assert local_time(datetime(2026, 10, 25, 1, 30), berlin) == "2026-10-25T02:30:00+01:00"
    assert local_time(datetime(2026, 10, 25, 1, 30), DEFAULT) == "2026-10-25T01:30:00Z"
    assert local_text("since 2026-10-25T01:30:00.5Z; x", berlin) == "since 2026-10-25T02:30:00.500000+01:00; x"


@given(at=TIMES, name=st.sampled_from(ZONES))
def test_a_time_written_in_a_zone_is_the_same_instant(at: datetime, name: str):
    assert parse_time(local_time(at, zone(name))) == at


def test_a_time_with_an_offset_and_a_duration_stay_what_they_are():
    shanghai = zone("Asia/Shanghai")
    assert utc_window("24h", shanghai) == "24h"
    assert utc_window("2026-10-26T00:30:00+08:00..2026-10-27", shanghai) == "2026-10-25T16:30:00Z..2026-10-26T16:00:00Z"
    assert day_start(date(2026, 10, 26), shanghai) == datetime(2026, 10, 25, 16, tzinfo=UTC)


@pytest.mark.parametrize("name", ["Europe/Berln", "Europe", "../UTC", ""])
def test_an_unknown_zone_is_refused(name: str):
    with pytest.raises(UsageError, match="no time zone"):
        zone(name)


def test_the_nearest_zone_is_named():
    with pytest.raises(UsageError) as told:
        zone("Europe/Berln")
    assert "Europe/Berlin" in told.value.hint
