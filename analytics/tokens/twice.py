"""Requests that two spans report, such as client and engine, or a proxy and its client: charged once.

The inner span is the call that is billed, so it counts; unless it has no model (vLLM's has none), then the outer one.
"""

import polars as pl

MOST_ALIKE = 20
"""Requests of one trace with the same counts of tokens; of more, which are nested in which is not looked for."""
SKEW_S = 0.05
"""How far the clocks of two machines may differ where one span lies within another."""
_TOLD = ("request_model", "_tenant", "_conversation")
_SPAN = ("_row", "span_id", "parent_span_id", "model", "ts", *_TOLD)
_ALIKE = ["trace_id", "input_tokens", "output_tokens"]


def once(rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the rows without those that another one reports too, and how many were left out.

    Two are one request where they agree in both counts of tokens and one is the other's parent, or lies within its time
    below another parent: siblings are requests of their own, however alike. The row that stays takes over from the
    outermost one which model was asked for and, where it does not say itself, tenant and conversation.
    """
    numbered = rows.with_row_index("_row")
    known = numbered.lazy().filter(pl.all_horizontal(pl.col(name).is_not_null() for name in (*_ALIKE, "span_id")))
    alike = known.select("_row", *_ALIKE).filter(pl.struct(_ALIKE).is_duplicated()).collect()
    few = alike.filter(pl.len().over(_ALIKE) <= MOST_ALIKE)
    if not few.height:
        return rows, 0
    ends = pl.col("ts") + pl.duration(microseconds=(pl.col("e2e_s") * 1e6).cast(pl.Int64, strict=False).fill_null(0))
    pairs = _nested(numbered[few["_row"]].select(*_SPAN, *_ALIKE, ends.alias("end")))
    again = pairs["left_out"].unique()
    said = pairs.filter(pl.col("left_out") != pl.col("_row_in")).sort("ts").unique("_row_in", keep="first")
    told = numbered.join(
        said.select(pl.col("_row_in").alias("_row"), *(pl.col(name).alias(f"{name}_out") for name in _TOLD)),
        on="_row", how="left", maintain_order="left",
    ).with_columns(
        pl.coalesce("request_model_out", "request_model").alias("request_model"),
        *(pl.coalesce(name, f"{name}_out").alias(name) for name in ("_tenant", "_conversation")),
    )  # fmt: skip
    return told.filter(~pl.col("_row").is_in(again.implode())).select(rows.columns), again.len()


def _nested(spans: pl.DataFrame) -> pl.DataFrame:
    """Pairs of an outer and an inner (…_in) span of one request, and which row of both to leave out."""
    skew = pl.duration(milliseconds=SKEW_S * 1000)
    below = pl.col("parent_span_id_in") == pl.col("span_id")
    elsewhere = pl.col("parent_span_id_in").is_not_null() & pl.col("parent_span_id_in").ne_missing(
        pl.col("parent_span_id")
    )
    within = (pl.col("ts") <= pl.col("ts_in") + skew) & (pl.col("end_in") <= pl.col("end") + skew)
    longer = pl.col("end") - pl.col("ts") > pl.col("end_in") - pl.col("ts_in")
    left_out = pl.when(pl.col("model_in").is_null()).then(pl.col("_row_in")).otherwise(pl.col("_row"))
    return (
        spans.join(spans, on=_ALIKE, suffix="_in")
        .filter(pl.col("span_id") != pl.col("span_id_in"), below | (elsewhere & within & longer))
        .with_columns(left_out.alias("left_out"))
    )
