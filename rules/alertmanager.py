"""Alertmanager configuration: few notifications in a storm, and no silence by a label that both sides lack.

Routes choose who is told: the team of the label `team`, else by severity. Within each the same groups are made: by
machine, by SLO, by alert.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rules.own import DEAD_MANS_SWITCH
from store.window import format_duration

PLACEHOLDER_URL = "http://127.0.0.1:5001/set-your-webhook"
"""Nothing listens there, so Alertmanager's log complains with every alert until a real address is set."""

NODE_LABELS = ("Hostname", "node", "host")
"""How exporters name a machine: dcgm-exporter, Kubernetes, OpenTelemetry. An alert carries one of them or none."""

HEADER = f"""\
# Made by `infractl rules build --alertmanager FILE`.
# {PLACEHOLDER_URL} stands for your webhook; set it with --webhook-url.
# The dead man's switch needs an outside watcher that misses it; set its address with --deadman-url.
"""


COSTS = ("cost", "tokens", "tiers")
"""Analyses whose alerts are about money."""
TELLS_ALL = "GpuLost|TargetDown"
"""Alerts that explain whatever else a host says: they silence its warnings and infos."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyOptions:
    """Where notifications go and how long they gather; without `deadman_url` nobody watches the switch.

    `teams` are webhooks by value of the label `team`, `severities` by severity; all else goes to `webhook_url`. Alerts
    on money make at most one notification per group in `cost_mute`, and info is repeated once a day.
    """

    webhook_url: str = PLACEHOLDER_URL
    deadman_url: str | None = None
    teams: Mapping[str, str] = field(default_factory=dict)
    severities: Mapping[str, str] = field(default_factory=dict)
    group_wait: timedelta = timedelta(seconds=30)
    group_interval: timedelta = timedelta(minutes=5)
    repeat_interval: timedelta = timedelta(hours=4)
    cost_mute: timedelta = timedelta(minutes=15)


def alertmanager_config(options: NotifyOptions | None = None) -> dict[str, Any]:
    """Return the configuration as plain values.

    Alerts of one machine make one notification, others one per alert name (with the services listed in it).
    """
    options = options or NotifyOptions()
    teams = [(f'team="{_escaped(team)}"', f"team-{team}", url) for team, url in options.teams.items()]
    severities = [(f'severity="{name}"', f"severity-{name}", url) for name, url in options.severities.items()]
    told = [*teams, *severities]
    return {
        "route": {
            "receiver": "webhook",
            "group_by": ["alertname"],
            "group_wait": format_duration(options.group_wait),
            "group_interval": format_duration(options.group_interval),
            "repeat_interval": format_duration(options.repeat_interval),
            "routes": [
                _dead_mans_route(),
                *({"receiver": name, "matchers": [matcher], "routes": _groups(options)} for matcher, name, _ in told),
                *_groups(options),
            ],
        },
        "inhibit_rules": [
            *(_explains_host(label) for label in NODE_LABELS),
            *(_inhibit(label) for label in NODE_LABELS),
            _inhibit("analysis", "service"),
            _inhibit("slo"),
        ],
        "receivers": [
            _receiver("webhook", options.webhook_url),
            _receiver("dead-mans-switch", options.deadman_url),
            *(_receiver(name, url) for _, name, url in told),
        ],
    }


def _groups(options: NotifyOptions) -> list[Mapping[str, Any]]:
    """Return the routes that say what is told together, in the order in which they are tried."""
    mute = format_duration(options.cost_mute)
    return [
        {"matchers": [f'analysis=~"{"|".join(COSTS)}"'], "group_by": ["alertname", "analysis"], "group_interval": mute},
        *({"matchers": [_has(name)], "group_by": [name]} for name in NODE_LABELS),
        {"matchers": [_has("slo")], "group_by": ["slo"]},
        {"matchers": ['severity="info"'], "repeat_interval": "1d"},
    ]


def _dead_mans_route() -> Mapping[str, Any]:
    return {
        "receiver": "dead-mans-switch",
        "matchers": [f'alertname="{DEAD_MANS_SWITCH}"'],
        "group_wait": "0s",
        "group_interval": "1m",
        "repeat_interval": "1m",
    }


def _explains_host(label: str) -> Mapping[str, Any]:
    """Let the loss of a GPU or target silence what else its machine says, short of other critical alerts."""
    return {
        "source_matchers": [f'alertname=~"{TELLS_ALL}"', 'severity="critical"', _has(label)],
        "target_matchers": ['severity=~"warning|info"', _has(label)],
        "equal": [label],
    }


def _inhibit(*labels: str) -> Mapping[str, Any]:
    """Let a critical alert silence warnings with the same labels; both must have them, as absent equals absent."""
    present = [_has(label) for label in labels]
    return {
        "source_matchers": ['severity="critical"', *present],
        "target_matchers": ['severity="warning"', *present],
        "equal": list(labels),
    }


def _has(label: str) -> str:
    return f'{label}!=""'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _receiver(name: str, url: str | None) -> Mapping[str, Any]:
    if url is None:
        return {"name": name}
    return {"name": name, "webhook_configs": [{"url": url, "send_resolved": True}]}
