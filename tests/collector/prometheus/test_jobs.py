"""scrape_configs: what is taken, what is refused and how."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.prometheus.config import INSTEAD, JobError, ScrapeConfig, refuse_unsupported
from collector.prometheus.jobs import compile_jobs, parse_size
from store.errors import UsageError


def configs(*raw: dict[str, Any]) -> list[ScrapeConfig]:
    return msgspec.convert(list(raw), list[ScrapeConfig])


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(msgspec.ValidationError, match="honour_labels"):
        configs({"job_name": "a", "honour_labels": []})


@pytest.mark.parametrize("key", ["kubernetes_sd_configs", "consul_sd_configs", "some_future_sd_configs", *INSTEAD])
def test_a_key_of_prometheus_that_is_not_read_is_refused_with_what_to_do_instead(key: str) -> None:
    with pytest.raises(JobError, match=key) as caught:
        refuse_unsupported([{"job_name": "fine"}, {"job_name": "a", key: []}])
    assert caught.value.path == (1, key)
    assert "job a" in str(caught.value)
    assert len(caught.value.hint) > 20
    if key.endswith("_sd_configs"):
        assert "file_sd_configs" in caught.value.hint
        assert "http_sd_configs" in caught.value.hint


def test_unsupported_keys_are_found_below_others_and_not_among_labels() -> None:
    with pytest.raises(JobError) as caught:
        refuse_unsupported([{"job_name": "a", "http_sd_configs": [{"url": "u", "proxy_url": "p"}]}])
    assert caught.value.path == (0, "http_sd_configs", 0, "proxy_url")
    refuse_unsupported([{"job_name": "a", "static_configs": [{"labels": {"key": "1", "oauth2": "x"}}]}])
    refuse_unsupported([{"job_name": "a", "params": {"ca": ["x"]}}])


@pytest.mark.parametrize("raw", [None, [], "x", [1], {"a": 1}])
def test_the_search_for_unsupported_keys_leaves_other_faults_to_others(raw: object) -> None:
    refuse_unsupported(raw)


SD = {"url": "http://h/t"}


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        ({"scrape_interval": "soon"}, ["scrape_interval"], "soon"),
        ({"scrape_timeout": "20s"}, ["scrape_timeout"], "interval"),
        ({"scrape_interval": "0s"}, ["scrape_interval"], "0s"),
        ({"scheme": "ftp"}, ["scheme"], "ftp"),
        ({"metrics_path": "metrics"}, ["metrics_path"], "metrics_path"),
        ({"body_size_limit": "much"}, ["body_size_limit"], "much"),
        ({"sample_limit": -1}, ["sample_limit"], "-1"),
        ({"static_configs": [{"targets": ["http://h/metrics"]}]}, ["static_configs", 0], "http://h/metrics"),
        ({"static_configs": [{"targets": ["h"], "labels": {"a-b": "1"}}]}, ["static_configs", 0], "a-b"),
        ({"authorization": {}, "basic_auth": {"username": "u"}}, ["basic_auth"], "exclude"),
        ({"authorization": {}, "bearer_token": "u"}, ["bearer_token"], "exclude"),
        ({"authorization": {"type": "Basic"}}, ["authorization"], "basic_auth"),
        ({"authorization": {"credentials": "a", "credentials_file": "b"}}, ["authorization"], "exclude"),
        ({"basic_auth": {"username": "a", "password": "b", "password_file": "c"}}, ["basic_auth"], "exclude"),
        ({"tls_config": {"cert_file": "c"}}, ["tls_config"], "key_file"),
        ({"job_name": ""}, ["job_name"], "job_name"),
        ({"relabel_configs": [{"target_label": "x"}, {"action": "no"}]}, ["relabel_configs", 1], "no"),
        ({"metric_relabel_configs": [{"regex": "("}]}, ["metric_relabel_configs", 0], "target_label"),
        ({"file_sd_configs": [{"files": ["x.txt"]}]}, ["file_sd_configs", 0, "files"], "x.txt"),
        ({"file_sd_configs": [{"files": ["*/x.json"]}]}, ["file_sd_configs", 0, "files"], "x.json"),
        (
            {"file_sd_configs": [{"files": ["x.yml"], "refresh_interval": "x"}]},
            ["file_sd_configs", 0, "refresh_interval"],
            "x",
        ),
        ({"http_sd_configs": [{"url": "ftp://x"}]}, ["http_sd_configs", 0, "url"], "ftp"),
        ({"http_sd_configs": [SD, SD | {"refresh_interval": "0s"}]}, ["http_sd_configs", 1, "refresh_interval"], "0s"),
        ({"http_sd_configs": [SD | {"tls_config": {"key_file": "k"}}]}, ["http_sd_configs", 0, "tls_config"], "cert"),
        ({"dns_sd_configs": [{"names": ["a"], "type": "MX"}]}, ["dns_sd_configs", 0, "type"], "MX"),
        ({"dns_sd_configs": [{"names": ["a"], "type": "A"}]}, ["dns_sd_configs", 0, "port"], "port"),
        ({"dns_sd_configs": [{"names": []}]}, ["dns_sd_configs", 0, "names"], "name"),
    ],
)
def test_a_value_that_cannot_be_used_names_job_key_and_remedy(
    change: dict[str, Any], path: list[str | int], words: str
) -> None:
    base = {"job_name": "j", "static_configs": [{"targets": ["h:1"]}]}
    with pytest.raises(JobError, match="scrape_configs") as caught:
        compile_jobs(configs({**base, **change}))
    assert words in str(caught.value)
    assert caught.value.path == (0, *path)
    assert caught.value.hint


def test_two_jobs_of_one_name_are_refused() -> None:
    with pytest.raises(JobError, match="twice"):
        compile_jobs(configs({"job_name": "a"}, {"job_name": "a"}))


def test_relative_files_are_those_beside_the_configuration() -> None:
    raw = {
        "job_name": "a",
        "authorization": {"credentials_file": "token"},
        "tls_config": {"ca_file": "/etc/ca.pem", "cert_file": "c", "key_file": "k"},
        "file_sd_configs": [{"files": ["sd/*.json", "/abs/x.yml"]}],
        "http_sd_configs": [{"url": "http://h", "bearer_token_file": "t", "tls_config": {"ca_file": "ca"}}],
    }
    (job,) = compile_jobs(configs(raw), Path("/conf"))
    config = job.config
    assert config.token is not None
    assert config.token.credentials_file == "/conf/token"
    assert (config.tls_config.ca_file, config.tls_config.key_file) == ("/etc/ca.pem", "/conf/k")
    assert config.file_sd_configs[0].files == ["/conf/sd/*.json", "/abs/x.yml"]
    assert config.http_sd_configs[0].bearer_token_file == "/conf/t"
    assert config.http_sd_configs[0].tls_config.ca_file == "/conf/ca"


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("1000", 1000), (7, 7), ("1KB", 1024), ("2MiB", 2 << 20), ("0.5GB", 1 << 29), ("3B", 3)],
)
def test_sizes_are_read_as_prometheus_reads_them(text: str | int, size: int) -> None:
    assert parse_size(text) == size


def test_a_size_without_a_number_is_refused() -> None:
    with pytest.raises(UsageError, match="MB"):
        parse_size("MB")
