"""`scrape_configs` in Prometheus' own form: the keys that are read, and what to do instead of those that are not."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from store.errors import ConfigError

S = TypeVar("S", bound=msgspec.Struct)


class JobError(ConfigError):
    """A value of `scrape_configs` that cannot be used; `path` leads to it: (0, "relabel_configs", 2)."""

    def __init__(self, fact: str, hint: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(fact, hint)
        self.path = path


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


class HttpClient(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How to ask: the same keys for a target and for the URL of `http_sd_configs`.

    `enable_http2` is read and changes nothing: HTTP/1.1 is spoken, which every server of metrics does.
    """

    authorization: Authorization | None = None
    basic_auth: BasicAuth | None = None
    bearer_token: str | None = None
    bearer_token_file: str | None = None
    tls_config: TlsConfig = TlsConfig()
    follow_redirects: bool = True
    enable_http2: bool = True

    @property
    def token(self) -> Authorization | None:
        """`authorization`, or the older bearer_token keys in its form."""
        if self.bearer_token is None and self.bearer_token_file is None:
            return self.authorization
        return Authorization("Bearer", self.bearer_token, self.bearer_token_file)


class FileSd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Files of targets (JSON or YAML; the last part of a path may hold `*`)."""

    files: list[str]
    refresh_interval: str = "5m"


class HttpSd(HttpClient, frozen=True, forbid_unknown_fields=True):
    """A URL that answers with targets as JSON."""

    url: str
    refresh_interval: str = "60s"


class DnsSd(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names whose A, AAAA or SRV records are targets; A and AAAA need a port."""

    names: list[str]
    type: str = "SRV"
    port: int | None = None
    refresh_interval: str = "30s"


class RelabelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One relabelling rule; None stands for Prometheus' default of the key."""

    source_labels: list[str] | None = None
    separator: str | None = None
    regex: str | None = None
    modulus: int | None = None
    target_label: str | None = None
    replacement: str | None = None
    action: str = "replace"


class ScrapeConfig(HttpClient, frozen=True, forbid_unknown_fields=True):
    """One job. Names and meaning are Prometheus'; interval, timeout and limits left out are those of GlobalConfig."""

    job_name: str
    static_configs: list[StaticConfig] = []
    file_sd_configs: list[FileSd] = []
    http_sd_configs: list[HttpSd] = []
    dns_sd_configs: list[DnsSd] = []
    relabel_configs: list[RelabelConfig] = []
    metric_relabel_configs: list[RelabelConfig] = []
    scrape_interval: str | None = None
    scrape_timeout: str | None = None
    metrics_path: str = "/metrics"
    scheme: str = "http"
    params: dict[str, list[str]] = {}
    honor_labels: bool = False
    honor_timestamps: bool = True
    enable_compression: bool = True
    body_size_limit: str | int | None = None
    sample_limit: int | None = None
    target_limit: int | None = None
    label_limit: int | None = None
    label_name_length_limit: int | None = None
    label_value_length_limit: int | None = None


_DIRECT = "leave it out: targets are reached directly; run infractl where they can be reached"
_CLASSIC = "leave it out: classic histograms are always read, native ones are not asked for"
_PROTOCOL = "leave it out: the text format is asked for, and OpenMetrics is read where it is answered"
_UTF8 = "leave it out: UTF-8 names are always read"
INSTEAD: Mapping[str, str] = {
    "oauth2": "let a program of yours renew the token in a file and name it in authorization.credentials_file",
    "http_headers": "a credential goes to authorization (any type); other headers cannot be sent",
    "proxy_url": _DIRECT,
    "proxy_from_environment": _DIRECT,
    "proxy_connect_header": _DIRECT,
    "no_proxy": _DIRECT,
    "scrape_protocols": _PROTOCOL,
    "fallback_scrape_protocol": _PROTOCOL,
    "scrape_classic_histograms": _CLASSIC,
    "always_scrape_classic_histograms": _CLASSIC,
    "scrape_native_histograms": _CLASSIC,
    "convert_classic_histograms_to_nhcb": _CLASSIC,
    "native_histogram_bucket_limit": _CLASSIC,
    "native_histogram_min_bucket_factor": _CLASSIC,
    "metric_name_validation_scheme": _UTF8,
    "metric_name_escaping_scheme": _UTF8,
    "track_timestamps_staleness": "leave it out: a series that leaves the page always ends",
    "keep_dropped_targets": "leave it out: dropped targets are always counted",
    "scrape_failure_log_file": "leave it out: infractl status says why a target fails",
    "ca": "write it to a file and name that in ca_file",
    "cert": "write it to a file and name that in cert_file",
    "key": "write it to a file and name that in key_file",
    "min_version": "leave it out: TLS 1.2 and newer are spoken",
    "max_version": "leave it out: the newest TLS that both sides know is spoken",
}
"""Keys that Prometheus knows and infractl does not read, and what to do instead."""
_SD_INSTEAD = "write the targets to a file for file_sd_configs, or serve them for http_sd_configs (same JSON)"
_OWN_SD = ("file_sd_configs", "http_sd_configs", "dns_sd_configs")
_FREE = ("labels", "params", "static_configs")  # their keys are the user's


def refuse_unsupported(raw: object) -> None:
    """Refuse a key that Prometheus knows and infractl does not. Raises JobError with its path and what to do."""
    for path in _keys(raw, ()):
        key = str(path[-1])
        hint = INSTEAD.get(key)
        if key.endswith("_sd_configs") and key not in _OWN_SD:
            hint = _SD_INSTEAD
        if hint is not None:
            raise JobError(f"scrape_configs: {_job(raw, path)}{key} is not supported", hint, path)


def _keys(node: object, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield (*path, str(key))
            if key not in _FREE:
                yield from _keys(value, (*path, str(key)))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _keys(value, (*path, index))


def _job(raw: Any, path: tuple[str | int, ...]) -> str:
    job = raw[path[0]] if isinstance(path[0], int) else {}
    return f"job {job['job_name']}: " if isinstance(job, Mapping) and "job_name" in job else ""


def in_folder(value: S, folder: Path) -> S:
    """Return a configuration whose relative file names are below `folder`, as Prometheus takes them."""
    changes: dict[str, Any] = {}
    for name in value.__struct_fields__:
        inner = getattr(value, name)
        if name.endswith("_file") and inner:
            changes[name] = str(folder / inner)
        elif name == "files":
            changes[name] = [str(folder / file) for file in inner]
        elif isinstance(inner, msgspec.Struct):
            changes[name] = in_folder(inner, folder)
        elif name.endswith("_sd_configs"):
            changes[name] = [in_folder(item, folder) for item in inner]
    return msgspec.structs.replace(value, **changes)
