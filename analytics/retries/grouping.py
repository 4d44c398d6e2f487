"""Attempts into logical requests: by ids and links where there are any, else by content and time, and how surely."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.retries.attempts import ROW

Pairs = pl.DataFrame
"""Columns a, b (rows of one logical request), told_by, sure (null: certain)."""
MOST_OF_ONE_ID = 100
"""Attempts with one id: more, and it names a session or is a placeholder."""
LEAST_SURE = 0.9
"""Share of the likenesses joined that are retries, at least."""
PLACE = ["service", "kind"]
"""Attempts of one service, seen from one side."""
_LINKS = pl.List(pl.Struct({"trace_id": pl.String, "span_id": pl.String}))


def grouped(attempts: pl.DataFrame, content: Sequence[str], within_s: float) -> tuple[pl.DataFrame, int]:
    """Add `sequence` (number of the logical request), `told_by` and `sure`; and count likenesses that may be chance.

    `told_by` is null for a request of one attempt.
    """
    found = pl.concat([*_by_ids(attempts), *_by_links(attempts)])
    like = _by_content(attempts, content, within_s)
    sure = like.filter(pl.col("sure") >= LEAST_SURE)
    pairs = pl.concat([found, sure])
    sequence = _components(attempts.height, pairs)
    numbered = attempts.with_columns(pl.Series("sequence", sequence))
    how = pairs.with_columns(pl.Series("sequence", sequence[pairs["a"].to_numpy()]))
    told = how.group_by("sequence").agg(
        pl.col("told_by").unique().sort().str.join(", "),
        pl.when(pl.col("sure").count() > 0).then(pl.col("sure").min()).alias("sure"),
    )
    return numbered.join(told, on="sequence", how="left", maintain_order="left"), like.height - sure.height


def _components(size: int, pairs: Pairs) -> NDArray[np.int64]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    a, b = pairs["a"].to_numpy(), pairs["b"].to_numpy()
    graph = coo_array((np.ones(a.size, dtype=np.int8), (a, b)), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def _by_ids(attempts: pl.DataFrame) -> Iterator[Pairs]:
    """Join neighbours in time that share a request id, a wrapper, or the place in a trace where a call was resent."""
    sizes = pl.len().over("service", "kind", "request_id")
    ids = attempts.filter(pl.col("request_id").is_not_null() & (pl.col("request_id") != ""))
    yield _neighbours(ids.filter(sizes <= MOST_OF_ONE_ID), ["service", "kind", "request_id"], "request id")
    wrapped = attempts.drop_nulls("wrapper")
    yield _neighbours(wrapped, ["trace_id", "wrapper", "service", "model"], "parent span")
    sent = attempts.drop_nulls("parent_span_id")
    resent = _neighbours(sent, ["trace_id", "parent_span_id", "service", "name"], "resend count")
    again = attempts.filter(pl.col("resend_count") > 0).select(pl.col(ROW).cast(pl.Int64).alias("b"))
    yield resent.join(again, on="b", how="semi")


def _neighbours(rows: pl.DataFrame, key: list[str], told_by: str) -> Pairs:
    before = pl.col(ROW).cast(pl.Int64).shift(1).over(key).alias("a")
    pairs = rows.select(before, pl.col(ROW).cast(pl.Int64).alias("b")).drop_nulls()
    return pairs.with_columns(pl.lit(told_by).alias("told_by"), pl.lit(None, pl.Float64).alias("sure"))


def _by_links(attempts: pl.DataFrame) -> Iterator[Pairs]:
    """Join attempts whose span links name an earlier one of the same service: how queues and SDKs mark a retry."""
    linked = attempts.drop_nulls("links").select("service", pl.col(ROW).cast(pl.Int64).alias("b"), "links")
    targets = linked.with_columns(pl.col("links").str.json_decode(_LINKS)).explode("links").unnest("links")
    ids = attempts.select("service", "trace_id", "span_id", pl.col(ROW).cast(pl.Int64).alias("a"))
    pairs = targets.join(ids, on=["service", "trace_id", "span_id"]).filter(pl.col("a") < pl.col("b"))
    yield pairs.select("a", "b", pl.lit("span link").alias("told_by"), pl.lit(None, pl.Float64).alias("sure"))


def _by_content(attempts: pl.DataFrame, content: Sequence[str], within_s: float) -> Pairs:
    """Join a failed attempt with the next one alike, within the time.

    A like request could have come by chance (`_chances`). With many failures some likenesses are chance: `sure` is 1
    less the share of false ones among those at least as close (Benjamini & Hochberg 1995, over the failures of a
    service). Rows without prompt tokens, where those are part of the content, are like nothing: a model's name alone
    says too little. Where a service sends the same id with every attempt, its ids say it all.
    """
    names = [name for name in content if name in attempts.columns]
    if not names:
        return pl.DataFrame(schema={"a": pl.Int64, "b": pl.Int64, "told_by": pl.String, "sure": pl.Float64})
    sent_again = (pl.col("request_id").is_duplicated() & pl.col("request_id").is_not_null()).any().over(PLACE)
    unnamed = attempts.filter(pl.col("request_id").is_null() | ~sent_again)
    said = [name for name in names if name == "input_tokens"] or names
    rows = _chances(unnamed.drop_nulls(said), [*PLACE, *(name for name in names if name not in PLACE)])
    gap = (pl.col("start") - pl.col("_since")) / 1e6
    near = rows.filter(pl.col("_after_failure"), gap.is_between(0, within_s))
    q = pl.col("_p") * pl.col("_failures") / pl.col("_p").rank("ordinal").over(PLACE)
    ranked = near.with_columns(q.clip(upper_bound=1.0).alias("_q")).sort("_p", descending=True)
    sure = 1.0 - pl.col("_q").cum_min().over(PLACE)
    b = pl.col(ROW).cast(pl.Int64).alias("b")
    return ranked.select("a", b, pl.lit("content").alias("told_by"), sure.alias("sure"))


def _chances(rows: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Add the row before of the same key (a), whether and when it failed, and the chance of a like request since (_p).

    Where a share s of first attempts is alike, and n of them all came since, that chance is 1 - (1 - s)^(n + 1). First
    attempts are those that do not follow a failure of their key, and the one in question, which may be one.
    """
    rows = rows.with_columns(
        pl.col(ROW).cast(pl.Int64).shift(1).over(key).alias("a"),
        pl.col("failed").shift(1).over(key).fill_null(value=False).alias("_after_failure"),
        pl.col("end").shift(1).over(key).alias("_since"),
        pl.col("failed").sum().over(PLACE).alias("_failures"),
    )
    first = (~pl.col("_after_failure")).cast(pl.Int64)
    share = (first.sum().over(key) + 1) / (first.sum().over(PLACE) + 1)
    rows = rows.with_columns(first.cum_sum().over(PLACE).alias("_count"), share.alias("_share"))
    before = rows.select(*PLACE, pl.col("start").alias("_since"), pl.col("_count").alias("_before"))
    timed = rows.drop_nulls("_since").sort("_since")
    joined = timed.join_asof(before, on="_since", by=PLACE, strategy="backward", check_sortedness=False)
    others = pl.col("_count") - pl.col("_before").fill_null(0)
    return joined.with_columns((1.0 - (1.0 - pl.col("_share")).pow(others + 1)).alias("_p"))
