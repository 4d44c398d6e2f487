"""Cache and memory traffic by resctrl group: /sys/fs/resctrl. Format: Documentation/filesystems/resctrl.rst.

Groups are named like their path: `/` is everything, `a` a control group, `a/m` and `/m` monitor groups within one. A
control group's numbers include those of the monitor groups in it, so the two are not added up.
"""

import math
from collections.abc import Iterator, Mapping

from collector.host.tree import Tree
from collector.prometheus.exposition import Sample

BASE = "/sys/fs/resctrl"
_OWN = frozenset(("info", "mon_data", "mon_groups"))
_EVENTS = ("llc_occupancy", "mbm_total_bytes", "mbm_local_bytes")


def read(tree: Tree) -> Iterator[Sample]:
    """Yield the numbers of all groups; nothing where resctrl is not mounted."""
    here = tree.folders(BASE)
    if not here and "resctrl" in tree.names("/sys/fs"):
        tree.misread(BASE, "not mounted")
    if "mon_data" not in here:
        return
    yield from _group(tree, "/", BASE)
    yield from _monitors(tree, "", BASE)
    for name in here:
        if name not in _OWN:
            yield from _group(tree, name, f"{BASE}/{name}")
            yield from _monitors(tree, name, f"{BASE}/{name}")


def _monitors(tree: Tree, parent: str, base: str) -> Iterator[Sample]:
    for name in tree.folders(f"{base}/mon_groups"):
        yield from _group(tree, f"{parent}/{name}", f"{base}/mon_groups/{name}")


def _group(tree: Tree, group: str, base: str) -> Iterator[Sample]:
    for place in tree.names(f"{base}/mon_data"):
        if place.startswith("mon_L3_") and place.removeprefix("mon_L3_").isdigit():
            labels = {"group": group, "domain": str(int(place.removeprefix("mon_L3_")))}
            texts = {event: tree.word(f"{base}/mon_data/{place}/{event}") for event in _EVENTS}
            yield from samples(labels, texts)


def samples(labels: Mapping[str, str], texts: Mapping[str, str]) -> Iterator[Sample]:
    """Yield llc_occupancy_bytes and memory_traffic_bytes_total (scope: total, local).

    A monitor that has no value says `Unavailable` or `Error`: NaN, not available. One that the CPU lacks is left out.
    """
    for event, text in texts.items():
        if not text:
            continue
        value = float(text) if text.isdigit() else math.nan
        if event == "llc_occupancy":
            yield Sample("llc_occupancy_bytes", labels, value, None)
        else:
            scope = event.removeprefix("mbm_").removesuffix("_bytes")
            yield Sample("memory_traffic_bytes_total", {**labels, "scope": scope}, value, None)
