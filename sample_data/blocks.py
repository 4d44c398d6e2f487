"""Prefix blocks of the simulated requests: whose beginning each prompt repeats, consistent with its cached tokens.

A request with cached tokens repeats the beginning of an earlier one of its service; how long ago that was has a heavy
tail, as turns of conversations do. So a cache that never evicts finds what the simulated engine found.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from store.batch import Batch
from store.tables import REQUEST_BLOCKS, SPANS

if TYPE_CHECKING:
    import polars as pl

BLOCK_TOKENS = 64
_SEED = 20261130
_AGE_MEDIAN, _AGE_SIGMA = 40.0, 1.6  # requests between a prompt and the one whose beginning it repeats; lognormal


def batch(spans: "pl.DataFrame") -> Batch:
    """Blocks of every answered request of `sample_data.simulated.spans`, in order of service and arrival."""
    import polars as pl

    rows: list[dict[str, Any]] = []
    answered = spans.filter(pl.col("cached_input_tokens").is_not_null()).sort("service", "ts")
    for number, (_, part) in enumerate(answered.group_by("service", maintain_order=True)):
        rows += _service(part, np.random.default_rng([_SEED, number]), first=number << 40)
    frame = pl.DataFrame(rows, schema=REQUEST_BLOCKS.schema())
    return Batch("sample_data/simulated/blocks", {REQUEST_BLOCKS.name: REQUEST_BLOCKS.conform(frame)})


def _service(part: "pl.DataFrame", rng: np.random.Generator, first: int) -> list[dict[str, Any]]:
    """Rows of one service. A parent that is too short is left for the one before it, so that every hit is real."""
    ages = np.exp(rng.normal(np.log(_AGE_MEDIAN), _AGE_SIGMA, part.height).round(6))
    prompts: list[list[int]] = []
    rows, following = [], first
    for i, row in enumerate(part.select(*SPANS.key, "ts", "service", "input_tokens", "cached_input_tokens").to_dicts()):
        shared, whole = row["cached_input_tokens"] // BLOCK_TOKENS, row["input_tokens"] // BLOCK_TOKENS
        parent = i - 1 - int(ages[i])
        while parent >= 0 and len(prompts[parent]) < shared:
            parent -= 1
        kept = prompts[parent][:shared] if parent >= 0 else []
        prompt = kept + list(range(following, following + whole - len(kept)))
        following += whole - len(kept)
        prompts.append(prompt)
        rows.append(
            {name: row[name] for name in (*SPANS.key, "ts", "service")}
            | {"block_size": BLOCK_TOKENS, "unit": "tokens", "block_hashes": prompt}
        )
    return rows
