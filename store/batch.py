"""`Batch`: what a decoder hands over; `Receipt`: what the store answers after COMMIT."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    import polars as pl


def new_batch_id() -> str:
    """Random id for a batch."""
    return uuid4().hex


@dataclass(frozen=True, slots=True)
class Batch:
    """Frames by table name (each conforms to its table), appended together or not at all.

    `drops` counts the rows a decoder refused, by reason.
    """

    source: str
    frames: Mapping[str, "pl.DataFrame"]
    drops: Mapping[str, int] = field(default_factory=dict)
    batch_id: str = field(default_factory=new_batch_id)

    @property
    def rows(self) -> int:
        """Rows in all frames."""
        return sum(frame.height for frame in self.frames.values())


@dataclass(frozen=True, slots=True)
class Receipt:
    """Rows stored and rows that were there already, by table."""

    batch_id: str
    stored: Mapping[str, int]
    duplicates: Mapping[str, int]
