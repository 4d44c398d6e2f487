"""Clocks that disagree: a metric then joins the wrong request, and a duration may be negative."""

from collections.abc import Iterator

from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts

SKEW_S = 2.0
"""Seconds from which a skew is told: a Date header is good for half a second only, and joins look back 15 s and more.
"""
OFFSET_S = 1.0
"""The same for what a kernel says of its own clock, which is exact."""
_NTP = "set the clock there by NTP (timedatectl set-ntp true)"


def check(facts: Facts) -> Iterator[Advice]:
    """Compare the clocks of targets, of node_exporter's kernel and of span senders with this one."""
    for target in facts.targets:
        skew = target.get("clock_skew_s")
        unsure_s = (target.get("duration_s") or 0.0) / 2  # the clock was read at some moment of the scrape
        if skew is not None and abs(skew) - unsure_s > SKEW_S:
            side = "ahead of" if skew > 0 else "behind"
            fact = f"its clock is {abs(skew):.0f} s {side} this machine's"
            yield Advice("clocks", Severity.WARNING, f"{target['job']} {target['instance']}", fact, _NTP)
    yield from _kernel(facts)
    for service, requests, skewed in facts.services.select("service", "requests", "skewed").iter_rows():
        if skewed:
            fact = f"{skewed} of {requests} requests end before they start or lie in the future"
            yield Advice("clocks", Severity.WARNING, service or "(no service)", fact, _NTP)


def _kernel(facts: Facts) -> Iterator[Advice]:
    for row in facts.series.iter_rows(named=True):
        subject = f"{row['job']} {row['instance']}"
        if row["name"] == "node_timex_sync_status" and row["last_value"] == 0:
            yield Advice("clocks", Severity.WARNING, subject, "the kernel's clock is not synchronised", _NTP)
        offset = row["last_value"] if row["name"] == "node_timex_offset_seconds" else None
        if offset is not None and abs(offset) > OFFSET_S:
            yield Advice("clocks", Severity.WARNING, subject, f"its clock is off by {offset:.1f} s", _NTP)
