"""Requests with the tokens to charge by kind: no token twice, none negative, as `collector.prices.cost_of` does it."""

import polars as pl

from analytics import frames
from analytics.tokens import TokensParams
from analytics.tokens.cards import CACHED, INPUT, KINDS, OUTPUT, REASONING, WRITTEN, Cards

TOKENS = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_tokens", "reasoning_tokens")
ADDED = (
    *KINDS, "card", "currency", "by_rule", "dearest", "no_batch_price", "apart", f"assumed_{CACHED}",
    f"assumed_{WRITTEN}", "told", "lacks", "cost",
)  # fmt: skip
"""Columns that `charged` adds."""
FAR = 100
"""Times the dearest price of a token: no discount or fee explains a stated cost beyond it, another unit does."""
DOUBTS = {
    "cached>prompt": "more tokens from or for the cache than the prompt has: they were cut to it",
    "reasoning>output": "more reasoning than output: it was cut to it",
    "total_differs": "the total that was stated is not prompt and output together",
    "model_by_rule": "the list knows the model by a pattern, such as a name with a date",
    "no_batch_price": "a batch without a price of its own: charged in full",
    "cached_input_at_input_price": "cached tokens without a price of their own: charged as prompt",
    "cache_write_at_input_price": "written tokens without a price of their own: charged as prompt",
    "stated_cost_far_above": "it states over 100 times what its tokens can cost: its unit is another one, left out",
    "no_price": "no price is known: not in any cost",
    "no_tokens": "no tokens are stated: not in any cost",
    **{f"no_{kind}_price": f"{kind} tokens have no price: not in any cost" for kind in KINDS},
}
"""What has to be put right, assumed or left out, and what it means."""


def requests(frame: pl.DataFrame, params: TokensParams) -> pl.DataFrame:
    """Return raw requests ordered by ts: labels as text, tenant, conversation and batch, each row of weight 1."""
    made = frames.label_columns(frame, params.labels).drop_nulls("ts").sort("ts")
    return made.with_columns(
        *(pl.col(name).cast(pl.Int64) for name in TOKENS),
        _first(made, params.tenant).alias("_tenant"),
        _first(made, params.conversation).alias("_conversation"),
        _marked(made, params.batch).alias("batch"),
        pl.col("input_tokens").cast(pl.Int64).fill_null(0).alias("length"),
        pl.lit(1, pl.Int64).alias("weight"),
    )


def _first(frame: pl.DataFrame, names: tuple[str, ...]) -> pl.Expr:
    known = [pl.col(name).cast(pl.String).replace("", None) for name in names if name in frame.columns]
    return pl.coalesce(known) if known else pl.lit(None, pl.String)


def _marked(frame: pl.DataFrame, marks: tuple[str, ...]) -> pl.Expr:
    """Tell whether an attribute has the value that marks a batch; never guessed from a name."""
    pairs = [text.partition("=") for text in marks]
    tests = [
        pl.col(name).cast(pl.String).str.to_lowercase() == value.lower()
        for name, _, value in pairs
        if name in frame.columns
    ]
    return pl.any_horizontal(tests).fill_null(value=False) if tests else pl.lit(value=False)


def charged(rows: pl.DataFrame, cards: Cards, model: str = "model") -> pl.DataFrame:
    """Add card, tokens to charge by kind, cost (float, null where unpriced), currency and `lacks`: why it has no price.

    `rows` have the columns of TOKENS, ts, provider, model, batch and length (of the prompt, which chooses the tier).
    """
    carded = cards.assign(rows, model).join(cards.rates(), on="card", how="left", maintain_order="left")
    prompt, output = _least("input_tokens"), _least("output_tokens")
    cached = pl.min_horizontal(_least("cached_input_tokens"), prompt)
    counted = carded.with_columns(prompt.alias("_prompt"), cached.alias(CACHED))
    written = pl.min_horizontal(_least("cache_write_tokens"), pl.col("_prompt") - pl.col(CACHED))
    thought = pl.min_horizontal(_least("reasoning_tokens"), output)
    counted = counted.with_columns(
        written.alias(WRITTEN),
        pl.when(pl.col("apart")).then(thought).otherwise(0).alias(REASONING),
        (pl.col("input_tokens").is_not_null() | pl.col("output_tokens").is_not_null()).alias("told"),
    ).with_columns(
        (pl.col("_prompt") - pl.col(CACHED) - pl.col(WRITTEN)).alias(INPUT),
        (output - pl.col(REASONING)).alias(OUTPUT),
    )
    return _priced(counted).drop("_prompt", *(f"rate_{kind}" for kind in KINDS))


def _least(name: str) -> pl.Expr:
    return pl.max_horizontal(pl.col(name).fill_null(0), 0)


def _priced(counted: pl.DataFrame) -> pl.DataFrame:
    missing = [
        pl.when((pl.col(kind) > 0) & pl.col(f"rate_{kind}").is_null()).then(pl.lit(f"no_{kind}_price"))
        for kind in KINDS
    ]
    lacks = (
        pl.when(~pl.col("told")).then(pl.lit("no_tokens")).when(pl.col("card").is_null()).then(pl.lit("no_price"))
    ).otherwise(pl.coalesce(missing))
    cost = pl.sum_horizontal(pl.col(kind) * pl.col(f"rate_{kind}").fill_null(0.0) for kind in KINDS) / 1e6
    told = counted.with_columns(lacks.alias("lacks"))
    return told.with_columns(
        pl.when(pl.col("lacks").is_null()).then(cost).alias("cost"),
        pl.when(pl.col("lacks").is_null()).then(pl.col("currency")).alias("currency"),
    )


def doubted(rows: pl.DataFrame) -> dict[str, pl.Expr]:
    """Return, of each doubt that raw or rolled rows can have, when a row has it."""
    said = pl.col("quality").fill_null("") if "quality" in rows.columns else pl.lit("")
    above = _least("cached_input_tokens") + _least("cache_write_tokens") > _least("input_tokens")
    carded = pl.col("card").is_not_null()
    tests = {
        "cached>prompt": above | said.str.contains("cached>prompt", literal=True),
        "reasoning>output": (_least("reasoning_tokens") > _least("output_tokens"))
        | said.str.contains("reasoning>output", literal=True),
        "total_differs": said.str.contains("total_differs", literal=True),
        "model_by_rule": carded & pl.col("by_rule"),
        "no_batch_price": carded & pl.col("batch") & pl.col("no_batch_price"),
        **{
            f"{kind}_at_input_price": carded & (pl.col(kind) > 0) & pl.col(f"assumed_{kind}")
            for kind in (CACHED, WRITTEN)
        },
        "stated_cost_far_above": far_above(),
    }
    lacks = [name for name in DOUBTS if name.startswith("no_") and name != "no_batch_price"]
    return tests | {name: pl.col("lacks").eq_missing(pl.lit(name)) for name in lacks}


def far_above() -> pl.Expr:
    """Tell whether a stated cost is so far above that of its tokens that its unit must be another one."""
    tokens = _least("input_tokens") + _least("output_tokens")
    most = pl.col("dearest") * tokens * FAR / 1e6
    return (pl.col("cost_usd") > most).fill_null(value=False)
