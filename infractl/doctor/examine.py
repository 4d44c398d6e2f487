"""Pages looked at before anything is configured or stored: a URL, or a file with what a target answered."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from analytics.result import Severity
from collector.prometheus.conformance import violations
from collector.prometheus.fetch import Fetcher
from collector.prometheus.series import to_batch
from collector.prometheus.text import TEXT, parse
from infractl.doctor.advice import Advice
from infractl.doctor.facts import gather
from infractl.doctor.report import report, with_advice
from infractl.sources import page_target
from store.database import Database
from store.errors import SourceError

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """What a target answers: body and content type."""

    subject: str
    body: bytes
    content_type: str


def answers(pages: Sequence[str]) -> list[Answer]:
    """Fetch URLs and read files. Raises SourceError for the first that cannot be read."""
    return asyncio.run(_answers(pages))


def examine(given: Sequence[Answer], now: datetime, limits_s: Mapping[str, float]) -> dict[str, Any]:
    """Report on pages as if each were the only scrape of a target. Raises SourceError for one that is no metrics."""
    with TemporaryDirectory() as folder, Database(Path(folder)) as database:
        for answer in given:
            try:
                page = parse(answer.body, answer.content_type)
            except SourceError as error:
                raise SourceError(f"{answer.subject}: {error}", error.hint) from error
            labels = {"job": "page", "instance": answer.subject}
            database.append([to_batch("doctor", page, now, labels, honor_labels=False)])
        facts = gather(database, now, timedelta(hours=1), limits_s=limits_s)
        broken = [advice for answer in given for advice in conformance(answer)]
        return with_advice(report(facts), broken)


def conformance(answer: Answer) -> Iterator[Advice]:
    """Name the rules of its format that a page breaks: other readers may refuse it whole."""
    found = violations(answer.body, answer.content_type)
    if found:
        shown = "; ".join(f"line {line}: {reason}" for line, reason in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        remedy = "report it to the exporter's authors; infractl reads what can be read, Prometheus may refuse the page"
        yield Advice("conformance", Severity.INFO, answer.subject, f"breaks its format: {shown}{more}", remedy)


async def _answers(pages: Sequence[str]) -> list[Answer]:
    fetcher = Fetcher()
    try:
        return [await _answer(fetcher, page) for page in pages]
    finally:
        await fetcher.close()


async def _answer(fetcher: Fetcher, page: str) -> Answer:
    if "://" not in page:
        try:
            return Answer(page, Path(page).read_bytes(), TEXT)
        except OSError as error:
            raise SourceError(f"{page}: {error.strerror}", "name a URL or a file") from error
    target = page_target(page, {})
    try:
        got = await fetcher.fetch(target)
    except SourceError as error:
        raise SourceError(f"{page}: {error}", error.hint) from error
    return Answer(target.instance, got.body, got.content_type)
