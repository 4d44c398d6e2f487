"""The schedule of analyses: a stop does not wait for a run that lasts for minutes."""

import threading
import time
from datetime import timedelta

import pytest
from opentelemetry.sdk.trace import TracerProvider

from analytics.catalog import load
from infractl.exposition import Exposition
from infractl.server import schedule
from infractl.server.schedule import Job, Scheduler, utc_now


class Stuck:
    """A store whose every answer waits."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def rows_estimate(self, *asked: object) -> int:
        return 0

    def read(self, *asked: object) -> None:
        self.asked.set()
        self.go.wait(30)
        raise RuntimeError("too late")


def test_a_stop_leaves_a_long_analysis_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(schedule, "PATIENCE_S", 0.2)
    analysis, store = load("overview"), Stuck()
    job = Job(analysis, analysis.make_params({}), timedelta(seconds=1), timedelta(hours=1))
    tracer = TracerProvider().get_tracer("test")
    scheduler = Scheduler(store, [job], Exposition([analysis]), tracer, utc_now)
    scheduler.start()
    assert store.asked.wait(20)
    started = time.monotonic()
    scheduler.stop()
    assert time.monotonic() - started < 10
    assert "left behind" in caplog.text
    store.go.set()
