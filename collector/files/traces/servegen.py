"""ServeGen's load model (Alibaba, github.com/alibaba/ServeGen) → series: arrivals of one client, and token lengths.

A client is a pair of files. `chunk-N-trace.csv` has no header: window start (s), requests per second, coefficient of
variation of the gaps, distribution, its shape and its scale (s). `chunk-N-dataset.json` has per window the share of
requests by token length. Neither holds requests, so that series of each window are all that is taken.
"""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import orjson
import polars as pl

from collector.files.content import Content, Format
from collector.files.measure import Measure
from collector.files.options import ImportOptions
from collector.files.refusals import Refusal, counts
from collector.files.samples import tabulate
from collector.files.times import Clock, read_times
from collector.files.traces.spans import Taken
from store.batch import Batch
from store.errors import SourceError

_NUMBER = r"[\d.eE+-]+"
_ROW = re.compile(rf"^(\d{{1,12}}),({_NUMBER}),({_NUMBER}),([A-Z][A-Za-z]*)?,({_NUMBER}),({_NUMBER})\s*$")
_DATASET = re.compile(rf'^\s*\{{\s*"\d+"\s*:\s*\{{\s*"\w+"\s*:\s*"\{{{_NUMBER}:\s')
_SHARE = re.compile(rf"({_NUMBER}):\s*({_NUMBER})")
_QUANTILES = (0.5, 0.9, 0.99)
_RATE, _CV = "servegen_request_rate_per_second", "servegen_arrival_gap_cv_ratio"
_SHAPE, _SCALE = "servegen_arrival_gap_shape", "servegen_arrival_gap_scale_seconds"


class _Point(NamedTuple):
    """A value of one window."""

    name: str
    at_s: int
    value: float
    distribution: str | None = None
    quantile: str | None = None


def is_servegen(content: Content) -> bool:
    """Tell a trace by its rows without a header (windows of equal length from zero), a dataset by its form."""
    if content.format is Format.JSON:
        return _DATASET.match(content.head[:4000]) is not None
    if content.format is not Format.CSV:
        return False
    rows = [_ROW.match(line) for line in content.head.split("\n", 3)[:3]]
    starts = [int(row[1]) for row in rows if row]
    return len(starts) == 3 and starts[0] == 0 and starts[2] == 2 * starts[1] > 0


def read_servegen(content: Content, options: ImportOptions, source: str) -> Taken:
    """Return the series of a file, what was refused, and remarks.

    Times count from zero; `options.start` says when that was. The label service is the file's name where none is given.
    """
    refused: dict[str, Refusal] = {}
    points = _arrivals(content, refused) if content.format is Format.CSV else _lengths(content, refused)
    if not points:
        return Batch(source, {}, counts(refused)), refused, ()
    kinds = {"name": pl.String, "at_s": pl.Int64, "value": pl.Float64, "distribution": pl.String, "quantile": pl.String}
    frame = pl.DataFrame(points, schema=kinds, orient="row")
    times = read_times(frame["at_s"], Clock("s", start=options.start))
    labels = frame.select("distribution", "quantile")
    measures = [
        Measure(name, frame["value"].set(frame["name"] != name, None))
        for name in frame["name"].unique(maintain_order=True)
    ]
    frames = tabulate(measures, times.ts, labels, {"service": content.stem, **options.labels})
    notes = (f"ts: {times.reading}", "a load model of windows: series, no requests")
    return Batch(source, frames, counts(refused)), refused, notes


def _arrivals(content: Content, refused: dict[str, Refusal]) -> list[_Point]:
    """Points of a trace. A window without arrivals has a rate of zero, and no gaps to describe."""
    points: list[_Point] = []
    for number, line in enumerate(content.text().split("\n"), 1):
        if not line.strip():
            continue
        found = _ROW.match(line)
        values = _floats(found[2], found[3], found[5], found[6]) if found else None
        if found is None or values is None:
            _refuse(refused, "no window of a trace", f"{content.path}:{number}")
            continue
        at_s, (rate, cv, shape, scale) = int(found[1]), values
        points.append(_Point(_RATE, at_s, rate))
        if rate and found[4]:
            points += [
                _Point(_CV, at_s, cv),
                _Point(_SHAPE, at_s, shape, found[4]),
                _Point(_SCALE, at_s, scale, found[4]),
            ]
    return points


def _lengths(content: Content, refused: dict[str, Refusal]) -> list[_Point]:
    """Quantiles and mean of each field in each window."""
    try:
        windows = orjson.loads(content.text())
    except orjson.JSONDecodeError as error:
        raise SourceError(f"{content.path}: broken JSON ({error.msg})", "fetch the file again") from error
    points: list[_Point] = []
    for at, fields in windows.items() if isinstance(windows, dict) else ():
        if not re.fullmatch(r"\d{1,12}", at) or not isinstance(fields, dict):
            _refuse(refused, "no window of a dataset", f"{content.path} window {at}")
            continue
        for name, text in fields.items():
            shares = _shares(text)
            if shares:
                points += _summary(f"servegen_{name}", int(at), shares)
            else:
                _refuse(refused, "no shares by length", f"{content.path} window {at} {name}")
    return points


def _summary(name: str, at_s: int, shares: list[tuple[float, float]]) -> Iterator[_Point]:
    """Yield the mean, and for each quantile the least length that this share of requests does not exceed."""
    total = sum(share for _, share in shares)
    yield _Point(f"{name}_mean", at_s, sum(length * share for length, share in shares) / total)
    for q in _QUANTILES:
        yield _Point(name, at_s, _reached(shares, q * total), quantile=str(q))


def _reached(shares: list[tuple[float, float]], wanted: float) -> float:
    reached = 0.0
    for length, share in shares:
        reached += share
        if reached >= wanted * (1 - 1e-12):  # shares are rounded, their sum may fall short of itself
            return length
    return shares[-1][0]


def _shares(text: object) -> list[tuple[float, float]]:
    """Length and share of requests, shortest first; empty where the text is none or says nothing."""
    body = text.strip()[1:-1] if isinstance(text, str) else ""
    parts = [_SHARE.fullmatch(part.strip()) for part in body.split(",") if part.strip()]
    pairs = [_floats(part[1], part[2]) if part else None for part in parts]
    found = sorted((pair[0], pair[1]) for pair in pairs if pair is not None)
    return found if len(found) == len(pairs) and sum(share for _, share in found) > 0 else []


def _floats(*texts: str) -> list[float] | None:
    try:
        values = [float(text) for text in texts]
    except ValueError:
        return None
    return values if all(map(math.isfinite, values)) else None


def _refuse(refused: dict[str, Refusal], reason: str, where: str) -> None:
    known = refused.get(reason)
    refused[reason] = Refusal(known.count + 1, known.first) if known else Refusal(1, where)
