"""The recording's host samples as pages of metrics, under canonical names: how busy and how contended the CPUs were."""

from collections.abc import Iterable, Iterator

from sample_data.scrapes import Scrape


def pages(lines: Iterable[bytes]) -> Iterator[Scrape]:
    """Yield a page per sample of host.jsonl: utilisation, and the share of time in which some task waited for a CPU.

    The latter is the kernel's pressure average over 10 s (PSI, cpu some avg10), a percentage there.
    """
    import orjson

    for line in lines:
        row = orjson.loads(line)
        pressure = round(row["psi_cpu_some_avg10"] / 100, 6)
        values = {"cpu_utilization_ratio": row["cpu_util_ratio"], "cpu_pressure_ratio": pressure}
        yield row["ts_ms"], "".join(f"# TYPE {name} gauge\n{name} {value!r}\n" for name, value in values.items())
