"""The rule groups of SLOs: error ratios over Sloth's windows, what it says about each SLO, and burn-rate alerts.

Windows of an hour and more weigh every request alike: sums of what was counted, never means of ratios.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from analytics.result import Severity
from analytics.slo import LEAST_LONG, LEFT, RULES, Rule
from analytics.slo.objective import Slo, parse
from collector.presets.catalog import catalog
from rules.alert import Alert, RuleOptions
from rules.naming import metric_name
from rules.slo import PREFIX, SHARED
from rules.slo.indicator import Counted, chosen, counted
from store.window import format_duration

EVERY = timedelta(minutes=1)
"""Evaluation interval: a sum over time is requests per second per evaluation, so the groups state theirs."""
WINDOWS = tuple(timedelta(minutes=m) for m in (30, 60, 120, 360, 1440, 4320))
ERROR, TOTAL, BAD = "slo:sli_error:ratio_rate", "slo:requests:rate5m", "slo:requests_bad:rate5m"
COUNT, LOW = "slo:requests:count", "slo:burn_rate_low:ratio"
LONG = tuple(rule.long for rule in RULES)
ANY_SERVICE = "all"
CHI2_95 = 3.8414588
"""Square of the normal quantile that the Wilson limit takes."""
_ON = "on (sloth_id, sloth_slo, sloth_service) group_left ()"


@dataclass(frozen=True, slots=True)
class Objective:
    """An SLO, its labels in Sloth's terms, and how it is counted: None where infractl's own signals say it."""

    slo: Slo
    counted: Counted | None

    @property
    def service(self) -> str:
        """The service it is about."""
        return dict(self.slo.where).get("service", ANY_SERVICE)

    @property
    def labels(self) -> dict[str, str]:
        """Labels that all of its series carry."""
        service, name = self.service, self.slo.name
        return {"sloth_id": f"{service}-{name}", "sloth_service": service, "sloth_slo": name}

    @property
    def told(self) -> str:
        """Where its numbers come from."""
        return "infractl's signals" if self.counted is None else "exporters' own metrics"

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Burn-rate rules that can hold: with an objective of 0.9 a burn rate is never above 10."""
        return tuple(rule for rule in RULES if rule.trigger.bound * self.slo.allowed < 1.0)

    def series(self, name: str) -> str:
        """Select this SLO's series of a name."""
        return chosen(name, self.labels)


def objectives(texts: Sequence[str]) -> list[Objective]:
    """Read objectives, each with how it is counted."""
    return [Objective(slo, counted(slo)) for slo in map(parse, texts)]


def slo_groups(options: RuleOptions) -> list[dict[str, Any]]:
    """Return the groups of all SLOs: what they share, then Sloth's three of each; none without SLOs."""
    return groups_of(objectives(options.slos), options)


def groups_of(found: Sequence[Objective], options: RuleOptions) -> list[dict[str, Any]]:
    """Return the groups of some SLOs."""
    known = catalog()
    reads = {record.name: record for one in found if one.counted for record in one.counted.reads}
    made = [_group(SHARED, [record.rule(known) for record in reads.values()])] if reads else []
    for one in found:
        name = one.labels["sloth_id"]
        made.append(_group(f"{PREFIX}sli-recordings-{name}", list(_errors(one, options))))
        made.append(_group(f"{PREFIX}meta-recordings-{name}", list(_meta(one, options))))
        if one.counted is not None:
            made.append(_group(f"{PREFIX}alerts-{name}", [alert.rule(options) for alert in slo_alerts(one)]))
    return made


def _group(name: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "interval": format_duration(EVERY), "rules": rules}


def _record(one: Objective, name: str, expr: str, **labels: str) -> dict[str, Any]:
    return {"record": name, "expr": expr, "labels": {**one.labels, **labels}}


def _errors(one: Objective, options: RuleOptions) -> Iterator[dict[str, Any]]:
    """Yield error ratios per window, and for the long ones how many requests there were and the burn rate's limit."""
    period = format_duration(one.slo.over)
    if one.counted is None:
        left = f"last_over_time({chosen(metric_name(LEFT.metric), {'slo': one.slo.name})}"
        expr = f"(1 - max({left}[{format_duration(options.gap)}]))) * {one.slo.allowed!r}"
        yield _record(one, ERROR + period, expr, sloth_window=period)
        return
    yield _record(one, TOTAL, one.counted.total)
    yield _record(one, BAD, one.counted.bad)
    yield _record(one, f"{ERROR}5m", f"{one.series(BAD)} / ({one.series(TOTAL)} > 0)", sloth_window="5m")
    for window in dict.fromkeys((*WINDOWS, one.slo.over)):
        span = format_duration(window)
        bad, total = (f"sum_over_time({one.series(name)}[{span}])" for name in (BAD, TOTAL))
        yield _record(one, ERROR + span, f"{bad} / ({total} > 0)", sloth_window=span)
    for span in map(format_duration, LONG):
        total = f"sum_over_time({one.series(TOTAL)}[{span}])"
        yield _record(one, COUNT + span, f"{total} * {EVERY.total_seconds():g}", sloth_window=span)
        yield _record(one, LOW + span, _burn_low(one, span), sloth_window=span)


def _burn_low(one: Objective, span: str) -> str:
    """Lower 95 % Wilson limit of the error ratio over what is allowed; nothing below the floor of requests."""
    p, n, k = one.series(ERROR + span), one.series(COUNT + span), CHI2_95
    spread = f"sqrt({k:.6g} * ({p} * (1 - {p}) * {n} + {k / 4:.6g}))"
    return f"({p} * {n} + {k / 2:.6g} - {spread}) / (({n} >= {LEAST_LONG}) + {k:.6g}) / {one.slo.allowed!r}"


def _meta(one: Objective, options: RuleOptions) -> Iterator[dict[str, Any]]:
    slo, period = one.slo, format_duration(one.slo.over)
    budget = f"({one.series('slo:error_budget:ratio')} > 0)"
    yield _record(one, "slo:objective:ratio", f"vector({slo.objective!r})")
    yield _record(one, "slo:error_budget:ratio", f"vector({slo.allowed!r})")
    yield _record(one, "slo:time_period:days", f"vector({slo.over.total_seconds() / 86400:g})")
    now = f"{one.series(f'{ERROR}5m')} / {_ON} {budget}"
    if one.counted is None:
        fast = chosen(metric_name(RULES[0].signal.metric), {"slo": slo.name})
        now = f"max(last_over_time({fast}[{format_duration(options.gap)}]))"
    yield _record(one, "slo:current_burn_rate:ratio", now)
    yield _record(one, "slo:period_burn_rate:ratio", f"{one.series(ERROR + period)} / {_ON} {budget}")
    yield _record(one, "slo:period_error_budget_remaining:ratio", f"1 - {one.series('slo:period_burn_rate:ratio')}")
    info = {"sloth_mode": "infractl", "sloth_spec": "infractl/v1", "sloth_version": "infractl"}
    info |= {"sloth_objective": f"{slo.objective * 100:.12g}", "indicator": slo.indicator, "counted_from": one.told}
    yield _record(one, "sloth_slo_info", "vector(1)", **info)


def slo_alerts(one: Objective) -> list[Alert]:
    """Return the alerts of an SLO that is counted from exporters' metrics; the others have those of `analyze slo`."""
    return [_alert(one, rule) for rule in one.rules]


def _alert(one: Objective, rule: Rule) -> Alert:
    long, short, bound = format_duration(rule.long), format_duration(rule.short), rule.trigger.bound
    page = rule.trigger.severity is Severity.CRITICAL
    labels: Mapping[str, str] = {
        "sloth_severity": "page" if page else "ticket", "slo": one.slo.name, **one.labels,
    }  # fmt: skip
    service = {} if one.service == ANY_SERVICE else {"service": one.service}
    return Alert(
        name=f"SloErrorBudget{rule.trigger.name.removeprefix('Slo')}",
        expr=(
            f"{one.series(LOW + long)} > {bound!r} and ignoring (sloth_window) "
            f"{one.series(ERROR + short)} / {one.slo.allowed!r} > {bound!r}"
        ),
        severity=str(rule.trigger.severity),
        summary="SLO {sloth_slo} of {sloth_service} burns its budget at least {value:.1f} times as fast as it lasts",
        description=(
            f"Bad requests over {long} (lower 95 % limit, at least {LEAST_LONG} requests) and {short}, from "
            f"{one.told}. The bound: above {bound!r}. Ask why with: infractl analyze slo"
        ),
        runbook=rule.trigger.runbook,
        hold=None,
        keep_firing=rule.trigger.keep_firing,
        kept={"sloth_slo": "sloth_slo", "sloth_service": "sloth_service"},
        labels={**labels, **service},
        own_times=True,
        page="/slo",
    )
