"""How the last page of a target was built, by which the next one is read without parsing names and labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

from collector.prometheus.exposition import Exposition
from collector.prometheus.line import time_ms, without_exemplar
from collector.prometheus.reader import Found


@dataclass(frozen=True, slots=True)
class Layout:
    """Which lines are samples, what stands before the value of each, and what the other lines said.

    `fixed_bytes` is the size of all that is the same on every page laid out like this one.
    """

    openmetrics: bool
    sampled: list[bool]
    resting: list[bool]
    others: list[bytes]
    heads: list[bytes]
    fixed_bytes: int
    page: Exposition

    def read(self, body: bytes, lines: list[bytes]) -> Exposition | None:
        """Read a page laid out like the last one; None where it is not, or holds what only a full parse can judge."""
        if len(lines) != len(self.sampled) or list(compress(lines, self.resting)) != self.others:
            return None
        texts = list(map(bytes.removeprefix, compress(lines, self.sampled), self.heads))
        joined = b"".join(texts)
        if len(joined) != len(body) - self.fixed_bytes:  # a line did not begin with its head, and so was not cut
            return None
        try:
            return self._values(texts, joined)
        except ValueError:
            return None

    def _values(self, texts: list[bytes], joined: bytes) -> Exposition | None:
        if b"#" in joined:
            texts = [without_exemplar(text) if b"#" in text else text for text in texts]
            joined = b"".join(texts)
        if b"_" in joined:  # float() reads 1_000
            return None
        if self.page.times_ms is None:
            return replace(self.page, values=list(map(float, texts)))
        return self._timed(texts)

    def _timed(self, texts: list[bytes]) -> Exposition | None:
        values: list[float] = []
        times: list[int | None] = []
        for text in texts:
            value, _, when = text.partition(b" ")
            values.append(float(value))
            times.append((time_ms(when, True) if self.openmetrics else int(when)) if when else None)
        if times.count(None) == len(times) or (self.openmetrics and not self._timed_alike(times)):
            return None  # a rule of OpenMetrics looks at which samples have a time
        return replace(self.page, values=values, times_ms=times)

    def _timed_alike(self, times: Sequence[int | None]) -> bool:
        before = self.page.times_ms or ()
        return [when is None for when in before] == [when is None for when in times]


def layout(lines: Sequence[bytes], found: Sequence[Found], page: Exposition, openmetrics: bool) -> Layout | None:
    """Return how a page is built; None for one without samples."""
    heads = [head for _, head, _, _, _ in found]
    at = {at for at, *_ in found}
    sampled = [i in at for i in range(len(lines))]
    resting = [not is_sample for is_sample in sampled]
    others = list(compress(lines, resting))
    fixed_bytes = sum(map(len, others)) + sum(map(len, heads)) + len(lines) - 1
    return Layout(openmetrics, sampled, resting, others, heads, fixed_bytes, page) if heads else None
