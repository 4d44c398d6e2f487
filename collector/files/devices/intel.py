"""`intel_gpu_top -J` → samples: busy share of the engines, power and clock of an Intel GPU."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from collector.files.devices.reading import Reading, When, broken

_ENGINES = {
    "Render/3D": "graphics", "Blitter": "copy", "Video": "video", "VideoEnhance": "video_enhance", "Compute": "compute",
}  # fmt: skip


def is_intel_top(text: str) -> bool:
    """Tell whether a text is the output of intel_gpu_top."""
    head = text[:4000]
    return '"period"' in head and '"engines"' in text[:20_000] and '"rc6"' in head


def read_intel_top(text: str, when: When, line: int = 1) -> Reading:
    """Return the samples of every period, the first one at `when.at_ms`. Raises SourceError where no period is whole.

    The list that the tool leaves open at its end is read as far as it goes.
    """
    reading = Reading()
    passed_ms = 0.0
    for period in _periods(text):
        ts_ms = None if when.at_ms is None else when.at_ms + round(passed_ms)
        _read_period(reading, period, ts_ms)
        passed_ms += _value(period, "period", "duration") if reading.samples else 0.0
    if not reading.samples:
        raise broken(line, "no whole period of intel_gpu_top", "save the output of intel_gpu_top -J again")
    return reading


def _periods(text: str) -> Iterator[Mapping[str, Any]]:
    decoder = json.JSONDecoder()
    at = 0
    while (at := text.find("{", at)) >= 0:
        try:
            found, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        if isinstance(found, dict):
            yield found


def _read_period(reading: Reading, period: Mapping[str, Any], ts_ms: int | None) -> None:
    engines = period.get("engines")
    for name, engine in engines.items() if isinstance(engines, dict) else ():
        kind, _, number = name.rpartition("/")
        kind, number = (kind, number) if number.isdecimal() else (name, "0")
        busy = _value({"engine": engine}, "engine", "busy") * 0.01
        labels = {"engine": _ENGINES.get(kind, kind.lower()), "engine_instance": number}
        reading.add("gpu_utilization_ratio", labels, busy, ts_ms)
    for canonical, path, factor, labels in (
        ("gpu_power_watts", ("power", "GPU"), 1.0, {}),
        ("gpu_clock_hz", ("frequency", "actual"), 1e6, {"domain": "graphics"}),
    ):
        if isinstance(period.get(path[0]), dict):
            reading.add(canonical, labels, _value(period, *path) * factor, ts_ms)


def _value(period: Mapping[str, Any], group: str, name: str) -> float:
    """Return a number of a period; NaN where it has none."""
    found = period.get(group)
    value = found.get(name) if isinstance(found, dict) else None
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan
