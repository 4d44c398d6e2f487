"""Which driver moved most in an episode, and what changed between two parts of the window.

The fit over the whole window is an average over all its incidents; one with two different ones blames the same driver
for both. So each episode is held against the calm requests alone (`analytics.p99.change`).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl

from analytics.p99 import ABOVE, P99Params
from analytics.p99.change import Change, change
from analytics.p99.group import Group
from analytics.p99.windows import Episode, episodes
from store.errors import UsageError
from store.window import Window


def of_episodes(group: Group) -> Mapping[datetime, dict[str, Any]]:
    """By start of the episode: the driver that most of its rise goes with, how much, and the driver's two means.

    Without those of which nothing can be said: no model, no calm request to compare with, too few in the episode.
    """
    found = {}
    for episode in episodes(group.table, ABOVE, group.size):
        split = _against_calm(group, episode, 0, 0)
        most = split.most if isinstance(split, Change) else None
        if most is not None:
            found[episode.since] = {
                "driver": most.name,
                "moved": most.change,
                "driver_inside": most.after,
                "driver_outside": most.before,
            }
    return found


def compared(group: Group, params: P99Params, window: Window) -> tuple[Change | None, tuple[str, ...]]:
    """Split the change since `--before`, else that of the last episode, with limits; and what is to be said of it."""
    if group.model is None or group.model.method != "qr":
        return None, ()
    if params.before:
        earlier = named_part(params.before, window)
        rows = group.selection.rows
        parts = (rows.filter(_between(earlier)), rows.filter(pl.col("ts") >= earlier.end.replace(tzinfo=None)))
        about = f"change: {earlier} against what follows"
        split = _split(group, *parts, params.resamples, params.seed)
    else:
        every = episodes(group.table, ABOVE, group.size)
        if not every:
            return None, ()
        about = f"change: calm time against the episode since {every[-1].since.isoformat()}Z"
        split = _against_calm(group, every[-1], params.resamples, params.seed)
    if isinstance(split, str):
        return None, (f"{about}: {split}",)
    return split, (f"{about}, at tau {split.tau:g}", *split.notes)


def named_part(text: str, window: Window) -> Window:
    """Read A..B within the window. Raises UsageError where it is not, or where nothing follows it."""
    if ".." not in text:
        raise UsageError(f"before cannot be {text!r}", f"write it as A..B within {window}")
    part = Window.parse(text, window.end)
    if not window.start <= part.start < part.end < window.end:
        raise UsageError(f"before is {part}", f"it must begin and end within {window}, and something must follow it")
    return part


def _against_calm(group: Group, episode: Episode, resamples: int, seed: int) -> Change | str:
    every = episodes(group.table, ABOVE, group.size)
    calm = group.selection.rows.filter(~pl.any_horizontal([_within(e) for e in every]))
    inside = group.selection.rows.filter(_within(episode))
    return _split(group, calm, inside, resamples, seed)


def _split(group: Group, before: pl.DataFrame, after: pl.DataFrame, resamples: int, seed: int) -> Change | str:
    if group.model is None:
        return "no fit"
    if not before.height or not after.height:
        return f"{before.height} requests before and {after.height} after"
    return change(before, after, group.selection.candidates, group.model.tau, resamples, seed)


def _between(window: Window) -> pl.Expr:
    return (pl.col("ts") >= window.start.replace(tzinfo=None)) & (pl.col("ts") < window.end.replace(tzinfo=None))


def _within(episode: Episode) -> pl.Expr:
    return (pl.col("ts") >= episode.since) & (pl.col("ts") < episode.until)
