"""Rows that were refused, by source and reason, with what makes the sender's next ones readable."""

from collections.abc import Iterator

from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts

REMEDIES = {
    "blank_value": "nothing to do: the source says by a constant that the value is not available",
    "log_record": "nothing to do, or OTEL_LOGS_EXPORTER=none at the sender: infractl takes traces and metrics",
    "out_of_range": "the exporter sends an impossible value; an upgrade may help, the sample is left out until then",
    "time_out_of_range": "set the sender's clock (NTP), and check that its times are milliseconds",
    "unreadable_line": "the exporter writes a line that is no metric; see the target's warning and report it there",
    "store_busy": "the store cannot keep up: scrape less often or fewer series, or give it a faster disk",
    "store_failed": "see the log of infractl serve; most often the disk is full",
}
_EXPECTED = ("blank_value", "log_record")


def check(facts: Facts) -> Iterator[Advice]:
    """Name each source and reason of refused rows within the time looked at."""
    since = facts.since.replace(tzinfo=None)
    for source, reason, rows, last in facts.drops.select("source", "reason", "rows", "last_ts").iter_rows():
        if last is None or last < since:
            continue
        severity = Severity.INFO if reason in _EXPECTED else Severity.WARNING
        remedy = REMEDIES.get(reason, "see the sender's log; docs/concepts.md lists the reasons")
        yield Advice("refused", severity, source, f"{rows} rows refused so far: {reason}", remedy)
