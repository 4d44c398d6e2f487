"""A page as its job wants it: metric_relabel_configs, limits and honor_timestamps; free while a page is unchanged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from collector.prometheus.exposition import Exposition, Series
from collector.prometheus.identity import with_target
from collector.prometheus.relabel import relabel
from collector.prometheus.targets import Target
from store.errors import SourceError

_NAME = "__name__"


@dataclass(frozen=True, slots=True)
class _Last:
    """What became of the series of the last page; `kept` is None where all were."""

    before: Sequence[Series]
    after: Sequence[Series]
    kept: Sequence[bool] | None


class Shape:
    """Shapes the pages of one target. Remembers the series of the last page: an unchanged page costs a comparison."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[Series, Series | None] = {}
        self._last: _Last | None = None

    @property
    def names_target(self) -> bool:
        """Whether shaped series carry the target's labels already (rules and limits see them, as in Prometheus)."""
        return bool(self._target.rules) or self._target.limits.on_labels

    def apply(self, page: Exposition) -> Exposition:
        """Return the page to store, `series` the same object for the same series. Raises SourceError over a limit."""
        if page.times_ms is not None and not self._target.honor_timestamps:
            page = replace(page, times_ms=None)
        if self.names_target:
            page = self._relabelled(page)
        limit = self._target.limits.samples
        if limit and len(page.values) > limit:
            raise SourceError(
                f"sample_limit exceeded (samples: {len(page.values)}, limit: {limit})",
                "raise it, or drop series with metric_relabel_configs",
            )
        return page

    def _relabelled(self, page: Exposition) -> Exposition:
        last = self._last
        if last is None or last.before is not page.series:
            last = self._last = self._resolve(page.series)
        if last.kept is None:
            return replace(page, series=last.after)
        times = None if page.times_ms is None else list(compress(page.times_ms, last.kept))
        return replace(page, series=last.after, values=list(compress(page.values, last.kept)), times_ms=times)

    def _resolve(self, before: Sequence[Series]) -> _Last:
        known = self._known
        self._known = {s: known[s] if s in known else self._one(s) for s in before}
        found = [self._known[s] for s in before]
        after = [s for s in found if s is not None]
        return _Last(before, after, None if len(after) == len(found) else [s is not None for s in found])

    def _one(self, series: Series) -> Series | None:
        target = self._target
        labels = {_NAME: series.name, **with_target(series.labels, target.labels, target.honor_labels)}
        found = relabel(labels, target.rules)
        if not found:
            return None
        self._check(found)
        name = found.pop(_NAME, "")
        if not name:
            raise SourceError(f"metric_relabel_configs leave {series.name} without a name", "keep the label __name__")
        return Series(name, found, series.kind)

    def _check(self, labels: Mapping[str, str]) -> None:
        limits = self._target.limits
        if limits.labels and len(labels) > limits.labels:
            raise _over("label_limit", labels, f"number of labels: {len(labels)}, limit: {limits.labels}")
        for name, value in labels.items():
            if limits.label_name_bytes and _size(name) > limits.label_name_bytes:
                detail = f"label: {name[:50]}, length: {_size(name)}, limit: {limits.label_name_bytes}"
                raise _over("label_name_length_limit", labels, detail)
            if limits.label_value_bytes and _size(value) > limits.label_value_bytes:
                detail = f"label: {name[:50]}, length: {_size(value)}, limit: {limits.label_value_bytes}"
                raise _over("label_value_length_limit", labels, detail)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _over(key: str, labels: Mapping[str, str], detail: str) -> SourceError:
    fact = f"{key} exceeded (metric: {labels.get(_NAME, '')[:50]}, {detail})"
    return SourceError(fact, "raise it, or shorten labels with metric_relabel_configs")
