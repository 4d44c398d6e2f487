"""Which request came on which connection, and which of them opened it.

A connection is told by its id, else by the client's address and port; where neither is stated, a client may still say
whether a request opened one. Nothing is guessed from times alone.
"""

import polars as pl

from analytics.connections import HANDSHAKES, ConnectionsParams

LOGGED = ("TLS handshake", "connection")
"""Spans of a connection log: a connection each, no request."""
_NUMBERED = r"^[0-9a-f]{8}-\d+$"  # an address and port that the import of an access log numbered
_AGAIN_S = 1.0  # a first request this long after another of the same id: the id was given anew (a restart)


def connected(rows: pl.DataFrame, params: ConnectionsParams) -> pl.DataFrame:
    """Add side, request, seconds, nth, basis, session and opens to rows, in order of time.

    `session` numbers connections, null where they cannot be told apart: no id or address is stated, or only a share of
    the traces was read. `opens` is whether the row opened its connection, null where not known.
    """
    share = rows["share_read"].min() if "share_read" in rows.columns else None
    partial = isinstance(share, float) and share < 1
    stated = rows.drop_nulls("ts").with_columns(_side(), _request(), _seconds(), _nth(), _new(), *_key())
    if partial:
        stated = stated.with_columns(_key=pl.lit(None, pl.UInt64))
    stated = stated if stated["ts"].is_sorted() else stated.sort("ts")
    found = stated.with_row_index("_row").join(_sessions(stated, params), on="_row", how="left", maintain_order="left")
    basis = pl.when(pl.col("_key").is_null() & pl.col("_new").is_not_null()).then(pl.lit("stated"))
    return found.with_columns(
        pl.when(pl.col("_key").is_null()).then("_new").otherwise("opens").alias("opens"),
        pl.when(pl.col("_key").is_null()).then(basis).otherwise("basis").alias("basis"),
    ).drop("_key", "_new", "_row")


def _side() -> pl.Expr:
    return pl.when(pl.col("kind") == "client").then(pl.lit("client")).otherwise(pl.lit("server")).alias("side")


def _request() -> pl.Expr:
    return pl.col("name").is_in([*LOGGED, *HANDSHAKES]).fill_null(value=False).not_().alias("request")


def _seconds() -> pl.Expr:
    value = pl.col("duration_s").cast(pl.Float64)
    return pl.when(value.is_finite() & (value >= 0)).then(value).alias("seconds")


def _nth() -> pl.Expr:
    return pl.col("connection.requests").cast(pl.Int64, strict=False).alias("nth")


def _new() -> pl.Expr:
    """Whether the row itself says that it opened its connection."""
    probe, reused = pl.col("infractl.probe.connection"), pl.col("http.conn.reused").str.to_lowercase()
    return pl.coalesce(
        pl.when(probe.is_in(["new", "reused"])).then(probe == "new"),
        pl.when(reused.is_in(["true", "false"])).then(reused == "false"),
        pl.col("connection.requests").cast(pl.Int64, strict=False) == 1,
    ).alias("_new")


def _key() -> tuple[pl.Expr, pl.Expr]:
    """Name the connection, and say by what. On the client's side the peer's port is that of the server: no name."""
    stated = pl.col("connection.id")
    address, port = pl.col("network.peer.address"), pl.col("network.peer.port")
    peer = pl.when(pl.col("kind") != "client", port.is_not_null(), address.is_not_null()).then(
        pl.concat_str(address, pl.lit(" "), port)
    )
    where = pl.concat_str(pl.col("service").fill_null(""), pl.col("host").fill_null(""), separator="\n")
    key = pl.concat_str(where, pl.coalesce(stated, peer), separator="\n")
    numbered = stated.is_null() | stated.str.contains(_NUMBERED)
    basis = pl.when(numbered).then(pl.lit("address")).otherwise(pl.lit("id"))
    hashed = pl.when(key.is_not_null()).then(key.hash())  # sorts and compares five times as fast as text
    return hashed.alias("_key"), pl.when(pl.coalesce(stated, peer).is_not_null()).then(basis).alias("basis")


def _sessions(stated: pl.DataFrame, params: ConnectionsParams) -> pl.DataFrame:
    """Part rows of one key where it was silent too long, or began to count anew: row, session, opens.

    Only the columns that this needs are sorted: four times as fast as whole rows.
    """
    end = pl.col("ts") + pl.duration(microseconds=(pl.col("seconds").fill_null(0.0) * 1e6).cast(pl.Int64))
    numbered = pl.col("basis") == "address"
    narrow = stated.with_row_index("_row").select("_row", "_key", "ts", "nth", "request", end.alias("_end"), numbered)
    rows = narrow.filter(pl.col("_key").is_not_null()).sort("_key", "ts")
    first = (pl.col("_key") != pl.col("_key").shift(1)).fill_null(value=True)
    silent_s = (pl.col("ts") - pl.col("_end").cum_max().over("_key").shift(1)).dt.total_microseconds() / 1e6
    again = (pl.col("nth") == 1) & (silent_s > _AGAIN_S) & pl.col("request").shift(1)
    begins = first | (pl.col("basis") & (silent_s > params.idle)) | again.fill_null(value=False)
    return rows.with_columns(begins.alias("_begins")).select(
        "_row",
        pl.col("_begins").cum_sum().cast(pl.UInt32).alias("session"),
        (pl.col("_begins") & (pl.col("nth").fill_null(1) <= 1)).alias("opens"),
    )
