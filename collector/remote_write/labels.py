"""The labels of a series as remote write sends them, or why the series is refused."""

from collections.abc import Callable, Sequence

from collector.prometheus.exposition import Series
from collector.remote_write.messages import Label
from store.errors import InfractlError

NAME = "__name__"
REASONS = {
    "invalid_utf8": "a name or value is not UTF-8",
    "no_name": "no label __name__",
    "empty_label_name": "a label has no name",
    "duplicate_label": "a label occurs twice",
    "unsorted_labels": "label names are not in order",
    "too_many_series": "a million series are known already",
    "unknown_symbol": "a reference lies outside the symbols",
    "time_out_of_range": "a time lies before 2000 or more than an hour ahead",
    "invalid_histogram": "a native histogram does not add up",
}
"""Why something of a request is refused."""


class RefusedError(InfractlError):
    """A series that cannot be stored; `reason` is what it is counted as."""

    def __init__(self, reason: str) -> None:
        super().__init__(REASONS[reason])
        self.reason = reason


def pairs_of(blocks: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return names and values of Label messages. Raises DecodeError."""
    return [(label.name, label.value) for label in map(Label.FromString, blocks)]


def series_of(pairs: Sequence[tuple[bytes, bytes]], kind_of: Callable[[str], str]) -> Series:
    """Return the series of labels in wire order; a label with an empty value is one that is not there.

    Raises RefusedError.
    """
    try:
        named = [(name.decode(), value.decode()) for name, value in pairs]
    except UnicodeDecodeError:
        raise RefusedError("invalid_utf8") from None
    names = [name for name, _ in named]
    if "" in names:
        raise RefusedError("empty_label_name")
    if len(set(names)) < len(names):
        raise RefusedError("duplicate_label")
    if names != sorted(names):
        raise RefusedError("unsorted_labels")
    labels = {name: value for name, value in named if value}
    name = labels.pop(NAME, "")
    if not name:
        raise RefusedError("no_name")
    return Series(name, labels, kind_of(name))
