"""Nothing that is shown of addresses, labels and configuration holds a secret; all else stays as it is."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.prometheus.config import HttpClient, JobError, ScrapeConfig
from collector.prometheus.discovery.group import Group
from collector.prometheus.discovery.http import HttpSource
from collector.prometheus.fetch import Fetcher, Request
from collector.prometheus.jobs import compile_jobs
from collector.prometheus.masking import shown, shown_address, shown_config, shown_labels
from collector.prometheus.tracker import Tracker
from store.errors import SourceError
from tests.collector.prometheus.server import Answer, PageServer

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://h:8000/metrics", "http://h:8000/metrics"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("http://h:80/a@b?match[]=up&name=x", "http://h:80/a@b?match[]=up&name=x"),
        ("https://user:s3cr3t@h/m", "https://<secret>@h/m"),
        ("https://s3cr3t@h/m", "https://<secret>@h/m"),
        ("https://user:s3cr3t@t@h/m", "https://<secret>@h/m"),
        ("https://user:s3/cr3t?x#@h/m", "https://<secret>@h/m"),
        ("http://h/m?token=s3cr3t&x=1", "http://h/m?token=<secret>&x=1"),
        ("http://h/m?x=1&api_key=s3cr3t#f", "http://h/m?x=1&api_key=<secret>#f"),
        ("http://h/m?X-Amz-Signature=s3cr3t&key=", "http://h/m?X-Amz-Signature=<secret>&key="),
        ("from http://a:s3cr3t@h to http://b:s3cr3t@i", "from http://<secret>@h to http://<secret>@i"),
    ],
)
def test_user_password_and_secret_parameters_of_a_url_are_masked(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [("h:1", "h:1"), ("u:s3/cr3t@h:1", "<secret>@h:1"), ("http://u:s3cr3t@h:1/m", "http://<secret>@h:1/m")],
)
def test_user_and_password_of_an_address_are_masked(address: str, expected: str) -> None:
    assert shown_address(address) == expected


@given(st.text(st.characters(exclude_characters=" \t\r\n\f\v@", exclude_categories=("Z", "C")), min_size=1))
def test_no_password_whatever_its_characters_is_shown(password: str) -> None:
    text = shown(f"https://user:x{SECRET}{password}@host/metrics")
    assert SECRET not in text
    assert text.endswith("@host/metrics")


def test_every_secret_of_a_configuration_is_masked_and_nothing_else() -> None:
    def config(secret: str) -> dict[str, Any]:
        return {
            "job_name": "a",
            "basic_auth": {"username": "u", "password": secret},
            "authorization": {"type": "Token", "credentials": secret},
            "bearer_token": secret,
            "bearer_token_file": "/run/token",
            "tls_config": {"key_file": "/etc/key.pem"},
            "params": {"token": [secret, secret], "access-key": [secret], "module": ["http_2xx"]},
            "static_configs": [{"targets": ["h:1"], "labels": {"__param_auth": secret, "team": "keys"}}],
            "relabel_configs": [
                {"target_label": "__param_key", "replacement": secret},
                {"target_label": "monkey", "replacement": "$1"},
            ],
            "http_sd_configs": [{"url": "https://h/sd", "authorization": {"credentials": secret}}],
            "oauth2": {"client_id": "i", "client_secret": secret},
            "sample_limit": 5,
        }

    assert shown_config(config(SECRET)) == config("<secret>")


def test_what_is_not_set_is_not_made_to_look_like_a_secret() -> None:
    assert shown_config({"password": "", "token": None, "params": {"token": []}}) == {
        "password": "",
        "token": None,
        "params": {"token": []},
    }


def test_labels_before_relabelling_are_shown_without_secrets() -> None:
    labels = {"__address__": f"u:{SECRET}@h:1", "__param_token": SECRET, "__param_x": "1", "a": f"http://u:{SECRET}@h"}
    assert shown_labels(labels) == {
        "__address__": "<secret>@h:1",
        "__param_token": "<secret>",
        "__param_x": "1",
        "a": "http://<secret>@h",
    }


def job(**raw: Any) -> Any:
    return compile_jobs([msgspec.convert({"job_name": "j", **raw}, ScrapeConfig)])[0]


def test_the_health_of_a_target_shows_no_secret_parameter() -> None:
    made = job(params={"token": [SECRET], "x": ["1"]}, static_configs=[{"targets": ["h:1"]}])
    (target,) = made.targets().kept
    assert target.url == f"http://h:1/metrics?token={SECRET}&x=1"
    assert Tracker(target).health.url == "http://h:1/metrics?token=<secret>&x=1"


def test_what_discovery_drops_and_refuses_shows_no_secret() -> None:
    rules = [{"source_labels": ["drop"], "regex": "yes", "action": "drop"}]
    made = job(params={"token": [SECRET]}, relabel_configs=rules)
    group = Group(({"__address__": "h:1", "drop": "yes"}, {"__address__": f"u:{SECRET}@h:1"}))
    found = made.targets([group])
    assert found.kept == ()
    assert SECRET not in repr(found)
    assert found.refused == ("target '<secret>@h:1': '<secret>@h:1' holds a user",)


@pytest.mark.parametrize(
    "change",
    [
        {"static_configs": [{"targets": [f"http://u:{SECRET}@h:1/m"]}]},
        {"static_configs": [{"targets": [f"u:{SECRET}@h:1"]}]},
        {"static_configs": [{"targets": [f"h:1/m?token={SECRET}"]}]},
        {"http_sd_configs": [{"url": f"htp://u:{SECRET}@h/t?key={SECRET}"}]},
        {"metrics_path": f"m?token={SECRET}"},
        {"basic_auth": {"username": "u", "password": SECRET, "password_file": "x"}},
        {"authorization": {"credentials": SECRET, "credentials_file": "x"}},
        {"bearer_token": SECRET, "basic_auth": {"username": "u", "password": SECRET}},
    ],
)
def test_no_refusal_of_a_configuration_repeats_a_secret(change: dict[str, Any]) -> None:
    with pytest.raises(JobError) as caught:
        job(**change)
    assert SECRET not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    "place", [f"ftp://u:{SECRET}@h/m", f"mailto:x?token={SECRET}", f"http://u:{SECRET}@127.0.0.1:1/m?token={SECRET}"]
)
def test_a_redirect_that_fails_repeats_no_secret(pages: PageServer, place: str) -> None:
    pages.answer = Answer(status=302, headers={"Location": place})

    async def go() -> None:
        await Fetcher().get(Request(f"http://u:{SECRET}@{pages.address}/m", HttpClient(), 2.0))

    with pytest.raises(SourceError) as caught:
        asyncio.run(go())
    assert SECRET not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    "url", [f"http://u:{SECRET}/x@h:1/", f"http://u:p@h:{SECRET}/m", f"http://h:99999/?key={SECRET}"]
)
def test_an_address_that_is_none_repeats_no_secret(url: str) -> None:
    with pytest.raises(SourceError, match="is no address") as caught:
        asyncio.run(Fetcher().get(Request(url, HttpClient(), 2.0)))
    assert f"u:{SECRET}" not in str(caught.value)
    assert f"key={SECRET}" not in str(caught.value)


def test_a_token_in_the_url_of_discovery_is_neither_shown_nor_made_a_label() -> None:
    source = HttpSource(f"http://127.0.0.1:1/x?token={SECRET}&a=1")
    assert source.name == "http://127.0.0.1:1/x?token=<secret>&a=1"
    assert SECRET not in asyncio.run(source.refresh()).errors[0]
