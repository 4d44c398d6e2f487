"""metric_relabel_configs and limits on pages, through the scraper into a store."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from collector.prometheus.config import ScrapeConfig
from collector.prometheus.jobs import compile_jobs
from collector.prometheus.scrape import Scraper
from collector.prometheus.shape import Shape
from collector.prometheus.targets import Target
from collector.prometheus.text import PageMemo
from collector.prometheus.tracker import Health
from store.errors import SourceError
from tests.collector.prometheus.conftest import Store
from tests.collector.prometheus.server import Answer, PageServer


def target(address: str = "h:1", **config: Any) -> Target:
    raw = {"job_name": "j", "static_configs": [{"targets": [address], "labels": {"rack": "r1"}}], **config}
    return compile_jobs([msgspec.convert(raw, ScrapeConfig)])[0].targets().kept[0]


def names(aim: Target, text: str) -> list[tuple[str, dict[str, str]]]:
    page = Shape(aim).apply(PageMemo().parse(text.encode()))
    return [(series.name, dict(series.labels)) for series in page.series]


def scrape(store: Store, aim: Target, pages: PageServer, *texts: str) -> list[Health]:
    async def go() -> list[Health]:
        scraper = Scraper([aim], store.submit, store.clock)
        seen = []
        for text in texts:
            pages.answer = Answer(text.encode())
            seen.append(await scraper.scrape_once(aim))
        await scraper.close()
        return seen

    return asyncio.run(go())


def test_rules_see_the_name_and_the_labels_of_the_target() -> None:
    rules = [
        {"source_labels": ["__name__"], "regex": "go_.*", "action": "drop"},
        {"source_labels": ["rack", "x"], "target_label": "where"},
        {"source_labels": ["__name__"], "regex": "old_(.*)", "target_label": "__name__", "replacement": "new_$1"},
    ]
    own = {"job": "j", "instance": "h:1", "rack": "r1"}
    found = names(target(metric_relabel_configs=rules), 'go_x 1\nold_a{x="7"} 1\nb 2\n')
    assert found == [("new_a", {**own, "x": "7", "where": "r1;7"}), ("b", {**own, "where": "r1;"})]


def test_series_are_relabelled_once_and_an_unchanged_page_keeps_its_sequence() -> None:
    shape, memo = Shape(target(metric_relabel_configs=[{"regex": "x", "action": "labeldrop"}])), PageMemo()
    one = shape.apply(memo.parse(b'a{x="1"} 1\nb 2\n'))
    two = shape.apply(memo.parse(b'a{x="1"} 3\nb 4\n'))
    assert two.series is one.series
    assert list(two.values) == [3.0, 4.0]
    three = shape.apply(memo.parse(b"b 5\n"))
    assert three.series[0] is one.series[1]


def test_a_page_without_rules_or_limits_is_passed_on_untouched() -> None:
    page = PageMemo().parse(b"a 1\n")
    assert Shape(target()).apply(page) is page


def test_dropped_series_are_counted_stored_never_and_known_series_end(store: Store, pages: PageServer) -> None:
    rules = [{"source_labels": ["__name__"], "regex": "b", "action": "drop"}]
    aim = target(pages.address, metric_relabel_configs=rules)
    health = scrape(store, aim, pages, "a 1\nb 2\nb{x='1'} 2\n", "b 3\nc 1\n")
    assert store.values("a") == [1.0, None]
    assert store.values("b") == []
    assert store.values("up") == [1.0, 1.0]
    assert [(h.samples, h.excluded, h.rejected) for h in health] == [(2, 1, 1), (2, 1, 0)]
    series = store.database.table("metric_series").filter(name="a").to_dicts()[0]
    assert orjson.loads(series["labels"]) == {"job": "j", "instance": pages.address, "rack": "r1"}
    assert (series["job"], series["instance"]) == ("j", pages.address)


def test_times_of_dropped_samples_go_with_them(store: Store, pages: PageServer) -> None:
    rules = [{"source_labels": ["__name__"], "regex": "b", "action": "drop"}]
    page = PageMemo().parse(b"b 1 1000\na 2 2000\n")
    shaped = Shape(target(metric_relabel_configs=rules)).apply(page)
    assert (list(shaped.values), list(shaped.times_ms or ())) == ([2.0], [2000])


def test_honor_timestamps_off_takes_the_time_of_the_scrape() -> None:
    page = PageMemo().parse(b"a 1 1000\n")
    assert Shape(target()).apply(page).times_ms == [1000]
    assert Shape(target(honor_timestamps=False)).apply(page).times_ms is None


def test_a_rule_that_takes_the_name_away_fails_the_scrape() -> None:
    with pytest.raises(SourceError, match="without a name"):
        names(target(metric_relabel_configs=[{"target_label": "__name__", "replacement": ""}]), "a 1\n")


@pytest.mark.parametrize(
    ("limits", "text", "words"),
    [
        ({"sample_limit": 2}, "a 1\nb 1\nc 1\n", "sample_limit exceeded (samples: 3, limit: 2)"),
        ({"label_limit": 5}, 'a{x="1",y="2"} 1\n', "label_limit exceeded (metric: a, number of labels: 6, limit: 5)"),
        ({"label_name_length_limit": 8}, 'a{longer_name="1"} 1\n', "label: longer_name, length: 11, limit: 8"),
        ({"label_value_length_limit": 5}, 'a{x="äääa"} 1\n', "label: x, length: 7, limit: 5"),
        ({"label_value_length_limit": 5}, "longer_name 1\n", "label: __name__, length: 11, limit: 5"),
    ],
)
def test_a_page_over_a_limit_fails_the_scrape_and_says_which(
    store: Store, pages: PageServer, limits: dict[str, int], text: str, words: str
) -> None:
    aim = replace(target(pages.address, **limits), labels={"job": "j", "instance": "i", "rack": "r1"})
    (health,) = scrape(store, aim, pages, text)
    assert health.up is False
    assert words in health.last_error
    assert "metric_relabel_configs" in health.remedy
    assert store.database.table("metric_series").filter(name="a").height == 0
    assert store.values("up") == [0.0]


@pytest.mark.parametrize("limits", [{"sample_limit": 3}, {"label_limit": 6}, {"label_value_length_limit": 50}])
def test_a_page_at_a_limit_is_fine(store: Store, pages: PageServer, limits: dict[str, int]) -> None:
    (health,) = scrape(store, target(pages.address, **limits), pages, 'a{x="1",y="2"} 1\nb 1\nc 1\n')
    assert (health.up, health.last_error) == (True, "")


def test_sample_limit_counts_after_relabelling_and_a_target_recovers(store: Store, pages: PageServer) -> None:
    rules = [{"source_labels": ["__name__"], "regex": "b", "action": "drop"}]
    aim = target(pages.address, sample_limit=1, metric_relabel_configs=rules)
    health = scrape(store, aim, pages, "a 1\nb 1\n", "a 2\nc 1\n", "a 3\n")
    assert [h.up for h in health] == [True, False, True]
    assert store.values("a") == [1.0, None, 3.0]


def test_label_limits_apply_to_relabelled_series_with_the_labels_of_the_target() -> None:
    rules = [{"regex": "y|rack", "action": "labeldrop"}]
    config = {"label_limit": 4, "metric_relabel_configs": rules}
    assert names(target(**config), 'a{x="1",y="2"} 1\n') == [("a", {"x": "1", "job": "j", "instance": "h:1"})]


def test_the_workload_of_a_gpu_is_the_exported_one_without_honor_labels_and_its_own_with(
    store: Store, pages: PageServer, shared: Path
) -> None:
    """Case 11: GPU 1 says its workload itself, the others in exported_ labels."""
    text = (shared / "cases/11-exported-labels/metrics.prom").read_text()
    pods: dict[bool, dict[str, Any]] = {}
    for honor in (True, False):
        config = {"honor_labels": honor, "sample_limit": 10, "job_name": f"honor-{honor}"}
        static = [{"targets": [pages.address], "labels": {"pod": "dcgm-exporter-x7", "namespace": "gpu-mon"}}]
        scrape(store, target(pages.address, **config, static_configs=static), pages, text)
        rows = store.database.table("metric_series").filter(job=f"honor-{honor}", name="DCGM_FI_DEV_GPU_UTIL")
        labels = [orjson.loads(text) for text in rows["labels"]]
        pods[honor] = {one["gpu"]: (one.get("pod"), one.get("exported_pod")) for one in labels}
    exporter = "dcgm-exporter-x7"
    assert pods[True]["1"] == ("llm-0", None)
    assert pods[False]["1"] == (exporter, "llm-0")
    assert pods[True]["0"] == (exporter, "llm-0")
    assert pods[False]["3"] == (exporter, None)
