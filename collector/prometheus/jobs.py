"""`scrape_configs` checked and made into jobs: every value that cannot be used is refused with job, key and remedy."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from collector.prometheus.config import HttpClient, JobError, RelabelConfig, ScrapeConfig, StaticConfig, in_folder
from collector.prometheus.defaults import DEFAULTS, LIMITS, GlobalConfig
from collector.prometheus.discovery.dns import TYPES
from collector.prometheus.discovery.group import Group
from collector.prometheus.job import Job
from collector.prometheus.masking import shown, shown_address
from collector.prometheus.relabel import Rule, compile_rule
from collector.prometheus.targets import Limits
from store.errors import UsageError
from store.window import parse_duration

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_LABEL = re.compile(r"[a-zA-Z_]\w*", re.ASCII)
_FILE = re.compile(r"[^*]*(\*[^/]*)?\.(json|yml|yaml)", re.IGNORECASE)


def compile_jobs(
    configs: Iterable[ScrapeConfig], folder: Path = Path(), given: GlobalConfig = DEFAULTS
) -> tuple[Job, ...]:
    """Check all jobs; relative file names are below `folder` (that of the configuration file).

    What a job leaves out is as `given`, which `check_global` has passed. Raises JobError naming the job and the key,
    with the path to it.
    """
    jobs: dict[str, Job] = {}
    for index, config in enumerate(configs):
        if not config.job_name or config.job_name in jobs:
            fact = f"scrape_configs: job_name {config.job_name!r} is empty or used twice"
            raise JobError(fact, "name every job", (index, "job_name"))
        try:
            jobs[config.job_name] = _job(in_folder(config, folder), given)
        except JobError as error:
            fact = f"scrape_configs: job {config.job_name}: {error}"
            raise JobError(fact, error.hint, (index, *error.path)) from error
    return tuple(jobs.values())


def check_global(given: GlobalConfig) -> None:
    """Check the values that jobs take over. Raises JobError naming the key, with the path to it below `global`."""
    try:
        _timeout_s(given.scrape_timeout, _seconds("scrape_interval", given.scrape_interval))
        with _at("body_size_limit"):
            parse_size(given.body_size_limit)
        for key in LIMITS:
            _limit(key, getattr(given, key))
    except JobError as error:
        raise JobError(f"global: {error}", error.hint, error.path) from error


def parse_size(text: str | int) -> int:
    """Read '10MB', '512KiB' or '1000' (bytes; powers of 1024 as in Prometheus); 0 is no limit."""
    match = _SIZE.fullmatch(str(text).strip())
    if match is None:
        raise UsageError(f"{text!r} is no size", "write it like 50MB; 0 for no limit")
    return int(float(match[1]) * 1024 ** _POWERS[(match[2] or "").removesuffix("i")])


@contextmanager
def _at(*path: str | int) -> Iterator[None]:
    """Name the key that a UsageError is about."""
    try:
        yield
    except UsageError as error:
        shown = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")
        raise JobError(f"{shown}: {error}", error.hint, path) from error


def _job(config: ScrapeConfig, given: GlobalConfig) -> Job:
    interval_s = _seconds("scrape_interval", config.scrape_interval or given.scrape_interval)
    timeout_s = min(_seconds("scrape_timeout", given.scrape_timeout), interval_s)
    if config.scrape_timeout is not None:
        timeout_s = _timeout_s(config.scrape_timeout, interval_s)
    _check(config)
    _check_discovery(config)
    with _at("body_size_limit"):
        size = parse_size(given.body_size_limit if config.body_size_limit is None else config.body_size_limit)
    limits = {key: _limit(key, getattr(config, key), getattr(given, key)) for key in LIMITS}
    return Job(
        config=config,
        interval_s=interval_s,
        timeout_s=timeout_s,
        limits=Limits(
            size,
            limits["sample_limit"],
            limits["label_limit"],
            limits["label_name_length_limit"],
            limits["label_value_length_limit"],
        ),
        relabel_rules=_rules("relabel_configs", config.relabel_configs),
        metric_rules=_rules("metric_relabel_configs", config.metric_relabel_configs),
        static=tuple(_static(group, at) for at, group in enumerate(config.static_configs)),
        target_limit=limits["target_limit"],
    )


def _seconds(key: str, text: str, *path: str | int) -> float:
    with _at(*path, key):
        seconds = parse_duration(text).total_seconds()
        if seconds <= 0:
            raise UsageError(f"{text!r} is no time to wait", "write it like 15s")
        return seconds


def _timeout_s(text: str, interval_s: float) -> float:
    timeout_s = _seconds("scrape_timeout", text)
    with _at("scrape_timeout"):
        if timeout_s > interval_s:
            raise UsageError(f"{timeout_s:g} s is longer than the interval of {interval_s:g} s", "shorten it")
    return timeout_s


def _limit(key: str, stated: int | None, otherwise: int = 0) -> int:
    limit = otherwise if stated is None else stated
    with _at(key):
        if limit < 0:
            raise UsageError(f"{limit} is below 0", "0 is no limit")
    return limit


def _check(config: ScrapeConfig) -> None:
    with _at("scheme"):
        if config.scheme not in ("http", "https"):
            raise UsageError(f"{config.scheme!r}", "http or https")
    with _at("metrics_path"):
        if not config.metrics_path.startswith("/"):
            raise UsageError(f"{shown(config.metrics_path)!r} does not start with /", "write it like /metrics")
    _check_client(config)


def _check_client(client: HttpClient, *path: str | int) -> None:
    given = [
        key for key in ("authorization", "basic_auth", "bearer_token", "bearer_token_file") if getattr(client, key)
    ]
    with _at(*path, given[1] if len(given) > 1 else "authorization"):
        if len(given) > 1:
            raise UsageError(f"{given[0]} and {given[1]} exclude each other", "keep one")
        auth = client.authorization
        if auth and auth.credentials is not None and auth.credentials_file is not None:
            raise UsageError("credentials and credentials_file exclude each other", "keep one")
        if auth and auth.type.lower() == "basic":
            raise UsageError("type Basic is basic_auth", "use basic_auth with username and password")
    basic = client.basic_auth
    with _at(*path, "basic_auth"):
        if basic and basic.password is not None and basic.password_file is not None:
            raise UsageError("password and password_file exclude each other", "keep one")
    with _at(*path, "tls_config"):
        if bool(client.tls_config.cert_file) != bool(client.tls_config.key_file):
            raise UsageError("cert_file and key_file belong together", "give both")


def _check_discovery(config: ScrapeConfig) -> None:
    for at, files in enumerate(config.file_sd_configs):
        _seconds("refresh_interval", files.refresh_interval, "file_sd_configs", at)
        with _at("file_sd_configs", at, "files"):
            for file in files.files:
                if not _FILE.fullmatch(file):
                    raise UsageError(f"{file!r}", "end it in .json, .yml or .yaml; * is for the last part only")
    for at, http in enumerate(config.http_sd_configs):
        _seconds("refresh_interval", http.refresh_interval, "http_sd_configs", at)
        _check_client(http, "http_sd_configs", at)
        with _at("http_sd_configs", at, "url"):
            if not http.url.startswith(("http://", "https://")):
                raise UsageError(f"{shown(http.url)!r} is no http address", "write it like https://host/targets")
    for at, dns in enumerate(config.dns_sd_configs):
        _seconds("refresh_interval", dns.refresh_interval, "dns_sd_configs", at)
        with _at("dns_sd_configs", at, "type"):
            if dns.type.upper() not in TYPES:
                raise UsageError(f"{dns.type!r}", "SRV, A or AAAA")
        with _at("dns_sd_configs", at, "port"):
            if dns.type.upper() != "SRV" and not 0 < (dns.port or 0) < 1 << 16:
                raise UsageError(f"a port is needed with type {dns.type}", "set port")
        with _at("dns_sd_configs", at, "names"):
            if not dns.names:
                raise UsageError("there is no name", "name at least one")


def _rules(key: str, configs: Sequence[RelabelConfig]) -> tuple[Rule, ...]:
    rules = []
    for index, config in enumerate(configs):
        with _at(key, index):
            rules.append(compile_rule(config))
    return tuple(rules)


def _static(config: StaticConfig, at: int) -> Group:
    with _at("static_configs", at):
        for address in config.targets:
            if not address or "/" in address or any(c.isspace() for c in address):
                raise UsageError(f"target {shown_address(address)!r} is no host:port", "the path goes to metrics_path")
            if "@" in address:
                raise UsageError(
                    f"target {shown_address(address)!r} holds a user", "user and password go to basic_auth"
                )
        for name in config.labels:
            if not _LABEL.fullmatch(name):
                raise UsageError(f"{name!r} cannot be a label of targets", "letters, digits and _")
    return Group(tuple({"__address__": address} for address in config.targets), config.labels)
