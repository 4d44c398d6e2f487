"""Tokens of the requests by stretch of time and model, and what they cost at given prices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.whatif.blocks import Blocks, Estimate, ratio
from analytics.whatif.prices import KINDS, Rates, filled

Array = NDArray[np.float64]
TOKENS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Usage:
    """Requests (stretch x model) and tokens (stretch x model x kind, each token in one kind)."""

    pairs: Sequence[Pair]
    requests: Array
    tokens: Array

    def cost(self, rates: Mapping[Pair, Rates], how: "Changed") -> Estimate | None:
        """Cost of a request over the models that have rates; None without one."""
        priced = [i for i, pair in enumerate(self.pairs) if pair in rates]
        if not priced:
            return None
        price = np.array([[filled(rates[self.pairs[i]])[kind] for kind in KINDS] for i in priced])
        spent = (how.applied(self.tokens[:, priced]) * price).sum(axis=(1, 2)) * how.price / 1e6
        return ratio(np.asarray(spent), np.asarray(self.requests[:, priced].sum(axis=1)), "tokens x price")


@dataclass(frozen=True, slots=True)
class Changed:
    """What a scenario does to tokens and prices: factors, and the share of the prompt that is cached, from and to."""

    input: float = 1.0
    output: float = 1.0
    price: float = 1.0
    prefix: tuple[float, float] | None = None

    def applied(self, tokens: Array) -> Array:
        """Tokens by kind of the scenario.

        Less of the prompt cached: every model loses the same part of its cached tokens. More: every model's uncached
        ones shrink by the same part. Either way all together come to the share, and no model to more than its prompt.
        """
        plain, cached, written, output, reasoning = np.moveaxis(tokens, 2, 0)
        if self.prefix is not None:
            old, new = self.prefix
            if new <= old:
                kept = cached * (new / old if old > 0 else 1.0)
                plain, cached = plain + cached - kept, kept
            else:
                factor = (1.0 - new) / (1.0 - old)
                cached = cached + (plain + written) * (1.0 - factor)
                plain, written = plain * factor, written * factor
        prompt = (plain * self.input, cached * self.input, written * self.input)
        return np.stack([*prompt, output * self.output, reasoning * self.output], axis=2)


def usage_of(hours: pl.DataFrame, blocks: Blocks) -> Usage:
    """Sum rows of the hourly rollup."""
    pairs: list[Pair] = []
    requests, tokens = [], []
    for (provider, model), part in sorted(hours.partition_by("provider", "model", as_dict=True).items(), key=str):
        n, prompt, cached, written, output, reasoning = blocks.sums(part, "requests", *TOKENS)
        cached = np.minimum(cached, prompt)
        written = np.minimum(written, prompt - cached)
        reasoning = np.minimum(reasoning, output)
        pairs.append((str(provider or ""), str(model or "")))
        requests.append(n)
        tokens.append(np.stack([prompt - cached - written, cached, written, output - reasoning, reasoning], axis=1))
    return Usage(pairs, np.stack(requests, axis=1), np.stack(tokens, axis=1))
