"""A data file, checked against the canonical metrics, as presets by name key."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from collector.presets.names import fold, key
from collector.presets.preset import HISTOGRAM_PARTS, UNITS, Canonical, Metric, Preset, PresetFile
from store.errors import ConfigError
from store.nearest import nearest


class _Claim(NamedTuple):
    """A wire name (with the suffix of a part), the canonical name it stands for and what that is."""

    spelling: str
    suffix: str
    bare: bool
    target: str
    meaning: Canonical


def presets_of(source: str, file: PresetFile, known: Mapping[str, Canonical]) -> dict[str, list[Preset]]:
    """Presets of a data file by name key. A name yields to those listed before it that mean the same.

    `known` are all canonical metrics. Raises ConfigError naming file and key.
    """
    found: dict[str, list[Preset]] = {}
    meanings: dict[tuple[str, str], list[str]] = {}
    for name, metric in ((name, metric) for name, metrics in file.metrics.items() for metric in metrics):
        where = f"preset {source}.toml: metrics.{name}"
        for claim in _claims(where, name, metric, file, known):
            same = meanings.setdefault((claim.target, repr(sorted(metric.labels.items()))), [])
            preset = _preset(source, file, metric, claim, same)
            claimed = found.setdefault(key(claim.spelling), [])
            if any(dict(other.when) == dict(preset.when) for other in claimed):
                raise ConfigError(f"{where}: {claim.spelling} is claimed twice", "remove one, or add `when`")
            claimed.append(preset)
            same.append(key(claim.spelling))
    return found


def _claims(
    where: str, name: str, metric: Metric, file: PresetFile, known: Mapping[str, Canonical]
) -> Iterator[_Claim]:
    canonical = find_canonical(metric.to, known)
    if canonical is None:
        raise ConfigError(f"{where}: no canonical metric {metric.to!r}", nearest(metric.to, known, "declare it first"))
    _check(where, metric)
    written = {key(other) for other in file.metrics}
    for spelling, made in _spellings(name, metric, file):
        if made and key(spelling) in written:
            continue  # what another prefix makes of this name is a name of its own
        for suffix in HISTOGRAM_PARTS if canonical.histogram else ("",):
            meaning = canonical.part(suffix) if suffix else canonical
            yield _Claim(spelling + suffix, suffix, made == "", metric.to + suffix, meaning)


def _spellings(name: str, metric: Metric, file: PresetFile) -> Iterator[tuple[str, str | None]]:
    """Every name a metric comes under, newest first, and the prefix it was given; None for one as it is written."""
    prefixes = sorted((*file.names, *file.prefixes), key=len, reverse=True)
    for spelling in (name, *metric.aliases):
        yield spelling, None
        own = next((p for p in prefixes if p and fold(spelling).startswith(fold(p))), "")
        yield from ((prefix + spelling[len(own) :], prefix) for prefix in file.prefixes if fold(prefix) != fold(own))


def find_canonical(name: str, known: Mapping[str, Canonical]) -> Canonical | None:
    """Return the canonical metric of that name, or the part of a histogram of that name."""
    if name in known:
        return known[name]
    whole = family(name, known)
    return known[whole].part(name.removeprefix(whole)) if whole in known and known[whole].histogram else None


def family(name: str, known: Mapping[str, Canonical]) -> str:
    """Return the name of the histogram that a name is a part of; a name that is no part as it is."""
    if name in known:
        return name
    return next((name.removesuffix(part) for part in HISTOGRAM_PARTS if name.endswith(part)), name)


def check_canonical(where: str, name: str, metric: Canonical) -> None:
    """Raise ConfigError for a unit that is no base unit."""
    if metric.unit not in UNITS:
        raise ConfigError(f"{where}: canonical.{name}: unit {metric.unit!r}", nearest(metric.unit, UNITS, "base units"))


def _check(where: str, metric: Metric) -> None:
    if not metric.scale > 0:
        raise ConfigError(f"{where}: scale is {metric.scale:g}", "a factor above 0")
    if metric.valid and not metric.valid[0] < metric.valid[1]:
        raise ConfigError(f"{where}: valid is {list(metric.valid)}", "[lowest, highest]")


def _preset(source: str, file: PresetFile, metric: Metric, claim: _Claim, same: Iterable[str]) -> Preset:
    counts = claim.suffix in ("_bucket", "_count")
    newer = {*same, *(key(other + claim.suffix) for other in metric.yields_to)} - {key(claim.spelling)}
    return Preset(
        source=source,
        canonical=claim.target,
        semantic=claim.meaning.semantic,
        combine=claim.meaning.combine,
        unit=claim.meaning.unit,
        scale=1.0 if counts else metric.scale,
        le_scale=metric.scale if claim.target.endswith("_bucket") else 1.0,
        labels={**file.labels, **metric.labels},
        copy={**file.copy, **metric.copy},
        valid=None if counts else metric.valid,
        blank=file.blank,
        only=file.only,
        ranks=file.ranks,
        parts=file.parts,
        when=metric.when,
        yields_to=frozenset(newer),
        bare=claim.bare,
    )
