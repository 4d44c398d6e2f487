"""The page of any analysis: sentence, findings, figures, tables, notes, and what stands where nothing is."""

from dataclasses import replace

import pytest

from analytics.catalog import ANALYSES, load
from analytics.result import Result, Status
from dashboards.answer import answer, body_of
from dashboards.catalog import PAGES
from dashboards.source import Answers
from dashboards.state import State
from dashboards.static import to_html
from dashboards.theme import Colours
from tests.dashboards import answers
from tests.dashboards.reading import figures, links, parts, text
from tests.dashboards.samples import TRACE


def page(result: Result, state: State | None = None) -> list[object]:
    return answer(result, state or State(path=f"/{result.analysis}"), Colours(), load(result.analysis).frames)


def test_every_analysis_of_the_catalog_has_a_page() -> None:
    assert {page.analysis for page in PAGES if page.listed} == set(ANALYSES)


@pytest.mark.parametrize("name", list(ANALYSES))
def test_an_analysis_without_rows_says_why(name: str) -> None:
    result = answers.silent(name, Status.EMPTY, "no token arrivals within the window")
    assert "no token arrivals within the window" in text(page(result))


def test_a_refusal_is_the_sentence_and_its_words_are_shown_as_they_are() -> None:
    said = text(page(answers.silent("errors", Status.REFUSED, "not enough: 31 of 50")))
    assert "This could not be judged" in said
    assert "not enough: 31 of 50" in said


def test_a_page_starts_with_the_finding_and_ends_with_what_it_rests_on() -> None:
    tree = page(answers.errors())
    said = text(tree)
    assert said.index("94 of 200 requests to chat-api failed with HTTP_429") < said.index("buckets of 5m")
    assert figures(tree) == ["errors-0", "errors-1"]
    assert f"/trace/{TRACE}" in links(tree)
    assert "No rows: episodes, outages, sampling, sampling policy." in said


def test_a_table_has_units_sort_keys_and_links_to_traces() -> None:
    tables = [part for part in parts(page(answers.errors())) if type(part).__name__ == "Table"]
    bodies = {getattr(table, "data-name"): getattr(table, "data-body") for table in tables}
    assert f'href="/trace/{TRACE}"' in bodies["exemplars"]
    assert '<td class="number" data-value="0.1">10 %</td>' in bodies["cells"]


def test_values_from_data_are_escaped_in_tables() -> None:
    html = to_html(page(answers.errors(answers.EVIL), State(offline=True)))
    assert "<script>alert" not in html


def test_a_long_frame_says_how_many_rows_are_not_shown_and_how_to_get_them() -> None:
    said = text(page(answers.stream(900)))
    assert "of 900 rows; all: infractl analyze stream --format csv" in said


def test_services_are_tabs_and_the_one_of_the_worst_finding_is_in_view() -> None:
    one, other = answers.errors(), answers.errors("rag")
    both = replace(other, frames={n: one.frames[n].vstack(f) for n, f in other.frames.items()})
    assert "rag · 30 Nov" in text(page(both))
    assert "chat-api · 30 Nov" in text(page(both, State(path="/errors", focus="chat-api")))


def test_a_page_whose_answer_failed_leaves_the_word_to_the_failure() -> None:
    assert body_of("errors")(Answers(), State(), Colours()) == []


def test_the_command_of_a_page_names_the_parameters_that_are_not_at_their_default() -> None:
    result = replace(answers.errors(), params={"by": ("service",), "fdr": 0.01, "where": (("model", "a b"),)})
    assert "infractl analyze errors --window" in text(page(result))
    assert "Z --fdr 0.01 --where 'model=a b'" in text(page(result))
