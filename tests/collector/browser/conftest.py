"""One Chromium for all tests here; for each test a fresh page, model and receiver."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from collector.otlp.http import create_app
from tests.collector.browser.site import Model, Site, Stored
from tests.collector.otlp.conftest import Served
from tests.dashboards.browser import CHROMIUM, Visit, visiting


@pytest.fixture(scope="module")
def chromium() -> Iterator[Visit]:
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}")
    with visiting() as visit:
        yield visit


@pytest.fixture
def stored(request: pytest.FixtureRequest) -> Stored:
    """Parametrize indirectly with how many requests find the queue full."""
    return Stored(getattr(request, "param", 0))


@pytest.fixture
def site(chromium: Visit, stored: Stored) -> Iterator[Site]:
    model = Model()
    with ExitStack() as stack:
        url = stack.enter_context(Served(model.app()))
        endpoint = stack.enter_context(Served(create_app(stored.submit, origins=[url])))
        site = Site(chromium.page, chromium.wrong, url, model, endpoint, stored)
        chromium.page.on("request", site.notice)
        chromium.page.goto(url)
        chromium.wrong.clear()
        yield site
        chromium.page.remove_listener("request", site.notice)
        chromium.page.goto("about:blank")
