"""What recurs does not page, is said with its rule, and is learnt from the past alone."""

from zoneinfo import ZoneInfo

import numpy as np
import pytest

from analytics.anomalies.learnt import learnt
from analytics.detect.episodes import Episode, find
from analytics.detect.novelty import Floats
from tests.analytics.anomalies.test_anomalies import noise, rolled, run

DAY, START = 288, 1764547200  # a Monday
UTC = ZoneInfo("UTC")


def nightly(days: int, grows: float, every: int = 1) -> tuple[Floats, np.ndarray]:
    """Noise around 100 with a batch at 02:00 each night (or each so many days) that is a little larger each time."""
    values = np.random.default_rng(0).gamma(25.0, 4.0, days * DAY)
    for k, day in enumerate(range(0, days, every)):
        values[day * DAY + 24 : day * DAY + 27] = 400 * grows**k
    return values, START + 300 * np.arange(len(values))


def at_night(values: Floats, seconds: np.ndarray) -> list[tuple[Episode, str | None]]:
    found = find(values[:, None], seconds)
    rules = learnt(values[:, None], seconds, found, UTC)
    return [(e, rules.get(i)) for i, e in enumerate(found) if e.first % DAY in range(23, 28) and e.kind == "value"]


def test_a_nightly_batch_that_grows_is_told_the_first_nights_and_learnt_then() -> None:
    found = at_night(*nightly(9, 1.05))
    assert [rule for e, rule in found if e.first < 3 * DAY] == [None] * len([e for e, _ in found if e.first < 3 * DAY])
    late = [rule for e, rule in found if e.first >= 4 * DAY]
    assert late
    assert all(rule and rule.startswith("02:00 UTC: so on ") for rule in late)


def test_a_night_twice_as_high_as_the_others_is_not_what_recurs() -> None:
    values, seconds = nightly(9, 1.0)
    values[8 * DAY + 24 : 8 * DAY + 27] = 900
    (last,) = [(e, rule) for e, rule in at_night(values, seconds) if e.first >= 8 * DAY]
    assert last[1] is None


def test_a_weekly_batch_is_learnt_by_its_day() -> None:
    found = at_night(*nightly(36, 1.05, every=7))
    rules = [rule for e, rule in found if e.first >= 27 * DAY]
    assert rules
    assert all(rule and rule.startswith("Monday 02:00 UTC: so on ") for rule in rules)


@pytest.mark.parametrize("seed", range(3))
def test_an_incident_in_noise_has_nothing_that_it_repeats(seed: int) -> None:
    values = np.random.default_rng(seed).gamma(25.0, 4.0, 8 * DAY)
    values[7 * DAY + 100 : 7 * DAY + 104] = 600
    found = find(values[:, None], START + 300 * np.arange(len(values)))
    rules = learnt(values[:, None], START + 300 * np.arange(len(values)), found, UTC)
    assert all(found[i].first != 7 * DAY + 100 for i in rules)


def test_what_is_learnt_is_said_in_coverage_and_notes_and_does_not_page() -> None:
    values = noise(0)
    for night in range(7):
        values[night * DAY + 24 : night * DAY + 27] = 400 * 1.05**night
    result = run(rolled("batch", values, 1))
    rows = result.frames["anomalies"]
    usual = rows.filter(rows["level"] == "usual")
    assert usual.height >= 1
    assert "it recurs, 02:00 UTC" in usual["reason"][0]
    assert "02:00 UTC: so on" in result.frames["coverage"]["learnt"][0]
    assert any("recur at the same hour" in note for note in result.notes)
    assert all(f.since.day < 28 for f in result.findings)
