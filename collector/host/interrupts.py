"""Interrupts, soft interrupts and where interrupts may go. Format: proc_interrupts(5), core-api/irq/irq-affinity.rst.

A host of 256 CPUs has a million pairs of interrupt and CPU, so not all are series:
- host_interrupts_total (irq, device) per interrupt, summed over CPUs;
- for WATCHED devices (irq, device, cpu) per interrupt and CPU instead, since there it matters which CPU works;
- host_cpu_interrupts_total (cpu): all interrupts of a CPU, whatever they are for.
What never fired is left out. So each of the two names adds up to all interrupts.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from collector.host.tree import Tree
from collector.prometheus.exposition import Sample

WATCHED = ("nvidia", "mlx", "nvme", "amdgpu")
"""Beginnings of device names whose interrupts are told apart by CPU."""

_COLUMN = re.compile(r"\s{2,}")
_TRIGGER = re.compile(r".*(edge|level|fasteoi)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A line of /proc/interrupts: number or name, what it is for, and its counts in the order of the CPUs."""

    irq: str
    device: str
    counts: Sequence[int]


def read(tree: Tree) -> Iterator[Sample]:
    """Yield interrupts, soft interrupts and affinities."""
    cpus, found = parse(tree.text("/proc/interrupts") or "")
    fired = [one for one in found if any(one.counts)]
    yield from samples(cpus, fired)
    yield from softirq_samples(tree.text("/proc/softirqs") or "")
    for one in fired:
        if one.irq.isdigit():
            base = f"/proc/irq/{one.irq}"
            files = ("smp_affinity_list", "effective_affinity_list", "node")
            yield affinity_sample(one, *(tree.word(f"{base}/{name}") for name in files))


def parse(text: str) -> tuple[list[str], list[Interrupt]]:
    """Return the CPUs of the columns and the lines of /proc/interrupts."""
    head, *lines = text.splitlines() or [""]
    cpus = [name.removeprefix("CPU") for name in head.split()]
    return cpus, [_interrupt(line, len(cpus)) for line in lines if ":" in line]


def _interrupt(line: str, columns: int) -> Interrupt:
    irq, _, rest = line.partition(":")
    words = rest.split(None, columns)
    counts = [int(word) for word in takewhile(str.isdigit, words[:columns])]  # ERR has one count, of all CPUs
    described = _COLUMN.split(" ".join(words[len(counts) :]).strip())
    # a numbered line goes on with the controller, the trigger and the names of its handlers, if there are any
    named = not irq.strip().isdigit() or not _TRIGGER.fullmatch(described[-1])
    return Interrupt(irq.strip(), described[-1] if named else "", counts)


def samples(cpus: Sequence[str], interrupts: Sequence[Interrupt]) -> Iterator[Sample]:
    """Yield host_interrupts_total and host_cpu_interrupts_total; see the head of this module."""
    totals = dict.fromkeys(cpus, 0)
    for one in interrupts:
        labels = {"irq": one.irq, "device": one.device}
        fired = (
            [(cpu, n) for cpu, n in zip(cpus, one.counts, strict=False) if n] if len(one.counts) == len(cpus) else []
        )
        for cpu, count in fired:
            totals[cpu] += count
        if fired and one.device.startswith(WATCHED):
            for cpu, count in fired:
                yield Sample("host_interrupts_total", {**labels, "cpu": cpu}, float(count), None)
        else:
            yield Sample("host_interrupts_total", labels, float(sum(one.counts)), None)
    for cpu, count in totals.items():
        yield Sample("host_cpu_interrupts_total", {"cpu": cpu}, float(count), None)


def softirq_samples(text: str) -> Iterator[Sample]:
    """Yield host_softirqs_total (type, cpu)."""
    head, *lines = text.splitlines() or [""]
    cpus = [name.removeprefix("CPU") for name in head.split()]
    for name, _, counts in (line.partition(":") for line in lines):
        for cpu, count in zip(cpus, counts.split(), strict=False):
            yield Sample("host_softirqs_total", {"type": name.strip(), "cpu": cpu}, float(count), None)


def affinity_sample(one: Interrupt, cpus: str, effective: str, node: str) -> Sample:
    """Return host_irq_affinity_info (irq, device, cpus, effective_cpus, numa_node; -1 is no node, left out)."""
    known = {"cpus": cpus, "effective_cpus": effective, "numa_node": node.removeprefix("-1")}
    labels = {name: value for name, value in known.items() if value}
    return Sample("host_irq_affinity_info", {"irq": one.irq, "device": one.device, **labels}, 1.0, None)
