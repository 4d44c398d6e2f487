"""A host's tree and what is read of it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from collector.prometheus.exposition import Sample
from tests.collector.host.tree_of import FILES, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a host of two sockets."""
    return write(tmp_path, FILES)


Find = Callable[..., list[tuple[dict[str, str], float]]]


def finder(samples: Sequence[Sample]) -> Find:
    """A function that gives labels and value of samples by name and labels."""

    def find(name: str, **labels: str) -> list[tuple[dict[str, str], float]]:
        return [(dict(s.labels), s.value) for s in samples if s.name == name and labels.items() <= s.labels.items()]

    return find
