"""Targets from a URL: a real server, its faults, secrets."""

import asyncio
from typing import Any

import msgspec
import pytest

from collector.prometheus.config import HttpClient
from collector.prometheus.discovery.http import HttpSource
from collector.prometheus.discovery.source import Found
from tests.collector.prometheus.server import Answer, PageServer

JSON = "application/json"
GOOD = Answer(b'[{"targets": ["a:1", "b:1"], "labels": {"dc": "x"}}]', JSON)


def ask(pages: PageServer, *answers: Answer, **http: Any) -> list[Found]:
    async def go() -> list[Found]:
        source = HttpSource(f"http://{pages.address}/sd", 60.0, msgspec.convert(http, HttpClient))
        found = []
        for answer in answers:
            pages.answer = answer
            found.append(await source.refresh())
        await source.close()
        return found

    return asyncio.run(go())


def test_an_answer_gives_targets_with_the_url(pages: PageServer) -> None:
    (found,) = ask(pages, GOOD)
    assert [dict(labels) for group in found.groups for labels in group] == [
        {"__address__": address, "dc": "x", "__meta_url": f"http://{pages.address}/sd"} for address in ("a:1", "b:1")
    ]
    assert found.errors == ()
    assert pages.asked[0]["accept"] == JSON
    assert pages.asked[0]["x-prometheus-refresh-interval-seconds"] == "60"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(b"", JSON, status=503), "HTTP 503"),
        (Answer(b"<html>", "text/html"), "text/html"),
        (Answer(b"[]", ""), "missing"),
        (Answer(b'[\n{"targets": 1}]', JSON), "line 2"),
        (Answer(b"[", JSON), "line 1"),
        (Answer(b"\xff", JSON), "UTF-8"),
    ],
)
def test_an_answer_that_fails_keeps_the_last_targets_and_is_told(pages: PageServer, answer: Answer, words: str) -> None:
    good, bad, again = ask(pages, GOOD, answer, GOOD)
    assert bad.groups == good.groups
    assert words in bad.errors[0]
    assert pages.address in bad.errors[0]
    assert again.errors == ()


def test_an_empty_list_takes_all_targets_away(pages: PageServer) -> None:
    assert ask(pages, GOOD, Answer(b"[]", "application/json; charset=utf-8"))[1] == Found(())


def test_the_job_of_a_target_does_not_lend_its_secret_but_the_entry_has_its_own(pages: PageServer) -> None:
    ask(pages, GOOD, basic_auth={"username": "u", "password": "p"})
    assert pages.asked[0]["authorization"] == "Basic dTpw"


def test_a_password_in_the_url_is_not_shown() -> None:
    source = HttpSource("http://user:s3cret@127.0.0.1:1/x")
    assert source.name == "http://127.0.0.1:1/x"
    (error,) = asyncio.run(source.refresh()).errors
    assert "s3cret" not in error
    assert "Connection refused" in error


def test_user_and_password_of_the_url_are_sent(pages: PageServer) -> None:
    pages.answer = GOOD
    found = asyncio.run(HttpSource(f"http://u:p%20q@{pages.address}/sd").refresh())
    assert found.errors == ()
    assert pages.asked[0]["authorization"] == "Basic dTpwIHE="
    assert pages.asked[0]["host"] == pages.address
