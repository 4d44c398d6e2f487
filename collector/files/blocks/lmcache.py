"""Traces of agents in the form of LMCache's: requests of sessions, with a prefix hash for each 1,024 characters."""

import io

import orjson
import polars as pl

from collector.files.blocks.request import Layout, Traced
from collector.files.content import Content, Format
from collector.files.refusals import Refusal
from collector.files.rows import read_rows
from store.errors import SourceError

LAYOUT = Layout("us", 1024, "characters")
_NEEDS = frozenset({"session_id", "timestamp_us", "prefix_hashes"})
_COUNTS = ("input_chars", "output_chars")
_MASK = 2**64 - 1


def is_lmcache(content: Content) -> bool:
    """Tell whether a file has the columns of such a trace."""
    if content.format is Format.JSON:
        first = content.head.lstrip().split("\n", 1)[0]
        return all(f'"{name}"' in first for name in _NEEDS)
    if content.format is not Format.PARQUET:
        return False
    try:
        return set(pl.read_parquet_schema(io.BytesIO(content.body))) >= _NEEDS
    except (pl.exceptions.PolarsError, OSError):
        return False


def read_lmcache(content: Content, refused: dict[str, Refusal]) -> list[Traced]:
    """Return the requests of a trace; an agent is the service of its requests. Rows without time or hashes are refused.

    Raises SourceError, naming the file, where a column is missing.
    """
    rows = read_rows(content)
    missing = sorted(_NEEDS - set(rows.frame.columns))
    if missing:
        raise SourceError(f"{content.path}: no column {missing[0]}", f"columns: {', '.join(rows.frame.columns)}")
    found = []
    bad: list[int] = []
    for number, row in enumerate(rows.frame.iter_rows(named=True)):
        hashes, time = _hashes(row["prefix_hashes"]), row["timestamp_us"]
        if hashes is None or type(time) not in (int, float):
            bad.append(number)
            continue
        counts = {name: row[name] for name in _COUNTS if row.get(name) is not None}
        agent, session = row.get("agent"), row["session_id"]
        text = orjson.dumps([agent, session, time, hashes, counts], default=str).decode()
        found.append(Traced(text, time, hashes, agent, None if session is None else str(session), attributes=counts))
    if bad:
        refused["no time or no prefix hashes"] = Refusal(len(bad), rows.where(bad[0]))
    return found


def _hashes(value: object) -> list[int] | None:
    """Return a list of hashes; what a JSON file holds comes as text."""
    given = orjson.loads(value) if isinstance(value, str) else value
    if not isinstance(given, list) or not all(type(number) is int for number in given):
        return None
    return [number & _MASK for number in given]
