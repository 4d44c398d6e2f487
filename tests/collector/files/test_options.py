"""Options of an import: read strictly, with the nearest name where one is wrong."""

import pytest

from collector.files.options import FileKind, ImportOptions, kind_named, parse_pairs
from store.errors import UsageError


def test_pairs_come_in_one_text_or_several() -> None:
    assert parse_pairs("--map", ["a=b, c = d-e", "f="]) == {"a": "b", "c": "d-e", "f": ""}


def test_a_label_may_hold_commas_and_equal_signs() -> None:
    assert parse_pairs("--label", ["query=a=1,b"], comma=False) == {"query": "a=1,b"}


@pytest.mark.parametrize("text", ["a", "=b", "", "a=b,,c=d"])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no pair"):
        parse_pairs("--map", [text])


def test_a_field_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="gives a twice: 'b' and 'c'"):
        parse_pairs("--map", ["a=b", "a=c"])


def test_an_unknown_kind_names_the_nearest() -> None:
    assert kind_named("series") is FileKind.SERIES
    with pytest.raises(UsageError) as caught:
        kind_named("request")
    assert caught.value.hint == "did you mean requests?"


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", ""])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(UsageError, match="no time zone"):
        ImportOptions(time_zone=zone)


def test_an_unknown_unit_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="unknown unit 'parsec'"):
        ImportOptions(units={"ttft_s": "parsec"})
