"""A storm makes few notifications, and a label that both sides lack silences nothing."""

import json
import time
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from rules.alertmanager import HEADER, PLACEHOLDER_URL, NotifyOptions, alertmanager_config
from rules.build import to_yaml
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
