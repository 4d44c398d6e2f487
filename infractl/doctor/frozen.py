"""Gauges of workers that are gone: Python servers with several processes show their last value for ever."""

from collections.abc import Iterator

from analytics.metrics.combine import frozen_workers
from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts


def check(facts: Facts) -> Iterator[Advice]:
    """Name gauges with a label pid that stand still while others of their kind move."""
    if not facts.workers.height:
        return
    for row in frozen_workers(facts.workers, facts.now).iter_rows(named=True):
        fact = f"{row['name']}: {row['hint']}"
        remedy = "clear PROMETHEUS_MULTIPROC_DIR when the server starts, and call mark_process_dead when a worker ends"
        yield Advice("frozen", Severity.WARNING, f"{row['service']} {row['instance']}", fact, remedy)
