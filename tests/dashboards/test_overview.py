"""The overview says what is wrong first, and links every finding to its evidence."""

from dataclasses import replace
from datetime import timedelta

from analytics.result import Severity, Status
from dashboards import overview
from dashboards.source import Answers, Failure
from dashboards.state import State
from dashboards.theme import Colours
from tests.dashboards.reading import figures, links, text
from tests.dashboards.samples import NOW, TRACE, FakeSource, finding, overview_result, p99_result

BOTH = Answers(results={"overview": overview_result(), "p99": p99_result()})


def test_it_starts_with_the_worst_lasting_finding_and_since_when() -> None:
    head = overview.headline(BOTH, State(), Colours())[0]
    said = text(head)
    assert said.startswith("Critical P99 TTFT of chat-api reached 412 ms, 2.29x its baseline 180 ms Since")
    assert "Since 14:05 UTC, for 55 min, and 1 other finding" in said


def test_with_no_finding_it_says_that_nothing_is_wrong_and_what_it_looked_at() -> None:
    calm = {name: replace(result, findings=()) for name, result in BOTH.results.items()}
    head = overview.headline(Answers(results=calm), State(), Colours())
    assert text(head) == "OK Nothing is wrong Looked at 29 Nov 15:00 to 30 Nov 15:00 UTC."


def test_an_episode_that_is_over_is_no_alarm_but_is_told() -> None:
    over = replace(p99_result(), findings=(finding(until=NOW - timedelta(hours=3)),))
    said = text(overview.headline(Answers(results={"p99": over}), State(), Colours()))
    assert said.startswith("OK Nothing is wrong now")
    assert "1 episode in this window, over by now; the last, until 12:00 UTC: P99 TTFT of chat-api" in said


def test_a_refusal_is_told_word_for_word_instead_of_all_clear() -> None:
    refused = p99_result(Status.REFUSED, ("not enough tail samples: 31 of 50",))
    calm = replace(overview_result(), findings=())
    said = text(overview.headline(Answers(results={"overview": calm, "p99": refused}), State(), Colours()))
    assert "not enough tail samples: 31 of 50" in said


def test_every_finding_links_to_its_evidence_with_range_and_theme_kept() -> None:
    state = State(window="6h", theme="light")
    found = links(overview.headline(BOTH, state, Colours()))
    assert "/latency?range=6h&of=chat-api&theme=light" in found
    assert f"/trace/{TRACE}?range=6h&theme=light" in found
    assert "#targets" in found


def test_findings_carry_their_severity_as_a_word() -> None:
    said = text(overview.headline(BOTH, State(), Colours())[1])
    assert "Critical" in said
    assert "Warning" in said


def test_lasting_findings_come_before_worse_ones_that_are_over() -> None:
    over = replace(p99_result(), findings=(finding(until=NOW - timedelta(hours=3)),))
    mild = replace(overview_result(), findings=(finding(severity=Severity.INFO),))
    head = overview.headline(Answers(results={"p99": over, "overview": mild}), State(), Colours())
    assert text(head).startswith("Info")


def test_missing_numbers_are_a_dash_on_a_tile_and_never_zero() -> None:
    said = text(overview.services(BOTH, State(), Colours()))
    assert "P99 TTFT – P50 TTFT –" in said


def test_targets_say_how_many_are_down() -> None:
    said = text(overview.services(BOTH, State(), Colours()))
    assert "1 of 3 targets down" in said
    assert "Down vllm 10.0.0.5:8000 14:19 15:00" in said


def test_the_timeline_is_drawn() -> None:
    assert figures(overview.services(BOTH, State(), Colours())) == ["services"]


def test_an_empty_store_says_what_would_fill_it_and_the_line_to_add() -> None:
    answers = Answers(results={"overview": overview_result(Status.EMPTY)})
    assert "no data in this window" in text(overview.headline(answers, State(), Colours()))
    said = text(overview.services(answers, State(), Colours()))
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=" in said
    assert "scrape_configs:" in said


def test_the_store_says_what_was_refused_and_why() -> None:
    answers = Answers(status=FakeSource().status())
    said = text(overview.store(answers, State(), Colours()))
    assert "3 rows refused" in said
    assert "otlp-http invalid trace id 3" in said
    assert "2026-11-30 14:59:58" in said


def test_a_store_that_refused_nothing_says_so() -> None:
    answers = Answers(status={**FakeSource().status(), "drops": []})
    assert "Every row that came was stored" in text(overview.store(answers, State(), Colours()))


def test_a_failed_analysis_is_never_an_all_clear() -> None:
    calm = replace(overview_result(), findings=())
    answers = Answers(results={"overview": calm}, failures=(Failure("p99", "out of memory"),))
    said = text(overview.headline(answers, State(), Colours()))
    assert said.startswith("Warning Nothing is wrong in what could be judged; p99 failed")
