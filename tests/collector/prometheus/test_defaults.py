"""Section `global`: what jobs take over from it, and what is refused."""

from typing import Any

import msgspec
import pytest

from collector.prometheus.config import JobError, ScrapeConfig
from collector.prometheus.defaults import LIMITS, NO_EFFECT, GlobalConfig
from collector.prometheus.job import Job
from collector.prometheus.jobs import check_global, compile_jobs


def job(given: GlobalConfig, **raw: Any) -> Job:
    raw = {"job_name": "j", "static_configs": [{"targets": ["a", "b"]}], **raw}
    return compile_jobs([msgspec.convert(raw, ScrapeConfig)], given=given)[0]


def test_a_job_takes_over_what_it_does_not_say_itself() -> None:
    given = GlobalConfig(scrape_interval="30s", scrape_timeout="20s", body_size_limit="1KB", sample_limit=7)
    silent, own = job(given), job(given, scrape_interval="10s", body_size_limit=0, sample_limit=0)
    assert (silent.interval_s, silent.timeout_s, silent.limits.body_size_bytes, silent.limits.samples) == (
        30.0, 20.0, 1024, 7,
    )  # fmt: skip
    assert (own.interval_s, own.limits.body_size_bytes, own.limits.samples) == (10.0, 0, 0)


def test_a_timeout_taken_over_is_cut_to_a_shorter_interval_as_in_prometheus_but_ones_own_is_refused() -> None:
    given = GlobalConfig(scrape_interval="1m", scrape_timeout="40s")
    assert job(given, scrape_interval="5s").timeout_s == 5.0
    with pytest.raises(JobError, match="longer than the interval"):
        job(given, scrape_timeout="61s")


def test_every_limit_is_taken_over() -> None:
    made = job(GlobalConfig(**{key: at for at, key in enumerate(LIMITS, 1)}))
    limits = made.limits
    found = limits.samples, made.target_limit, limits.labels, limits.label_name_bytes, limits.label_value_bytes
    assert found == (1, 2, 3, 4, 5)
    assert all("target_limit exceeded" in target.refused for target in job(GlobalConfig(target_limit=1)).targets().kept)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"scrape_interval": "often"}, "scrape_interval"),
        ({"scrape_interval": "0s"}, "scrape_interval"),
        ({"scrape_interval": "5s"}, "scrape_timeout"),
        ({"scrape_timeout": "16s"}, "scrape_timeout"),
        ({"body_size_limit": "much"}, "body_size_limit"),
        *(({key: -1}, key) for key in LIMITS),
    ],
)
def test_a_default_that_cannot_be_used_is_named(given: dict[str, Any], key: str) -> None:
    with pytest.raises(JobError, match=f"global: {key}: ") as caught:
        check_global(GlobalConfig(**given))
    assert caught.value.path == (key,)
    assert caught.value.hint


def test_the_defaults_themselves_can_be_used_and_the_rest_of_the_section_takes_any_value() -> None:
    check_global(GlobalConfig())
    assert (
        msgspec.convert({key: [{"a": 1}] for key in NO_EFFECT if key != "time_zone"}, GlobalConfig).scrape_interval
        == "15s"
    )
