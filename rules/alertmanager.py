"""Alertmanager configuration: few notifications in a storm, and no silence by a label that both sides lack."""

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyOptions:
    """Where notifications go and how long they gather; without `deadman_url` nobody watches the switch."""

    webhook_url: str = PLACEHOLDER_URL
    deadman_url: str | None = None
    group_wait: timedelta = timedelta(seconds=30)
    group_interval: timedelta = timedelta(minutes=5)
    repeat_interval: timedelta = timedelta(hours=4)


def alertmanager_config(options: NotifyOptions | None = None) -> dict[str, Any]:
    """Return the configuration as plain values.

    Alerts of one machine make one notification, others one per alert name (with the services listed in it).
    """
    options = options or NotifyOptions()
    return {
        "route": {
            "receiver": "webhook",
            "group_by": ["alertname"],
            "group_wait": format_duration(options.group_wait),
            "group_interval": format_duration(options.group_interval),
            "repeat_interval": format_duration(options.repeat_interval),
            "routes": [_dead_mans_route(), *({"matchers": [_has(n)], "group_by": [n]} for n in NODE_LABELS)],
        },
        "inhibit_rules": [_inhibit(n) for n in NODE_LABELS] + [_inhibit("analysis", "service")],
        "receivers": [_receiver("webhook", options.webhook_url), _receiver("dead-mans-switch", options.deadman_url)],
    }


def _dead_mans_route() -> Mapping[str, Any]:
    return {
        "receiver": "dead-mans-switch",
        "matchers": [f'alertname="{DEAD_MANS_SWITCH}"'],
        "group_wait": "0s",
        "group_interval": "1m",
        "repeat_interval": "1m",
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


def _receiver(name: str, url: str | None) -> Mapping[str, Any]:
    if url is None:
        return {"name": name}
    return {"name": name, "webhook_configs": [{"url": url, "send_resolved": True}]}
