"""A gate lets in what can be answered in time, and gives back what it counted."""

from contextlib import ExitStack

import pytest

from collector.push.gate import FEW, PATIENCE_S, Gate
from store.errors import BusyError


def held(gate: Gate, sizes: list[int]) -> ExitStack:
    stack = ExitStack()
    for size in sizes:
        stack.enter_context(gate.hold(size))
    return stack


def test_one_request_too_many_is_refused_and_let_in_again_when_another_is_done() -> None:
    gate = Gate(requests=2)
    with held(gate, [1, 1]), pytest.raises(BusyError, match="too many requests"), gate.hold(1):
        pass
    with held(gate, [1, 1]):
        pass


def test_a_single_request_is_let_in_whatever_its_size_and_another_is_not() -> None:
    gate = Gate(held_bytes=10)
    with gate.hold(11), pytest.raises(BusyError), gate.hold(1):
        pass


def test_an_error_gives_back_what_was_counted() -> None:
    gate = Gate(requests=1)
    with pytest.raises(ValueError, match="x"), gate.hold(1):
        raise ValueError("x")
    with gate.hold(1):
        pass


def test_nobody_joins_a_queue_whose_first_has_waited_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("collector.push.gate.monotonic", lambda: now[0])
    gate = Gate()
    with held(gate, [1] * FEW):
        now[0] = PATIENCE_S
        with gate.hold(1):
            now[0] += 0.5
            with pytest.raises(BusyError, match=r"waited for 3\.5 s"), gate.hold(1):
                pass
    with held(gate, [1] * (FEW - 1)):
        now[0] += 60
        with gate.hold(1):
            pass
