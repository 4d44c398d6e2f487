"""`select`: a RollupQuery as SQL over hours, five-minute buckets and, where neither is up to date, raw rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from store.columns import Table
from store.errors import UsageError
from store.manifest import Files
from store.query import RollupQuery
from store.rollups.freshness import fine_since, pending, stale, stale_hours, touched
from store.rollups.sketch import estimate_sql, rank_sql
from store.rollups.statements import KEYS, MERGES, fine, joined
from store.rollups.stretches import COARSE, FINE, Stretch, ceil, clipped, condition, floor, merged, without
from store.rollups.tables import COARSE_S, FINE_S
from store.sqltext import Statement, matches, series_named
from store.window import Window

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Plan:
    """Which stretches of a window are read from which rows; together they are the window."""

    hours: Sequence[Stretch]
    buckets: Sequence[Stretch]
    raw: Sequence[Stretch]


def select(cursor: "duckdb.DuckDBPyConnection", query: RollupQuery, window: Window, files: Files) -> Statement:
    """SELECT for a query within a window. Raises UsageError for a step or dimension that rollups do not have."""
    name = f"rollup_{query.kind}"
    _check(query, name)
    source = "metrics" if query.kind == "metrics" else "requests"
    rows = _parts(name, plan(cursor, source, window, files, query.step_s), files)
    if query.kind == "metrics":
        return _metrics(query, rows)
    matched, values = matches(query.where, KEYS[name], "", ())
    kept = f"(SELECT * FROM {rows} WHERE true{matched})"
    if query.kind == "latency":
        return _latency(query, kept), values
    return f"SELECT {_list(*_group(query), MERGES[name])} FROM {kept} AS part{_grouped(query)}", values


def plan(cursor: "duckdb.DuckDBPyConnection", kind: str, window: Window, files: Files, step_s: int | None) -> Plan:
    """Choose hours where the buckets asked for allow, five-minute buckets elsewhere, raw rows for what is neither."""
    low, high = window.start.replace(tzinfo=None), window.end.replace(tzinfo=None)
    whole = merged([(ceil(low), floor(high))])
    waiting = merged([*pending(cursor, kind), *touched(cursor, kind)])
    inside = [part for a, b in whole for part in clipped(waiting, a, b)]
    old = [(bucket, bucket + FINE) for bucket, _ in stale(cursor, files, kind, inside)]
    hours: list[Stretch] = []
    if step_s != FINE_S:
        late = [(hour, hour + COARSE) for hour, _ in stale_hours(cursor, kind, low, high)]
        touching = [(floor(a, COARSE), ceil(b, COARSE)) for a, b in old]
        hours = without([(ceil(low, COARSE), floor(high, COARSE))], [*late, *touching])
    first = fine_since(cursor, kind)
    built = [part for a, b in whole for part in clipped([(first, b)] if first else [], a, b)]
    buckets = without(built, [*hours, *old])
    return Plan(hours, buckets, without([(low, high)], [*hours, *buckets]))


def _check(query: RollupQuery, name: str) -> None:
    known = tuple(key for key in KEYS[name] if key not in ("measure", "idx"))
    unknown = [key for key in (*query.by, *(key for key, _ in query.where)) if key not in known]
    if unknown and query.kind != "metrics":
        raise UsageError(f"{name} has no {unknown[0]!r}", "it has " + ", ".join(known))
    if query.step_s not in (None, FINE_S, COARSE_S):
        raise UsageError(f"rollups have no buckets of {query.step_s} s", f"they have {FINE_S} and {COARSE_S} s")


def _parts(name: str, chosen: Plan, files: Files) -> str:
    texts = [
        f"SELECT * FROM {name} WHERE step_s = {step} AND {condition('bucket', stretches)}"
        for step, stretches in ((COARSE_S, chosen.hours), (FINE_S, chosen.buckets))
    ]
    if chosen.raw:
        texts.append(f"SELECT * FROM ({fine(name, files, chosen.raw)})")
    return f"({' UNION ALL BY NAME '.join(texts)})"


def _group(query: RollupQuery) -> tuple[str, ...]:
    bucket = (f"time_bucket(INTERVAL {query.step_s} SECOND, bucket) AS bucket",) if query.step_s else ()
    return (*bucket, *(f'"{name}"' for name in query.by))


def _list(*fields: str) -> str:
    return ", ".join(field for field in fields if field)


def _grouped(query: RollupQuery) -> str:
    """GROUP BY and ORDER BY of the first fields; without any, no row where there are no rows."""
    places = ", ".join(str(i + 1) for i in range(len(_group(query))))
    return f" GROUP BY {places} ORDER BY {places}" if places else " HAVING count(*) > 0"


def _latency(query: RollupQuery, rows: str) -> str:
    names = [*(["bucket"] if query.step_s else []), *(f'"{name}"' for name in query.by), "measure"]
    keys = ", ".join(names)
    only = f" WHERE measure IN ({', '.join(repr(m) for m in query.measures)})" if query.measures else ""
    fields = _list(*_group(query), "measure", "idx", MERGES["rollup_latency"])
    summed = f"SELECT {fields} FROM {rows} AS part{only} GROUP BY ALL"
    counted = (
        f"SELECT *, sum(n) OVER (PARTITION BY {keys} ORDER BY idx NULLS FIRST) AS upto, "
        f"CAST(sum(n) OVER (PARTITION BY {keys}) AS BIGINT) AS total FROM ({summed})"
    )
    columns = [
        f'min({estimate_sql("idx")}) FILTER (upto >= {rank_sql(q, "total")}) AS "p{100 * q:g}"' for q in query.quantiles
    ]
    for limit in query.limits:
        inside = f"idx IS NULL OR {estimate_sql('idx')} <= {limit!r}"
        columns.append(f'CAST(coalesce(sum(n) FILTER ({inside}), 0) AS BIGINT) AS "within_{limit:g}"')
    return f"SELECT {_list(keys, 'any_value(total) AS n', *columns)} FROM ({counted}) GROUP BY {keys} ORDER BY {keys}"


def _metrics(query: RollupQuery, rows: str) -> Statement:
    """Rows of each series in the unit asked for; the increase of a bucket is that since the last value before it."""
    merged_rows = joined(rows, "series_id")
    bucket = _group(RollupQuery("metrics", step_s=query.step_s))
    keys = _list(*(["bucket"] if query.step_s else []), "series_id")
    summed = f"SELECT {_list(*bucket, 'series_id', MERGES['rollup_metrics'])} FROM {merged_rows} AS part GROUP BY ALL"
    named, values = series_named(query.names, query.where)
    scaled = ", ".join(f"part.{name} * s.factor AS {name}" for name in ("first", "last", "min", "max", "sum"))
    text = (
        f"SELECT part.bucket, s.name, series_id, part.n, part.n_null, {scaled}, first_ts, last_ts, "
        "part.sum_squares * s.factor * s.factor AS sum_squares, part.growth * s.factor AS increase, "
        "s.unit, s.combine, s.kind, s.raw, s.service, s.instance, s.job, s.labels "
        f"FROM ({summed}) AS part JOIN ({named}) AS s USING (series_id) ORDER BY {keys}"
    )
    return (text if query.step_s else text.replace("part.bucket, ", "", 1)), values


def rows_estimate(cursor: "duckdb.DuckDBPyConnection", table: Table, window: Window) -> int:
    """Rows of a sealed table in a window, those of its files as if they lay evenly between first and last row."""
    bounds: list[datetime] = [window.start.replace(tzinfo=None), window.end.replace(tzinfo=None)]
    share = (
        "greatest(0, least(epoch_us(max_ts), epoch_us($2)) - greatest(epoch_us(min_ts), epoch_us($1)) + 1)"
        " / (epoch_us(max_ts) - epoch_us(min_ts) + 1)"
    )
    hot = f"SELECT count(*) FROM {table.stored} WHERE ts >= $1 AND ts < $2"
    text = (
        f"SELECT ({hot}) + (SELECT coalesce(sum(rows * {share}), 0) "
        "FROM manifest WHERE dropped IS NULL AND table_name = $3 AND max_ts >= $1 AND min_ts < $2)"
    )
    values: list[Any] = [*bounds, table.name]
    found = cursor.execute(text, values).fetchone()
    return round(found[0]) if found else 0
