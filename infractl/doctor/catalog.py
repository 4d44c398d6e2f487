"""The checks, in the order they run. A check is one module with `check(facts)` and one line here."""

from collections.abc import Callable, Iterator

from infractl.doctor import (
    absences,
    clocks,
    doubles,
    feeds,
    frozen,
    histograms,
    installation,
    joins,
    machine,
    missing,
    names,
    refused,
    targets,
    types,
    unpriced,
)
from infractl.doctor.advice import Advice, worst_first
from infractl.doctor.facts import Facts

Check = Callable[[Facts], Iterator[Advice]]

CHECKS: tuple[Check, ...] = (
    installation.check,
    machine.check,
    targets.check,
    feeds.check,
    missing.check,
    names.check,
    types.check,
    doubles.check,
    histograms.check,
    frozen.check,
    clocks.check,
    joins.check,
    absences.check,
    unpriced.check,
    refused.check,
)


def diagnose(facts: Facts) -> list[Advice]:
    """Run every check, the worst advice first."""
    return worst_first(advice for check in CHECKS for advice in check(facts))
