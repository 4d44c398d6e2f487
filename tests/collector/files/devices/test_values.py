"""Values and times as the tools print them."""

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.files.devices.moments import read_moment
from collector.files.devices.quantity import is_lost, is_missing, quantity
from collector.presets.identifiers import pci_bus_id

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("250.00 W", "W", 250.0), ("16384 MiB", "MiB", 2**34), ("1410 MHz", "MHz", 1.41e9), ("45 C", "C", 45.0),
        ("97", "%", 0.97), ("97 %", "%", 0.97), ("612,34 W", "W", 612.34), ("1.612,5 W", "W", 1612.5),
        ("0x0000000000000044", "", 68.0), ("16x", "", 16.0), ("359 KB/s", "KB/s", 359e3), ("-8 C", "C", -8.0),
        ("26.562 GB/s", "GB/s", 26.562e9), ("1500 us", "us", 0.0015), ("3072 bank(s)", "", 3072.0),
        ("100.00%", "%", 1.0), ("2 GiB", "MiB", 2**31),
    ],
)  # fmt: skip
def test_a_value_with_its_unit_is_converted_to_the_base_unit(text: str, unit: str, value: float) -> None:
    assert quantity(text, unit) == pytest.approx(value)


@pytest.mark.parametrize(
    "text",
    ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU is lost]", "-", "", "ERR!",
     "Requested functionality has been deprecated", "[Requested functionality has been deprecated]"],
)  # fmt: skip
def test_a_token_that_says_there_is_no_value_is_no_number(text: str) -> None:
    assert is_missing(text)
    assert math.isnan(quantity(text, "W"))


def test_only_one_token_says_that_a_gpu_is_lost() -> None:
    assert is_lost("[GPU is lost]")
    assert not is_lost("[Unknown Error]")


@pytest.mark.parametrize(
    ("text", "unit"), [("250 W", "MiB"), ("fast", "W"), ("12 furlongs", "W"), ("1 2", "W"), ("9" * 400, "W")]
)
def test_a_text_that_is_no_such_value_is_refused(text: str, unit: str) -> None:
    with pytest.raises(ValueError, match=r"unit|number"):
        quantity(text, unit)


@given(st.integers(0, 10**9))
def test_point_and_comma_are_the_same_number(cents: int) -> None:
    whole, part = divmod(cents, 100)
    assert quantity(f"{whole}.{part:02} W", "W") == quantity(f"{whole},{part:02} W", "W") == pytest.approx(cents / 100)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Tue Jul 14 09:00:27 2026", datetime(2026, 7, 14, 7, 0, 27, tzinfo=UTC)),
        ("2026/07/14 09:00:27.792", datetime(2026, 7, 14, 7, 0, 27, 792_000, tzinfo=UTC)),
        ("20260714 09:00:27", datetime(2026, 7, 14, 7, 0, 27, tzinfo=UTC)),
        ("Feb 25 2025 13:59:45", datetime(2025, 2, 25, 12, 59, 45, tzinfo=UTC)),
        ("2025-02-23T16:24:18,123456+00:00", datetime(2025, 2, 23, 16, 24, 18, 123_456, tzinfo=UTC)),
        ("2025-02-23T16:24:18-0500", datetime(2025, 2, 23, 21, 24, 18, tzinfo=UTC)),
        ("2026-07-14T09:00:26Z", datetime(2026, 7, 14, 9, 0, 26, tzinfo=UTC)),
        ("Sun Oct 25 02:30:00 2026", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
    ],
)
def test_times_are_read_in_their_zone_else_in_the_stated_one(text: str, moment: datetime) -> None:
    assert read_moment(text, BERLIN) == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize("text", ["", "N/A", "Tue Foo 14 09:00:27 2026", "2026/02/30 10:00:00", "Jul 14 09:00:27", "9"])
def test_what_states_no_time_gives_none(text: str) -> None:
    assert read_moment(text, BERLIN) is None


def test_a_time_without_a_year_is_the_latest_one_before_the_log_was_taken() -> None:
    before = datetime(2027, 1, 2, tzinfo=UTC)
    december, january = (read_moment(text, ZoneInfo("UTC"), before) for text in ("Dec 31 23:00:00", "Jan  1 01:00:00"))
    assert december == datetime(2026, 12, 31, 23, tzinfo=UTC).timestamp() * 1e6
    assert january == datetime(2027, 1, 1, 1, tzinfo=UTC).timestamp() * 1e6


@pytest.mark.parametrize("text", ["00000000:9B:00.0", "0000:9b:00", "0000:9B:00.0", "9b:00.0"])
def test_a_pci_address_has_one_spelling(text: str) -> None:
    assert pci_bus_id(text) == "0000:9b:00.0"
