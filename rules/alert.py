"""`Alert`: one alerting rule as a value, whether it comes from a trigger or watches infractl itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from rules.naming import alert_labels
from rules.pages import DASHBOARD_URL, page_of, url_at, url_template
from rules.template import expand, to_prometheus
from store.window import format_duration

RUNBOOK_URL = "http://127.0.0.1:8050/runbooks/{slug}"
"""Where `infractl serve` shows rules/runbooks by default; set it to where your people read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions:
    """What a site may set.

    `hold` and `keep_firing` replace those of infractl's own alerts. `gap`, several scrape intervals long, is how long a
    sample counts when scrapes are missed. `runbook_url` has a {slug}, or the slug is put at its end. `dashboard_url` is
    where `infractl serve` answers; `slos` are objectives as `analyze slo --slos` takes them.
    """

    runbook_url: str = RUNBOOK_URL
    dashboard_url: str = DASHBOARD_URL
    slos: tuple[str, ...] = ()
    job: str = "infractl"
    labels: Mapping[str, str] = field(default_factory=dict)
    hold: timedelta | None = None
    keep_firing: timedelta | None = None
    gap: timedelta = timedelta(minutes=2)
    stale_after: timedelta = timedelta(minutes=15)

    def runbook(self, slug: str) -> str:
        """URL of a runbook."""
        if "{slug}" in self.runbook_url:
            return self.runbook_url.replace("{slug}", slug)
        return f"{self.runbook_url.rstrip('/')}/{slug}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert. `summary` is a template over {value} and the fields in `kept`: field → label the expression keeps.

    `hold` and `keep_firing` are None where the alert takes none, whatever the options say; with `own_times`
    the options change neither. `page` is the one of the app that shows it; by default that of its label `analysis`.
    """

    name: str
    expr: str
    severity: str
    summary: str
    description: str
    runbook: str
    hold: timedelta | None
    keep_firing: timedelta | None
    kept: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    own_times: bool = False
    page: str = ""

    def times(self, options: RuleOptions) -> tuple[timedelta, timedelta]:
        """Return how long the condition must hold, and how long the alert outlasts it."""
        if self.own_times:
            return self.hold or timedelta(), self.keep_firing or timedelta()
        return _choose(self.hold, options.hold), _choose(self.keep_firing, options.keep_firing)

    def rule_labels(self, options: RuleOptions) -> dict[str, str]:
        """Labels that the rule sets on top of those the expression keeps."""
        return {"severity": self.severity, **self.labels, **alert_labels(options.labels)}

    def rule(self, options: RuleOptions) -> dict[str, Any]:
        """Return the rule as Prometheus' rule file has it, keys in reading order."""
        hold, keep = self.times(options)
        return {
            "alert": self.name,
            "expr": self.expr,
            **({"for": format_duration(hold)} if hold else {}),
            **({"keep_firing_for": format_duration(keep)} if keep else {}),
            "labels": self.rule_labels(options),
            "annotations": {
                "summary": to_prometheus(self.summary, self.kept),
                "description": self.description.replace("{{", '{{ "{{" }}'),
                "runbook_url": options.runbook(self.runbook),
                "dashboard_url": self._dashboard(options),
            },
        }

    def shown(self, options: RuleOptions, labels: Mapping[str, str], value: float) -> dict[str, str]:
        """Return the annotations as Prometheus prints them for a sample; `labels` by field of the summary."""
        return {
            "summary": expand(self.summary, labels, value),
            "description": self.description,
            "runbook_url": options.runbook(self.runbook),
            "dashboard_url": url_at(options.dashboard_url, self._page(), self._service(labels)),
        }

    def _page(self) -> str:
        return self.page or page_of(self.labels.get("analysis"), "service" in self.kept)

    def _dashboard(self, options: RuleOptions) -> str:
        if "service" in self.labels:
            return url_at(options.dashboard_url, self._page(), self.labels["service"])
        return url_template(options.dashboard_url, self._page(), self.kept.get("service"))

    def _service(self, labels: Mapping[str, str]) -> str:
        return self.labels.get("service") or (labels.get("service", "") if "service" in self.kept else "")


def _choose(own: timedelta | None, override: timedelta | None) -> timedelta:
    if own is None:
        return timedelta()
    return own if override is None else override
