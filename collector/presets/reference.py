"""The canonical metrics as a table: what each is, and under which names each source sends it."""

from collections.abc import Mapping
from dataclasses import dataclass

from collector.presets.catalog import Catalog
from collector.presets.meanings import family
from collector.presets.preset import ANY, Canonical, Values


@dataclass(frozen=True, slots=True)
class Entry:
    """A canonical metric; `wire` holds, by source, its wire names, newest first."""

    name: str
    metric: Canonical
    wire: dict[str, tuple[str, ...]]


def entries(catalog: Catalog) -> list[Entry]:
    """Return every canonical metric, in the order of its declaration, with the names it comes under."""
    wire: dict[str, dict[str, list[str]]] = {name: {} for name in catalog.canonical}
    for source, file in catalog.files.items():
        for name, metrics in file.metrics.items():
            for metric in metrics:
                listed = wire[family(metric.to, catalog.canonical)].setdefault(source, [])
                listed += [_shown(spelling, metric.when) for spelling in (name, *metric.aliases)]
    return [
        Entry(name, metric, {source: tuple(dict.fromkeys(names)) for source, names in wire[name].items()})
        for name, metric in catalog.canonical.items()
    ]


def _shown(name: str, when: Mapping[str, Values]) -> str:
    """Write a name as a selector, with the labels that tell it apart."""
    return name + ("{" + ",".join(_matcher(*pair) for pair in when.items()) + "}" if when else "")


def _matcher(label: str, values: Values) -> str:
    if values == (ANY,):
        return f'{label}!=""'
    return f'{label}="{values[0]}"' if len(values) == 1 else f'{label}=~"{"|".join(values)}"'
