"""Windows of time are read and written exactly."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import UsageError
from store.window import Window, format_duration, format_time, parse_duration, parse_time

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@given(st.integers(1, 10**10))
def test_a_duration_survives_writing_and_reading(milliseconds: int):
    span = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(span)) == span


@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_a_time_survives_writing_and_reading(at: datetime):
    assert parse_time(format_time(at)) == at


def test_a_time_with_an_offset_becomes_utc():
    assert format_time(parse_time("2026-11-30T14:00:00+02:00")) == "2026-11-30T12:00:00Z"


def test_a_time_without_a_zone_is_utc():
    assert parse_time("2026-11-30") == datetime(2026, 11, 30, tzinfo=UTC)


def test_a_duration_counts_back_from_now():
    assert Window.parse("1h30m", NOW) == Window(NOW - timedelta(minutes=90), NOW)


def test_two_dates_make_a_window():
    assert str(Window.parse("2026-11-01..2026-11-08", NOW)) == "2026-11-01T00:00:00Z..2026-11-08T00:00:00Z"


@pytest.mark.parametrize("text", ["", "5", "h", "1x", "1h 2", "2026-11-08..2026-11-01", "a..b", "1h..2h"])
def test_what_is_no_window_is_refused_with_a_hint(text: str):
    with pytest.raises(UsageError) as caught:
        Window.parse(text, NOW)
    assert caught.value.hint
