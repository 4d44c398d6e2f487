"""How many tokens each event of a stream carried: as it says, else one each, else shared out by length of text."""

from collections.abc import Sequence
from dataclasses import dataclass

from collector.probe.answer import Answer, Arrival


@dataclass(frozen=True, slots=True)
class Counted:
    """Events that carry tokens, tokens of each (None: one each), and where that is known from.

    `basis` is usage (every event says), one_each (as many events as tokens), by_text (shared out by characters) or
    assumed (the endpoint gave no count, so one each).
    """

    arrivals: Sequence[Arrival]
    tokens: Sequence[int] | None
    basis: str

    @property
    def first(self) -> int:
        """Tokens of the first event."""
        return self.tokens[0] if self.tokens else 1


def count_tokens(answer: Answer) -> Counted:
    """Count the tokens of every event of an answer."""
    arrivals = answer.arrivals
    stated = [arrival.tokens for arrival in arrivals if arrival.tokens is not None]
    if arrivals and len(stated) == len(arrivals):
        return Counted(arrivals, None if set(stated) == {1} else stated, "usage")
    total = answer.output_tokens
    if total is None or not arrivals:
        return Counted(arrivals, None, "assumed")
    if answer.reasoning_tokens and not answer.shows_reasoning:
        total = max(total - answer.reasoning_tokens, 0)  # thought, never sent
    if total == len(arrivals) + 1 and answer.closing is not None:
        return Counted([*arrivals, answer.closing], None, "one_each")  # the end token has no text
    if total == len(arrivals):
        return Counted(arrivals, None, "one_each")
    return Counted(arrivals, _shared(total, [arrival.chars for arrival in arrivals]), "by_text")


def _shared(total: int, weights: Sequence[int]) -> list[int]:
    """Share whole tokens out in proportion to the weights; one each first where there are enough of them."""
    least = 1 if total >= len(weights) else 0
    rest, whole = total - least * len(weights), sum(weights) or 1
    shares, given, passed = [], 0, 0
    for weight in weights:
        passed += weight
        upto = round(rest * passed / whole)
        shares.append(least + upto - given)
        given = upto
    return shares
