"""Cases from public bug reports, over HTTP into a real store: what users met must come out right at the end.

Cases 09 and 11 are tests of `analytics.metrics.counters` and of `test_series`.
"""

import asyncio
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.metrics.counters import increase
from collector.prometheus.scrape import Scraper
from collector.prometheus.targets import Target
from collector.prometheus.text import parse
from collector.prometheus.tracker import Health
from store.query import MetricQuery
from store.window import Window
from tests.collector.prometheus.conftest import START, Store
from tests.collector.prometheus.server import TEXT, Answer, PageServer

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
MIDNIGHT = datetime(2026, 11, 30)


class Scraped:
    """A target that serves what it is told, and the store behind it."""

    def __init__(self, store: Store, pages: PageServer, case: Path) -> None:
        self.store, self.pages, self.case = store, pages, case
        labels = {"job": "engine", "instance": pages.address}
        self.target = Target("engine", pages.address, f"http://{pages.address}/metrics", labels)

    def serve(self, *files: str, kind: str = TEXT) -> list[Health]:
        return self.answer(*(Answer((self.case / file).read_bytes(), kind) for file in files))

    def answer(self, *answers: Answer) -> list[Health]:
        async def go() -> list[Health]:
            scraper = Scraper([self.target], self.store.submit, self.store.clock)
            health = []
            for answer in answers:
                self.pages.answer = answer
                health.append(await scraper.scrape_once(self.target))
            await scraper.close()
            return health

        return asyncio.run(go())

    def expected(self) -> Any:
        return json.loads((self.case / "expected.json").read_text())

    def rows(self) -> list[dict[str, Any]]:
        """What the page left in the store: name, labels but for those of the target, value, time."""
        series = self.store.database.table("metric_series").filter(~pl.col("name").str.contains("^up$|^scrape_"))
        samples = self.store.database.table("metric_samples").join(series, on="series_id").sort("ts", "value")
        return [
            {"name": row["name"], "labels": without_target(row["labels"]), "value": row["value"], "ts": row["ts"]}
            for row in samples.to_dicts()
        ]


def without_target(text: str) -> dict[str, str]:
    return {name: value for name, value in json.loads(text).items() if name not in ("job", "instance")}


@pytest.fixture
def scraped(request: pytest.FixtureRequest, store: Store, pages: PageServer, shared: Path) -> Scraped:
    return Scraped(store, pages, shared / "cases" / request.param)


def case(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scraped", [name], indirect=True)


@case("01-label-escapes")
def test_label_values_are_stored_to_the_byte(scraped: Scraped) -> None:
    scraped.serve("good.prom")
    assert [{"labels": row["labels"], "value": row["value"]} for row in scraped.rows()] == sorted(
        scraped.expected(), key=lambda row: row["value"]
    )


@case("01-label-escapes")
def test_an_unescaped_quote_costs_its_own_line_and_is_counted(scraped: Scraped) -> None:
    (health,) = scraped.serve("bad.prom")
    assert (health.up, health.samples, health.rejected) == (True, 2, 1)
    assert [(row["labels"], row["value"]) for row in scraped.rows()] == [({"user": "u1"}, 1), ({"user": "u3"}, 3)]
    page = parse((scraped.case / "bad.prom").read_bytes())
    assert page.rejected == ((2, 'gpu_jobs{user="rack 14" left"} 2'),)


@case("02-utf8-quoted-names")
def test_dotted_names_and_labels_are_kept_and_can_be_selected(scraped: Scraped) -> None:
    scraped.serve("metrics.prom", kind="text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8")
    wanted = sorted(scraped.expected(), key=lambda row: row[2])
    assert [[row["name"], row["labels"], row["value"]] for row in scraped.rows()] == wanted
    assert scraped.store.values("gen_ai.server.active") == [3.0, 5.0]
    assert set(scraped.store.database.table("metric_series")["kind"]) == {"gauge"}


def raw(path: Path) -> Answer:
    head, _, body = path.read_bytes().partition(b"\r\n\r\n")
    types = [line.split(b":", 1)[1] for line in head.splitlines() if line.lower().startswith(b"content-type")]
    return Answer(body, types[0].strip().decode() if types else "")


@case("03-content-type-and-login-page")
def test_no_answer_without_metrics_looks_like_a_healthy_target(scraped: Scraped) -> None:
    files = ("1-blank.http", "2-html-type.http", "3-login.http", "4-empty.http")
    blank, html_type, login, empty = scraped.answer(*(raw(scraped.case / file) for file in files))
    assert [row["value"] for row in scraped.rows()] == [4.0, 4.0, None]  # the login page ends the series
    assert (blank.up, "no content type" in blank.warning) == (True, True)
    assert (html_type.up, "text/html" in html_type.warning) == (True, True)
    assert (login.up, login.samples, "HTML (text/html)" in login.last_error) == (False, 0, True)
    assert (empty.up, empty.warning) == (True, "0 samples")


@case("04-spacing-commas-crlf")
def test_spacing_does_not_change_values(scraped: Scraped) -> None:
    (health,) = scraped.serve("metrics.prom")
    assert {row["name"]: row["value"] for row in scraped.rows()} == scraped.expected()
    assert health.rejected == 0


@case("05-created-series")
def test_created_series_are_starts_and_no_measurements(scraped: Scraped) -> None:
    health = scraped.serve("t0.prom", "t30.prom", "t60-restarted.prom")
    assert {row["name"] for row in scraped.rows()} == {"vllm:generation_tokens_total"}
    assert [(state.samples, state.created) for state in health] == [(2, 2)] * 3
    window = Window(START, START + timedelta(hours=1))
    grown = increase(scraped.store.database.read(MetricQuery(("generation_tokens_total",)), window))
    engines = dict(grown.select(pl.col("labels").str.json_path_match("$.engine"), "increase").iter_rows())
    assert engines == scraped.expected()["increase_0_60"]


@case("05-created-series")
def test_a_counter_tells_when_it_began(scraped: Scraped) -> None:
    pages = [parse((scraped.case / file).read_bytes()) for file in ("t30.prom", "t60-restarted.prom")]
    began = [[page.start_s(series) for series in page.series] for page in pages]
    assert began == [[1795996800.1, 1795996800.1], [1795996855.2, 1795996800.1]]


@case("06-timestamps-ms-vs-s")
@pytest.mark.parametrize(("file", "kind"), [("text.prom", TEXT), ("om.txt", OPENMETRICS)])
def test_a_time_is_the_same_instant_in_either_unit(scraped: Scraped, file: str, kind: str) -> None:
    scraped.serve(file, kind=kind)
    assert [row["ts"] for row in scraped.rows()] == [MIDNIGHT]


@case("06-timestamps-ms-vs-s")
def test_a_series_with_several_times_keeps_them_and_an_old_one_is_not_current(scraped: Scraped) -> None:
    scraped.serve("multi.prom")
    assert [(row["value"], row["ts"]) for row in scraped.rows()] == [
        (value, MIDNIGHT + timedelta(seconds=at)) for value, at in ((10, 0), (12, 4), (9, 8))
    ]
    scraped.serve("stale.prom")
    assert scraped.rows()[0]["ts"] == MIDNIGHT - timedelta(hours=6)


@case("06-timestamps-ms-vs-s")
def test_seconds_taken_for_milliseconds_are_refused_and_counted(scraped: Scraped) -> None:
    (health,) = scraped.answer(Answer((scraped.case / "om.txt").read_bytes(), TEXT))
    assert scraped.rows() == []
    assert health.rejected == 1


@case("12-counter-without-total-suffix")
def test_counters_are_found_by_the_name_on_the_wire(scraped: Scraped) -> None:
    scraped.serve("metrics.prom")
    for name, value in scraped.expected().items():
        assert scraped.store.values(name) == [value]
    assert {row["name"]: row["value"] for row in scraped.rows()} == scraped.expected()
