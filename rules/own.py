"""infractl's view of itself: the metrics it publishes about its own work and the alerts on them.

A monitor that stops must not look like a quiet night: a switch that always fires, and rules on age, drops and queue.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from rules.alert import Alert, RuleOptions
from rules.naming import label_names
from store.window import format_duration


@dataclass(frozen=True, slots=True)
class OwnMetric:
    """A metric about infractl itself; `kind` is gauge or counter."""

    name: str
    kind: str
    doc: str
    labels: tuple[str, ...] = ()


LAST_SUCCESS = OwnMetric(
    "infractl_analysis_last_success_timestamp_seconds", "gauge", "End of the last run that gave a result", ("analysis",)
)
DURATION = OwnMetric("infractl_analysis_duration_seconds", "gauge", "How long the last run took", ("analysis",))
INPUT_ROWS = OwnMetric("infractl_analysis_input_rows", "gauge", "Rows the last run read", ("analysis",))
FAILURES = OwnMetric("infractl_analysis_failures_total", "counter", "Runs that raised an error", ("analysis",))
FINDINGS = OwnMetric("infractl_findings", "gauge", "Findings that last, by severity", ("analysis", "severity"))
REFUSED = OwnMetric(
    "infractl_samples_refused_total", "counter", "Signal samples not published, by reason", ("analysis", "reason")
)
INGESTED = OwnMetric("infractl_ingest_rows_total", "counter", "Rows committed", ("source", "table"))
DROPPED = OwnMetric("infractl_ingest_dropped_rows_total", "counter", "Rows refused, by reason", ("source", "reason"))
RECEIVED = OwnMetric(
    "infractl_received_requests_total",
    "counter",
    "Requests of OTLP and remote write by outcome: stored, partial, empty, or why nothing was stored",
    ("protocol", "signal", "outcome"),
)
QUEUE = OwnMetric("infractl_queue_rows", "gauge", "Rows waiting to be committed")
QUEUE_LIMIT = OwnMetric("infractl_queue_limit_rows", "gauge", "Rows the queue holds before senders are told to wait")
STORE_BYTES = OwnMetric("infractl_store_bytes", "gauge", "Bytes stored: database, sealed, journal", ("part",))
STORE_FREE = OwnMetric("infractl_store_free_bytes", "gauge", "Bytes that are free on the disk of the data directory")
STORE_MIN_FREE = OwnMetric("infractl_store_min_free_bytes", "gauge", "Senders are refused while less is free")
UPKEEP_SUCCESS = OwnMetric(
    "infractl_upkeep_last_success_timestamp_seconds", "gauge", "Last time the store's own task ended well", ("task",)
)
UPKEEP_SECONDS = OwnMetric("infractl_upkeep_duration_seconds", "gauge", "How long a task's last run took", ("task",))
BUILD = OwnMetric("infractl_build_info", "gauge", "Always 1; the version is in the labels", ("version", "python"))

METRICS = (
    LAST_SUCCESS, DURATION, INPUT_ROWS, FAILURES, FINDINGS, REFUSED, INGESTED, DROPPED, RECEIVED, QUEUE, QUEUE_LIMIT,
    STORE_BYTES, STORE_FREE, STORE_MIN_FREE, UPKEEP_SUCCESS, UPKEEP_SECONDS, BUILD,
)  # fmt: skip

DEAD_MANS_SWITCH = "InfractlDeadMansSwitch"
QUEUE_FULL_RATIO = 0.9
"""Room for one more batch is gone soon after this; a queue drained in time stays near zero."""
DISK_LOW = 2.0
"""Twice what must stay free: time to act before senders are refused."""
UPKEEP_AGE = timedelta(hours=3)
"""The rarest task comes once an hour."""
MINUTE = timedelta(minutes=1)
KEPT_AS_NULL = ("blank_value", "out_of_range", "not_a_number")
"""Reasons for which a sample is stored as "not available": a GPU without a sensor says so at every scrape."""
RECENT = 10 * MINUTE
"""How far back a refused row still counts: twice as long as the alert on it holds."""


def own_alerts(analyses: Iterable[str], options: RuleOptions) -> list[Alert]:
    """Alerts on infractl itself; one staleness alert per analysis name."""
    return [
        _dead_mans_switch(),
        _down(options),
        *(_stale(name, options) for name in analyses),
        _dropping(),
        _queue_full(),
        _disk_almost_full(),
        _upkeep_stale(),
    ]


def _dead_mans_switch() -> Alert:
    return Alert(
        name=DEAD_MANS_SWITCH,
        expr="vector(1)",
        severity="none",
        hold=None,
        keep_firing=None,
        summary="Alerting works",
        description="Fires always. Whoever receives it raises the alarm when it stops coming.",
        runbook="infractl-dead-mans-switch",
    )


def _down(options: RuleOptions) -> Alert:
    up = f'up{{job="{options.job}"}}'
    return Alert(
        name="InfractlDown",
        expr=f"{up} == 0 or absent({up})",
        kept=label_names(["job"]),
        severity="critical",
        hold=2 * MINUTE,
        keep_firing=2 * MINUTE,
        summary="infractl (job {job}) does not answer Prometheus",
        description="No scrape of infractl succeeds, or no scrape job has this name: no other infractl alert can fire.",
        runbook="infractl-down",
    )


def _stale(analysis: str, options: RuleOptions) -> Alert:
    last = f'{LAST_SUCCESS.name}{{analysis="{analysis}"}}'
    never = f'absent({last}) and on () up{{job="{options.job}"}} == 1'
    return Alert(
        name="InfractlAnalysisStale",
        expr=f"time() - {last} > {options.stale_after.total_seconds()!r} or {never}",
        kept=label_names(["analysis"]),
        severity="warning",
        hold=5 * MINUTE,
        keep_firing=5 * MINUTE,
        summary="Analysis {analysis} has given no result lately: its other alerts are blind",
        description="Its last success is too old, or it has not succeeded since infractl started.",
        runbook="infractl-analysis-stale",
        labels={"analysis": analysis},
        page="/",
    )


def _dropping() -> Alert:
    """Alert on rows refused; a reason that is new counts too, since the first value of a counter is no increase."""
    refused, lately = f'{DROPPED.name}{{reason!~"{"|".join(KEPT_AS_NULL)}"}}', format_duration(RECENT)
    total = f"sum by (source, reason) ({refused}"
    rising = f"sum by (source, reason) (increase({refused}[{lately}])) > 0"
    new = f"{total}) unless {total} offset {lately})"
    return Alert(
        name="InfractlIngestDropping",
        expr=f"{rising} or ({new}) > 0",
        kept=label_names(["source", "reason"]),
        severity="warning",
        hold=5 * MINUTE,
        keep_firing=10 * MINUTE,
        summary="Rows from {source} are refused: {reason}",
        description="Rows that are refused are in no analysis; numbers over this source are incomplete.",
        runbook="infractl-ingest-dropping",
    )


def _queue_full() -> Alert:
    return Alert(
        name="InfractlQueueFull",
        expr=f"{QUEUE.name} / ({QUEUE_LIMIT.name} > 0) > {QUEUE_FULL_RATIO!r}",
        severity="critical",
        hold=2 * MINUTE,
        keep_firing=5 * MINUTE,
        summary="The write queue is {value:.0%} full",
        description="The store commits more slowly than rows arrive; senders are told to wait, and may give up.",
        runbook="infractl-queue-full",
    )


def _disk_almost_full() -> Alert:
    return Alert(
        name="InfractlDiskAlmostFull",
        expr=f"{STORE_FREE.name} / ({STORE_MIN_FREE.name} > 0) < {DISK_LOW!r}",
        severity="critical",
        hold=2 * MINUTE,
        keep_firing=5 * MINUTE,
        summary="The disk of infractl's store is almost full",
        description="Below store.min_free senders are refused until there is space again; nothing stored is lost.",
        runbook="infractl-disk-almost-full",
    )


def _upkeep_stale() -> Alert:
    return Alert(
        name="InfractlUpkeepStale",
        expr=f"time() - {UPKEEP_SUCCESS.name} > {UPKEEP_AGE.total_seconds()!r}",
        kept=label_names(["task"]),
        severity="warning",
        hold=5 * MINUTE,
        keep_firing=5 * MINUTE,
        summary="The store's task {task} has not ended well for three hours",
        description="Hours are not sealed, or nothing is dropped that is over its time: the disk fills.",
        runbook="infractl-upkeep-stale",
    )
