"""What else a target shows beside a series: the names, and the label sets of newer names that it may yield to."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector.presets.names import key

if TYPE_CHECKING:
    from collector.presets.catalog import Catalog
    from collector.presets.preset import Preset
    from collector.prometheus.exposition import Series

Found = dict[str, tuple["Preset", ...]]
Members = dict[str, dict["Series", None]]
Target = tuple[str | None, str | None]
Labels = frozenset[tuple[str, str]]
Shape = frozenset[str]


def target_of(series: "Series") -> Target:
    """Return what tells the targets of one page apart: the labels job and instance, where a series carries them."""
    return series.labels.get("job"), series.labels.get("instance")


def carried(labels: Mapping[str, str]) -> Labels:
    """Return the labels that tell entities apart: without empty ones, and without the bound of a bucket."""
    return frozenset(pair for pair in labels.items() if pair[1] and pair[0] != "le")


@dataclass(frozen=True, slots=True)
class Newer:
    """The series of a newer name, by the names of the labels they carry.

    What they hold of the labels shared with an older series is worked out once for all older series that share the
    same labels, so that a thousand devices under both names cost a look-up each.
    """

    by_shape: Mapping[Shape, frozenset[Labels]]
    _held: dict[tuple[Shape, Shape], set[Labels]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, series: Iterable[Mapping[str, str]]) -> "Newer":
        """Return the series with these labels."""
        shapes: dict[Shape, set[Labels]] = {}
        for one in {carried(labels) for labels in series}:
            shapes.setdefault(_names(one), set()).add(one)
        return cls({shape: frozenset(sets) for shape, sets in shapes.items()})

    def agree(self, labels: Labels) -> bool:
        """Whether one of the series has no other value than `labels` for any label that both carry."""
        names = _names(labels)
        return any(_only(labels, shape & names) in self._holding(shape, shape & names) for shape in self.by_shape)

    def _holding(self, shape: Shape, shared: Shape) -> set[Labels]:
        held = self._held.get((shape, shared))
        if held is None:
            held = self._held[shape, shared] = {_only(one, shared) for one in self.by_shape[shape]}
        return held


@dataclass(frozen=True, slots=True)
class Beside:
    """Name keys of all series of a target; `newer` holds those that another name of the target yields to."""

    names: frozenset[str]
    newer: Mapping[str, Newer]

    def supersede(self, preset: "Preset", labels: Mapping[str, str]) -> bool:
        """Whether a series of a newer name shows what a series with this meaning and these labels does.

        It does where no label that both carry has another value. A newer series counts though a still newer one
        supersedes it in turn, so that the order of series does not matter.
        """
        newer = [self.newer[name] for name in preset.yields_to if name in self.newer]
        if not newer:
            return False
        mine = carried(labels)
        return any(one.agree(mine) for one in newer)


@dataclass(slots=True)
class Targets:
    """The series of each target by name, and what is beside them; `last` is what was on the page before."""

    last: Mapping[Target, Beside] = field(default_factory=dict)
    members: dict[Target, Members] = field(default_factory=dict)
    beside: dict[Target, Beside] = field(default_factory=dict)
    _unsettled: set[Target] = field(default_factory=set)

    def join(self, series: Iterable["Series"], presets: "Catalog") -> Found:
        """Take series, and return the meanings of all names of their targets.

        What is beside the series of a target stays the same object while it is the same, so that nothing is decided
        again. Only where one name yields to another are series of the newer one looked at.
        """
        touched: set[Target] = set()
        for one in series:
            target = target_of(one)
            touched.add(target)
            self.members.setdefault(target, {}).setdefault(one.name, {})[one] = None
        names = {name for target in touched for name in self.members[target]}
        found, keys = {name: presets.lookup(name) for name in names}, {name: key(name) for name in names}
        for target in touched:
            before = self.beside.get(target) or self.last.get(target)
            beside = _beside(self.members[target], found, keys, presets)
            if beside != before:
                self._unsettled.add(target)
            self.beside[target] = before if before is not None and beside == before else beside
        return found

    def leave(self, series: Collection["Series"]) -> None:
        """Drop series."""
        for one in series:
            target = target_of(one)
            members = self.members.get(target, {})
            members.get(one.name, {}).pop(one, None)
            if not members.get(one.name, True):
                del members[one.name]
            if target in self.members and not members:
                del self.members[target]
                self.beside.pop(target, None)
        self.unsettle(series)

    def unsettle(self, series: Iterable["Series"]) -> None:
        """Note that series of the targets of these ones may mean something else now."""
        self._unsettled.update(target_of(one) for one in series)

    def settle(self) -> set[Target]:
        """Return, once, the targets noted."""
        noted, self._unsettled = self._unsettled & self.members.keys(), set()
        return noted


def _beside(members: Members, found: Found, keys: Mapping[str, str], presets: "Catalog") -> Beside:
    names = frozenset(keys[name] for name in members)
    yielded = names & {newer for name in members for preset in found[name] for newer in preset.yields_to}
    labels: dict[str, list[Mapping[str, str]]] = {name: [] for name in yielded}
    for name in [name for name in members if keys[name] in yielded]:
        for one in members[name]:
            preset = presets.choose(found[name], one.labels, names)
            if preset is not None and preset.counts(one.labels):
                labels[keys[name]].append(one.labels)
    return Beside(names, {name: Newer.of(sets) for name, sets in labels.items()})


def _names(labels: Labels) -> Shape:
    return frozenset(name for name, _ in labels)


def _only(labels: Labels, names: Shape) -> Labels:
    return frozenset(pair for pair in labels if pair[0] in names)
