"""The counters file of dcgm-exporter, before it is deployed: what it leaves out, and types that mislead."""

from collections.abc import Iterator
from pathlib import Path

from analytics.result import Severity
from collector.files.devices.dcgm_counters import Counter, read_counters
from collector.presets.catalog import catalog
from infractl.doctor.advice import Advice
from infractl.doctor.missing import lacking
from infractl.doctor.pages import Page
from infractl.doctor.types import told
from store.errors import SourceError

SOURCE = "dcgm"


def check_counters(path: Path) -> Iterator[Advice]:
    """Compare the file with what the preset of dcgm-exporter expects. Raises SourceError naming file and line."""
    try:
        counters = read_counters(path.read_text("utf-8"))
    except SourceError as error:
        raise SourceError(f"{path}, line {error}", error.hint) from error
    page = Page.of(str(path), (counter.field for counter in counters))
    for expect in catalog().files[SOURCE].expect:
        yield from lacking(page, catalog().files[SOURCE], expect)
    for counter in counters:
        yield from _mistyped(path, counter)


def _mistyped(path: Path, counter: Counter) -> Iterator[Advice]:
    semantic = next((preset.semantic for preset in catalog().lookup(counter.field)), None)
    remedy = told(counter.kind, semantic)
    if semantic and remedy:
        fact = f"{counter.field} is declared {counter.kind}, but is {semantic.replace('_', ' ')}"
        yield Advice("types", Severity.INFO, f"{path}, line {counter.line}", fact, f"it is {remedy}")
