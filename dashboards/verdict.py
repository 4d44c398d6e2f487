"""The sentence over answers: what is wrong or that nothing is, since when, and what could not be judged."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from dash import html

from analytics.result import Finding, Result, Severity, Status
from dashboards import words
from dashboards.panels import said, sentence


def verdict(
    findings: Sequence[Finding], results: Mapping[str, Result], now: datetime, failed: Sequence[str], zone: ZoneInfo
) -> html.Div:
    """Say the worst finding that lasts, else that nothing is wrong now, else what kept it from being judged."""
    lasting = [finding for finding in findings if finding.until is None]
    knows = _knows(results, now, zone)
    if lasting:
        more = len(lasting) - 1
        rest = f", and {words.plural(more, 'other finding')}" if more else ""
        first = lasting[0]
        length = words.span(now - words.aware(first.since))
        since = f"Since {words.moment(first.since, now, zone)} {zone.key}, for {length}{rest}. {knows}"
        lead, reason = said(first)
        return sentence(first.severity, lead, since, reason)
    if all(result.status is Status.EMPTY for result in results.values()):
        return sentence(Severity.INFO, "Nothing to judge yet: no data in this window", knows)
    if all(result.status is not Status.OK for result in results.values()):
        return sentence(Severity.INFO, "This could not be judged", knows)
    if failed:
        text = f"Nothing is wrong in what could be judged; {' and '.join(failed)} failed"
        return sentence(Severity.WARNING, text, knows)
    if not findings:
        return sentence(None, "Nothing is wrong", knows)
    last = max(findings, key=lambda finding: finding.until or finding.since)
    over = f"{words.plural(len(findings), 'episode')} in this window, over by now; the last, until "
    return sentence(
        None, "Nothing is wrong now", f"{over}{words.moment(last.until, now, zone)} {zone.key}: {said(last)[0]}.", knows
    )


def list_title(findings: Sequence[Finding]) -> str:
    """Count findings that last and episodes that are over."""
    lasting = sum(finding.until is None for finding in findings)
    over = len(findings) - lasting
    parts = [
        words.plural(lasting, "finding") if lasting else "",
        words.plural(over, "episode") + " over" if over else "",
    ]
    return ", ".join(part for part in parts if part)


def _knows(results: Mapping[str, Result], now: datetime, zone: ZoneInfo) -> str:
    start = min(result.window.start for result in results.values())
    refused = [result for result in results.values() if result.status is Status.REFUSED]
    caveat = "".join(f" Not judged: {result.analysis} ({'; '.join(result.notes)})." for result in refused)
    return f"Looked at {words.moment(start, None, zone)} to {words.moment(now, start, zone)} {zone.key}.{caveat}"
