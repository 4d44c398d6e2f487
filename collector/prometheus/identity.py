"""What a time series is: its id, its row in `metric_series`, and the labels of its target."""

from collections.abc import Mapping
from hashlib import blake2b
from itertools import chain
from typing import Any

import orjson

from collector.presets.catalog import meaning
from collector.presets.preset import Preset

_SEPARATOR = "\udcff"  # is written as the byte 0xff, never part of UTF-8, so that no name or value can imitate it
_SERVICE_LABELS = ("service", "service_name")


def series_id(name: str, labels: Mapping[str, str], superseded: bool = False) -> int:
    """Hash a name and its labels to 64 bits (blake2b), the same in every process and for any order of labels.

    A series `superseded` by a newer name on its page has an id of its own: after an upgrade that emits both names the
    canonical series of the old name ends, and the new name carries on alone.
    """
    parts = [name, *chain.from_iterable(sorted(labels.items())), *(("superseded",) if superseded else ())]
    text = _SEPARATOR.join(parts).encode("utf-8", "surrogateescape")  # one encoding: half the time of one for each part
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


def series_row(name: str, labels: Mapping[str, str], kind: str = "unknown", unit: str | None = None) -> dict[str, Any]:
    """Return the row of `metric_series` for a series; `first_ts` is the caller's.

    `labels` include job and instance where it has them. A preset that knows the name sets canonical name, meaning,
    conversion and added labels; `unit` is used where none does.
    """
    preset = meaning(name, labels)
    return known_row(name, labels, kind, preset) | ({"unit": unit} if preset is None else {})


def known_row(
    name: str, labels: Mapping[str, str], kind: str, preset: Preset | None, superseded: bool = False
) -> dict[str, Any]:
    """Return the row of a series whose preset is decided: None for a series that is not canonical."""
    added = preset.added_labels(labels) if preset else {}
    return {
        "series_id": series_id(name, labels, superseded),
        "name": name,
        "canonical": preset.canonical if preset else None,
        "kind": kind,
        "semantic": preset.semantic if preset else None,
        "unit": (preset.unit or None) if preset else None,
        "scale": preset.scale if preset else None,
        "combine": preset.combine if preset else None,
        "job": labels.get("job"),
        "instance": labels.get("instance"),
        "service": next((labels[n] for n in _SERVICE_LABELS if labels.get(n)), labels.get("job")),
        "labels": orjson.dumps({**labels, **added}, option=orjson.OPT_SORT_KEYS).decode(),
        "first_ts": None,
    }


def with_target(labels: Mapping[str, str], target: Mapping[str, str], honor: bool) -> dict[str, str]:
    """Add the labels of a target to scraped ones, as Prometheus does.

    On a clash the scraped label wins where `honor` is true; else it is kept as `exported_<name>` (repeated until free)
    unless it is empty.
    """
    if not target:
        return dict(labels)
    if honor:
        return {**target, **labels}
    merged = {name: value for name, value in labels.items() if name not in target} | dict(target)
    for name, value in labels.items():
        if name in target and value:
            exported = f"exported_{name}"
            while exported in merged:
                exported = f"exported_{exported}"
            merged[exported] = value
    return merged
