"""Handshakes: which were measured, and what share of the time goes into them."""

from dataclasses import dataclass

import polars as pl

MEASURED, ESTIMATED, BORROWED = "measured", "estimated", "estimated elsewhere"


def measured(rows: pl.DataFrame, spans: pl.DataFrame, labels: list[str]) -> pl.DataFrame:
    """Handshakes that were timed: labels, side, ts, seconds, whether a request's own time includes them, connection.

    Lines of a connection log state one each. A line of an access log that states one counts once per connection, for
    it repeats it with each request. A client's spans below its request are part of the request's time; connect and
    handshake of one attempt are of one connection.
    """
    timed = pl.coalesce(
        pl.when(~pl.col("request")).then("seconds"), pl.col("tls.handshake_s").cast(pl.Float64, strict=False)
    )
    logged = rows.filter(pl.col("opens").fill_null(value=False)).with_columns(timed.alias("seconds"))
    logged = logged.filter(pl.col("seconds").is_finite() & (pl.col("seconds") > 0))
    database = (pl.col("name") == "connect") & (pl.col("kind") == "client")  # as drivers of databases name theirs
    below = (
        spans.drop_nulls("ts")
        .filter(~database.fill_null(value=False))
        .filter(pl.col("duration_s").is_finite() & (pl.col("duration_s") >= 0))
    )
    logged = logged.with_columns(within=pl.lit(value=False), connection=pl.struct("trace_id", "ts").hash())
    below = below.with_columns(
        side=pl.lit("client"), within=pl.lit(value=True), seconds=pl.col("duration_s").cast(pl.Float64),
        connection=pl.col("trace_id").hash(),
    )  # fmt: skip
    named = [*labels, "side", "ts", "seconds", "within", "connection"]
    return pl.concat([logged.select(named), below.select(named)])


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds of a stretch: of its requests, in handshakes that are part of those and in ones that are not.

    `connections` were measured; `opened` there were, null where not known.
    """

    requests_s: float
    within_s: float
    beside_s: float
    connections: int
    opened: float | None


def share(time: Time, usual_s: float | None, *, borrowed: bool = False) -> tuple[float | None, str | None]:
    """Share of the time that is handshakes, and what it rests on.

    Connections without a measured handshake count with `usual_s`. Null where nothing was measured anywhere, or
    nothing took time.
    """
    lacking = max((time.opened or 0.0) - time.connections, 0.0)
    if lacking and usual_s is None:
        return None, None
    if not time.connections and not time.opened:
        return None, None
    more = lacking * (usual_s or 0.0)
    whole = time.requests_s + time.beside_s + more
    found = (time.within_s + time.beside_s + more) / whole if whole > 0 else None
    return (
        (None, None)
        if found is None
        else (min(found, 1.0), MEASURED if not lacking else BORROWED if borrowed else ESTIMATED)
    )


def usual(events: pl.DataFrame) -> float | None:
    """Mean handshake of a connection; null where none was measured."""
    if not events.height:
        return None
    return float(events["seconds"].sum()) / int(events["connection"].n_unique())
