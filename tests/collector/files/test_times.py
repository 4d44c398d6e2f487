"""Times: every form that logs write comes out as the same instant in UTC."""

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.files.times import Clock, read_times
from store.errors import UsageError


def at(*parts: int) -> datetime:
    """A naive UTC time, as frames hold them."""
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)  # type: ignore[arg-type,misc]


moments = st.datetimes(at(1974, 1, 1), at(2199, 1, 1))


def read(values: list[Any], **clock: Any) -> list[datetime | None]:
    return read_times(pl.Series("t", values), Clock(**clock)).ts.to_list()


@given(st.lists(moments, min_size=1, max_size=5), st.sampled_from(["T", " "]), st.integers(-840, 840))
def test_rfc_3339_in_any_zone_is_the_instant_it_names(times: list[datetime], between: str, minutes: int) -> None:
    sign = "-" if minutes < 0 else "+"
    zone = f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    local = [t + timedelta(minutes=minutes) for t in times]
    assert read([t.isoformat(between, "microseconds") + zone for t in local]) == times


@given(st.lists(moments, min_size=1, max_size=5))
def test_an_epoch_reads_the_same_in_every_unit(times: list[datetime]) -> None:
    micros = [round((t - at(1970, 1, 1)) / timedelta(microseconds=1)) for t in times]
    assert read([m * 1000 for m in micros], unit="ns") == times
    assert read(micros, unit="us") == times
    whole = [m // 1_000_000 for m in micros]
    seconds = [t.replace(microsecond=0) for t in times]
    assert read(whole, unit="s") == seconds
    assert read([w * 1000 for w in whole], unit="ms") == seconds


@given(moments, st.sampled_from([1, 1_000, 1_000_000, 1_000_000_000]))
def test_the_unit_of_an_epoch_is_guessed_from_its_size(moment: datetime, per_second: int) -> None:
    second = moment.replace(microsecond=0)
    assert read([round(second.replace(tzinfo=UTC).timestamp()) * per_second]) == [second]


def test_seven_digits_of_a_second_are_cut_to_microseconds() -> None:
    assert read(["2023-11-16 18:15:46.6805907"]) == [at(2023, 11, 16, 18, 15, 46, 680590)]


def test_a_time_without_a_zone_is_in_the_zone_given() -> None:
    assert read(["2023-07-01 12:00", "2023-12-01 12:00"], zone="Europe/Berlin") == [
        at(2023, 7, 1, 10),
        at(2023, 12, 1, 11),
    ]


def test_the_hour_that_the_clock_leaps_over_is_no_time_and_the_repeated_one_is_the_first() -> None:
    times = ["2023-03-26 02:30:00", "2023-10-29 02:30:00"]
    assert read(times, zone="Europe/Berlin") == [None, at(2023, 10, 29, 0, 30)]


def test_a_clock_from_zero_counts_from_its_start() -> None:
    assert read([0.0, 1.5], start=datetime(2026, 1, 1, tzinfo=UTC)) == [
        at(2026, 1, 1),
        at(2026, 1, 1, 0, 0, 1, 500_000),
    ]


def test_a_clock_from_an_unknown_zero_keeps_its_distances_and_says_so() -> None:
    times = read_times(pl.Series("t", [14592657.5, 14592658.0]), Clock())
    assert times.ts.diff()[1] == timedelta(milliseconds=500)
    assert "--start" in times.reading


def test_a_start_does_not_move_an_epoch() -> None:
    assert read([1796055484], start=datetime(2026, 1, 1, tzinfo=UTC)) == [at(2026, 11, 30, 16, 18, 4)]


def test_numbers_in_text_and_one_broken_value_among_them() -> None:
    assert read(["1796055484", "oops", None, "1796055485", "1796055486"]) == [
        *[at(2026, 11, 30, 16, 18, 4), None, None], at(2026, 11, 30, 16, 18, 5), at(2026, 11, 30, 16, 18, 6),
    ]  # fmt: skip


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.floats() | st.none(), min_size=1), st.sampled_from([None, "s", "ns"])
)
def test_no_number_is_too_odd_to_be_a_time_or_none(values: list[Any], unit: str | None) -> None:
    series = pl.Series("t", values, pl.Float64, strict=False)
    for found in read_times(series, Clock(unit)).ts:
        assert found is None or -8000 < found.year <= 9999


@given(st.lists(st.text(max_size=30) | st.none(), min_size=1))
def test_no_text_is_too_odd_to_be_a_time_or_none(values: list[str | None]) -> None:
    assert read_times(pl.Series("t", values, pl.String), Clock(zone="America/New_York")).ts.dtype == pl.Datetime("us")


def test_times_of_parquet_keep_their_zone() -> None:
    berlin = pl.Series("t", [at(2024, 1, 1)]).dt.replace_time_zone("Europe/Berlin")
    assert read_times(berlin, Clock()).ts.to_list() == [at(2023, 12, 31, 23)]


def test_a_unit_of_no_time_is_refused() -> None:
    with pytest.raises(UsageError, match="not measured in MiB"):
        read([1.0], unit="MiB")
