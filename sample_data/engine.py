"""Continuous batching as a queue: a discrete-event model of one engine serving one workload.

Requests wait in one line for a batch slot, room in the KV cache and the prefill, which takes one at a time. Decoding
sequences share the engine: each gets a token every itl_s * (1 + itl_slope * (decoding - 1)) seconds, half again as long
while a prefill runs. Every token takes room in the KV cache; when it is full the youngest sequence is preempted, loses
its blocks and goes to the head of the line to be computed anew. A shared prefix counts as cached unless it was evicted,
which is the likelier the fuller the cache is. Not modelled: chunked prefill, speculation, disaggregation.

Decoding is processor sharing, so it runs on a token clock (tokens that every decoding sequence got so far): one that
joins at v and wants k more leaves at v + k, and the model only stops at arrivals and where prefill or decoding ends.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from sample_data import pcie
from sample_data.fleet import Service
from sample_data.sequence import Sequence, State, Totals
from sample_data.workload import Workload

_PREFILL_BASE_S = 0.030
_PREFILL_SLOWS_DECODE = 1.5
_ADMIT_BELOW = 0.99  # of the KV cache: a watermark, so that an admitted sequence is not preempted at once


@dataclass(slots=True)
class Engine:
    """The engine's state; `run` takes it from the first arrival until it is empty again.

    `clock` is the token clock, `held` the tokens in the KV cache. `done` collects the served requests by completion,
    `states` one entry per event.
    """

    service: Service
    work: Workload
    link: pcie.PcieLoad
    now: float = 0.0
    clock: float = 0.0
    held: float = 0.0
    admitted: int = 0
    waiting: deque[Sequence] = field(default_factory=deque)
    decoding: list[Sequence] = field(default_factory=list)
    prefilling: Sequence | None = None
    prefill_ends: float = inf
    totals: Totals = field(default_factory=Totals)
    states: list[State] = field(default_factory=list)
    done: list[Sequence] = field(default_factory=list)

    def run(self) -> None:
        """Serve every request of the workload that is not refused."""
        for row in (self.work.error < 0).nonzero()[0].tolist():
            arrival = float(self.work.arrival_s[row])
            self._run_until(arrival)
            lengths = int(self.work.input_tokens[row]), int(self.work.output_tokens[row])
            self.waiting.append(Sequence(row, arrival, *lengths))
            self._settle()
        self._run_until(inf)

    def _run_until(self, end: float) -> None:
        at, happen = self._next_event()
        while at <= end and at < inf:
            self._advance(at)
            happen()
            self._settle()
            at, happen = self._next_event()
        if end < inf:
            self._advance(end)

    def _next_event(self) -> tuple[float, Callable[[], None]]:
        """Time and effect of what happens next without arrivals; never (inf) when the engine is empty."""
        events = [(self.prefill_ends, self._end_prefill)]
        if self.decoding:
            left = min(s.leaves_at for s in self.decoding) - self.clock
            room = (self.service.kv_tokens - self.held) / len(self.decoding)
            events.append((self.now + max(0.0, left) * self._token_s, self._end_decoding))
            events.append((self.now + max(0.0, room) * self._token_s, self._preempt))
        return min(events, key=lambda event: event[0])

    @property
    def _token_s(self) -> float:
        step = self.service.itl_s * (1 + self.service.itl_slope * (len(self.decoding) - 1))
        return step * (_PREFILL_SLOWS_DECODE if self.prefilling else 1.0)

    def _advance(self, at: float) -> None:
        """Let time pass: every decoding sequence generates."""
        if self.decoding:
            tokens = (at - self.now) / self._token_s
            self.clock += tokens
            self.held += tokens * len(self.decoding)
            self.totals.generation_tokens += tokens * len(self.decoding)
        self.now = at

    def _settle(self) -> None:
        """Admit the next request if it may run, and note the state."""
        if self.waiting and self.prefilling is None and self._fits(self.waiting[0]):
            self._start_prefill(self.waiting.popleft())
        totals = self.totals
        state = State(
            at_s=self.now,
            waiting=len(self.waiting),
            running=self._running,
            kv_ratio=min(1.0, self.held / self.service.kv_tokens),
            prompt_tokens=totals.prompt_tokens,
            generation_tokens=int(totals.generation_tokens),
            prefix_queries=totals.prefix_queries,
            prefix_hits=totals.prefix_hits,
            preemptions=totals.preemptions,
            successes=totals.successes,
        )
        self.states.append(state)

    @property
    def _running(self) -> int:
        return len(self.decoding) + (self.prefilling is not None)

    def _fits(self, sequence: Sequence) -> bool:
        room = _ADMIT_BELOW * self.service.kv_tokens - self.held
        return self._running < self.service.slots and sequence.context <= room

    def _start_prefill(self, sequence: Sequence) -> None:
        """Look the prefix up, take the blocks and compute what is not cached."""
        row, work, service = sequence.row, self.work, self.service
        free = 1 - self.held / service.kv_tokens
        hit = work.cache_draw[row] < free
        cached = int(work.prefix_tokens[row]) if hit else 0
        if sequence.scheduled_s is None:
            sequence.scheduled_s, sequence.cached_tokens = self.now, cached
            self.totals.prompt_tokens += sequence.input_tokens
        self.admitted += 1
        sequence.order = self.admitted
        self.totals.prefix_queries += sequence.context
        self.totals.prefix_hits += cached
        self.held += sequence.context
        compute_s = _PREFILL_BASE_S + (sequence.context - cached) / service.prefill_tokens_per_second
        slow = pcie.slowdown(self.link.at(self.now), service.pcie_share, float(work.tail[row]))
        self.prefilling = sequence
        self.prefill_ends = self.now + compute_s * float(work.prefill_noise[row]) * slow + float(work.stall_s[row])

    def _end_prefill(self) -> None:
        """Emit the first token; the sequence starts to decode, or is done if it wanted no more."""
        sequence = self.prefilling
        assert sequence is not None
        self.prefilling, self.prefill_ends = None, inf
        sequence.first_token_s = self.now if sequence.first_token_s is None else sequence.first_token_s
        sequence.generated += 1
        self.held += 1
        self.totals.generation_tokens += 1
        sequence.joined_at = self.clock
        sequence.leaves_at = self.clock + max(0, sequence.output_tokens - sequence.generated)
        self.decoding.append(sequence)

    def _end_decoding(self) -> None:
        sequence = min(self.decoding, key=lambda s: s.leaves_at)
        self.clock = sequence.leaves_at
        self._leave(sequence)
        sequence.done_s = self.now
        self.totals.successes += 1
        self.done.append(sequence)

    def _preempt(self) -> None:
        """Take the blocks of the youngest sequence and put it at the head of the line."""
        sequence = max(self.decoding, key=lambda s: s.order)
        self._leave(sequence)
        self.totals.preemptions += 1
        self.waiting.appendleft(sequence)

    def _leave(self, sequence: Sequence) -> None:
        """Free the blocks of a decoding sequence."""
        self.decoding.remove(sequence)
        grown = self.clock - sequence.joined_at
        self.held = self.held - sequence.context - grown if self._running else 0.0  # no rounding left when empty
        sequence.generated += round(grown)
