"""Which episodes page: alone by the tail, with false discoveries held among all series; or several of an entity."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from scipy.stats import poisson

from analytics.anomalies.series import Grid
from analytics.detect.episodes import Episode

WEAK_P = 3e-4
TOGETHER = 3
"""Series of one entity that, each with a probability of at most WEAK_P within as many points, page together."""
CHANCE = 1e-6
FALSE_DISCOVERIES = 1.2e-4
"""Rate among all series at one time: a quarter of a false page a week (2,016 times), however many series there are."""


def paged(episodes: Sequence[Episode], found: Grid) -> list[Episode]:
    """Decide which page: alone by the tail, with false discoveries held among all series; or several of an entity."""
    alone = _discovered(episodes, len(found.series))
    together = _together(episodes, found)
    return [replace(e, page=i in alone or i in together) for i, e in enumerate(episodes)]


def _discovered(episodes: Sequence[Episode], series: int) -> set[int]:
    """Benjamini & Hochberg (1995) over all series, among the episodes that begin within a few points of each other."""
    candidates = sorted((e.first, e.p, i) for i, e in enumerate(episodes) if e.page)
    kept: set[int] = set()
    for first, p, i in candidates:
        near = sorted(q for at, q, _ in candidates if abs(at - first) < TOGETHER)
        passing = [q for k, q in enumerate(near, 1) if q <= FALSE_DISCOVERIES * k / series]
        if passing and p <= passing[-1]:
            kept.add(i)
    return kept


def _together(episodes: Sequence[Episode], found: Grid) -> set[int]:
    """Episodes of metrics of one entity that began within a few points: more than chance would bring."""
    size: dict[str, int] = defaultdict(int)
    for series in found.series:
        size[series.entity] += 1
    weak = [(i, e) for i, e in enumerate(episodes) if e.kind == "value" and e.p <= WEAK_P]
    by_entity: dict[str, list[tuple[int, Episode]]] = defaultdict(list)
    for i, episode in weak:
        by_entity[found.series[episode.column].entity].append((i, episode))
    out: set[int] = set()
    for entity, some in by_entity.items():
        for _, one in some:
            near = [(i, e) for i, e in some if one.first <= e.first < one.first + TOGETHER]
            names = {found.series[e.column].name for _, e in near}
            expected = size[entity] * TOGETHER * WEAK_P
            if len(names) >= TOGETHER and poisson.sf(len(names) - 1, expected) < CHANCE:
                out |= {i for i, _ in near}
    return out
