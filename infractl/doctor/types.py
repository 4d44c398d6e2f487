"""Declared types that are wrong: `rate()` over a rate, or none over a counter, gives nonsense without an error."""

from collections import defaultdict
from collections.abc import Iterator

from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts
from infractl.doctor.pages import pages, shown

_TOLD = {
    ("counter", "rate"): "already per second: use it as it stands, never rate() or increase()",
    ("counter", "level"): "a level: use it as it stands, never rate() or increase()",
    ("counter", "last_event"): "the code of the last event: look at when it changes, never sum or rate() it",
    ("counter", "bitmask"): "a set of bits: decode it, never sum or rate() it",
    ("gauge", "cumulative"): "counted since a start: use rate() or increase(), never its value",
}


def told(kind: str | None, semantic: str | None) -> str:
    """Say how to treat a number of this meaning that is declared as `kind`; empty where the type is right."""
    return _TOLD.get((kind or "", semantic or ""), "")


def check(facts: Facts) -> Iterator[Advice]:
    """Compare the type that an exporter declares with what the preset knows of the number."""
    for page in pages(facts):
        found: dict[tuple[str, str], set[str]] = defaultdict(set)
        for row in page.rows:
            if told(row["kind"], row["semantic"]):
                found[row["kind"], row["semantic"]].add(row["name"])
        for (kind, semantic), names in sorted(found.items()):
            fact = f"declared {kind}, but {semantic.replace('_', ' ')}: {shown(names)}"
            remedy = f"infractl reads it right; in your own PromQL it is {told(kind, semantic)}"
            yield Advice("types", Severity.INFO, page.subject, fact, remedy)
