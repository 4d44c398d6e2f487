"""`file_sd_configs`: targets from JSON and YAML files, read again when they change."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from collector.prometheus.discovery.group import Group, read_json, read_yaml
from collector.prometheus.discovery.source import Found
from store.errors import SourceError

LOOK_S = 5.0
"""A change of a file (its time, size or inode) is seen after this long at most."""


@dataclass(frozen=True, slots=True)
class _File:
    stamp: tuple[int, int, int]
    groups: tuple[Group, ...]
    error: str = ""


@dataclass(slots=True)
class FileSource:
    """Files by pattern. Looks at their times every few seconds, and reads all of them every `refresh_s`.

    A file that cannot be read keeps its last good targets; those of a file that is gone are gone, as in Prometheus.
    """

    patterns: tuple[str, ...]
    refresh_s: float = 300.0
    kind: str = "file_sd"
    _files: dict[str, _File] = field(default_factory=dict)
    _read_at: float = -1e9

    @property
    def name(self) -> str:
        """The patterns."""
        return ", ".join(self.patterns)

    @property
    def every_s(self) -> float:
        """Seconds between looks at the files' times."""
        return min(LOOK_S, self.refresh_s)

    async def refresh(self) -> Found:
        """Read what changed; everything when `refresh_s` has passed."""
        return await asyncio.to_thread(self._refresh)

    async def close(self) -> None:
        """Nothing is held open."""

    def _refresh(self) -> Found:
        now = time.monotonic()
        every = now - self._read_at >= self.refresh_s
        self._read_at = now if every else self._read_at
        paths = sorted({str(path) for p in map(Path, self.patterns) for path in p.parent.glob(p.name)})
        self._files = {path: self._look(path, every) for path in paths}
        groups = tuple(group for file in self._files.values() for group in file.groups)
        errors = [file.error for file in self._files.values() if file.error]
        errors += [f"{p}: no such file" for p in self.patterns if "*" not in p and p not in self._files]
        return Found(groups, tuple(errors))

    def _look(self, path: str, again: bool) -> _File:
        last = self._files.get(path)
        stamp = (0, 0, 0)
        try:
            found = Path(path).stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if last is not None and last.stamp == stamp and not again:
                return last
            groups = read_file(Path(path))
        except SourceError as error:
            return _File(stamp, last.groups if last else (), str(error))
        except OSError as error:
            return _File(stamp, last.groups if last else (), f"{path}: {error.strerror}")
        same = last is not None and last.groups == groups
        return _File(stamp, last.groups if last and same else groups)


def read_file(path: Path) -> tuple[Group, ...]:
    """Read one file of targets. Raises SourceError naming file and line, or OSError."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start})", "save it as UTF-8") from None
    read = read_json if path.suffix.lower() == ".json" else read_yaml
    return read(text, str(path), {"__meta_filepath": str(path)})
