"""All presets, found by metric name. Data files are read at the first look-up, once."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from collector.presets.datafile import CANONICAL, read_files
from collector.presets.meanings import find_canonical, presets_of
from collector.presets.names import fold, key
from collector.presets.preset import Canonical, Preset, PresetFile
from store.errors import ConfigError

FEW = 3
"""A page with fewer names of a source than this is not known to be from it by bare names."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The data files by source name, the canonical metrics, and the meanings of each name key."""

    files: Mapping[str, PresetFile]
    canonical: Mapping[str, Canonical]
    by_key: Mapping[str, tuple[Preset, ...]]
    keys: Mapping[str, frozenset[str]]

    def lookup(self, name: str) -> tuple[Preset, ...]:
        """Return every meaning of a name on the wire, in any spelling; a canonical name means itself."""
        found, itself = self.by_key.get(key(name), ()), _itself(name, self.canonical)
        return itself if itself and not all(preset.means_the_same(itself[0]) for preset in found) else found or itself

    def meaning(self, name: str, labels: Mapping[str, str], present: Set[str] = frozenset()) -> Preset | None:
        """Return what a series is; None for one that nobody knows or that is not canonical.

        `present` are the name keys (`presets.names.key`) of all series of the same target. An older name yields to a
        newer one that is among them, whatever the labels of the two: where those are known, `Resolver` decides.
        """
        found = self.choose(self.lookup(name), labels, present)
        return found if found and found.applies(labels, present) else None

    def choose(self, found: Sequence[Preset], labels: Mapping[str, str], present: Set[str]) -> Preset | None:
        """Return the one of several meanings that a series has, be it canonical or not.

        A meaning told apart by labels goes before one that is not; of two sources with the same bare name, the one that
        more of the page is from. A bare name alone says nothing.
        """
        page = frozenset(present)
        fitting = [p for p in found if p.fits(labels) and not (p.bare and page and self._share(p.source, page) < FEW)]
        fitting = [preset for preset in fitting if preset.when] or fitting
        if len({preset.source for preset in fitting}) > 1:
            return max(fitting, key=lambda preset: self._share(preset.source, page))
        return fitting[0] if fitting else None

    def sources(self, present: Set[str]) -> tuple[str, ...]:
        """Return the sources that a page with these name keys is from, the one with most of its names first.

        A source counts where the page has names that it alone knows: one that begins with its `names`, or two. So does
        one whose `names` begin a name that no such source knows.
        """
        page = frozenset(present)
        found = {source for source in self.files if self._is_of(source, page)}
        unexplained = page.difference(*(self.keys[source] for source in found))
        found |= {source for source in self.files if _begins(_prefixes(self.files[source]), unexplained)}
        return tuple(sorted(found, key=lambda source: (-self._share(source, page), source)))

    def renamed(self, name: str) -> str | None:
        """Return the newest name of a metric that comes under an older one; None for a name that is not an alias."""
        old = key(name)
        return next(
            (
                newest
                for file in self.files.values()
                for newest, metrics in file.metrics.items()
                for metric in metrics
                if old != key(newest) and old in {key(alias) for alias in metric.aliases}
            ),
            None,
        )

    def _share(self, source: str, page: frozenset[str]) -> int:
        return _matching(self.keys[source], _prefixes(self.files[source]), page)

    def _is_of(self, source: str, page: frozenset[str]) -> bool:
        own = {k for k in page & self.keys[source] if all(preset.source == source for preset in self.by_key[k])}
        return len(own) > 1 or _begins(_prefixes(self.files[source]), own)


@lru_cache(maxsize=256)
def _matching(keys: frozenset[str], prefixes: tuple[str, ...], page: frozenset[str]) -> int:
    return sum(name in keys or (bool(prefixes) and name.startswith(prefixes)) for name in page)


def _begins(prefixes: tuple[str, ...], names: Set[str]) -> bool:
    return bool(prefixes) and any(name.startswith(prefixes) for name in names)


def _prefixes(file: PresetFile) -> tuple[str, ...]:
    return tuple(fold(prefix) for prefix in file.names)


def _itself(name: str, known: Mapping[str, Canonical]) -> tuple[Preset, ...]:
    found = find_canonical(name, known)
    if found is None or found.histogram:
        return ()
    return (Preset(CANONICAL, name, found.semantic, found.combine, found.unit),)


@cache
def catalog() -> Catalog:
    """Return the presets of this package."""
    return load()


def lookup(name: str) -> tuple[Preset, ...]:
    """Return every meaning of a name on the wire, in any spelling."""
    return catalog().lookup(name)


def meaning(name: str, labels: Mapping[str, str], present: Set[str] = frozenset()) -> Preset | None:
    """Return what a series is; see `Catalog.meaning`."""
    return catalog().meaning(name, labels, present)


def canonical(name: str) -> Canonical | None:
    """Return the canonical metric (or part of a histogram) of that name."""
    return find_canonical(name, catalog().canonical)


def load(*more: Traversable) -> Catalog:
    """Read the data files of this package and of the directories `more`.

    Raises ConfigError naming file and key for one that cannot be read, refers to an unknown canonical name or claims a
    name that another file claims.
    """
    found, known = read_files((files("collector.presets"), *more))
    return _merged(found, known)


def _merged(found: Mapping[str, PresetFile], known: Mapping[str, Canonical]) -> Catalog:
    by_key: dict[str, list[Preset]] = {}
    keys: dict[str, frozenset[str]] = {}
    for source, file in found.items():
        presets = presets_of(source, file, known)
        keys[source] = frozenset(presets)
        for name, meanings in presets.items():
            for preset in meanings:
                _refuse_rival(name, preset, by_key.get(name, ()))
            by_key.setdefault(name, []).extend(meanings)
    return Catalog(found, known, {name: tuple(meanings) for name, meanings in by_key.items()}, keys)


def _refuse_rival(name: str, preset: Preset, others: Iterable[Preset]) -> None:
    """Two files may share a name where they mean the same, or where it is a bare one and the page decides."""
    for other in others:
        apart = dict(other.when) != dict(preset.when) or preset.bare or other.bare
        if not apart and not preset.means_the_same(other):
            raise ConfigError(
                f"preset {preset.source}.toml: metrics: {name} is claimed by {other.source}.toml too, as "
                f"{other.canonical}",
                "remove one, or tell them apart by `when`",
            )
