"""scrape_configs: what is taken, what is refused and how."""

import msgspec
import pytest

from collector.prometheus.targets import ScrapeConfig, expand, parse_size
from store.errors import ConfigError, UsageError


def configs(*raw: dict[str, object]) -> list[ScrapeConfig]:
    return msgspec.convert(list(raw), list[ScrapeConfig])


def test_a_job_in_prometheus_form_becomes_targets() -> None:
    one, two = expand(
        configs(
            {
                "job_name": "vllm",
                "scrape_interval": "5s",
                "scheme": "https",
                "metrics_path": "/prometheus/metrics",
                "params": {"match[]": ["a", "b"]},
                "static_configs": [{"targets": ["h:8000", "g"], "labels": {"service": "chat", "instance": "n"}}],
                "body_size_limit": "1MB",
                "honor_labels": True,
            }
        )
    )
    assert one.url == "https://h:8000/prometheus/metrics?match%5B%5D=a&match%5B%5D=b"
    assert (one.interval_s, one.timeout_s, one.honor_labels, one.body_size_limit_bytes) == (5.0, 5.0, True, 1048576)
    assert one.labels == {"job": "vllm", "instance": "n", "service": "chat"}
    assert two.instance == "g:443"


def test_defaults_are_15_s_10_s_and_metrics() -> None:
    (target,) = expand(configs({"job_name": "a", "static_configs": [{"targets": ["[::1]"]}]}))
    assert (target.interval_s, target.timeout_s, target.url) == (15.0, 10.0, "http://[::1]/metrics")
    assert target.labels == {"job": "a", "instance": "[::1]:80"}


@pytest.mark.parametrize("key", ["file_sd_configs", "http_sd_configs", "relabel_configs", "honour_labels"])
def test_an_unknown_key_is_named(key: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=key):
        configs({"job_name": "a", key: []})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scrape_interval": "soon"}, "soon"),
        ({"scrape_timeout": "20s"}, "interval"),
        ({"scrape_interval": "0s"}, "interval"),
        ({"scheme": "ftp"}, "ftp"),
        ({"metrics_path": "metrics"}, "metrics_path"),
        ({"body_size_limit": "much"}, "much"),
        ({"static_configs": [{"targets": ["http://h/metrics"]}]}, "http://h/metrics"),
        ({"static_configs": [{"targets": ["h"], "labels": {"__x": "1"}}]}, "__x"),
        ({"authorization": {}, "basic_auth": {"username": "u"}}, "exclude"),
        ({"job_name": ""}, "job_name"),
    ],
)
def test_a_value_that_cannot_be_used_names_job_and_value(change: dict[str, object], words: str) -> None:
    base = {"job_name": "j", "static_configs": [{"targets": ["h:1"]}]}
    with pytest.raises(ConfigError, match="scrape_configs") as caught:
        expand(configs({**base, **change}))
    assert words in str(caught.value)
    assert caught.value.hint


def test_two_jobs_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="twice"):
        expand(configs({"job_name": "a"}, {"job_name": "a"}))


def test_secrets_are_not_in_the_representation() -> None:
    (target,) = expand(
        configs({"job_name": "a", "authorization": {"credentials": "s3cret"}, "static_configs": [{"targets": ["h"]}]})
    )
    assert "s3cret" not in repr(target)


@pytest.mark.parametrize(
    ("text", "size"), [("0", None), ("1000", 1000), ("1KB", 1024), ("2MiB", 2 << 20), ("0.5GB", 1 << 29), ("3B", 3)]
)
def test_sizes_are_read_as_prometheus_reads_them(text: str, size: int | None) -> None:
    assert parse_size(text) == size


def test_a_size_without_a_number_is_refused() -> None:
    with pytest.raises(UsageError, match="MB"):
        parse_size("MB")
