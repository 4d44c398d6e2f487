"""Clients that retry with a known back-off against outages of a known length."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tests.analytics.frames_of import requests, times

SCHEMA = {
    "at": pl.Float64(),
    "request_id": pl.String(),
    "input_tokens": pl.Int64(),
    "error_code": pl.String(),
    "k": pl.Int64(),
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Waits of a client: base x factor^k up to the cap, times a uniform 1 +- jitter."""

    base_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 8.0
    jitter: float = 0.2
    attempts: int = 8

    def wait_s(self, k: int, rng: np.random.Generator) -> float:
        """Wait before the retry with number `k`, from 0."""
        mean = min(self.base_s * self.factor**k, self.cap_s)
        return float(mean * rng.uniform(1 - self.jitter, 1 + self.jitter))


def outages(
    policy: Policy,
    lasting_s: float,
    clients: int,
    rng: np.random.Generator,
    *,
    every_s: float = 600.0,
    many: int = 1,
    rate: float = 0.2,
    by_id: bool = True,
) -> pl.DataFrame:
    """Requests at `rate` per second, and `clients` that each meet one of `many` outages that begin every `every_s`.

    An attempt takes 50 ms. Requests that meet no outage succeed at once. Without ids, only their prompt length tells
    which attempts belong together.
    """
    rows = []
    ends = [(100 + i * every_s, 100 + i * every_s + lasting_s) for i in range(many)]
    length = 100 + every_s * many + 200
    starts = [*rng.uniform(0, length, round(rate * length))]
    starts += [start + rng.uniform(0, min(5.0, lasting_s)) for start, _ in ends for _ in range(clients // many)]
    for number, start in enumerate(sorted(starts)):
        at = start
        for k in range(policy.attempts):
            down = any(begin <= at < end for begin, end in ends)
            rows.append((at, f"r{number}" if by_id else None, 100 + number, "HTTP_503" if down else None, k))
            if not down:
                break
            at += 0.05 + policy.wait_s(k, rng)
    return attempts(pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def attempts(table: pl.DataFrame) -> pl.DataFrame:
    """Rows of the query `attempts` from at (s), request_id, input_tokens and error_code."""
    failed = table["error_code"].is_not_null()
    columns: dict[str, Any] = {
        "ts": times(table["at"]),
        "duration_s": [0.05] * table.height,
        "e2e_s": [0.05] * table.height,
        "name": ["chat"] * table.height,
        "kind": ["client"] * table.height,
        "operation": ["chat"] * table.height,
        "status": failed.replace_strict({True: "error", False: "ok"}),
        **{name: table[name] for name in ("request_id", "input_tokens", "error_code")},
    }
    columns |= {name: table[name] for name in table.columns if name not in (*columns, "at", "k")}
    empty = [
        "parent_span_id", "model", "request_model", "output_tokens", "max_tokens", "resend_count", "links", "user.id",
    ]  # fmt: skip
    columns |= {name: [None] * table.height for name in empty if name not in columns}
    return requests({name: list(values) for name, values in columns.items()}).with_columns(
        pl.lit(1.0).alias("share_read")
    )
