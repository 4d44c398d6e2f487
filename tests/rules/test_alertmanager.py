"""A storm makes few notifications, and a label that both sides lack silences nothing."""

import json
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from rules.alertmanager import HEADER, PLACEHOLDER_URL, NotifyOptions, alertmanager_config
from rules.build import to_yaml
from rules.promtool import check_alertmanager, is_installed
from tests.rules.servers import ALERTMANAGER, alertmanager, http_server, wait_for


def test_inhibition_demands_each_label_on_both_sides() -> None:
    for rule in alertmanager_config()["inhibit_rules"]:
        for label in rule["equal"]:
            assert f'{label}!=""' in rule["source_matchers"]
            assert f'{label}!=""' in rule["target_matchers"]


def test_without_a_webhook_the_file_says_where_to_set_it() -> None:
    text = to_yaml(alertmanager_config(), HEADER)
    assert text.count(PLACEHOLDER_URL) == 2
    assert "--webhook-url" in text


def test_the_switch_goes_to_its_own_watcher_each_minute() -> None:
    config = alertmanager_config(NotifyOptions(deadman_url="http://127.0.0.1:1/x"))
    route = config["route"]["routes"][0]
    assert route["matchers"] == ['alertname="InfractlDeadMansSwitch"']
    assert route["repeat_interval"] == "1m"
    receivers = {r["name"]: r for r in config["receivers"]}
    assert receivers[route["receiver"]]["webhook_configs"][0]["url"] == "http://127.0.0.1:1/x"


TOLD = NotifyOptions(
    webhook_url="http://127.0.0.1:1/all",
    teams={'a "b"': "http://127.0.0.1:1/ab", "gpu": "http://127.0.0.1:1/gpu"},
    severities={"critical": "http://127.0.0.1:1/pager"},
)


def test_alerts_on_money_are_told_once_in_a_quarter_of_an_hour_for_every_receiver() -> None:
    route = alertmanager_config(TOLD)["route"]
    levels = [route["routes"], *(one["routes"] for one in route["routes"] if "routes" in one)]
    money = [one for level in levels for one in level if one.get("matchers") == ['analysis=~"cost|tokens|tiers"']]
    assert len(money) == len(levels) == 4
    assert {one["group_interval"] for one in money} == {"15m"}


@pytest.mark.skipif(not is_installed("amtool"), reason="apt install prometheus-alertmanager")
@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ({"alertname": "A", "severity": "warning"}, "webhook"),
        ({"alertname": "A", "severity": "critical", "host": "n1"}, "severity-critical"),
        ({"alertname": "A", "severity": "critical", "team": "gpu"}, "team-gpu"),
        ({"alertname": "A", "team": 'a "b"', "analysis": "cost"}, 'team-a "b"'),
        ({"alertname": "A", "team": "another", "slo": "x"}, "webhook"),
        ({"alertname": "InfractlDeadMansSwitch", "severity": "none", "team": "gpu"}, "dead-mans-switch"),
    ],
)
def test_a_team_is_told_first_then_those_of_a_severity(labels: dict[str, str], receiver: str, tmp_path: Path) -> None:
    path = tmp_path / "am.yml"
    path.write_text(to_yaml(alertmanager_config(TOLD), HEADER))
    check_alertmanager(path)
    words = [f"{name}={json.dumps(value)}" for name, value in labels.items()]
    done = subprocess.run(
        ["amtool", "config", "routes", "test", f"--config.file={path}", *words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == receiver


@pytest.mark.skipif(ALERTMANAGER is None, reason="apt install prometheus-alertmanager")
def test_a_lost_gpu_silences_what_its_host_says_and_no_other_host(tmp_path: Path) -> None:
    said = [
        ("GpuLost", "critical", "n1"), ("GpuThrottledByHeat", "warning", "n1"), ("GpuThrottledByPower", "info", "n1"),
        ("NvlinkRecovery", "critical", "n1"), ("GpuThrottledByPower", "info", "n2"), ("PcieNarrow", "warning", "n2"),
    ]  # fmt: skip
    posts = [{"labels": {"alertname": name, "severity": severity, "host": host}} for name, severity, host in said]
    config = tmp_path / "alertmanager.yml"
    config.write_text(to_yaml(alertmanager_config(), HEADER))
    with alertmanager(tmp_path, config) as url:
        httpx.post(f"{url}/api/v2/alerts", json=posts).raise_for_status()

        def silenced() -> set[tuple[str, str]]:
            stored = httpx.get(f"{url}/api/v2/alerts").json()
            return {(a["labels"]["alertname"], a["labels"]["host"]) for a in stored if a["status"]["inhibitedBy"]}

        wait_for("inhibition", lambda: len(silenced()) >= 2)
        assert silenced() == {("GpuThrottledByHeat", "n1"), ("GpuThrottledByPower", "n1")}


@pytest.mark.skipif(ALERTMANAGER is None, reason="apt install prometheus-alertmanager")
def test_the_loss_of_a_node_is_one_notification_and_silences_no_service(shared: Path, tmp_path: Path) -> None:
    case = shared / "cases" / "68-alert-storm-on-node-loss"
    alerts, expected = (json.loads((case / f"{name}.json").read_text()) for name in ("alerts", "expected"))
    with http_server() as (webhook, posts):
        options = NotifyOptions(
            webhook_url=f"http://{webhook}/",
            group_wait=timedelta(seconds=1),
            group_interval=timedelta(seconds=1),
        )
        config = tmp_path / "alertmanager.yml"
        config.write_text(to_yaml(alertmanager_config(options), HEADER))
        with alertmanager(tmp_path, config) as url:
            httpx.post(f"{url}/api/v2/alerts", json=alerts).raise_for_status()
            wait_for("both notifications", lambda: len(posts) >= 2)
            time.sleep(1.5)  # one more group interval: nothing may follow
            stored = httpx.get(f"{url}/api/v2/alerts").json()
    inhibited = [a["labels"]["alertname"] for a in stored if a["status"]["inhibitedBy"]]
    assert len(stored) == expected["alerts"]
    assert inhibited == ["GpuMetricsMissing"] * expected["inhibited"]
    node = [post for post in posts if post["groupLabels"].get("Hostname") == "n1"]
    services = [post for post in posts if post["groupLabels"].get("alertname") == "TtftP99High"]
    assert len(node) == 1 <= expected["notifications_for_n1_max"]
    assert len(node[0]["alerts"]) == 9
    assert len(services) == 1
    assert len(services[0]["alerts"]) == 12
