"""Jobs to targets: defaults, labels, limits on their number, readers on this machine."""

import math
import socket
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from collector.prometheus.config import ScrapeConfig
from collector.prometheus.discovery.group import Group
from collector.prometheus.exposition import Sample
from collector.prometheus.job import Job
from collector.prometheus.jobs import compile_jobs
from collector.prometheus.targets import Absence, local_target


def job(**raw: Any) -> Job:
    return compile_jobs([msgspec.convert({"job_name": "j", **raw}, ScrapeConfig)])[0]


def test_a_job_in_prometheus_form_becomes_targets() -> None:
    one, two = (
        job(
            job_name="vllm",
            scrape_interval="5s",
            scheme="https",
            metrics_path="/prometheus/metrics",
            params={"match[]": ["a", "b"]},
            static_configs=[{"targets": ["h:8000", "g"], "labels": {"service": "chat"}}],
            body_size_limit="1MB",
            honor_labels=True,
        )
        .targets()
        .kept
    )
    assert one.url == "https://h:8000/prometheus/metrics?match%5B%5D=a&match%5B%5D=b"
    assert (one.interval_s, one.timeout_s, one.honor_labels, one.limits.body_size_bytes) == (5.0, 5.0, True, 1048576)
    assert one.labels == {"job": "vllm", "instance": "h:8000", "service": "chat"}
    assert two.instance == "g:443"


def test_defaults_are_15_s_10_s_and_metrics() -> None:
    (target,) = job(static_configs=[{"targets": ["[::1]"]}]).targets().kept
    assert (target.interval_s, target.timeout_s, target.url) == (15.0, 10.0, "http://[::1]:80/metrics")
    assert target.labels == {"job": "j", "instance": "[::1]:80"}
    assert (target.honor_timestamps, target.compression, target.limits.body_size_bytes) == (True, True, 256 << 20)
    assert (target.limits.samples, target.limits.on_labels) == (0, False)


def test_a_discovered_target_may_say_path_scheme_and_parameters_itself() -> None:
    own = {"__address__": "h:1", "__metrics_path__": "/own", "__scheme__": "https", "__param_q": "x y"}
    (target,) = job(params={"q": ["default", "second"]}).targets([Group((own,))]).kept
    assert target.url == "https://h:1/own?q=default&q=second"  # parameters of the job win, as in Prometheus
    (target,) = job().targets([Group((own,))]).kept
    assert target.url == "https://h:1/own?q=x+y"


def test_labels_of_a_target_win_over_those_of_its_group() -> None:
    (target,) = job().targets([Group(({"__address__": "h:1", "a": "own"},), {"a": "shared", "b": "shared"})]).kept
    assert (target.labels["a"], target.labels["b"]) == ("own", "shared")


def test_unusable_targets_are_told_and_the_others_kept() -> None:
    found = job().targets([Group(({"__address__": "a/b"}, {"__address__": "c:1"}, {"x": "1"}))])
    assert [target.instance for target in found.kept] == ["c:1"]
    assert [words in text for words, text in zip(["a/b", "no address"], found.refused, strict=True)] == [True, True]


def test_a_target_named_twice_is_scraped_once() -> None:
    assert len(job(static_configs=[{"targets": ["a:1", "a:1"]}]).targets([Group(({"__address__": "a:1"},))]).kept) == 1


def test_over_the_target_limit_every_scrape_of_the_job_fails_with_the_number() -> None:
    config = {"target_limit": 2, "static_configs": [{"targets": ["a:1", "b:1"]}]}
    assert [target.refused for target in job(**config).targets().kept] == ["", ""]
    found = job(**config).targets([Group(({"__address__": "c:1"},))]).kept
    assert {target.refused for target in found} == {"target_limit exceeded (number of targets: 3, limit: 2)"}


def test_the_same_target_has_the_same_key_and_any_change_another() -> None:
    one, again = (job(static_configs=[{"targets": ["a:1"]}]).targets().kept[0] for _ in range(2))
    assert one.key == again.key
    changed = [
        job(static_configs=[{"targets": ["a:1"], "labels": {"x": "1"}}]),
        job(static_configs=[{"targets": ["a:1"]}], metrics_path="/m"),
        job(static_configs=[{"targets": ["a:1"]}], scrape_interval="30s"),
    ]
    assert one.key not in [other.targets().kept[0].key for other in changed]


def test_secrets_are_not_in_the_representation() -> None:
    (target,) = job(authorization={"credentials": "s3cret"}, static_configs=[{"targets": ["h"]}]).targets().kept
    assert "s3cret" not in repr(target)


class Nothing:
    def read(self) -> Sequence[Sample]:
        return [Sample("x", {}, math.nan, None)]

    def absences(self) -> Sequence[Absence]:
        return ()

    def close(self) -> None:
        """Hold nothing."""


def test_a_reader_on_this_machine_is_a_target_named_after_the_host() -> None:
    target = local_target("nvml", Nothing(), 5.0, {"rack": "r1"})
    host = socket.gethostname()
    assert target.labels == {"job": "nvml", "instance": host, "host": host, "rack": "r1"}
    assert (target.url, target.interval_s, target.timeout_s) == ("nvml:", 5.0, 5.0)


@pytest.mark.parametrize(
    ("address", "instance"),
    [("h", "h:80"), ("h:1", "h:1"), ("[::1]", "[::1]:80"), ("[::1]:1", "[::1]:1"), ("::1", "::1"), ("h:", "h:")],
)
def test_a_port_is_added_where_an_address_has_none(address: str, instance: str) -> None:
    (target,) = job(static_configs=[{"targets": [address]}]).targets().kept
    assert target.instance == instance
