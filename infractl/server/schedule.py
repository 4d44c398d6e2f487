"""Runs the analyses again and again and publishes their results; a failure is counted, never hidden."""

import logging
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
    """Return the present."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Job:
    """One analysis on a schedule."""

    analysis: Analysis[Any]
    params: Params
    every: timedelta
    since: timedelta


class Scheduler:
    """A thread that runs each job when it is due. The latest results are in `latest`."""

    def __init__(self, reader: Reader, jobs: list[Job], exposition: Exposition, tracer: Tracer, clock: Clock) -> None:
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
        """Begin; every job runs once at once."""
        self._thread.start()

    def stop(self) -> None:
        """End after the run under way."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

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
        self._exposition.publish(job.analysis, result, utc_now(), perf_counter() - started, rows)
        self._latest[name] = result
        return result

    def _run(self) -> None:
        due = dict.fromkeys(range(len(self._jobs)), 0.0)
        while not self._stop.is_set():
            for index, job in enumerate(self._jobs):
                if perf_counter() >= due[index] and not self._stop.is_set():
                    due[index] = perf_counter() + job.every.total_seconds()
                    self.run_once(job)
            wait = min(due.values(), default=0.0) - perf_counter()
            self._stop.wait(max(wait, 0.05))
