"""The limits that Linux control groups set on this process: memory and processors, version 2 and version 1."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """The least limits of the group and all above it; None where none is set."""

    memory_bytes: int | None = None
    cpus: float | None = None


@dataclass(frozen=True, slots=True)
class _Mount:
    """A mounted hierarchy: which group is mounted where, and the version 1 controllers (none: version 2)."""

    group: str
    point: Path
    controllers: frozenset[str]


def group_limits(root: Path = Path("/")) -> GroupLimits:
    """Read the limits from proc and sys below `root`; nothing is set where there are no control groups."""
    folders = dict(_groups(root))
    memory = [*_least(folders.get("", []), "memory.max", "memory.high")]
    memory += _least(folders.get("memory", []), "memory.limit_in_bytes")
    shares = [share for folder in folders.get("", []) if (share := _share_v2(folder))]
    shares += [share for folder in folders.get("cpu", []) if (share := _share_v1(folder))]
    return GroupLimits(min(memory, default=None), min(shares, default=None))


def _groups(root: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield each controller of this process ('' for version 2) with its folder and those above it."""
    mounts = [_mount(line, root) for line in _lines(root / "proc/self/mountinfo") if " - cgroup" in line]
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        names, _, group = rest.partition(":")
        for name in names.split(","):
            for mount in mounts:
                if name in mount.controllers or (not name and not mount.controllers):
                    yield name, _upwards(mount, group)


def _mount(line: str, root: Path) -> _Mount:
    """Read a line of mountinfo: id parent device group point options … - type source options."""
    left, _, right = line.partition(" - ")
    fields, (kind, _, options) = left.split(), right.split(maxsplit=2)
    names = frozenset(options.split(",")) if kind == "cgroup" else frozenset[str]()
    return _Mount(fields[3], root / fields[4].lstrip("/"), names)


def _upwards(mount: _Mount, group: str) -> list[Path]:
    """Folders from a group up to the mount.

    In a container without a name space of its own the path is the host's, but only this group is mounted; and a path
    that starts with '..' lies outside of what is mounted. Both mean the mount itself.
    """
    inside = group.removeprefix(mount.group.rstrip("/")) if mount.group != "/" else group
    folder = mount.point / inside.strip("/")
    if ".." in folder.parts or not folder.is_dir():
        return [mount.point]
    return [folder, *(above for above in folder.parents if above.is_relative_to(mount.point))]


def _least(folders: list[Path], *names: str) -> list[int]:
    values = [int(text) for folder in folders for name in names if (text := _word(folder / name)).isdigit()]
    return [min(values)] if values else []


def _share_v2(folder: Path) -> float | None:
    """Processors of cpu.max: 'quota period', or 'max period' for no limit."""
    words = _text(folder / "cpu.max").split()
    return int(words[0]) / int(words[1]) if len(words) == 2 and words[0].isdigit() else None


def _share_v1(folder: Path) -> float | None:
    quota, period = _word(folder / "cpu.cfs_quota_us"), _word(folder / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _word(path: Path) -> str:
    return _text(path).strip()


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
