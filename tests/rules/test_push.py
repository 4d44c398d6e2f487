"""Findings arrive at Alertmanager, and a bad one takes no other with it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.result import Finding, Severity
from rules.alert import RuleOptions
from rules.alertmanager import NotifyOptions, alertmanager_config
from rules.build import to_yaml
from rules.push import PATH, AlertPost, alerts, deliver
from store.zone import zone
from tests.rules.conftest import TRIGGERS, make_analysis, make_result
from tests.rules.servers import ALERTMANAGER, alertmanager

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DOWN = Finding(
    "TargetDown", Severity.CRITICAL, {"target": "gpu-1"}, 0.0, (1, 1), NOW - timedelta(hours=1), "it is down"
)
ANALYSIS = make_analysis("overview", TRIGGERS)


def test_a_finding_becomes_an_alert_that_outlives_some_missed_pushes() -> None:
    alert, switch = alerts([(ANALYSIS, make_result({}, (DOWN,)))], RuleOptions(labels={"team": "x"}), NOW)
    assert alert == {
        "labels": {
            "target": "gpu-1",
            "team": "x",
            "alertname": "TargetDown",
            "severity": "critical",
            "analysis": "overview",
        },
        "annotations": {
            "summary": "it is down",
            "description": "Value 0, expected 1. Ask why with: infractl analyze overview",
            "dashboard_url": "http://127.0.0.1:8050/",
            "runbook_url": "http://127.0.0.1:8050/runbooks/target-down",
        },
        "startsAt": "2026-11-30T11:00:00Z",
        "endsAt": "2026-11-30T12:15:00Z",
    }
    assert switch["labels"]["alertname"] == "InfractlDeadMansSwitch"


def test_a_finding_that_has_ended_resolves_at_its_end() -> None:
    ended = replace(DOWN, until=NOW - timedelta(minutes=5))
    alert, _ = alerts([(ANALYSIS, make_result({}, (ended,)))], RuleOptions(), NOW)
    assert alert["endsAt"] == "2026-11-30T11:55:00Z"


@given(st.sets(st.integers(0, 40)), st.integers(0, 40))
def test_only_the_bad_alerts_are_refused(bad: set[int], count: int) -> None:
    taken: list[int] = []

    def send(posts: Sequence[AlertPost]) -> str | None:
        numbers = [post["number"] for post in posts]
        if bad & set(numbers):
            return "400"
        taken.extend(numbers)
        return None

    refused = deliver([{"number": n} for n in range(count)], send)
    assert {post["number"] for post, _ in refused} == bad & set(range(count))
    assert sorted(taken) == sorted(set(range(count)) - bad)


@pytest.mark.skipif(ALERTMANAGER is None, reason="apt install prometheus-alertmanager")
def test_alertmanager_takes_labels_made_from_span_attributes_and_all_but_the_bad_alert(
    shared: Path, tmp_path: Path
) -> None:
    case = shared / "cases" / "70-dotted-and-invalid-alert-labels"
    labels = json.loads((case / "attributes.json").read_text())
    now = datetime.now(UTC)
    dotted = replace(DOWN, labels=labels, since=now)
    made = alerts([(ANALYSIS, make_result({}, (dotted, DOWN)))], RuleOptions(), now)
    bad = {**made[0], "labels": {"not a name": "x"}}
    (tmp_path / "am.yml").write_text(to_yaml(alertmanager_config(NotifyOptions())))
    with alertmanager(tmp_path, tmp_path / "am.yml") as url:

        def send(posts: Sequence[AlertPost]) -> str | None:
            answer = httpx.post(url + PATH, json=list(posts))
            return None if answer.is_success else answer.text

        refused = deliver([made[0], bad, *made[1:]], send)
        stored = httpx.get(url + PATH).json()
    assert [post["labels"] for post, _ in refused] == [{"not a name": "x"}]
    assert {a["labels"]["alertname"] for a in stored} == {"TargetDown", "InfractlDeadMansSwitch"}
    assert len(stored) == 3


def test_times_in_the_text_of_an_alert_are_of_the_report_zone_and_its_own_are_utc() -> None:
    said = replace(DOWN, summary="it is down since 2026-11-30T11:00:00Z")
    alert, _ = alerts([(ANALYSIS, make_result({}, (said,)))], RuleOptions(), NOW, zone=zone("Asia/Shanghai"))
    assert alert["annotations"]["summary"] == "it is down since 2026-11-30T19:00:00+08:00"
    assert alert["startsAt"] == "2026-11-30T11:00:00Z"
