"""Series that an engine or exporter of the kind seen can show and does not, with the option that adds them."""

from collections.abc import Iterator

from analytics.result import Severity
from collector.presets.catalog import catalog
from collector.presets.preset import Expect, PresetFile
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts
from infractl.doctor.pages import Page, pages, shown


def check(facts: Facts) -> Iterator[Advice]:
    """Compare every target with what the presets of its sources expect."""
    for page in pages(facts):
        for source in page.sources:
            for expect in catalog().files[source].expect:
                yield from lacking(page, catalog().files[source], expect)


def lacking(page: Page, file: PresetFile, expect: Expect) -> Iterator[Advice]:
    """Say what cannot be told for want of the metrics of `expect` that a page lacks; nothing where all are there."""
    absent = {name for name in expect.metrics if not any(page.has(n) for n in _spellings(file, name))}
    if absent:
        fact = f"{file.title}: {expect.lost} ({shown(absent)} not exported)"
        there = tuple(f"{name}," for name in expect.metrics if name not in absent)
        lines = tuple(line for line in expect.lines if not line.startswith(there))
        yield Advice("missing", Severity(expect.severity), page.subject, fact, expect.remedy, lines)


def _spellings(file: PresetFile, name: str) -> tuple[str, ...]:
    return name, *(alias for metric in file.metrics.get(name, ()) for alias in metric.aliases)
