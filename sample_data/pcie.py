"""PCIe load of a node over time, and what it does to prefill."""

from dataclasses import dataclass

import numpy as np

from sample_data import fleet, scenario
from sample_data.fleet import Node
from sample_data.workload import Floats

STEP_S = 10.0
_PERSISTENCE = 0.9  # AR(1) coefficient per step: load wanders over a minute or two
_NOISE = 0.015
_KNEE = 0.5  # below half load transfers hardly meet
_GAIN = 1.6


@dataclass(frozen=True, slots=True)
class PcieLoad:
    """Share of a node's PCIe capacity in use, in steps of `STEP_S` from the window's start."""

    ratio: Floats

    def at(self, at_s: float) -> float:
        """Load at a time after the window's start; the last step lasts for ever."""
        return float(self.ratio[min(int(at_s / STEP_S), self.ratio.size - 1)])


def draw(node: Node, rng: np.random.Generator) -> PcieLoad:
    """Draw the load of one node: its usual level, an AR(1) wander and the contention of the scenario."""
    steps = int(fleet.WINDOW.span.total_seconds() / STEP_S)
    shocks = np.round(rng.normal(0.0, _NOISE, steps), 6)
    load, wander = np.full(steps, node.pcie_load), 0.0
    for i in range(steps):
        wander = _PERSISTENCE * wander + float(shocks[i])
        load[i] += wander
    at_s = np.arange(steps) * STEP_S
    for d in scenario.of_node(node):
        start, end = d.bounds_s
        load += np.where((at_s >= start) & (at_s < end), d.pcie_load, 0.0)
    return PcieLoad(np.round(np.clip(load, 0.02, 0.97), 6))


def slowdown(load: float, share: float, tail: float) -> float:
    """Factor on prefill: 1 up to the knee, then growing with load, its excess times a Pareto `tail`.

    1 + share * gain * (load - knee)^+ / (1 - knee) * tail. The share is that of prefill which waits for the link.
    """
    excess = max(0.0, load - _KNEE) / (1 - _KNEE)
    return 1.0 + share * _GAIN * excess * tail
