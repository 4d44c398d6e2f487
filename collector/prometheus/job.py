"""A job of scrape_configs, and the targets that discovery and relabelling make of it, as in Prometheus."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import quote, urlencode

from collector.prometheus.config import ScrapeConfig
from collector.prometheus.discovery.group import Group
from collector.prometheus.masking import shown_address, shown_labels
from collector.prometheus.relabel import Rule, relabel
from collector.prometheus.targets import Limits, Target
from store.errors import UsageError
from store.window import format_duration, parse_duration

_PORTS = {"http": "80", "https": "443"}
_PATH_SAFE = "$&+,/:;=@-_.~"  # as Go's URL.EscapedPath


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of a job now; `dropped`: labels of those that relabelling dropped; `refused`: why others cannot.

    Neither `dropped` nor `refused` shows a secret.
    """

    kept: tuple[Target, ...] = ()
    dropped: tuple[Mapping[str, str], ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """A job of scrape_configs, checked and compiled (`collector.prometheus.jobs.compile_jobs`)."""

    config: ScrapeConfig
    interval_s: float
    timeout_s: float
    limits: Limits
    relabel_rules: tuple[Rule, ...] = ()
    metric_rules: tuple[Rule, ...] = ()
    static: tuple[Group, ...] = ()
    target_limit: int = 0

    @property
    def name(self) -> str:
        """The job_name."""
        return self.config.job_name

    def targets(self, discovered: Iterable[Group] = ()) -> Targets:
        """Relabel the static and the discovered targets, each once."""
        kept: dict[tuple[object, ...], Target] = {}
        dropped: list[Mapping[str, str]] = []
        refused: list[str] = []
        for group in (*self.static, *discovered):
            for labels in group:
                full = self._full(labels)
                try:
                    target = self._target(full)
                except UsageError as error:
                    refused.append(f"target {shown_address(labels.get('__address__', ''))!r}: {error}")
                    continue
                if target is None:
                    dropped.append(shown_labels(full))
                else:
                    kept.setdefault(target.key, target)
        return Targets(self._limited(tuple(kept.values())), tuple(dropped), tuple(refused))

    def _limited(self, kept: tuple[Target, ...]) -> tuple[Target, ...]:
        limit = self.target_limit
        if not limit or len(kept) <= limit:
            return kept
        reason = f"target_limit exceeded (number of targets: {len(kept)}, limit: {limit})"
        return tuple(replace(target, refused=reason) for target in kept)

    def _full(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Add what the job says of every target, where the target does not say it."""
        config = self.config
        job = {
            "job": config.job_name,
            "__scrape_interval__": format_duration(timedelta(seconds=self.interval_s)),
            "__scrape_timeout__": format_duration(timedelta(seconds=self.timeout_s)),
            "__metrics_path__": config.metrics_path,
            "__scheme__": config.scheme,
        }
        params = {f"__param_{name}": values[0] for name, values in config.params.items() if values}
        return job | {name: value for name, value in labels.items() if value} | params

    def _target(self, discovered: dict[str, str]) -> Target | None:
        """Relabel; None for a target that is dropped. Raises UsageError for one that cannot be scraped."""
        labels = relabel(discovered, self.relabel_rules)
        if labels is None:
            return None
        address = _address(labels)
        interval_s, timeout_s = _times(labels)
        labels = labels | {"__address__": address}
        labels.setdefault("instance", address)
        config = self.config
        return Target(
            job=labels.get("job", config.job_name),
            instance=labels["instance"],
            url=self._url(labels),
            labels={name: value for name, value in labels.items() if not name.startswith("__")},
            interval_s=interval_s,
            timeout_s=timeout_s,
            honor_labels=config.honor_labels,
            honor_timestamps=config.honor_timestamps,
            compression=config.enable_compression,
            limits=self.limits,
            rules=self.metric_rules,
            http=config,
            discovered=discovered,
        )

    def _url(self, labels: Mapping[str, str]) -> str:
        params = {name: list(values) for name, values in self.config.params.items() if values}
        for name, value in labels.items():
            if name.startswith("__param_"):
                key = name.removeprefix("__param_")
                params[key] = [value, *params.get(key, [])[1:]]
        path = quote(labels.get("__metrics_path__", ""), safe=_PATH_SAFE)
        path = path if path.startswith("/") or not path else f"/{path}"
        query = f"?{urlencode(sorted(params.items()), doseq=True)}" if params else ""
        return f"{labels.get('__scheme__', 'http')}://{labels['__address__']}{path}{query}"


def _address(labels: Mapping[str, str]) -> str:
    """Return host:port, the port of the scheme where none is given."""
    address, scheme = labels.get("__address__", ""), labels.get("__scheme__", "http")
    if not address:
        raise UsageError("it has no address", "set __address__")
    if scheme not in _PORTS:
        raise UsageError(f"scheme is {scheme!r}", "http or https")
    if "/" in address or any(c.isspace() for c in address):
        raise UsageError(f"{shown_address(address)!r} is no host:port", "the path goes to metrics_path")
    if "@" in address:  # the address becomes the label instance, which everybody may see
        raise UsageError(f"{shown_address(address)!r} holds a user", "user and password go to basic_auth")
    return f"{address}:{_PORTS[scheme]}" if not _splits(address) and _splits(f"{address}:1") else address


def _splits(address: str) -> bool:
    """Whether an address is host:port or [v6]:port (as Go's net.SplitHostPort)."""
    host, colon, _ = address.rpartition(":")
    if address.startswith("["):
        return host.endswith("]") and host.count("[") == host.count("]") == 1
    return bool(colon) and not any(c in address for c in "[]") and ":" not in host


def _times(labels: Mapping[str, str]) -> tuple[float, float]:
    interval_s = parse_duration(labels.get("__scrape_interval__", "")).total_seconds()
    timeout_s = parse_duration(labels.get("__scrape_timeout__", "")).total_seconds()
    if not 0 < timeout_s <= interval_s:
        raise UsageError(f"scrape_timeout {timeout_s:g} s is not within the interval of {interval_s:g} s", "shorten it")
    return interval_s, timeout_s
