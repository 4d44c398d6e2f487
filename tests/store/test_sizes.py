"""Sizes are read as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.errors import UsageError
from store.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GiB", 2 * 1024**3), ("500MB", 500_000_000), ("512M", 512 * 1024**2), ("1.5 GiB", 1610612736), ("4096", 4096)],
)
def test_a_size_is_read_with_its_unit(text: str, size: int):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "4 parsecs", "-1GiB", "0", "0.3", "1e9", "4GiBs", "٤GiB5"])
def test_what_is_no_size_is_refused_with_an_example(text: str):
    with pytest.raises(UsageError, match="is not a size") as caught:
        parse_size(text)
    assert "4GiB" in caught.value.hint


@given(st.integers(1, 2**60))
def test_bytes_are_read_as_they_are(size: int):
    assert parse_size(size) == size
    assert parse_size(f"{size}B") == size


@given(st.integers(1, 2**50))
def test_a_size_written_for_people_is_within_its_last_digit(size: int):
    written = format_size(size)
    if "bytes" not in written:
        assert abs(float(written.split()[0]) / (size / 1024 ** (" KMGT".index(written.split()[1][0]))) - 1) < 0.06
