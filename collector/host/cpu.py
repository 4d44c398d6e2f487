"""CPU time, clocks, load: /proc/stat, /proc/loadavg, cpufreq. Format: proc_stat(5), proc_loadavg(5)."""

from collections.abc import Iterator, Mapping

from collector.host.tree import Tree
from collector.prometheus.exposition import Sample

MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Columns of a `cpu` line. guest and guest_nice follow; they are part of user and nice already."""

_WINDOWS = ("1m", "5m", "15m")
_PROCESSES = {"procs_running": "running", "procs_blocked": "blocked"}


def read(tree: Tree, ticks_per_s: float) -> Iterator[Sample]:
    """Yield all of CPU and load."""
    yield from stat_samples(tree.text("/proc/stat") or "", ticks_per_s)
    yield from load_samples(tree.text("/proc/loadavg") or "")
    base = "/sys/devices/system/cpu"
    cpus = [name.removeprefix("cpu") for name in tree.names(base) if name.removeprefix("cpu").isdigit()]
    if cpus and "cpufreq" in tree.names(f"{base}/cpu{cpus[0]}"):  # virtual machines have none
        clocks = {cpu: tree.word(f"{base}/cpu{cpu}/cpufreq/scaling_cur_freq") for cpu in cpus}
        yield from clock_samples(clocks)


def stat_samples(text: str, ticks_per_s: float) -> Iterator[Sample]:
    """Yield host_cpu_seconds_total (cpu, mode), host_context_switches_total and host_processes (state)."""
    for line in text.splitlines():
        name, *fields = line.split() or [""]
        if name.startswith("cpu") and name != "cpu":
            for mode, ticks in zip(MODES, fields, strict=False):
                labels = {"cpu": name.removeprefix("cpu"), "mode": mode}
                yield Sample("host_cpu_seconds_total", labels, int(ticks) / ticks_per_s, None)
        elif name == "ctxt":
            yield Sample("host_context_switches_total", {}, float(fields[0]), None)
        elif name in _PROCESSES:
            yield Sample("host_processes", {"state": _PROCESSES[name]}, float(fields[0]), None)


def load_samples(text: str) -> Iterator[Sample]:
    """Yield host_load (window)."""
    for window, value in zip(_WINDOWS, text.split(), strict=False):
        yield Sample("host_load", {"window": window}, float(value), None)


def clock_samples(khz: Mapping[str, str]) -> Iterator[Sample]:
    """Yield host_cpu_hz (cpu) of cpufreq's kHz; a CPU that is offline has none."""
    for cpu, value in khz.items():
        if value.isdigit():
            yield Sample("host_cpu_hz", {"cpu": cpu}, int(value) * 1000.0, None)


def info(tree: Tree) -> Sample:
    """Return host_info: kernel, cpu_model, cpus, sockets. It does not change: read it once."""
    return info_sample(tree.word("/proc/sys/kernel/osrelease"), tree.text("/proc/cpuinfo") or "")


def info_sample(kernel: str, cpuinfo: str) -> Sample:
    """Return host_info of the kernel's release and /proc/cpuinfo; what is not known is left out."""
    fields = [(key.strip(), value.strip()) for key, _, value in (ln.partition(":") for ln in cpuinfo.splitlines())]
    models = [value for key, value in fields if key == "model name"]
    known = {
        "kernel": kernel,
        "cpu_model": models[0] if models else "",
        "cpus": str(sum(key == "processor" for key, _ in fields) or ""),
        "sockets": str(len({value for key, value in fields if key == "physical id"}) or ""),
    }
    return Sample("host_info", {name: value for name, value in known.items() if value}, 1.0, None)
