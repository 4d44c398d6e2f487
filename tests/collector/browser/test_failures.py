"""Streams that fail, are left, or happen out of sight; receivers that are full, elsewhere or not for this page."""

import pytest

from tests.collector.browser.site import Model, Site, Stored
from tests.collector.otlp.conftest import Served

LEAVE = "window.dispatchEvent(new PageTransitionEvent('pagehide'))"
HIDE = (
    "const turn = (to) => { Object.defineProperty(document, 'visibilityState', {value: to, configurable: true});"
    " document.dispatchEvent(new Event('visibilitychange')); };"
    "const wait = (ms) => new Promise((go) => setTimeout(go, ms));"
)


def start(name: str, init: str = "{}") -> str:
    return (
        f"const answer = await infractl.fetch('/model/{name}', {init}); const reading = show(answer).catch((e) => e);"
    )


def test_an_answer_of_an_error_status_has_its_code_and_not_its_text(site: Site) -> None:
    text = site.run("return (await infractl.fetch('/model/full')).text()")
    span = site.span()
    assert text == "no room for: secret"
    assert (span["status"], span["error_code"], span["ttft_s"]) == ("error", "HTTP_503", None)
    assert "secret" not in site.reports[0]


def test_a_stream_that_breaks_off_keeps_what_had_arrived_and_the_app_sees_the_error(site: Site) -> None:
    error = site.run(f"{start('breaking')} return (await reading).name")
    span = site.span()
    assert error == "TypeError"
    assert (span["status"], span["error_code"]) == ("error", "network_error")
    assert len(site.stored.rows("token_arrivals")[0]["offsets_us"]) == 1


def test_an_error_inside_the_stream_gives_its_type_and_never_its_message(site: Site) -> None:
    site.run(f"{start('refusing')} await reading")
    assert site.span()["error_code"] == "overloaded_error"
    assert "secret" not in site.reports[0]
    assert site.wrong == []


def test_a_server_that_cannot_be_reached_fails_as_with_plain_fetch(site: Site) -> None:
    error = site.run("return infractl.fetch('http://127.0.0.1:9/').catch((e) => `${e}`)")
    assert error == "TypeError: Failed to fetch"
    assert site.span()["error_code"] == "network_error"


@pytest.mark.parametrize(
    "stop", ["abort.abort(); await reading", "await answer.body.cancel()"], ids=["AbortController", "cancel"]
)
def test_a_reader_who_stops_an_answer_is_no_error(site: Site, stop: str) -> None:
    reading = "const reading = show(answer).catch(() => 0);" if "reading" in stop else ""
    site.run(
        "const abort = new AbortController();"
        f"const answer = await infractl.fetch('/model/endless', {{signal: abort.signal}}); {reading}"
        f"await new Promise((go) => setTimeout(go, 300)); {stop}"
    )
    span = site.span()
    assert (span["finish_reason"], span["status"], span["error_code"]) == ("abort", "unset", None)
    assert len(site.stored.rows("token_arrivals")[0]["offsets_us"]) >= 2


def test_a_page_that_is_left_still_tells_what_it_saw(site: Site) -> None:
    site.run(f"{start('endless')} await new Promise((go) => setTimeout(go, 300))", batchMs=60_000)
    site.page.goto("about:blank")
    span = site.span()
    assert (span["finish_reason"], span["error_code"]) == ("abort", None)
    assert len(site.stored.rows("token_arrivals")[0]["offsets_us"]) >= 2


def test_what_is_too_long_for_a_page_that_is_left_goes_without_its_arrays_and_says_so(site: Site) -> None:
    site.run("const t = infractl.stream(); for (let n = 0; n < 5000; n++) t.chunk()")
    site.page.goto("about:blank")
    span = site.span()
    assert span["attributes"]["infractl.truncated"] is True
    assert span["ttft_s"] is not None
    assert site.stored.rows("token_arrivals") == []


def test_a_browser_without_keepalive_leaves_by_beacon(site: Site) -> None:
    site.run("delete Request.prototype.keepalive; const t = infractl.stream(); t.chunk()", endpoint=site.url)
    with site.page.expect_request("**/v1/traces") as sent:
        site.page.evaluate(LEAVE)
    assert sent.value.headers["content-type"] == "application/json"
    assert sent.value.resource_type == "ping"


def test_a_browser_without_keepalive_sends_no_beacon_to_another_origin_which_would_carry_cookies(site: Site) -> None:
    site.run("delete Request.prototype.keepalive; const t = infractl.stream(); t.chunk()")
    site.page.evaluate(LEAVE)
    assert site.span()["finish_reason"] == "abort"
    assert site.wrong == []


@pytest.mark.parametrize("stored", [1], indirect=True)
def test_what_waits_to_be_tried_again_goes_when_the_page_is_left(site: Site, stored: Stored) -> None:
    site.run("infractl.stream().end()")
    for _ in range(200):
        if stored.tries:
            break
        site.page.wait_for_timeout(25)
    site.page.wait_for_timeout(100)
    site.page.goto("about:blank")
    site.spans()
    assert stored.tries == 2


def test_a_hidden_page_is_marked_and_reports_at_once(site: Site) -> None:
    site.run(
        f"{HIDE} const t = infractl.stream(); t.chunk(); turn('hidden'); await wait(200); turn('visible');"
        "await wait(100); turn('hidden'); t.painted(); t.end(); turn('visible')",
        batchMs=60_000,
    )
    span = site.span()
    assert 0.15 <= span["attributes"]["infractl.page.hidden_s"] <= span["duration_s"] - 0.05
    names = [part.partition('"')[0] for part in span["events"].split('"name":"')[1:]]
    assert names == ["page.hidden", "page.visible", "page.hidden"]


def test_a_stream_begun_in_a_hidden_page_is_marked(site: Site) -> None:
    site.run(f"{HIDE} turn('hidden'); const t = infractl.stream(); await wait(100); t.end()")
    assert site.span()["attributes"]["infractl.page.hidden_s"] >= 0.09


def test_a_page_whose_origin_is_not_listed_is_refused_by_the_browser_and_nothing_is_stored(site: Site) -> None:
    with Served(Model().app()) as other:
        site.page.goto(other)
        site.run("infractl.stream().end(); infractl.flush()")
        for _ in range(200):
            if any("CORS" in line for line in site.wrong):
                break
            site.page.wait_for_timeout(25)
    assert site.stored.tries == 0
    assert not [line for line in site.wrong if line.startswith("exception")]
    assert any("blocked by CORS policy" in line for line in site.wrong)


@pytest.mark.parametrize("stored", [1], indirect=True)
def test_a_full_receiver_is_asked_again_once_after_the_time_it_says(site: Site, stored: Stored) -> None:
    began = site.run("const t = infractl.stream(); t.chunk(); t.end(); return performance.now()")
    site.spans()
    assert site.run("return performance.now()") - began >= 2000
    assert stored.tries == 2


@pytest.mark.parametrize("stored", [9], indirect=True)
def test_a_receiver_that_stays_full_is_left_alone(site: Site, stored: Stored) -> None:
    site.run("infractl.stream().end()")
    site.page.wait_for_timeout(4500)
    assert stored.tries == 2


@pytest.mark.parametrize(
    "code",
    [
        "infractl.stream().end()",
        "infractl.stream(null).chunk('many'); infractl.stream({traceparent: 7}).fail()",
        "const t = infractl.stream({endpoint: 7}); t.end(null); t.end(); t.fail(null); t.painted(); t.response(null)",
        "Object.defineProperty(window, 'crypto', {value: 0}); infractl.stream().chunk()",
        "infractl.stream({endpoint: 'no url:'}).end()",
    ],
)
def test_nothing_an_app_gives_it_throws_into_the_page(site: Site, code: str) -> None:
    site.run(f"{code}; infractl.flush()", endpoint=None)
    site.page.wait_for_timeout(100)
    assert [line for line in site.wrong if line.startswith("exception")] == []


@pytest.mark.parametrize("said", ["'the prompt was: secret'", "new Error('secret')", "{name: 'a secret thing'}"])
def test_a_failure_is_named_by_a_code_and_never_by_a_sentence(site: Site, said: str) -> None:
    site.run(f"infractl.stream().fail({said})")
    assert site.span()["status"] == "error"
    assert "secret" not in site.reports[0]
