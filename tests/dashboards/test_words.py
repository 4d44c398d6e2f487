"""Numbers and times as words."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards import words


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.412, "412 ms"), (0.0000123, "12.3 µs"), (1.234, "1.23 s"), (125, "2 min 5 s"), (0, "0 s"), (None, "–")],
)
def test_seconds_take_the_unit_that_fits(value: float | None, text: str) -> None:
    assert words.seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.68, "68 %"), (0.0021, "0.21 %"), (1.0, "100 %"), (float("nan"), "–")])
def test_ratios_are_percentages_and_nan_is_missing(value: float, text: str) -> None:
    assert words.ratio(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(3 * 2**30, "bytes", "3 GiB"), (0.3, "USD", "0.30 USD"), (4096, "tokens", "4,096 tokens"), (1.2e7, "", "12 M")],
)
def test_quantities_carry_their_unit(value: float, unit: str, text: str) -> None:
    assert words.quantity(value, unit) == text


def test_counters_above_2_to_the_53_keep_all_digits() -> None:
    assert words.count(9_007_199_254_740_993) == "9,007,199,254,740,993"


def test_a_time_shows_its_date_only_on_another_day() -> None:
    at, other = datetime(2026, 11, 30, 14, 5, tzinfo=UTC), datetime(2026, 11, 29, 1, 0, tzinfo=UTC)
    assert words.moment(at, at) == "14:05"
    assert words.moment(at, other) == "30 Nov 14:05"


def test_a_time_with_another_zone_is_shown_in_utc() -> None:
    assert words.instant(datetime.fromisoformat("2026-10-26T00:30:00+08:00")) == "2026-10-25 16:30:00.000"


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_no_number_has_a_raw_tail_or_an_exponent(value: float) -> None:
    for text in (words.number(value), words.seconds(value), words.ratio(value)):
        assert "e" not in text
        assert len(text) <= 20


@given(st.timedeltas(min_value=timedelta(), max_value=timedelta(days=3650)))
def test_a_length_of_time_has_at_most_two_units(length: timedelta) -> None:
    assert 2 <= len(words.span(length).split()) <= 4


def test_what_is_next_to_nothing_is_not_spelt_out() -> None:
    assert [words.number(value) for value in (3e-15, -3e-15, 0.0)] == ["< 0.000001", "> -0.000001", "0"]
