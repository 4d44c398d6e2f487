"""`HostReader`: all areas of a host in one read, in the form in which targets are read."""

import errno
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from collector.host import cpu, disks, gpus, interrupts, memory, network, numa, pressure, rdma, resctrl
from collector.host.cpulist import cpus_of
from collector.host.processes import Watch
from collector.host.tree import Skipped, Tree
from collector.prometheus.exposition import Sample
from collector.prometheus.targets import Absence
from store.errors import SourceError

log = logging.getLogger(__name__)
_PROCESS = "/proc/*/"
_ENDED = (os.strerror(errno.ENOENT), os.strerror(errno.ESRCH))
"""What the files of a process say that ended while it was looked at."""


class HostReader:
    """Reads the host whose root is mounted at `root` (in a container: the host's / mounted there).

    What is missing or unreadable, as PSI or resctrl in a container, is left out; `skipped` has it.
    """

    def __init__(self, root: Path = Path("/"), ticks_per_s: float | None = None) -> None:
        self.skipped: Mapping[str, Skipped] = {}
        self._tree = Tree(root)
        self._ticks_per_s = ticks_per_s or float(os.sysconf("SC_CLK_TCK"))
        self._watch = Watch()
        self._info: Sample | None = None
        self._said: set[str] = set()
        self._areas: tuple[tuple[str, Callable[[], Iterator[Sample]]], ...] = (
            ("/proc/stat", lambda: cpu.read(self._tree, self._ticks_per_s)),
            ("/proc/cpuinfo", self._facts),
            ("/proc/meminfo", lambda: memory.read(self._tree)),
            ("/proc/pressure", lambda: pressure.read(self._tree)),
            ("/proc/interrupts", lambda: interrupts.read(self._tree)),
            (numa.BASE, lambda: numa.read(self._tree)),
            ("/proc", self._processes),
            (resctrl.BASE, lambda: resctrl.read(self._tree)),
            (rdma.BASE, lambda: rdma.read(self._tree)),
            ("/proc/diskstats", lambda: disks.read(self._tree)),
            ("/proc/net/dev", lambda: network.read(self._tree)),
        )

    def read(self) -> Sequence[Sample]:
        """Return everything that could be read. Raises SourceError where there is no /proc at all."""
        found: list[Sample] = []
        for path, area in self._areas:
            try:
                found += area()
            except (ValueError, IndexError) as error:
                self._tree.misread(path, f"not understood: {error}")
        self.skipped = self._tree.take_skipped()
        self._say()
        if not any(sample.name == "host_cpu_seconds_total" for sample in found):
            reason = self.skipped.get("/proc/stat", Skipped("has no line of a CPU", 1)).reason
            raise SourceError(f"{self._tree.root}: /proc/stat: {reason}", "mount the host's /proc there")
        return found

    def absences(self) -> list[Absence]:
        """Return the kinds of files that are missing or unreadable, with how many; processes that ended are none."""
        return [
            Absence("", f"{path} ({skipped.files} files)" if skipped.files > 1 else path, skipped.reason)
            for path, skipped in self.skipped.items()
            if not (path.startswith(_PROCESS) and skipped.reason in _ENDED)
        ]

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _facts(self) -> Iterator[Sample]:
        self._info = self._info or cpu.info(self._tree)
        if self._info.labels:
            yield self._info

    def _processes(self) -> Iterator[Sample]:
        nodes = {node: cpus_of(self._tree.word(f"{numa.BASE}/node{node}/cpulist")) for node in numa.nodes(self._tree)}
        yield from self._watch.read(self._tree, gpus.by_device_file(self._tree), nodes)

    def _say(self) -> None:
        for path, skipped in self.skipped.items():
            if path not in self._said:
                self._said.add(path)
                log.info("%s: %s: %s (%d files)", self._tree.root, path, skipped.reason, skipped.files)
