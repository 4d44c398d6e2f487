"""Devices, engines, hosts and targets as tables for a person: few columns, in the units people say."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Columns = Mapping[str, Callable[[Row], Any]]
WIDE = 0.1
"""Width of a bucket over its upper bound from which an estimate within it is shown with both bounds."""


def _number(name: str, scale: float = 1.0, digits: int = 0) -> Callable[[Row], str]:
    def text(row: Row) -> str:
        value = row[name]
        return "" if value is None else f"{value * scale:.{digits}f}"

    return text


def _of(name: str, whole: str, scale: float = 1.0, digits: int = 0) -> Callable[[Row], str]:
    """Write a value and what it is out of: 12/80."""
    part, total = _number(name, scale, digits), _number(whole, scale, digits)
    return lambda row: "/".join(text for text in (part(row), total(row)) if text)


def _plain(name: str) -> Callable[[Row], str]:
    return lambda row: "" if row[name] is None else str(row[name])


def _device_name(row: Row) -> str:
    if row["mig_instance"]:
        return f"└ MIG {row['mig_instance']} {row['mig_profile'] or ''}".rstrip()
    return row["name"] or row["gpu_uuid"] or ""


def _xid(row: Row) -> str:
    if row["xid"] is None:
        return ""
    minutes = "" if row["xid_age_s"] is None else f" ({row['xid_age_s'] / 60:.0f} min)"
    return f"{row['xid']}{minutes}" if row["xid"] else "none"


def _links(row: Row) -> str:
    errors = f", {row['link_errors']:.0f} errors" if row["link_errors"] else ""
    return "" if row["links_total"] is None else f"{row['links_up']}/{row['links_total']} up{errors}"


def _kv(row: Row) -> str:
    if row["kv_usage_ratio"] is None:
        return ""
    hottest = f" (engine {row['hottest_engine']}: {row['kv_usage_max_ratio']:.2f})" if row["hottest_engine"] else ""
    return f"{row['kv_usage_ratio']:.2f}{hottest}"


def _quantile(name: str) -> Callable[[Row], str]:
    """Write a quantile, and the bounds of its bucket where they are far apart: 77.6 s (40–80)."""

    def text(row: Row) -> str:
        told, low, high = row[name] or "", row[f"{name}_low_s"], row[f"{name}_high_s"]
        wide = row[f"{name}_s"] is not None and high and (high - (low or 0.0)) / high > WIDE
        return f"{told} ({low or 0.0:g}–{high:g})" if wide else told

    return text


DEVICES: Columns = {
    "host": _plain("host"),
    "gpu": _plain("gpu"),
    "name": _device_name,
    "state": _plain("state"),
    "util %": _number("util_pct"),
    "GB/s": _number("p2p_bw_gbps", digits=1),
    "memory GB": _of("memory_used_bytes", "memory_total_bytes", 1e-9, 1),
    "power W": _of("power_watts", "power_limit_watts"),
    "°C": _number("temperature_celsius"),
    "throttle": _plain("throttle"),
    "Xid": _xid,
    "ECC": _number("ecc_uncorrected"),
    "links": _links,
    "workload": _plain("workload"),
}
ENGINES: Columns = {
    "service": _plain("service"),
    "instance": _plain("instance"),
    "model": _plain("model"),
    "engine": _plain("engine"),
    "running": _number("requests_running"),
    "waiting": _number("requests_waiting"),
    "KV use": _kv,
    "hit ratio": _number("prefix_hit_ratio", digits=2),
    "out tok/s": _number("generation_tokens_per_second", digits=1),
    "req/s": _number("requests_per_second", digits=2),
    "errors %": _number("error_ratio", 100, 1),
    "TTFT P50": _quantile("ttft_p50"),
    "TTFT P99": _quantile("ttft_p99"),
    "ITL P99": _quantile("itl_p99"),
    "e2e P99": _quantile("e2e_p99"),
}
HOSTS: Columns = {
    "host": _plain("host"),
    "CPUs": _number("cpus"),
    "busy %": _number("cpu_busy_ratio", 100, 1),
    "load": _number("load_1m", digits=2),
    "stalled % (CPU)": _number("psi_cpu_ratio", 100, 1),
    "(memory)": _number("psi_memory_ratio", 100, 1),
    "(I/O)": _number("psi_io_ratio", 100, 1),
    "memory free GB": _of("memory_available_bytes", "memory_total_bytes", 1e-9, 1),
    "RDMA ports": _of("rdma_ports_up", "rdma_ports"),
    "interrupts/s": _number("interrupts_per_second"),
}
TARGETS: Columns = {
    "job": _plain("job"),
    "instance": _plain("instance"),
    "up": lambda row: {True: "up", False: "DOWN", None: "not yet"}[row["up"]],
    "last": lambda row: (row["last_scrape"] or "")[:19],
    "took s": _number("duration_s", digits=3),
    "samples": _plain("samples"),
    "lost": _plain("dropped"),
    "remark": lambda row: row["last_error"] or row["warning"],
}
PROBES: Columns = {
    "url": _plain("url"),
    "service": _plain("service"),
    "up": lambda row: {True: "up", False: "DOWN", None: "not yet"}[row["up"]],
    "last": lambda row: (row["last_round"] or "")[:19],
    "TTFT s": _number("ttft_s", digits=3),
    "e2e s": _number("e2e_s", digits=3),
    "remark": _plain("last_error"),
}
KV_EVENTS: Columns = {
    "endpoint": _plain("endpoint"),
    "service": _plain("service"),
    "events": lambda row: str(sum(stream["events"] for stream in row["streams"])),
    "last": lambda row: max((s["last_event"] or "" for s in row["streams"]), default="")[:19],
    "lost": lambda row: str(sum(stream["lost"] for stream in row["streams"])),
    "replay": _plain("replay"),
    "remark": _plain("error"),
}
PRICES: Columns = {
    "model": _plain("model"),
    "provider": _plain("provider"),
    "requests": _plain("requests"),
    "tokens": _plain("tokens"),
    "price from": _plain("source"),
    "list": _plain("price"),
}
FLEET: Mapping[str, Columns] = {
    "devices": DEVICES,
    "engines": ENGINES,
    "hosts": HOSTS,
    "targets": TARGETS,
    "probes": PROBES,
    "kv_events": KV_EVENTS,
    "prices": PRICES,
}
"""Parts of a status that are shown as tables, in this order."""


def table(rows: Sequence[Row], columns: Columns) -> str:
    """Text of some rows; a column that is empty throughout is left out."""
    import polars as pl

    from infractl.render import grid

    made = {title: [text(row) for row in rows] for title, text in columns.items()}
    shown = {title: texts for title, texts in made.items() if any(texts)}
    return grid(pl.DataFrame(shown), "simple") if shown else ""


def remarks(status: Mapping[str, Any]) -> list[str]:
    """Tell what is wrong with devices and discovery, and what to know of engines and readers, a line each."""
    lines = [
        f"  {row['state']}: GPU {row['gpu'] or row['gpu_uuid']} on {row['host'] or 'an unnamed host'}: "
        f"{row['reason']} → {row['action']}"
        for row in status.get("devices", ())
        if row["state"] in ("warning", "critical")
    ]
    lines += [
        f"  warning: discovery of job {job['job']}: {error}"
        for job in status.get("discovery", ())
        for error in (*job["refused"], *(error for source in job["sources"] for error in source["errors"]))
    ]
    unseen = Counter(f"{absence['job']} {absence['instance']}" for absence in status.get("absences", ()))
    lines += [f"  note: {reader} cannot see {n} things: infractl doctor names them" for reader, n in unseen.items()]
    return lines + [
        f"  note: {row['service']} {row['instance']} {row['model'] or ''}: {row['notes']}"
        for row in status.get("engines", ())
        if row["notes"]
    ]
