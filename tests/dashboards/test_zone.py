"""Pages show times of the report zone and name it; nothing else about a page changes."""

import re
from zoneinfo import ZoneInfo

import pytest

from dashboards import latency, overview
from dashboards.source import Answers
from dashboards.state import State
from dashboards.theme import Colours
from store.zone import zone
from tests.dashboards.reading import figures, text
from tests.dashboards.samples import FakeSource, overview_result, p99_result

ANSWERS = Answers(results={"overview": overview_result(), "p99": p99_result()}, status=FakeSource().status())
SHANGHAI = State(zone=zone("Asia/Shanghai"))


@pytest.mark.parametrize("body", [overview.headline, overview.services, overview.store, latency.body])
def test_a_page_names_its_zone_and_no_other(body):
    here, there = (text(body(ANSWERS, state, Colours())) for state in (State(), SHANGHAI))
    assert "UTC" in here
    assert "Asia/Shanghai" in there
    assert "UTC" not in there
    clock = r"\b\d\d:\d\d\b"
    assert re.findall(clock, here) != re.findall(clock, there) or not re.findall(clock, here)


def test_the_same_figures_stand_on_the_page():
    for body in (overview.services, latency.body):
        assert figures(body(ANSWERS, SHANGHAI, Colours())) == figures(body(ANSWERS, State(), Colours()))


def test_the_url_has_no_zone_and_its_times_stay_utc():
    range_utc = "?range=2026-10-25T00:00:00Z..2026-10-26T00:00:00Z"
    state = State.parse("/latency", range_utc, zone=ZoneInfo("Asia/Shanghai"))
    assert state.search == range_utc
    assert state.href().endswith(range_utc)
