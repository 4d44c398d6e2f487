"""Findings held against the truth: which incidents were found, which missed, which findings match none."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sample_data.incidents import Incident
from store.window import format_time

if TYPE_CHECKING:
    from analytics.result import Finding

EITHER = ("MetricAnomalous",)
"""Triggers that say nothing of whether requests fail or are slow."""


@dataclass(frozen=True, slots=True)
class Match:
    """One incident with the findings that overlap it; none of them means it was missed."""

    incident: Incident
    findings: tuple["Finding", ...]

    @property
    def found(self) -> bool:
        """Whether any finding points at it."""
        return bool(self.findings)


def match(findings: Iterable["Finding"], incidents: Iterable[Incident]) -> list[Match]:
    """Hold findings against incidents by service and time, one Match per incident in its order.

    A finding may match several incidents. One without a service label is compared by time alone; one that lasts (until
    is None) overlaps all that has not settled when it began.
    """
    given = tuple(findings)
    return [Match(incident, tuple(f for f in given if overlaps(f, incident))) for incident in incidents]


def overlaps(finding: "Finding", incident: Incident) -> bool:
    """Whether a finding is of the incident's service (or its clients) and time, and of its nature.

    Errors, latency and costs are told apart by the trigger's name: a slow tail beside an error storm does not find the
    storm. An unusual metric may be of errors or of latency.
    """
    service = finding.labels.get("service")
    same = service is None or service in (incident.service, *incident.seen_by)
    alike = _nature(finding) == incident.nature or (
        finding.trigger in EITHER and incident.nature in ("errors", "latency")
    )
    timely = finding.since < incident.settled and (finding.until is None or finding.until > incident.start)
    return same and alike and timely


_NATURES = {
    "error": "errors", "outage": "errors", "cost": "cost", "spend": "cost", "budget": "cost", "price": "cost",
    "connection": "connections",
}  # fmt: skip
"""Words of triggers, and the nature of what they find."""


def _nature(finding: "Finding") -> str:
    return next((nature for word, nature in _NATURES.items() if word in finding.trigger.lower()), "latency")


def unmatched(findings: Iterable["Finding"], incidents: Iterable[Incident]) -> list["Finding"]:
    """Return the findings that match no incident: false alarms, or things the truth does not label."""
    known = tuple(incidents)
    return [finding for finding in findings if not any(overlaps(finding, incident) for incident in known)]


def describe(matches: Iterable[Match]) -> list[str]:
    """Say of each incident whether it was found (since when, by what) or missed, and what a person should be told."""
    return [_line(one) for one in matches]


def _line(matched: Match) -> str:
    incident = matched.incident
    about = f"{incident.id} {incident.kind}, {_clock(incident.start)} to {_clock(incident.end)}: {incident.text}"
    if not matched.found:
        return f"missed  {about}"
    first = min(matched.findings, key=lambda finding: finding.since)
    return f"found   {about} ({first.trigger} since {_clock(first.since)}{_drivers(matched)})"


def _drivers(matched: Match) -> str:
    """Compare the driver that moved most, where a finding names one, with that of the incident."""
    own = [f for f in matched.findings if f.labels.get("service") == matched.incident.service]
    named = [str(f.evidence["moved_most"]["driver"]) for f in own if f.evidence.get("moved_most")]
    expected = matched.incident.driver
    if not named or expected is None:
        return ""
    right = any(expected in name.split(" + ") for name in named)
    return f", driver {expected}" if right else f", driver {named[0]} where the truth is {expected}"


def report(findings: Iterable["Finding"], incidents: Iterable[Incident]) -> list[str]:
    """Lines for a person: one per incident, one per finding that matches none, then the count."""
    given, known = tuple(findings), tuple(incidents)
    matches, others = match(given, known), unmatched(given, known)
    found = sum(m.found for m in matches)
    lines = describe(matches)
    lines += [
        f"extra   {f.trigger} {f.labels.get('service', '')} since {format_time(f.since)}: {f.summary}" for f in others
    ]
    return [*lines, f"{found} of {len(matches)} incidents found; {len(others)} findings match no incident"]


def _clock(at: datetime) -> str:
    return f"{at:%d %b %H:%M:%S}Z"
