"""Series that show again what others show: routers that repeat their engines, ranks, two names of one metric."""

from collections import defaultdict
from collections.abc import Iterator

from analytics.result import Severity
from collector.presets.catalog import catalog
from collector.presets.names import key
from collector.presets.preset import HISTOGRAM_PARTS, Preset
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts
from infractl.doctor.pages import Page, pages, shown


def check(facts: Facts) -> Iterator[Advice]:
    """Name the series left out of the canonical ones because they would count twice, and by which label."""
    for page in pages(facts):
        found: dict[str, set[str]] = defaultdict(set)
        for row in page.rows:
            for preset in catalog().lookup(row["name"]):
                left_out = row["canonical"] is None or not preset.counts(row["labels"])
                if left_out and preset.fits(row["labels"]):
                    found[_why(preset, row["labels"], page)].add(_family(row["name"]))
        for why, names in sorted(found.items()):
            remedy = "infractl leaves them out; do the same in your own sums"
            yield Advice("doubles", Severity.INFO, page.subject, f"{why}: {shown(names)}", remedy)


def _why(preset: Preset, labels: dict[str, str], page: Page) -> str:
    for name, values in preset.only.items():
        if labels.get(name, "") not in values:
            return f"series with label {name} repeat what others count"
    repeating = [name for name in (*preset.ranks, *preset.parts) if labels.get(name)]
    if repeating and preset.yields_to.isdisjoint(page.present):
        return f"series told apart by {', '.join(repeating)} repeat or divide the ones that count"
    newer = {_family(row["name"]) for row in page.rows if key(row["name"]) in preset.yields_to}
    return f"names beside better ones for the same thing ({shown(newer)})"


def _family(name: str) -> str:
    """Name of the histogram that a series is a part of, else the name."""
    for part in HISTOGRAM_PARTS:
        if name.endswith(part):
            return name.removesuffix(part)
    return name
