"""The dashboard in a real browser: clean console, nothing from outside, figures drawn, state in the URL."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from playwright.sync_api import Page
from werkzeug.serving import make_server

from analytics.result import Status
from dashboards.app import create_app
from tests.dashboards import answers
from tests.dashboards.browser import CHROMIUM, Visit, visiting
from tests.dashboards.samples import TRACE, FakeSource

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}")


@contextmanager
def serving(source: FakeSource, base: str = "/") -> Iterator[str]:
    server = make_server("127.0.0.1", 0, create_app(source, base).server, threaded=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}{base}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Visit]:
    with visiting() as visit:
        yield visit


@pytest.fixture
def visit(chromium: Visit) -> Iterator[Visit]:
    chromium.wrong.clear()
    yield chromium
    chromium.page.goto("about:blank")


@pytest.fixture(scope="module", params=["/", "/x/"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with serving(FakeSource(), request.param) as at:
        yield at


def drawn(page: Page) -> int:
    return page.locator(".dash-graph .main-svg .plot path, .dash-graph .main-svg .point").count()


@pytest.mark.parametrize(
    ("path", "figures", "says"),
    [
        ("", 1, "P99 TTFT of chat-api reached 412 ms"),
        ("latency?show=residuals", 3, "How far to trust it"),
        (f"trace/{TRACE}", 0, "POST /v1/chat/completions took 2.31 s"),
        ("nowhere", 0, "There is no page /nowhere"),
    ],
)
def test_each_page_opens_with_a_clean_console_and_nothing_from_outside(
    visit: Visit, url: str, path: str, figures: int, says: str
) -> None:
    page = visit.open(url + path)
    assert page.locator(".dash-graph").count() == figures
    assert drawn(page) >= figures
    assert says in page.locator("main").inner_text()
    assert visit.wrong == []


def test_theme_range_and_page_are_in_the_url_and_back_undoes_them(visit: Visit, url: str) -> None:
    page = visit.open(url)
    page.click("#theme")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'light'")
    page.fill(".range input", "6h")
    page.press(".range input", "Enter")
    page.wait_for_url("**/?theme=light&range=6h")
    visit.settle()
    page.click(".rail >> text=Latency")
    page.wait_for_url("**/latency?range=6h&theme=light")
    page.wait_for_function("() => document.title.startsWith('Latency')")
    visit.settle()
    for expected in ("**/?theme=light&range=6h", "**/?theme=light"):
        page.go_back()
        page.wait_for_url(expected)
    visit.settle()
    page.go_back()
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    assert visit.wrong == []


def test_dragging_over_a_chart_zooms_the_page(visit: Visit, url: str) -> None:
    page = visit.open(url + "latency")
    box = page.locator(".dash-graph .nsewdrag").first.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], middle, steps=5)
    page.mouse.up()
    page.wait_for_url("**/latency?range=2026-11-30T*..2026-11-30T*")
    visit.settle()
    assert visit.wrong == []


def test_a_service_is_filtered_from_the_menu_and_keys_work(visit: Visit, url: str) -> None:
    page = visit.open(url)
    page.wait_for_selector("#services")
    page.keyboard.press("/")
    page.click("#services >> text=search-rag")
    page.wait_for_url("**?service=search-rag")
    visit.settle()
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()
    assert visit.wrong == []


def test_a_row_of_the_waterfall_opens_its_attributes(visit: Visit, url: str) -> None:
    page = visit.open(url + f"trace/{TRACE}")
    page.click("summary >> text=llm_request")
    assert page.locator(".attributes >> text=prefill_s").is_visible()


def test_a_refresh_asks_again_and_a_failing_source_is_told_not_hidden(visit: Visit) -> None:
    source = FakeSource()
    with serving(source) as url:
        page = visit.open(url + "latency?live=off")
        source.broken = ("p99",)
        page.wait_for_timeout(4200)
        page.keyboard.press("r")
        page.wait_for_selector(".panel.failed")
        said = page.locator(".panel.failed").inner_text()
        assert "Could not get p99" in said
        assert "raise memory_limit" in said
        assert visit.wrong == []


def test_a_page_of_any_analysis_sorts_pages_and_opens_traces_without_a_reload(visit: Visit) -> None:
    source = FakeSource()
    source.more = {"errors": answers.errors(), "stream": answers.stream()}
    with serving(source, "/x/") as url:
        page = visit.open(url + "stream?live=off")
        rows = page.locator('table[data-name="requests"] tbody tr:visible')
        assert rows.count() == 15
        page.click('table[data-name="requests"] >> button.sort >> text=ji >> nth=0')
        assert rows.first.locator("td").nth(5).inner_text() == "2.15"
        page.click("text=Next")
        assert "16–30 of 40" in page.locator(".turner >> nth=0").inner_text()
        page.keyboard.press("r")
        page.wait_for_timeout(500)
        visit.settle()
        assert "16–30 of 40" in page.locator(".turner >> nth=0").inner_text(), "a refresh keeps the order and the page"
        page.click(".rail >> text=Errors")
        page.wait_for_url("**/x/errors?live=off")
        visit.settle()
        page.evaluate("() => { window.same = true; }")
        page.click('table[data-name="exemplars"] a.trace')
        page.wait_for_url(f"**/x/trace/{TRACE}?live=off")
        visit.settle()
        assert page.evaluate("() => window.same"), "the page was not loaded anew"
        assert visit.wrong == []


def test_a_click_on_a_cell_of_the_error_map_opens_its_trace(visit: Visit) -> None:
    source = FakeSource()
    source.more = {"errors": answers.errors()}
    with serving(source) as url:
        page = visit.open(url + "errors?theme=light")
        box = page.locator(".dash-graph .nsewdrag").first.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + 22.5 / 60 * box["width"], box["y"] + 0.25 * box["height"])
        page.wait_for_url(f"**/trace/{TRACE}?theme=light")
        visit.settle()
        assert visit.wrong == []


def test_an_empty_store_says_what_to_add(visit: Visit) -> None:
    with serving(FakeSource(status=Status.EMPTY)) as url:
        page = visit.open(url)
        assert "OTEL_EXPORTER_OTLP_ENDPOINT" in page.locator("main").inner_text()
        assert visit.wrong == []
