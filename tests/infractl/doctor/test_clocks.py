"""A clock's skew is told where the Date header proves it, and not where its second or a slow page explain it."""

from dataclasses import replace
from email.utils import formatdate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.prometheus.skew import clock_skew_s
from infractl.doctor import clocks
from infractl.doctor.facts import nothing
from tests.infractl.doctor.examined import NOW

NOTHING = nothing(NOW)


def told(skew_s: float | None, duration_s: float | None = 0.1) -> list[str]:
    target = {"job": "v", "instance": "a:1", "url": "", "clock_skew_s": skew_s, "duration_s": duration_s}
    return [advice.fact for advice in clocks.check(replace(NOTHING, targets=[target]))]


@pytest.mark.parametrize(
    ("skew_s", "duration_s", "fact"),
    [
        (None, 0.1, None),
        (2.0, 0.0, None),
        (2.2, 0.1, "its clock is 2 s ahead of this machine's"),
        (-2.2, 0.1, "its clock is 2 s behind this machine's"),
        (5.0, 8.0, None),
        (6.5, 8.0, "its clock is 6 s ahead of this machine's"),
        (3.0, None, "its clock is 3 s ahead of this machine's"),
    ],
)
def test_a_skew_is_told_from_two_seconds_and_half_the_scrape_on(
    skew_s: float | None, duration_s: float | None, fact: str | None
) -> None:
    assert told(skew_s, duration_s) == ([fact] if fact else [])


@settings(deadline=None, max_examples=40)
@given(st.floats(0, 1), st.floats(0, 60), st.floats(0, 1))
def test_a_clock_that_is_right_is_never_told(fraction: float, taken_s: float, when: float) -> None:
    asked = 1_796_040_000.0 + fraction
    date = formatdate(int(asked + when * taken_s), usegmt=True)
    assert told(clock_skew_s({"date": date}, asked, asked + taken_s), taken_s) == []
