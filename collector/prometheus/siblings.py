"""Series of one page that repeat or divide another one: the ranks of one engine, the priorities of one queue."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.presets.preset import Preset
    from collector.prometheus.exposition import Series

_Group = tuple[str, frozenset[tuple[str, str]]]
_Rank = tuple[tuple[int, str], ...]


def repeated(presets: Mapping["Series", "Preset"]) -> set["Series"]:
    """Return the series that another one counts already.

    Of series that differ in the labels `ranks` of their preset only, all but the lowest; of those that differ in
    `parts` (and `ranks`) only, the ones with a value where there is one without.
    """
    lowest: dict[_Group, _Rank] = {}
    totals = {_whole(one, preset) for one, preset in presets.items() if not _has(one, preset.parts)}
    for one, preset in presets.items():
        group, rank = _group(one, preset.ranks), _rank(one, preset.ranks)
        lowest[group] = min(lowest.get(group, rank), rank)
    return {
        one
        for one, preset in presets.items()
        if _rank(one, preset.ranks) != lowest[_group(one, preset.ranks)]
        or (_has(one, preset.parts) and _whole(one, preset) in totals)
    }


def _whole(series: "Series", preset: "Preset") -> _Group:
    return _group(series, (*preset.parts, *preset.ranks))


def _group(series: "Series", without: Sequence[str]) -> _Group:
    return series.name, frozenset(pair for pair in series.labels.items() if pair[0] not in without and pair[1])


def _has(series: "Series", names: Sequence[str]) -> bool:
    return any(series.labels.get(name) for name in names)


def _rank(series: "Series", names: Sequence[str]) -> _Rank:
    """Return what ranks compare by: as numbers where they are, an absent one first."""
    texts = [series.labels.get(name, "") for name in names]
    return tuple((int(text) if text.isdecimal() else -1, text) for text in texts)
