"""What a person says is no anomaly: every word narrows it, and what says nothing is refused where it is typed."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from analytics.anomalies.exclusions import Exclusion, parse
from analytics.anomalies.masks import at_times, of_series
from analytics.catalog import load
from store.errors import UsageError

SATURDAY = datetime(2026, 11, 28, tzinfo=UTC)


def taken(text: str, step: int = 300, days: int = 8, zone: str = "UTC", first: datetime = SATURDAY) -> list[str]:
    seconds = [int((first + timedelta(seconds=step * i)).timestamp()) for i in range(days * 86400 // step)]
    rows = pl.DataFrame({"s": seconds}).filter(at_times(parse(text), step, zone))
    return [f"{datetime.fromtimestamp(s, UTC):%a %H:%M}" for s in rows["s"]]


def test_words_are_name_labels_days_hours_and_an_end() -> None:
    made = parse("request rate service=chat-api model=m sat+sun 02:00..04:30 until 2027-01-01")
    assert (made.name, made.labels) == ("request rate", (("service", "chat-api"), ("model", "m")))
    assert (made.days, made.hours) == (frozenset({5, 6}), (120, 270))
    assert made.until == datetime(2027, 1, 1, tzinfo=UTC)
    assert parse("sat-mon 10:00..24:00").days == frozenset({5, 6, 0})
    assert parse("m") == Exclusion("m")
    assert parse("m").always


def test_a_weekly_hour_takes_the_steps_that_lie_in_it_in_part_or_whole() -> None:
    assert taken("sat 02:00..02:10") == ["Sat 02:00", "Sat 02:05"] * 2
    assert taken("sat 02:02..02:08") == ["Sat 02:00", "Sat 02:05"] * 2
    assert taken("sat 02:30..02:40", step=3600) == ["Sat 02:00"] * 2


def test_hours_over_midnight_belong_to_the_evening() -> None:
    assert taken("fri 23:55..00:05") == ["Sat 00:00", "Fri 23:55", "Sat 00:00"]


def test_hours_are_those_of_the_zone() -> None:
    assert taken("sat 02:00..02:05", zone="Asia/Kolkata") == ["Fri 20:30"]


def test_a_time_and_an_end_bound_it() -> None:
    assert taken("2026-11-28T01:00:00Z..2026-11-28T01:05:00Z") == ["Sat 01:00"]
    assert taken("daily 01:00..01:05 until 2026-11-30") == ["Sat 01:00", "Sun 01:00"]
    assert len(taken("weekends", step=3600)) == 24 * 3


def test_a_series_is_named_by_all_that_is_said_of_it() -> None:
    rows = pl.DataFrame({"name": ["m", "m", "n"], "labels": ['{"a": "1"}', '{"a": "2"}', '{"a": "1"}']})
    assert rows.select(of_series(parse("m a=1"))).to_series().to_list() == [True, False, False]
    assert rows.select(of_series(parse("a=1"))).to_series().to_list() == [True, False, True]


@pytest.mark.parametrize("text", ["until 2027-01-01", "sat 02:00..02:00", "m 25:00..26:00", "m until never", " "])
def test_what_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        load("anomalies").make_params({"exclude": [text]})
