"""`scrape_configs` in Prometheus' own form, and the targets they name.

Not read yet, and refused by name: file_sd_configs, http_sd_configs, relabel_configs, metric_relabel_configs.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

import msgspec

from store.errors import ConfigError, UsageError
from store.window import parse_duration

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"[a-zA-Z_]\w*", re.ASCII)


class StaticConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Targets as host:port and the labels of all their series."""

    targets: list[str]
    labels: dict[str, str] = {}


class Authorization(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Authorization header; the file is read at every scrape, so that a token may rotate."""

    type: str = "Bearer"
    credentials: str | None = None
    credentials_file: str | None = None


class BasicAuth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """HTTP basic authentication."""

    username: str
    password: str | None = None
    password_file: str | None = None


class TlsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files are PEM. `server_name` is the name the certificate must carry, where it is not the target's host."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    insecure_skip_verify: bool = False
    server_name: str | None = None


class ScrapeConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One job. Names and meaning are Prometheus'; interval and timeout default to 15 s and 10 s."""

    job_name: str
    static_configs: list[StaticConfig] = []
    scrape_interval: str = "15s"
    scrape_timeout: str | None = None
    metrics_path: str = "/metrics"
    scheme: str = "http"
    params: dict[str, list[str]] = {}
    authorization: Authorization | None = None
    basic_auth: BasicAuth | None = None
    tls_config: TlsConfig = TlsConfig()
    honor_labels: bool = False
    body_size_limit: str = "256MB"


@dataclass(frozen=True, slots=True)
class Target:
    """One page to scrape. `labels` (job and instance among them) are put on all its series."""

    job: str
    instance: str
    url: str
    labels: Mapping[str, str]
    interval_s: float = 15.0
    timeout_s: float = 10.0
    honor_labels: bool = False
    body_size_limit_bytes: int | None = None
    authorization: Authorization | None = field(default=None, repr=False)
    basic_auth: BasicAuth | None = field(default=None, repr=False)
    tls: TlsConfig = TlsConfig()


def expand(configs: Iterable[ScrapeConfig]) -> list[Target]:
    """Return the targets of all jobs. Raises ConfigError naming the job for a value that cannot be used."""
    targets: list[Target] = []
    jobs: set[str] = set()
    for config in configs:
        if not config.job_name or config.job_name in jobs:
            raise ConfigError(f"scrape_configs: job_name {config.job_name!r} is empty or used twice", "name every job")
        jobs.add(config.job_name)
        try:
            targets += _expand(config)
        except UsageError as error:
            raise ConfigError(f"scrape_configs: job {config.job_name}: {error}", error.hint) from error
    return targets


def _expand(config: ScrapeConfig) -> list[Target]:
    interval_s = parse_duration(config.scrape_interval).total_seconds()
    timeout_s = (
        parse_duration(config.scrape_timeout).total_seconds() if config.scrape_timeout else min(10.0, interval_s)
    )
    if not 0 < timeout_s <= interval_s:
        raise UsageError(f"scrape_timeout {timeout_s:g} s is not within the interval of {interval_s:g} s", "shorten it")
    _check(config)
    return [
        Target(
            job=config.job_name,
            instance=_instance(address, config.scheme),
            url=f"{config.scheme}://{address}{config.metrics_path}{_query(config.params)}",
            labels={"job": config.job_name, "instance": _instance(address, config.scheme), **group.labels},
            interval_s=interval_s,
            timeout_s=timeout_s,
            honor_labels=config.honor_labels,
            body_size_limit_bytes=parse_size(config.body_size_limit),
            authorization=config.authorization,
            basic_auth=config.basic_auth,
            tls=config.tls_config,
        )
        for group in config.static_configs
        for address in group.targets
    ]


def _check(config: ScrapeConfig) -> None:
    if config.scheme not in _PORTS:
        raise UsageError(f"scheme is {config.scheme!r}", "http or https")
    if not config.metrics_path.startswith("/"):
        raise UsageError(f"metrics_path {config.metrics_path!r} does not start with /", "write it like /metrics")
    if config.authorization and config.basic_auth:
        raise UsageError("authorization and basic_auth exclude each other", "keep one")
    for group in config.static_configs:
        for address in group.targets:
            if not address or "/" in address or any(c.isspace() for c in address):
                raise UsageError(f"target {address!r} is no host:port", "the path goes to metrics_path")
        for name in group.labels:
            if not _LABEL.fullmatch(name) or name.startswith("__"):
                raise UsageError(f"{name!r} cannot be a target label", "letters, digits and _; not __ at the start")


def _instance(address: str, scheme: str) -> str:
    """Return host:port, the port of the scheme where none is given (as Prometheus' instance label)."""
    has_port = re.search(r":\d+$", address) and (address.count(":") == 1 or "]:" in address)
    return address if has_port else f"{address}:{_PORTS[scheme]}"


def _query(params: Mapping[str, list[str]]) -> str:
    return f"?{urlencode(params, doseq=True)}" if params else ""


def parse_size(text: str) -> int | None:
    """Read '10MB', '512KiB' or '1000' (bytes; powers of 1024 as in Prometheus); None, no limit, for 0."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"body_size_limit {text!r} is no size", "write it like 50MB; 0 for no limit")
    return int(float(match[1]) * 1024 ** _POWERS[(match[2] or "").removesuffix("i")]) or None
