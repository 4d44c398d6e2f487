"""The shipped data files, wherever the package is installed (also from a zip)."""

import gzip
import io
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def resource(part: str, name: str) -> Traversable:
    """Return a file of `real` or `simulated`, wherever the package is installed."""
    return files("sample_data").joinpath(part, name)


def read(part: str, name: str) -> bytes:
    """Return the content of a file of `real` or `simulated`."""
    return resource(part, name).read_bytes()


def lines(part: str, name: str) -> Iterator[bytes]:
    """Yield the lines of a gzipped file."""
    with gzip.open(io.BytesIO(read(part, name))) as unpacked:
        yield from unpacked


def parquet(part: str, name: str) -> "pl.DataFrame":
    """Return a Parquet file as a frame."""
    import polars as pl

    return pl.read_parquet(io.BytesIO(read(part, name)))
