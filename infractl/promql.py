"""The few forms of PromQL that say what a stored counter or histogram says; everything else is None."""

import re
from dataclasses import dataclass

_SELECTOR = r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?P<labels>\{[^{}]*\})?"
_GROUP = r"(?:\s*(?:by|without)\s*\([^()]*\)\s*)?"
_COUNTERS = tuple(
    re.compile(rf"\s*{form}\s*")
    for form in (
        _SELECTOR,
        rf"sum\s*\(\s*{_SELECTOR}\s*\)",
        rf"(?P<grown>rate|increase)\s*\(\s*{_SELECTOR}\s*\[\w+\]\s*\)",
        rf"sum\s*\(\s*(?P<grown>rate|increase)\s*\(\s*{_SELECTOR}\s*\[\w+\]\s*\)\s*\)",
    )
)
_QUANTILE = re.compile(
    rf"\s*histogram_quantile\s*\(\s*(?P<tau>0?\.\d+)\s*,\s*(?:sum{_GROUP}\s*\(\s*)?"
    rf"(?:rate|increase)\s*\(\s*{_SELECTOR}\s*\[\w+\]\s*\)(?:\s*\){_GROUP})?\s*\)\s*"
)


@dataclass(frozen=True, slots=True)
class Counter:
    """A selector, and whether the query takes its growth."""

    selector: str
    grown: bool


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a histogram; the selector is that without `_bucket`."""

    selector: str
    tau: float


def counter(query: str) -> Counter | None:
    """Read a query for one counter, summed over its series or not."""
    for form in _COUNTERS:
        if found := form.fullmatch(query):
            return Counter(found["name"] + (found["labels"] or ""), bool(found.groupdict().get("grown")))
    return None


def quantile(query: str) -> Quantile | None:
    """Read `histogram_quantile` over all series of a histogram; None where it keeps labels apart besides le."""
    found = _QUANTILE.fullmatch(query)
    if found is None or not found["name"].endswith("_bucket"):
        return None
    kept = re.findall(r"by\s*\(([^()]*)\)", query)
    if any({part.strip() for part in text.split(",")} - {"le", ""} for text in kept) or "without" in query:
        return None
    return Quantile(found["name"].removesuffix("_bucket") + (found["labels"] or ""), float(found["tau"]))


def with_label(selector: str, suffix: str, label: str = "") -> str:
    """Put a suffix to the name and one more label into the braces."""
    name, _brace, rest = selector.partition("{")
    inside = ",".join(part for part in (rest.removesuffix("}").strip().rstrip(","), label) if part)
    return f"{name}{suffix}{{{inside}}}" if inside else f"{name}{suffix}"
