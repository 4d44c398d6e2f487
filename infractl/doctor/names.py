"""Old names: infractl reads them as the new ones, but the engine's next release drops them from everybody's rules."""

from collections.abc import Iterator

from analytics.result import Severity
from collector.presets.catalog import catalog
from collector.presets.names import key
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts
from infractl.doctor.pages import Page, pages


def check(facts: Facts) -> Iterator[Advice]:
    """Name every metric seen under an older name, or under one that no longer means anything."""
    for page in pages(facts):
        for source in page.sources:
            yield from _renamed(page, source)


def _renamed(page: Page, source: str) -> Iterator[Advice]:
    file = catalog().files[source]
    newest = {
        alias: name
        for name, metrics in file.metrics.items()
        for metric in metrics
        for alias in metric.aliases
        if key(alias) != key(name)
    }
    for name in sorted({*newest, *file.removed}):
        if page.has(name):
            said = f"is the old name of {newest[name]}" if name in newest else "is gone from newer releases"
            remedy = file.removed.get(name, "infractl reads both; change your own rules before you upgrade")
            yield Advice("names", Severity.INFO, page.subject, f"{file.title}: {name} {said}", remedy)
