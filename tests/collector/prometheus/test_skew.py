"""The skew of a target's clock: from the Date header, exact to its half second, and nothing where none is told."""

import asyncio
import time
from email.utils import formatdate
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.prometheus.scrape import Scraper
from collector.prometheus.skew import clock_skew_s
from collector.prometheus.targets import Target
from collector.prometheus.tracker import Health
from infractl.doctor.clocks import SKEW_S
from tests.collector.prometheus.conftest import Store
from tests.collector.prometheus.server import Answer, PageServer
from tests.collector.prometheus.test_scrape import scrape, target

NOON_S = 1_796_040_000.0


def date(at_s: float) -> dict[str, str]:
    return {"date": formatdate(floor(at_s), usegmt=True)}


@given(st.floats(0, 1), st.floats(0, 60), st.floats(0, 1), st.floats(-1e6, 1e6))
def test_the_skew_is_off_by_no_more_than_the_half_second_and_half_of_the_time_taken(
    fraction: float, taken_s: float, when: float, skew_s: float
) -> None:
    asked = NOON_S + fraction
    found = clock_skew_s(date(asked + when * taken_s + skew_s), asked, asked + taken_s)
    assert found is not None
    assert abs(found - skew_s) <= 0.5 + taken_s / 2 + 1e-5


@given(st.floats(0, 1))
def test_the_seconds_that_date_cuts_off_are_never_told_as_a_skew(fraction: float) -> None:
    found = clock_skew_s(date(NOON_S + fraction), NOON_S + fraction, NOON_S + fraction)
    assert found is not None
    assert abs(found) < SKEW_S / 2


@pytest.mark.parametrize(
    "stated",
    ["Mon, 30 Nov 2026 12:00:00 GMT", "Monday, 30-Nov-26 12:00:00 GMT", "Mon Nov 30 12:00:00 2026"],
)
def test_all_forms_of_a_date_are_read(stated: str) -> None:
    assert clock_skew_s({"date": stated}, NOON_S, NOON_S) == 0.5


@pytest.mark.parametrize(
    "headers", [{}, {"date": ""}, {"date": "now"}, {"date": "Mon, 99 Nov 2026 12:00:00 GMT"}, date(0) | {"age": "3"}]
)
def test_an_answer_without_a_date_of_its_own_says_nothing(headers: dict[str, str]) -> None:
    assert clock_skew_s(headers, NOON_S, NOON_S) is None


def test_a_target_whose_clock_is_ahead_is_told_in_its_health_until_it_fails(store: Store, pages: PageServer) -> None:
    ahead = {"Date": formatdate(time.time() + 60, usegmt=True)}
    answers = [Answer(b"a 1\n"), Answer(b"a 1\n", headers=ahead), Answer(b"a 1\n", headers={**ahead, "Age": "0"})]
    right, wrong, cached, failed = scrape(store, target(pages.address), pages, [*answers, Answer(status=500)])
    assert right.clock_skew_s == pytest.approx(0, abs=1.5)
    assert wrong.clock_skew_s == pytest.approx(60, abs=3)
    assert (cached.clock_skew_s, failed.clock_skew_s) == (None, None)


def test_the_clock_of_whoever_redirects_is_not_the_targets(store: Store, pages: PageServer) -> None:
    async def moved(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        place = f"http://{pages.address}/metrics"
        writer.write(f"HTTP/1.1 302 Found\r\nDate: {formatdate(0, usegmt=True)}\r\nLocation: {place}\r\n".encode())
        writer.write(b"Content-Length: 0\r\n\r\n")
        writer.close()

    async def go() -> Health:
        server = await asyncio.start_server(moved, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        aim: Target = target(f"127.0.0.1:{port}")
        scraper = Scraper([aim], store.submit, store.clock)
        health = await scraper.scrape_once(aim)
        await scraper.close()
        server.close()
        return health

    pages.answer = Answer(b"a 1\n")
    assert asyncio.run(go()).clock_skew_s == pytest.approx(0, abs=1.5)
