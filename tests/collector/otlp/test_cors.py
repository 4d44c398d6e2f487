"""CORS of the OTLP/HTTP port: no header unless an origin is listed, and then for that origin only."""

import asyncio
from concurrent.futures import Future

import httpx
import pytest
from starlette.applications import Starlette

from collector.otlp.cors import checked_origins
from collector.otlp.http import create_app
from store.batch import Batch, Receipt
from store.errors import BusyError, UsageError

PAGE = "https://chat.example.com"
EMPTY = b'{"resourceSpans":[]}'
ASK = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}


def busy(_: Batch) -> "Future[Receipt]":
    raise BusyError("the queue is full", retry_after_s=2)


def ask(app: Starlette, method: str, body: bytes = b"", path: str = "/v1/traces", **headers: str) -> httpx.Response:
    """Send one request to the app without a socket."""

    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.request(method, path, content=body, headers=named)

    return asyncio.run(send())


def cors_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


def preflight(app: Starlette, origin: str = PAGE, **asked: str) -> httpx.Response:
    return ask(app, "OPTIONS", origin=origin, **{**ASK, **asked})


def test_without_a_listed_origin_no_answer_has_a_cors_header() -> None:
    app = create_app(busy)
    for answer in (preflight(app), ask(app, "POST", EMPTY, origin=PAGE, content_type="application/json")):
        assert cors_headers(answer) == {}
    assert preflight(app).status_code == 405


def test_a_page_of_a_listed_origin_may_post_with_a_content_type_and_read_retry_after() -> None:
    app = create_app(busy, origins=[PAGE])
    allowed = preflight(app)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == PAGE
    assert allowed.headers["access-control-allow-methods"] == "POST"
    assert "access-control-allow-credentials" not in allowed.headers
    stored = ask(app, "POST", EMPTY, origin=PAGE, content_type="application/json")
    assert stored.status_code == 200
    assert cors_headers(stored) == {
        "access-control-allow-origin": PAGE,
        "access-control-expose-headers": "Retry-After",
    }
    assert stored.headers["vary"] == "Origin"


@pytest.mark.parametrize(
    "origin", ["https://chat.example.com.evil.test", "http://chat.example.com", "null", PAGE + ":8443"]
)
def test_another_origin_gets_no_permission_and_is_counted(origin: str) -> None:
    app = create_app(busy, origins=[PAGE])
    refused = preflight(app, origin)
    assert refused.status_code == 400
    assert "access-control-allow-origin" not in refused.headers
    assert app.state.counts.requests == {("http", "traces", "origin"): 1}
    posted = ask(app, "POST", EMPTY, origin=origin, content_type="application/json")
    assert "access-control-allow-origin" not in posted.headers


@pytest.mark.parametrize(
    "asked",
    [{"access-control-request-method": "PUT"}, {"access-control-request-headers": "content-type, authorization"}],
)
def test_a_listed_origin_may_do_nothing_else(asked: dict[str, str]) -> None:
    assert preflight(create_app(busy, origins=[PAGE]), **asked).status_code == 400


@pytest.mark.parametrize("form", ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded"])
def test_what_a_page_may_send_without_asking_is_not_read(form: str) -> None:
    body = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}]}]}]}'
    answer = ask(create_app(busy, origins=[PAGE]), "POST", body, origin="https://evil.test", content_type=form)
    assert answer.status_code == 415


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (PAGE, PAGE),
        ("https://Chat.Example.com/", PAGE),
        ("https://chat.example.com:443", PAGE),
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("http://[::1]:80", "http://[::1]"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef"),
    ],
)
def test_origins_are_compared_as_a_browser_writes_them(written: str, meant: str) -> None:
    assert checked_origins([written]) == (meant,)


@pytest.mark.parametrize(
    "origin",
    ["*", "null", "", "chat.example.com", "https://*.example.com", "https://a@b.example", "https://b.example/app",
     "https://b.example:port", "https://b.example?x", "//b.example", "https://[::1"],
)  # fmt: skip
def test_what_is_no_exact_origin_is_refused_with_the_form_to_write(origin: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_origins([origin])
    assert "scheme://host" in caught.value.hint
