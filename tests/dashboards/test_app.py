"""The app over HTTP: path prefixes, callbacks, and pages that do not exist."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from dashboards.app import create_app
from dashboards.catalog import PAGES, page_at
from dashboards.frame import PARTS, page_title, shell
from dashboards.state import State
from store.errors import UsageError
from tests.dashboards.reading import links, text
from tests.dashboards.samples import FakeSource

SUITE = "_dash-component-suites/dash/dcc/async-graph.js"


def client(base: str = "/") -> FlaskClient:
    return create_app(FakeSource(), base).server.test_client()


def load(http: FlaskClient, name: str, at: str, prefix: str = "/") -> Any:
    place = {"type": "panel", "name": name, "at": at}
    beat = {"type": "beat", "name": name, "at": at}
    answer = http.post(
        f"{prefix}_dash-update-component",
        json={
            "output": '{"at":["MATCH"],"name":["MATCH"],"type":"panel"}.children',
            "outputs": {"id": place, "property": "children"},
            "inputs": [{"id": beat, "property": "data", "value": None}],
            "state": [{"id": place, "property": "id", "value": place}],
            "changedPropIds": [],
        },
    )
    assert answer.status_code == 200, answer.text
    return answer


@pytest.mark.parametrize("path", ["", "_dash-layout", "_dash-dependencies", SUITE, "assets/dashboard.css", "latency"])
@pytest.mark.parametrize("proxy", ["keeps", "strips"])
def test_behind_a_prefix_all_paths_answer_for_proxies_that_keep_or_strip_it(path: str, proxy: str) -> None:
    prefix = "/infra/" if proxy == "keeps" else "/"
    assert client("/infra/").get(prefix + path).status_code == 200


def test_the_page_asks_only_for_paths_below_the_prefix() -> None:
    page = client("/infra/").get("/infra/").text
    assert 'src="/infra/_dash-component-suites/' in page
    assert 'src="/_dash' not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_missing_trailing_slash_is_mended() -> None:
    answer = client("/infra").get("/infra")
    assert (answer.status_code, answer.location) == (308, "/infra/")


def test_a_base_path_without_a_leading_slash_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError) as caught:
        create_app(FakeSource(), "infra")
    assert "/infra/" in caught.value.hint


@pytest.mark.parametrize("name", sorted(PARTS))
@pytest.mark.parametrize("prefix", ["/", "/x/"])
def test_every_panel_loads_and_is_small(name: str, prefix: str) -> None:
    at = f"{prefix}latency?range=7d&show=residuals"
    answer = load(client(prefix), name, at, prefix)
    assert len(answer.data) < 1_000_000
    assert b"NaN" not in answer.data


def test_every_page_of_the_catalog_has_a_frame_and_keeps_the_state_in_its_rail() -> None:
    for page in PAGES:
        path = page.path + "ab" if page.path.endswith("/trace/") else page.path
        tree = shell(State("/x/", path, window="6h"))
        assert page.title in page_title(State("/x/", path))
        assert "/x/latency?range=6h" in links(tree)


def test_a_page_that_does_not_exist_says_so_and_leads_home() -> None:
    tree = shell(State(path="/nope"))
    assert page_at("/nope") is None
    assert "There is no page /nope" in text(tree)
    assert "/" in links(tree)


def test_panels_of_another_url_are_other_panels() -> None:
    ids = [str(shell(State(window=window))) for window in (None, "6h")]
    assert ids[0] != ids[1]
