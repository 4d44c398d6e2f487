"""Runs the analyses again and again and publishes their results; a failure is counted, never hidden."""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

from opentelemetry.trace import Tracer

from analytics.analysis import Analysis, Params
from analytics.result import Result
from infractl.exposition import Exposition
from infractl.runner import Reader, run
from store.window import Window

log = logging.getLogger(__name__)
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the present, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True, slots=True)
class Job:
    """One analysis on a schedule. An `initial` result is published at the start instead of a first run."""

    analysis: Analysis[Any]
    params: Params
    every: timedelta
    since: timedelta
    initial: Result | None = None


PATIENCE_S = 10.0
"""How long a stop waits for the analysis under way: over a million requests one may take minutes."""
NICENESS = 10
"""Of the thread that analyses: where the processor is short, receivers and the writer go first (Linux: per thread)."""
REST = 4
"""A job rests at least so many times as long as its last run took: analyses take a fifth of a core at most."""


class Scheduler:
    """A thread that runs each job when it is due. The latest results are in `latest`."""

    def __init__(self, reader: Reader, jobs: list[Job], exposition: Exposition, tracer: Tracer, clock: Clock) -> None:
        """Prepare the jobs; `clock` says when now is."""
        self._reader, self._jobs, self._exposition = reader, jobs, exposition
        self._tracer, self._clock = tracer, clock
        self._stop = threading.Event()
        self._latest: dict[str, Result] = {}
        self._thread = threading.Thread(target=self._run, name="analyses", daemon=True)

    @property
    def latest(self) -> Mapping[str, Result]:
        """Last successful result by analysis."""
        return dict(self._latest)

    def start(self) -> None:
        """Begin; every job without an initial result runs once at once."""
        for job in self._jobs:
            if job.initial is not None:
                self._publish(job, job.initial, 0.0, 0)
        self._thread.start()

    def stop(self) -> None:
        """End after the run under way, or leave it behind where it lasts longer than PATIENCE_S."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            log.warning("an analysis was still running after %g s: left behind", PATIENCE_S)

    def run_once(self, job: Job) -> Result | None:
        """Run one job over the time before now and publish it; None where it failed."""
        name = job.analysis.name
        started = perf_counter()
        with self._tracer.start_as_current_span(f"analysis {name}") as span:
            try:
                result, rows = run(self._reader, job.analysis, job.params, Window.last(job.since, self._clock()))
            except Exception as error:
                log.exception("analysis %s failed", name)
                span.record_exception(error)
                self._exposition.failed(name)
                return None
            span.set_attributes({"infractl.rows": rows, "infractl.findings": len(result.findings)})
        self._publish(job, result, perf_counter() - started, rows)
        return result

    def _publish(self, job: Job, result: Result, duration_s: float, rows: int) -> None:
        self._exposition.publish(job.analysis, result, datetime.now(UTC), duration_s, rows)
        self._latest[job.analysis.name] = result

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # senders wait for an answer, nobody for an analysis
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        now = perf_counter()
        due = [now if job.initial is None else now + job.every.total_seconds() for job in self._jobs]
        while not self._stop.is_set():
            for index, job in enumerate(self._jobs):
                started = perf_counter()
                if started >= due[index] and not self._stop.is_set():
                    self.run_once(job)
                    took = perf_counter() - started
                    due[index] = started + max(job.every.total_seconds(), took * (1 + REST))
            wait = min(due, default=0.0) - perf_counter()
            self._stop.wait(max(wait, 0.05))
