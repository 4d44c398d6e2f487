"""Frames of a Result: rows to polars with the declared types, after the label columns of `by`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analytics.result import Frames
from store.columns import Column, Kind

if TYPE_CHECKING:
    import polars as pl


def build(labels: Sequence[str], columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
    """Rows as a frame: label columns as text, then the declared ones; NaN and infinities become null."""
    import polars as pl

    types = {name: Kind.TEXT.polars() for name in labels} | {c.name: c.kind.polars() for c in columns}
    frame = pl.DataFrame({n: pl.Series(n, [row.get(n) for row in rows], t, strict=False) for n, t in types.items()})
    return finite(frame)


def finite(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Replace NaN and infinities in float columns by null."""
    import polars as pl
    import polars.selectors as cs

    value = cs.float()
    return frame.with_columns(pl.when(value.is_finite()).then(value))


def empty(labels: Sequence[str], frames: Frames) -> dict[str, "pl.DataFrame"]:
    """Return every declared frame without rows."""
    return {name: build(labels, columns, ()) for name, columns in frames.items()}


def samples(labels: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
    """Signal samples: label columns and `value`."""
    return build(labels, (Column("value", Kind.FLOAT, ""),), rows)


def label_columns(frame: "pl.DataFrame", labels: Sequence[str]) -> "pl.DataFrame":
    """Make every label a text column of the frame; one that is missing or null becomes the empty text."""
    import polars as pl

    return frame.with_columns(
        (pl.col(name).cast(pl.String).fill_null("") if name in frame.columns else pl.lit("").alias(name))
        for name in labels
    )


def groups(frame: "pl.DataFrame", labels: Sequence[str]) -> list[tuple[dict[str, str], "pl.DataFrame"]]:
    """Split by labels, in label order; one group without labels where there are none."""
    if not labels or not frame.height:
        return [({}, frame)] if frame.height else []
    parts = frame.partition_by(*labels, as_dict=True, maintain_order=True)
    return [(dict(zip(labels, map(str, key), strict=True)), part) for key, part in sorted(parts.items())]
