"""One pass over a page, line by line: samples, types, starts of counters, lines that cannot be read.

`before` holds the series of the last page by prefix, all that stands before the blank and the value; a line with a
known prefix is not parsed again.
"""

from collections.abc import Sequence

from collector.prometheus.exposition import Exposition, Series, Types, start_key
from collector.prometheus.line import number, read_line, read_tail, read_type, time_ms

Found = tuple[int, bytes, Series, float, int | None]
"""A sample: index of its line, all that stands before the value, series, value, time in ms. A plain tuple for speed."""


class Reader:
    """Reads a page; `known` then holds its series by prefix, `ended` the index of the line `# EOF`."""

    def __init__(self, before: dict[bytes, Series], openmetrics: bool) -> None:
        self.before, self.known = before, dict[bytes, Series]()
        self.openmetrics = openmetrics
        self.ended: int | None = None
        self.types = Types({})
        self._kinds: dict[str, str] = {}  # by sample name, as far as the types above it tell
        self.rejected: list[tuple[int, str]] = []
        self.found: list[Found] = []
        self._tailed = False  # whether a value was followed by a time or an exemplar

    def read(self, lines: Sequence[bytes]) -> None:
        """Read all lines of a page."""
        for at, line in enumerate(lines):
            if self.ended is not None or not (self._read_known(at, line) or (self._tailed and self._tail(at, line))):
                self._read_other(at, line)

    def _read_known(self, at: int, line: bytes) -> bool:
        prefix, _, tail = line.rpartition(b" ")
        series = self.known.get(prefix) or self.before.get(prefix)
        if series is None:
            return False
        try:
            value = number(tail)
        except ValueError:
            return False
        self.known[prefix] = series
        self.found.append((at, prefix + b" ", series, value, None))
        return True

    def _tail(self, at: int, line: bytes) -> bool:
        """Read a line of a known prefix whose value is followed by a time, an exemplar or both."""
        front = line.partition(b" # ")[0]
        for prefix in (front.rsplit(b" ", 2)[0], front.rpartition(b" ")[0]):
            series = self.known.get(prefix) or self.before.get(prefix)
            if series is not None:
                break
        else:
            return False
        try:
            value, when = read_tail(line[len(prefix) + 1 :], self.openmetrics)
        except ValueError:
            return False
        self.known[prefix] = series
        self.found.append((at, prefix + b" ", series, value, when))
        return True

    def _read_other(self, at: int, line: bytes) -> None:
        stripped = line.strip()
        if not stripped or (self.ended is not None and stripped == b"# EOF"):
            return
        understood = self.ended is None and (
            self._read_comment(at, stripped) if stripped[:1] == b"#" else self._read_new(at, line)
        )
        if not understood:
            self.rejected.append((at + 1, stripped.decode("utf-8", "replace")))

    def _read_comment(self, at: int, stripped: bytes) -> bool:
        """Read what follows `#`; False for a TYPE that says nothing. Other comments (HELP, UNIT) are passed over."""
        if stripped == b"# EOF" and self.openmetrics:
            self.ended = at
        if stripped[1:].split(None, 1)[:1] != [b"TYPE"]:
            return True
        found = read_type(stripped.decode("utf-8", "replace"))
        if found is None:
            return False
        self.types.declare(*found)
        self._kinds.clear()
        return True

    def _read_new(self, at: int, line: bytes) -> bool:
        """Parse a line in full and learn its prefix."""
        try:
            text = line.decode()
            found = read_line(text)
            if found is None:
                return False
            value = number(found.value.encode())
            when = None if found.time is None else time_ms(found.time.encode(), self.openmetrics)
        except ValueError:  # UnicodeDecodeError is one
            return False
        kind = self._kinds.get(found.name)
        if kind is None:
            kind = self._kinds[found.name] = self.types.kind(found.name)
        series = Series(found.name, found.labels, kind)
        head = text[: found.begin].encode()
        if head.endswith(b" "):
            self.known[head[:-1]] = series
        self._tailed = self._tailed or when is not None or found.exemplar is not None
        self.found.append((at, head, series, value, when))
        return True

    def page(self) -> tuple[Exposition, list[Found]]:
        """Return the page and its samples, now that all TYPE lines are read: typed, and without `_created` series."""
        types = self.types
        names = {found[2].name for found in self.found}
        created = {name for name in names if types.is_created(name)}
        kept = [found for found in self.found if found[2].name not in created] if created else self.found
        kept = self._typed(kept, {name: types.kind(name) for name in names})
        times = [when for *_, when in kept] if self._tailed else []
        page = Exposition(
            series=[series for _, _, series, _, _ in kept],
            values=[value for _, _, _, value, _ in kept],
            times_ms=times if any(when is not None for when in times) else None,
            types=types.declared,
            rejected=tuple(self.rejected),
            created=len(self.found) - len(kept),
            starts={start_key(s): value for _, _, s, value, _ in self.found if s.name in created} if created else {},
        )
        return page, kept

    def _typed(self, found: list[Found], kinds: dict[str, str]) -> list[Found]:
        typed: dict[Series, Series] = {}
        for i, (at, head, series, value, when) in enumerate(found):
            if series.kind != kinds[series.name]:
                new = typed.setdefault(series, Series(series.name, series.labels, kinds[series.name]))
                found[i] = at, head, new, value, when
                if head.endswith(b" "):
                    self.known[head[:-1]] = new
        return found
