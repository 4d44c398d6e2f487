"""A report: one file, nothing from outside, all that was said and all that could not be."""

from dataclasses import replace
from pathlib import Path

import pytest

from analytics.result import Result, Status
from dashboards.report import Cover, page
from dashboards.source import Failure
from dashboards.static import as_json, to_html
from tests.dashboards import answers
from tests.dashboards.browser import CHROMIUM, DRAWN, Visit, visiting
from tests.dashboards.samples import overview_result, p99_result

COVER = Cover("/srv/infractl", "9.9.9", "2026-11-30T15:00:00Z")
SAID: list[Result] = [
    overview_result(),
    p99_result(),
    answers.latency(),
    answers.errors(answers.EVIL),
    answers.stream(),
    answers.silent("retries", Status.EMPTY, "no request was tried again"),
]
FAILED = [Failure("anomalies", "out of memory", "raise memory_limit")]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(SAID, FAILED, COVER), encoding="utf-8")
    return path


def test_a_report_names_store_version_findings_silence_and_failures(file: Path) -> None:
    said = file.read_text(encoding="utf-8")
    for words in ("/srv/infractl", "9.9.9", "P99 TTFT of chat-api reached 412 ms", "no request was tried again",
                  "out of memory", "4bf92f3577b34da6a3ce929d0e0e4736"):  # fmt: skip
        assert words in said
    assert 1_500_000 < len(said) < 4_000_000


def test_nothing_in_a_report_is_fetched_and_its_policy_forbids_it(file: Path) -> None:
    said = file.read_text(encoding="utf-8")
    assert "default-src 'none'" in said
    for outside in (' src="', "@import", "<link", 'href="http', 'href="/'):
        assert outside not in said


def test_what_was_not_judged_is_not_said_to_be_well() -> None:
    said = page([answers.silent("retries", Status.EMPTY, "nothing"), answers.latency()], (), COVER)
    contents = said[said.index('class="contents"') :]
    assert contents.index("Not judged") < contents.index("nothing") < contents.index("Where the time goes")


def test_names_from_data_are_escaped_in_a_report(file: Path) -> None:
    assert 'alert("x")</script>' not in file.read_text(encoding="utf-8")


def test_a_report_without_figures_is_small() -> None:
    assert len(page([replace(SAID[-1])], (), COVER)) < 100_000


def test_json_cannot_end_its_element() -> None:
    assert "<" not in as_json({"a": answers.EVIL})


def test_what_has_no_static_form_is_told() -> None:
    from dash import dcc

    with pytest.raises(TypeError, match="Interval"):
        to_html(dcc.Interval())


@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}")
def test_a_report_opens_offline_draws_and_sorts(file: Path) -> None:
    with visiting() as visit:
        _open(visit, file)
        assert visit.page.locator(".plot:not(:has(.main-svg))").count() == 0
        visit.page.click("#stream summary")
        table = visit.page.locator('table[data-name="requests"]')
        assert table.locator("tbody tr:visible").count() == 15
        table.locator("button.sort >> text=ji >> nth=0").click()
        assert table.locator("tbody tr:visible td:nth-child(6)").first.inner_text() == "2.15"
        assert visit.wrong == []


def _open(visit: Visit, file: Path) -> None:
    visit.page.goto(f"file://{file}")
    visit.page.wait_for_function(DRAWN)
