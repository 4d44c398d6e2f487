"""How much of the machine DuckDB may use: a share of the least limit of container, process and machine.

DuckDB takes 80 % of the memory it sees, which in a container may be the host's. Half of the least limit is left to the
rest of the process: serve holds 177 MiB when idle and up to 946 MiB under the load of benchmarks/soak.md, most of it in
frames and HTTP bodies that DuckDB's limit does not count.
"""

import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from store.cgroups import GroupLimits, group_limits
from store.settings import StoreSettings
from store.sizes import format_size

SHARE = 0.5
LEAST_BYTES = 64 * 1024**2  # below this DuckDB cannot even load what it has committed
THREAD_BYTES = 128 * 1024**2  # DuckDB wants 125 MB for each thread
MAPPED_BYTES = (
    3 * 1024**3 // 2
)  # address space of Python with its libraries at work (measured: 1.2 to 1.6 GiB), mostly untouched
SPILL_SHARE = 0.5  # of the free disk: what is ingested needs the rest


@dataclass(frozen=True, slots=True)
class Machine:
    """What container, process and machine allow; None where nothing is set."""

    physical_bytes: int
    cpus: int
    address_space_bytes: int | None = None
    group: GroupLimits = GroupLimits()

    @classmethod
    def here(cls, root: Path = Path("/")) -> "Machine":
        """Look at this process, with proc and sys below `root`."""
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cls(_physical(), cpus, _address_space(), group_limits(root))

    def memory(self) -> tuple[int, str]:
        """Return the least limit in bytes and what it is, in words."""
        known = [(self.physical_bytes, f"{format_size(self.physical_bytes)} of memory")]
        if self.group.memory_bytes is not None:
            known.append((self.group.memory_bytes, f"the {format_size(self.group.memory_bytes)} limit of the cgroup"))
        if self.address_space_bytes is not None:
            text = f"what the {format_size(self.address_space_bytes)} limit of the address space leaves (ulimit -v)"
            known.append((max(0, self.address_space_bytes - MAPPED_BYTES), text))
        return min(known)

    def threads(self) -> int:
        """Return the processors this process may use, a fraction of one counted as one."""
        quota = self.group.cpus
        return self.cpus if quota is None else max(1, min(self.cpus, math.ceil(quota)))


@dataclass(frozen=True, slots=True)
class Resources:
    """What DuckDB may use; `memory_basis` says in words where the limit comes from."""

    memory_limit_bytes: int
    memory_basis: str
    threads: int
    spill_limit_bytes: int
    spill_directory: Path

    def config(self) -> dict[str, str | int]:
        """Return the settings to open a DuckDB file with."""
        return {
            "memory_limit": f"{self.memory_limit_bytes}B",
            "threads": self.threads,
            "temp_directory": str(self.spill_directory),
            "max_temp_directory_size": f"{self.spill_limit_bytes}B",
        }


def resources(settings: StoreSettings, directory: Path, machine: Machine | None = None) -> Resources:
    """Decide what DuckDB may use for a store in `directory`; a value of the settings wins over a derived one."""
    machine = machine or Machine.here()
    memory, basis = _memory(settings.memory_limit_bytes, machine)
    threads = settings.threads or min(machine.threads(), max(1, memory // THREAD_BYTES))
    spill = settings.spill_limit_bytes or int(SPILL_SHARE * _free(directory))
    return Resources(memory, basis, threads, spill, directory / "spill")


def _memory(asked: int | None, machine: Machine) -> tuple[int, str]:
    if asked is not None:
        return asked, "store.memory_limit"
    least, words = machine.memory()
    share = int(SHARE * least)
    if share < LEAST_BYTES:
        return LEAST_BYTES, f"the least that works; {SHARE * 100:.0f} % of {words} is less"
    return share, f"{SHARE * 100:.0f} % of {words}"


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _address_space() -> int | None:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _free(directory: Path) -> int:
    """Free bytes of the disk that holds (or will hold) a directory."""
    there = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free
