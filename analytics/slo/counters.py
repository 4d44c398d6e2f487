"""An indicator over stored counters: `bad http_requests_total{code=~"5.."} / http_requests_total`.

Of Prometheus' selectors the four comparisons with a label; growth comes from rollups, which handle resets and gaps.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from store.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SELECTOR = re.compile(rf"\s*({_NAME})\s*(?:\{{(.*)\}})?\s*")
_MATCHER = re.compile(r'\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_RATIO = re.compile(rf"(good|bad)\s+({_NAME}\s*(?:\{{.*?\}})?)\s*/\s*({_NAME}\s*(?:\{{.*\}})?)\s*")
GRAMMAR = 'good NAME{label="value"} / NAME, or bad … / …; = != =~ !~ compare labels'


@dataclass(frozen=True, slots=True)
class Selector:
    """A metric name and what its labels must be: (label, comparison, value)."""

    name: str
    matchers: tuple[tuple[str, str, str], ...] = ()

    def text(self) -> str:
        """Write the selector as Prometheus does."""
        inside = ",".join(f'{label}{sign}"{value}"' for label, sign, value in self.matchers)
        return f"{self.name}{{{inside}}}" if inside else self.name

    def matches(self, labels: Mapping[str, Any]) -> bool:
        """Whether a series has these labels; one that it lacks is the empty text."""
        return all(_holds(label, sign, value, str(labels.get(label) or "")) for label, sign, value in self.matchers)


def _holds(label: str, sign: str, value: str, found: str) -> bool:
    if sign in ("=~", "!~"):
        return (re.fullmatch(value, found) is not None) == (sign == "=~")
    same = found == value or (label == "le" and _number(found) == _number(value) is not None)
    return same == (sign == "=")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Ratio:
    """`part` counts the good (or bad) of what `whole` counts."""

    kind: str
    part: Selector
    whole: Selector

    def text(self) -> str:
        """Write what `ratio` reads."""
        return f"{self.kind} {self.part.text()} / {self.whole.text()}"

    @property
    def names(self) -> tuple[str, ...]:
        """Metrics that are counted."""
        return tuple(dict.fromkeys((self.part.name, self.whole.name)))


def selector(text: str) -> Selector:
    """Read one selector. Raises UsageError for what is none."""
    found = _SELECTOR.fullmatch(text)
    inside = (found[2] or "").strip() if found else ""
    matchers, at = [], 0
    while found and at < len(inside):
        one = _MATCHER.match(inside, at)
        if one is None:
            found = None
            break
        matchers.append((one[1], one[2], one[3]))
        at = one.end()
    if found is None or "@" in text:
        raise UsageError(f"selector {text.strip()!r} cannot be read", GRAMMAR)
    for _label, sign, value in matchers:
        if sign in ("=~", "!~"):
            try:
                re.compile(value)
            except re.error as error:
                raise UsageError(f"selector {text.strip()!r}: {value!r} is no expression", str(error)) from error
    return Selector(found[1], tuple(matchers))


def ratio(text: str) -> Ratio | None:
    """Read an indicator over counters; None where the text is none of that form."""
    found = _RATIO.fullmatch(text.strip())
    return Ratio(found[1], selector(found[2]), selector(found[3])) if found else None


def counted(frame: "pl.DataFrame", of: Ratio, by: Sequence[str] = ()) -> "pl.DataFrame":
    """Columns bucket, n, bad (and service, where in `by`) from the growth of counters, as rollups give it.

    A series of failures that does not exist has not failed: a counter appears with its first event. Without any series
    of good ones nothing is counted, since that is a name that is wrong, not a service that is down.
    """
    import polars as pl

    ids = chosen(frame, of)
    known = frame if ids["whole"] and (of.kind == "bad" or ids["part"]) else frame.clear()
    grown = pl.col("increase").fill_null(0.0).clip(0.0)
    part, whole = (
        pl.when(pl.col("series_id").is_in(ids[role])).then(grown).otherwise(0.0).sum() for role in ("part", "whole")
    )
    keys = ["bucket", *(name for name in by if name == "service")]
    rows = known.group_by(keys).agg(part.alias("part"), whole.alias("n"))
    bad = pl.col("part") if of.kind == "bad" else pl.col("n") - pl.col("part")
    return rows.select(*keys, "n", bad.clip(0.0, pl.col("n")).alias("bad"))


def chosen(frame: "pl.DataFrame", of: Ratio) -> dict[str, list[Any]]:
    """Series that each selector names, by its role: part and whole."""
    found: dict[str, list[Any]] = {"part": [], "whole": []}
    for one in _series(frame):
        for role, wanted in (("part", of.part), ("whole", of.whole)):
            if wanted.name in (one["raw"], one["name"]) and wanted.matches(one["known"]):
                found[role].append(one["series_id"])
    return found


def _series(frame: "pl.DataFrame") -> list[dict[str, Any]]:
    if not frame.height:
        return []
    rows = frame.select("series_id", "raw", "name", "service", "labels").unique("series_id").to_dicts()
    return [row | {"known": {"service": row["service"]} | json.loads(row["labels"] or "{}")} for row in rows]


def unknown(frame: "pl.DataFrame", of: Ratio) -> str:
    """Say which selector names no stored series, with the bounds of a histogram that there are; empty if both do."""
    ids = chosen(frame, of)
    for role, wanted in (("whole", of.whole), ("part", of.part)):
        if ids[role]:
            continue
        text = f"no series is {wanted.text()}"
        bounds = {float(one["known"]["le"]) for one in _series(frame) if wanted.name in (one["raw"], one["name"])
                  and _number(str(one["known"].get("le"))) is not None}  # fmt: skip
        if bounds and any(label == "le" for label, _, _ in wanted.matchers):
            text += f" (its buckets end at {', '.join(f'{bound:g}' for bound in sorted(bounds))})"
        return text
    return ""
