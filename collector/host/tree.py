"""A tree of /proc and /sys below a root. What cannot be read is None or empty, and counted by kind of file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import strerror
from pathlib import Path

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why files of a kind were not read, and how many in the last read."""

    reason: str
    files: int


@dataclass(slots=True)
class Tree:
    """Reads files by their path on the host (`/proc/stat`), wherever that host's root is mounted."""

    root: Path = Path("/")
    _skipped: dict[str, Skipped] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """Return a file; None where it is missing, unreadable, or gone since it was listed."""
        try:
            return self._at(path).read_bytes().decode("utf-8", "replace")
        except OSError as error:
            self._skip(path, error)
            return None

    def word(self, path: str) -> str:
        """Return a file without the blanks around it; empty where there is none."""
        return (self.text(path) or "").strip()

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, numbers within them in numeric order; none where it is missing."""
        try:
            return sorted((entry.name for entry in self._at(path).iterdir()), key=_numeric)
        except OSError as error:
            self._skip(path, error)
            return []

    def folders(self, path: str) -> list[str]:
        """Return the names of the directories in a directory, as `names` does."""
        return [name for name in self.names(path) if self._is_folder(f"{path}/{name}")]

    def link(self, path: str) -> str | None:
        """Return where a symbolic link points to, as it is written there."""
        try:
            return str(self._at(path).readlink())
        except OSError as error:
            self._skip(path, error)
            return None

    def misread(self, path: str, reason: str) -> None:
        """Count a file whose text was not understood."""
        self._count(path, reason)

    def take_skipped(self) -> Mapping[str, Skipped]:
        """Return what was skipped since the last call, by path with * for numbers."""
        found, self._skipped = self._skipped, {}
        return found

    def _is_folder(self, path: str) -> bool:
        try:
            return self._at(path).is_dir()
        except OSError as error:
            self._skip(path, error)
            return False

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def _skip(self, path: str, error: OSError) -> None:
        self._count(path, strerror(error.errno) if error.errno else str(error))

    def _count(self, path: str, reason: str) -> None:
        kind = _NUMBER.sub("*", path)
        before = self._skipped.get(kind)
        self._skipped[kind] = Skipped(reason, 1 + (before.files if before else 0))


def _numeric(name: str) -> tuple[tuple[str, int], ...]:
    texts = _NUMBER.split(name)
    numbers = [int(n) for n in _NUMBER.findall(name)]
    return tuple(zip(texts, [*numbers, -1], strict=True))
