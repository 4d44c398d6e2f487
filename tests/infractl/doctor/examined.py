"""A store with pages of metrics in it, and what the doctor says of them."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from collector.prometheus.series import to_batch
from collector.prometheus.text import parse
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts, gather
from store.database import Database

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
Check = Callable[[Facts], Iterable[Advice]]


def facts_of(directory: Path, pages: dict[str, str], **live: Any) -> Facts:
    """Store one page per instance, all of one job, and gather the facts."""
    with Database(directory) as database:
        for instance, text in pages.items():
            labels = {"job": "job", "instance": instance}
            database.append([to_batch("test", parse(text.encode()), NOW, labels, honor_labels=False)])
        return gather(database, NOW + timedelta(seconds=5), timedelta(hours=1), **live)
