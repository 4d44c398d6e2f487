"""What the simulated engine keeps: a request on its way, its totals, and what its metrics show after each event."""

from dataclasses import dataclass
from math import inf


@dataclass(slots=True)
class Sequence:
    """One request on its way through the engine; times in seconds after the window's start.

    `row` is its row in the workload, `order` its rank of admission. `joined_at` and `leaves_at` are on the engine's
    token clock.
    """

    row: int
    arrival_s: float
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    generated: int = 0
    order: int = 0
    scheduled_s: float | None = None
    first_token_s: float | None = None
    done_s: float = 0.0
    joined_at: float = 0.0
    leaves_at: float = inf

    @property
    def context(self) -> int:
        """Tokens to be computed when it is admitted: the prompt, and what it had generated before a preemption."""
        return self.input_tokens + self.generated


@dataclass(slots=True)
class Totals:
    """Counters since the start."""

    prompt_tokens: int = 0
    generation_tokens: float = 0.0
    prefix_queries: int = 0
    prefix_hits: int = 0
    preemptions: int = 0
    successes: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """What the engine's gauges and counters show from an event to the next one."""

    at_s: float
    waiting: int
    running: int
    kv_ratio: float
    prompt_tokens: int
    generation_tokens: int
    prefix_queries: int
    prefix_hits: int
    preemptions: int
    successes: int
