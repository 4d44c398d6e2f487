"""`Advice`: one thing that keeps infractl from telling the truth, and what a person does about it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from analytics.result import Severity


@dataclass(frozen=True, slots=True)
class Advice:
    """`subject` is what it is about (a target, a service, a file), `also` are others of which the same is true.

    `lines` are exact lines to add where that helps.
    """

    check: str
    severity: Severity
    subject: str
    fact: str
    remedy: str
    lines: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


def worst_first(found: Iterable[Advice]) -> list[Advice]:
    """Make one of what is true of several subjects; order by severity, then check, fact and subject."""
    same: dict[Advice, list[str]] = {}
    for advice in found:
        same.setdefault(replace(advice, subject=""), []).append(advice.subject)
    merged = [
        replace(advice, subject=subjects[0], also=tuple(subjects[1:]))
        for advice, subjects in ((a, sorted(set(s))) for a, s in same.items())
    ]
    return sorted(merged, key=lambda a: (-a.severity.rank, a.check, a.subject, a.fact))
