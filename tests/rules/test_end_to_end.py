"""From a Result to a webhook and back to quiet, through real Prometheus and Alertmanager."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from infractl.exposition import Exposition
from rules.alert import RuleOptions
from rules.alertmanager import NotifyOptions, alertmanager_config
from rules.build import rule_groups, to_yaml
from tests.rules.conftest import TRIGGERS, make_analysis, make_result
from tests.rules.servers import ALERTMANAGER, PROMETHEUS, alertmanager, http_server, prometheus, wait_for

RULES = RuleOptions(
    hold=timedelta(seconds=2),
    keep_firing=timedelta(seconds=2),
    gap=timedelta(seconds=5),
    runbook_url="https://runbooks.example/{slug}",
)
ALERT = "P99AboveBaseline"


@pytest.mark.skipif(PROMETHEUS is None, reason="apt install prometheus")
@pytest.mark.skipif(ALERTMANAGER is None, reason="apt install prometheus-alertmanager")
def test_a_ratio_beyond_its_bound_reaches_the_webhook_and_resolves(tmp_path: Path) -> None:
    analysis = make_analysis("p99", TRIGGERS[:1])
    exposition = Exposition([analysis])

    def publish(ratio: float) -> None:
        row = {"service": "chat", "gen_ai.request.model": None, "value": ratio}
        result = make_result({"p99_baseline_ratio": [row]})
        exposition.publish(analysis, result, datetime.now(UTC), 0.1, 1)

    publish(4.0)
    (tmp_path / "rules.yml").write_text(to_yaml(rule_groups([analysis], RULES)))
    with http_server(exposition.render) as (page, _), http_server() as (webhook, posts):
        notify = NotifyOptions(
            webhook_url=f"http://{webhook}/",
            group_wait=timedelta(),
            group_interval=timedelta(seconds=1),
        )
        (tmp_path / "alertmanager.yml").write_text(to_yaml(alertmanager_config(notify)))
        with alertmanager(tmp_path, tmp_path / "alertmanager.yml") as manager:
            (tmp_path / "prometheus.yml").write_text(to_yaml(prometheus_config(page, manager)))
            with prometheus(tmp_path, tmp_path / "prometheus.yml") as prom:
                alert = wait_for("the alert at Alertmanager", lambda: alert_at(manager))
                assert alert["labels"]["service"] == "chat"
                assert alert["labels"]["severity"] == "warning"
                assert alert["annotations"]["summary"] == "P99 of chat (n/a) is 4.0x its baseline"
                assert alert["annotations"]["runbook_url"] == "https://runbooks.example/p99-above-baseline"
                assert wait_for("the webhook", lambda: statuses(posts)) == ["firing"]
                publish(1.0)
                wait_for("the all-clear", lambda: statuses(posts) == ["firing", "resolved"])
                wait_for("no alert at Alertmanager", lambda: alert_at(manager) is None)
                assert firing_rules(prom) == {"InfractlDeadMansSwitch"}


def prometheus_config(page: str, manager: str) -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager.removeprefix("http://")]}]}]},
        "scrape_configs": [{"job_name": "infractl", "honor_labels": True, "static_configs": [{"targets": [page]}]}],
    }


def alert_at(manager: str) -> Any:
    alerts = httpx.get(f"{manager}/api/v2/alerts", params={"filter": f'alertname="{ALERT}"'}).json()
    return alerts[0] if alerts else None


def statuses(posts: list[Any]) -> list[str]:
    return [a["status"] for post in posts for a in post["alerts"] if a["labels"]["alertname"] == ALERT]


def firing_rules(prom: str) -> set[str]:
    groups = httpx.get(f"{prom}/api/v1/rules").json()["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["health"] for rule in rules} == {"ok"}
    return {rule["name"] for rule in rules if rule["state"] == "firing"}
