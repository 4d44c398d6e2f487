"""Links of alerts lead to pages that exist."""

from hypothesis import given
from hypothesis import strategies as st

from analytics.catalog import ANALYSES
from dashboards.catalog import PAGE_OF, page_at
from dashboards.state import State
from rules.pages import page_of, url_at, url_template


def test_every_analysis_leads_to_its_page() -> None:
    assert {name: page_of(name) for name in ANALYSES} == {name: PAGE_OF[name] for name in ANALYSES}


def test_what_has_no_analysis_leads_to_a_page_too() -> None:
    assert page_at(page_of(None)) is not None
    assert page_at(page_of(None, of_service=True)) is not None


@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(lambda s: s == s.strip()))
def test_the_service_of_a_link_is_the_one_in_view(service: str) -> None:
    _, _, query = url_at("http://h/app/", "/slo", service).partition("?")
    assert State.parse("/slo", query).services == (service,)


def test_a_path_prefix_is_kept_and_a_sample_without_service_shows_all() -> None:
    assert url_at("http://h/app/", "/slo") == "http://h/app/slo"
    assert url_template("http://h", "/", None) == "http://h/"
    assert "{{ with $labels.service }}" in url_template("http://h", "/errors", "service")
