"""`Decoded`: what the table of one file became."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from collector.files.plan import Plan
from collector.files.refusals import Refusal


@dataclass(frozen=True, slots=True)
class Decoded:
    """Frames by table, the rows refused, the mapping used, and remarks for the person at the terminal."""

    frames: Mapping[str, pl.DataFrame]
    refused: Mapping[str, Refusal]
    plan: Plan
    notes: tuple[str, ...] = ()
