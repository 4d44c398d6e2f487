"""Prometheus rule file from the triggers of the analyses: the same bound, to the last bit, that makes a finding."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from analytics.analysis import Analysis
from analytics.result import Trigger
from rules.alert import Alert, RuleOptions
from rules.naming import label_names, metric_name
from rules.own import own_alerts
from rules.pack.build import pack_groups
from rules.slo.groups import slo_groups
from store.errors import ConfigError, UsageError
from store.window import format_duration

HEADER = (
    "# Made by `infractl rules build` from the triggers of its analyses; a change here is lost with the next build.\n"
)

OVERRIDDEN = {"severity", "analysis"}
"""Rules set these labels; a signal with such a label would lose it, and its alerts would collide."""


def rule_groups(analyses: Sequence[Analysis[Any]], options: RuleOptions | None = None) -> dict[str, Any]:
    """Return the rule file as plain values: a group per analysis with triggers, then infractl's own.

    Raises UsageError where no analysis has a trigger: a file without a rule looks healthy for ever.
    """
    options = options or RuleOptions()
    groups = [
        {"name": name, "rules": [alert.rule(options) for alert in alerts]}
        for name, alerts in alert_groups(analyses, options)
    ]
    return {"groups": groups}


def rule_file(analyses: Sequence[Analysis[Any]], options: RuleOptions | None = None) -> dict[str, Any]:
    """Return the whole rule file: what infractl finds and how it does itself, SLOs, then the pack."""
    options = options or RuleOptions()
    return {"groups": [*rule_groups(analyses, options)["groups"], *slo_groups(options), *pack_groups(options)]}


def alert_groups(analyses: Sequence[Analysis[Any]], options: RuleOptions) -> list[tuple[str, list[Alert]]]:
    """Return the alerts by group name. Raises UsageError for no trigger, or two of one name."""
    groups = [
        (f"infractl-{a.name}", [trigger_alert(a.name, t, options) for t in a.triggers]) for a in analyses if a.triggers
    ]
    if not groups:
        raise UsageError("there is no trigger, so the rule file would hold no rule", "name an analysis with triggers")
    names = Counter(alert.name for _, alerts in groups for alert in alerts)
    if twice := [name for name, count in names.items() if count > 1]:
        raise UsageError(f"two triggers are named {twice[0]}", "an alert name stands for one condition")
    return [*groups, ("infractl-self", own_alerts([a.name for a in analyses], options))]


def trigger_alert(analysis: str, trigger: Trigger, options: RuleOptions) -> Alert:
    """Return the alert that holds exactly while `trigger.holds` does for the last sample published."""
    kept = label_names(trigger.signal.labels)
    if OVERRIDDEN & set(kept.values()):
        raise UsageError(f"signal {trigger.signal.name} has a label that alerts set: {sorted(OVERRIDDEN)}", "rename it")
    sign = "above" if trigger.above else "below"
    return Alert(
        name=trigger.name,
        expr=condition(trigger, options),
        severity=str(trigger.severity),
        summary=trigger.summary,
        description=(
            f"{_sentence(trigger.signal.doc)} The bound: {sign} {trigger.bound!r}. "
            f"Ask why with: infractl analyze {analysis}"
        ),
        runbook=trigger.runbook,
        hold=trigger.hold,
        keep_firing=trigger.keep_firing,
        kept=kept,
        labels={"analysis": analysis},
    )


def condition(trigger: Trigger, options: RuleOptions) -> str:
    """Return the expression of a trigger.

    `last_over_time` bridges missed scrapes: a bare selector is empty after one of them, which restarts `for`.
    Raises UsageError for a bound that is not finite.
    """
    if not math.isfinite(trigger.bound):
        raise UsageError(f"trigger {trigger.name} has the bound {trigger.bound}", "a bound is a finite number")
    metric = metric_name(trigger.signal.metric)
    sign = ">" if trigger.above else "<"
    return f"last_over_time({metric}[{format_duration(options.gap)}]) {sign} {float(trigger.bound)!r}"


def to_yaml(values: Mapping[str, Any], header: str = HEADER) -> str:
    """Write a rule file, test file or configuration as YAML in the order of its keys."""
    import yaml

    text: str = yaml.safe_dump(dict(values), sort_keys=False, width=1000, allow_unicode=True)
    return header + text


def read_rules(text: str, name: str) -> dict[str, Any]:
    """Read a rule file. Raises ConfigError naming file and line, also for a file without a rule."""
    import yaml

    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + 1}" if mark else name
        raise ConfigError(f"{where}: this is no YAML: {getattr(error, 'problem', error)}") from None
    groups = values.get("groups") if isinstance(values, dict) else None
    if not isinstance(groups, list) or not any(isinstance(g, dict) and g.get("rules") for g in groups):
        raise ConfigError(f"{name} holds no rule", "write one with: infractl rules build --output FILE")
    return {"groups": [g for g in groups if isinstance(g, dict)]}


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
