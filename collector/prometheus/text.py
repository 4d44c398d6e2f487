"""Exposition text to series and values; `PageMemo` makes the next page of the same target cheap.

In the steady state (about 40 times as fast as prometheus_client, see benchmarks/exposition_parser.md) a page is a list
of prefixes, all that stands before the value, and of values. Where the prefixes and all other lines are those of the
page before, only the values are read. Otherwise each line looks its prefix up, and only an unknown one is parsed. Every
way gives exactly what a full parse gives.

Policy for pages that are no metrics: what starts with `<` is refused as HTML whatever its content type. Samples are
taken from any other content type, with a warning. A page without a sample is refused unless its content type is one of
metrics and it is empty or holds comments only, which gives a warning.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

from collector.prometheus.exposition import Exposition, Series, Types
from collector.prometheus.line import number, read_line, read_type, time_ms
from store.errors import SourceError

TEXT = "text/plain; version=0.0.4"
_OPENMETRICS = "application/openmetrics-text"
_METRICS = (_OPENMETRICS, "text/plain")
_SHOWN = 120  # characters of a line shown in an error


def parse(body: bytes, content_type: str = TEXT) -> Exposition:
    """Read a page of metrics.

    Lines that cannot be read are reported in `rejected`; the others are kept. Raises SourceError for a page that holds
    no metrics (a login page, JSON, an error text) and for an OpenMetrics page without its `# EOF`: it is cut short.
    """
    return PageMemo().parse(body, content_type)


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the last page was built.

    Which lines are samples, the prefix of each (with its blank), where its value begins; what the other lines said.
    """

    content_type: str
    sampled: list[bool]
    resting: list[bool]
    others: list[bytes]
    prefixes: list[bytes]
    tails: list[slice]
    page: Exposition


class PageMemo:
    """Parser of one target's pages. Remembers the series of the last page only, so churn does not grow it."""

    def __init__(self) -> None:
        self._series: dict[bytes, Series] = {}
        self._layout: _Layout | None = None

    def parse(self, body: bytes, content_type: str = TEXT) -> Exposition:
        """Read a page as `parse` does. On an unchanged page `series` is the very sequence of the page before."""
        lines = body.split(b"\n")
        return self._steady(lines, content_type) or self._full(lines, content_type)

    def _steady(self, lines: list[bytes], content_type: str) -> Exposition | None:
        """Read a page laid out like the last one; None where it is not."""
        last = self._layout
        if last is None or len(lines) != len(last.sampled) or content_type != last.content_type:
            return None
        if list(compress(lines, last.resting)) != last.others:
            return None
        samples = list(compress(lines, last.sampled))
        if not all(map(bytes.startswith, samples, last.prefixes)):
            return None
        texts = list(map(bytes.__getitem__, samples, last.tails))
        if b"_" in b"".join(texts):  # float() reads 1_000
            return None
        try:
            values = list(map(float, texts))
        except ValueError:
            return None
        page = last.page
        return Exposition(page.series, values, None, page.types, page.rejected, page.created, page.warnings)

    def _full(self, lines: list[bytes], content_type: str) -> Exposition:
        form = content_type.partition(";")[0].strip().lower()
        reader = _Reader(self._series, form == _OPENMETRICS)
        for at, line in enumerate(lines):
            reader.read(at, line)
        page = reader.page()
        warnings = _warnings(page, lines, form)
        if form == _OPENMETRICS and not reader.ended:
            raise SourceError("the OpenMetrics page ends without # EOF: it is cut short", "see the target's own log")
        page = replace(page, warnings=warnings)
        self._series = reader.known
        self._layout = reader.layout(lines, page, content_type)
        return page


class _Reader:
    """One pass over a page, line by line. `before` holds the series of the last page by prefix, `known` of this one."""

    def __init__(self, before: dict[bytes, Series], openmetrics: bool) -> None:
        self.before, self.known = before, dict[bytes, Series]()
        self.openmetrics = openmetrics
        self.ended = self.timed = False
        self.types: dict[str, str] = {}
        self.rejected: list[tuple[int, str]] = []
        self.found: list[tuple[int, bytes | None, Series]] = []
        self.values: list[float] = []
        self.times_ms: list[int | None] = []

    def read(self, at: int, line: bytes) -> None:
        """Read a line: a sample, a comment, a blank, or a rejected one."""
        if not self.ended and (self._read_known(at, line) or (self.timed and self._read_timed(at, line))):
            return
        stripped = line.strip()
        if not stripped:
            return
        understood = self._read_comment(stripped) if stripped[:1] == b"#" else self._read_new(at, line)
        if (self.ended and stripped != b"# EOF") or not understood:
            self.rejected.append((at + 1, stripped.decode("utf-8", "replace")))

    def _read_known(self, at: int, line: bytes) -> bool:
        prefix, _, tail = line.rpartition(b" ")
        series = self.known.get(prefix) or self.before.get(prefix)
        if series is None:
            return False
        try:
            value = number(tail)
        except ValueError:
            return False
        return self._keep(at, prefix, series, value, None)

    def _read_timed(self, at: int, line: bytes) -> bool:
        parts = line.rsplit(b" ", 2)
        series = self.known.get(parts[0]) or self.before.get(parts[0])
        if series is None or len(parts) != 3:
            return False
        try:
            value, when = number(parts[1]), time_ms(parts[2], self.openmetrics)
        except ValueError:
            return False
        return self._keep(at, parts[0], series, value, when)

    def _read_comment(self, stripped: bytes) -> bool:
        """Read what follows `#`; False for a TYPE that says nothing. Other comments (HELP, UNIT) are passed over."""
        if stripped == b"# EOF" and self.openmetrics:
            self.ended = True
        if stripped[1:].split(None, 1)[:1] != [b"TYPE"]:
            return True
        found = read_type(stripped.decode("utf-8", "replace"))
        if found is None:
            return False
        self.types[found[0]] = found[1]
        return True

    def _read_new(self, at: int, line: bytes) -> bool:
        """Parse a line in full; learn its prefix where nothing but value (and time) follows it."""
        try:
            found = read_line(line.decode())
            if found is None or self.ended:
                return False
            value = number(found.value.encode())
            when = None if found.time is None else time_ms(found.time.encode(), self.openmetrics)
        except ValueError:  # UnicodeDecodeError is one
            return False
        ends = [end.encode() for end in (found.value, found.time) if end is not None]
        prefix, *rest = line.rsplit(b" ", len(ends))
        learnt = found.plain and [end.strip() for end in rest] == ends
        self.timed = self.timed or when is not None
        return self._keep(at, prefix if learnt else None, Series(found.name, found.labels, ""), value, when)

    def _keep(self, at: int, prefix: bytes | None, series: Series, value: float, when: int | None) -> bool:
        self.found.append((at, prefix, series))
        self.values.append(value)
        self.times_ms.append(when)
        if prefix is not None:
            self.known[prefix] = series
        return True

    def page(self) -> Exposition:
        """Give every series its declared type and leave `_created` out, now that all TYPE lines are read."""
        types = Types(self.types)
        read = len(self.found)
        names = {series.name for _, _, series in self.found}
        self._leave_out({name for name in names if types.is_created(name)})
        self._set_kinds({name: types.kind(name) for name in names})
        return Exposition(
            series=[series for _, _, series in self.found],
            values=self.values,
            times_ms=self.times_ms if self.timed else None,
            types=self.types,
            rejected=tuple(self.rejected),
            created=read - len(self.found),
        )

    def _leave_out(self, names: set[str]) -> None:
        if names:
            kept = [series.name not in names for _, _, series in self.found]
            self.found = list(compress(self.found, kept))
            self.values = list(compress(self.values, kept))
            self.times_ms = list(compress(self.times_ms, kept))

    def _set_kinds(self, kinds: dict[str, str]) -> None:
        for i, (at, prefix, series) in enumerate(self.found):
            if series.kind != kinds[series.name]:
                typed = Series(series.name, series.labels, kinds[series.name])
                self.found[i] = at, prefix, typed
                if prefix is not None:
                    self.known[prefix] = typed

    def layout(self, lines: list[bytes], page: Exposition, content_type: str) -> _Layout | None:
        """Return how this page is built; None where a line does not read as prefix, blank, value."""
        prefixes = [prefix + b" " for _, prefix, _ in self.found if prefix is not None]
        tails = [slice(len(prefix), None) for prefix in prefixes]
        if self.timed or len(prefixes) < len(self.found):
            return None
        at = {at for at, _, _ in self.found}
        sampled = [i in at for i in range(len(lines))]
        resting = [not is_sample for is_sample in sampled]
        return _Layout(content_type, sampled, resting, list(compress(lines, resting)), prefixes, tails, page)


def _warnings(page: Exposition, lines: Sequence[bytes], form: str) -> tuple[str, ...]:
    """Apply the policy for pages that are no metrics. Raises SourceError."""
    shown = form or "no content type"
    first = next((line.strip() for line in lines if line.strip()), b"")
    start = first[:_SHOWN].decode("utf-8", "replace")
    if first.startswith(b"<"):
        raise SourceError(f"the answer is HTML ({shown}), not metrics: {start}", "a login page or a wrong path?")
    if page.values:
        return () if form in _METRICS else (f"content type is {shown}; read as Prometheus text",)
    if page.rejected:
        raise SourceError(f"no line of the answer ({shown}) is a metric: {start}", _hint(first))
    if form not in _METRICS:
        raise SourceError(f"the answer holds no samples and its content type is {shown}", "a wrong path?")
    return ("0 samples",)


def _hint(first: bytes) -> str:
    if first[:1] in (b"{", b"["):
        return "this is JSON; TensorRT-LLM serves metrics on /prometheus/metrics"
    return "check the target's path"
