"""The configured sources: `scrape_configs` and `collectors` of infractl.yaml, and those named on the command line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from infractl.configfile import Collector, ConfigFile, nearest_key
from store.errors import ConfigError, UsageError
from store.window import parse_duration

if TYPE_CHECKING:
    from collector.kv_events.settings import KvEvents
    from collector.prometheus.defaults import GlobalConfig
    from collector.prometheus.job import Job
    from collector.prometheus.targets import Reader, Target

TIMEOUT_S = 10.0
"""Longest wait for a page, as Prometheus' scrape_timeout."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Targets that are known, and jobs whose targets are still to be discovered."""

    targets: tuple["Target", ...] = ()
    jobs: tuple["Job", ...] = ()


def scrape_jobs(config: ConfigFile) -> tuple["Job", ...]:
    """Jobs of scrape_configs, with the defaults of global; what of those has no effect is said on stderr.

    Raises ConfigError naming file, line and key.
    """
    from collector.prometheus.config import JobError, ScrapeConfig, refuse_unsupported
    from collector.prometheus.jobs import compile_jobs

    given = _global(config)
    try:
        refuse_unsupported(config.values.get("scrape_configs"))
        found = config.section("scrape_configs", list[ScrapeConfig]) or []
        return compile_jobs(found, config.path.parent if config.path else Path(), given)
    except JobError as error:
        raise ConfigError(f"{config.where('scrape_configs', *error.path)}: {error}", error.hint) from error


def _global(config: ConfigFile) -> "GlobalConfig":
    from collector.prometheus.config import JobError
    from collector.prometheus.defaults import DEFAULTS, NO_EFFECT, GlobalConfig
    from collector.prometheus.jobs import check_global

    if config.values.get("global") is None:
        return DEFAULTS
    given: GlobalConfig = config.section("global", GlobalConfig)
    try:
        check_global(given)
    except JobError as error:
        raise ConfigError(f"{config.where('global', *error.path)}: {error}", error.hint) from error
    idle = [key for key in config.values["global"] if key in NO_EFFECT]
    if idle:
        where = config.where("global", idle[0])
        click.echo(f"warning: {where}: global: no effect here: {', '.join(idle)}", err=True)
    return given


def local_targets(config: ConfigFile) -> tuple["Target", ...]:
    """Targets of the section collectors: what infractl reads on this machine itself."""
    found: Mapping[str, Collector] = config.section("collectors", dict[str, Collector]) or {}
    for name in found:
        if name not in READERS:
            fact = f"{config.where('collectors', name)}: there is no collector {name!r}"
            raise ConfigError(fact, nearest_key(name, READERS))
    return tuple(_local(name, collector) for name, collector in found.items())


def kv_event_entries(config: ConfigFile) -> tuple["KvEvents", ...]:
    """Entries of the section kv_events. Raises ConfigError naming file, line and key."""
    from collector.kv_events.settings import KvEvents, endpoints

    found = tuple(config.section("kv_events", list[KvEvents]) or ())
    try:
        endpoints(found)
    except ConfigError as error:
        raise ConfigError(f"{config.where('kv_events')}: {error}", error.hint) from error
    return found


def chosen(config: ConfigFile, sources: Sequence[str], labels: Mapping[str, str], every: str | None) -> Chosen:
    """Return what `sources` name: a URL, a collector of this machine, or a job of the file; without any, all of it.

    Raises UsageError for one that is none of them.
    """
    from collector.prometheus.masking import shown_address

    jobs = {job.name: job for job in scrape_jobs(config)}
    local = {target.job: target for target in local_targets(config)}
    if not sources:
        if not jobs and not local:
            raise UsageError("no source is named", "give a URL, nvml, amd or host, or name sources in infractl.yaml")
        return _paced(Chosen(tuple(local.values()), tuple(jobs.values())), every)
    targets: list[Target] = []
    named: list[Job] = []
    for source in sources:
        if "://" in source:
            targets.append(page_target(source, labels))
        elif source in jobs:
            named.append(jobs[source])
        elif source in READERS:
            target = local.get(source) or _local(source, Collector())
            targets.append(replace(target, labels={**target.labels, **labels}))
        else:
            fact = f"there is no source {shown_address(source)!r}"
            raise UsageError(fact, nearest_key(source, [*READERS, *jobs]))
    return _paced(Chosen(tuple(targets), tuple(named)), every)


def _paced(found: Chosen, every: str | None) -> Chosen:
    if every is None:
        return found
    interval_s = parse_duration(every).total_seconds()
    if interval_s <= 0:
        raise UsageError(f"--every {every!r} is no time to wait", "write it like 15s")
    timeout_s = min(TIMEOUT_S, interval_s)
    return Chosen(
        tuple(replace(target, interval_s=interval_s, timeout_s=timeout_s) for target in found.targets),
        tuple(replace(job, interval_s=interval_s, timeout_s=timeout_s) for job in found.jobs),
    )


def page_target(url: str, labels: Mapping[str, str]) -> "Target":
    """Return the target of one address; `labels` are put on its series.

    User and password before the host are sent as basic authentication. Raises UsageError where it is no address.
    """
    from urllib.parse import parse_qs, unquote, urlsplit

    from collector.prometheus.config import BasicAuth, ScrapeConfig, StaticConfig
    from collector.prometheus.jobs import compile_jobs
    from collector.prometheus.masking import shown

    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    config = ScrapeConfig(
        job_name=labels.get("job", "collect"),
        scheme=parts.scheme,
        metrics_path=parts.path or "/metrics",
        params=parse_qs(parts.query),
        static_configs=[StaticConfig([host], {k: v for k, v in labels.items() if k != "job"})],
        basic_auth=BasicAuth(unquote(parts.username), unquote(parts.password or "")) if parts.username else None,
    )
    [job] = compile_jobs([config])
    kept = job.targets()
    if not kept.kept:
        raise UsageError(f"{shown(url)}: {'; '.join(kept.refused)}", "write it like http://127.0.0.1:8000/metrics")
    return kept.kept[0]


def _local(name: str, collector: Collector) -> "Target":
    from collector.prometheus.targets import local_target

    every_s = parse_duration(collector.every).total_seconds()
    return local_target(name, READERS[name](collector), every_s, collector.labels)


def _nvml(collector: Collector) -> "Reader":
    from collector.gpu.nvml import BUDGET_S, NvmlReader

    every_s = parse_duration(collector.every).total_seconds()
    return NvmlReader(budget_s=min(BUDGET_S, 0.8 * every_s))  # less than the time after which a scrape gives up


def _amd(collector: Collector) -> "Reader":
    del collector
    from collector.gpu.amd import AmdReader

    return AmdReader()


def _host(collector: Collector) -> "Reader":
    from collector.host.reader import HostReader

    return HostReader(Path(collector.root))


READERS: Mapping[str, Callable[[Collector], "Reader"]] = {"nvml": _nvml, "amd": _amd, "host": _host}
"""What infractl reads on the machine it runs on. A collector is one Reader and one line here."""
