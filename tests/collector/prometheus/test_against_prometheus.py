"""The real Prometheus reads the same file: the same targets, labels, URLs and drops."""

import asyncio
import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
import yaml

from collector.prometheus.config import ScrapeConfig
from collector.prometheus.discovery.job import JobDiscovery
from collector.prometheus.job import Job
from collector.prometheus.jobs import compile_jobs
from collector.prometheus.scrape import Scraper
from collector.prometheus.targets import Target
from collector.prometheus.tracker import Health
from tests.collector.prometheus.conftest import START, Store
from tests.collector.prometheus.server import Answer, PageServer
from tests.rules.servers import free_port

TEXT = Path(__file__).with_name("relabelling.yaml").read_text("utf-8")
OVERWRITTEN = ("replace", "map", "labelkeep", "twice", "syntax")
"""Jobs whose rules change labels in place: Prometheus 2.42 then shows changed labels as the discovered ones."""
UNKNOWN_TO_US = re.compile(r"\(\\pL\|d\)")  # Unicode classes are refused, see test_re2


@contextmanager
def prometheus_with(folder: Path, text: str, targets: int, scraped: bool = False) -> Iterator[dict[str, Any]]:
    """Run Prometheus with a configuration (our defaults of interval and timeout) and give its targets."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no prometheus on this machine")
    (folder / "p.yml").write_text("global: {scrape_interval: 15s, scrape_timeout: 10s}\n" + text, "utf-8")
    address = f"127.0.0.1:{free_port()}"
    options = ["--config.file=p.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, *options], cwd=folder, stdout=log, stderr=log)
    try:
        yield _targets(address, targets, folder / "log", scraped) | {"address": address}
    finally:
        process.terminate()
        process.wait()


def _get(address: str, what: str) -> Any:
    with urllib.request.urlopen(f"http://{address}/api/v1/{what}", timeout=2) as answer:
        return json.load(answer)["data"]


def _targets(address: str, targets: int, log: Path, scraped: bool) -> dict[str, Any]:
    """Ask until as many targets are there (and have been scraped)."""
    found: dict[str, Any] = {}
    for _ in range(100):
        time.sleep(0.3)
        try:
            found = _get(address, "targets")
        except OSError:
            continue
        waiting = scraped and any(target["health"] == "unknown" for target in found["activeTargets"])
        if len(found["activeTargets"]) >= targets and not waiting:
            return found
    pytest.fail(f"prometheus has {len(found.get('activeTargets', ()))} targets: {log.read_text()[-2000:]}")


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("prometheus")
    with prometheus_with(folder, TEXT, sum(len(targets.kept) for targets in JOBS.values())) as found:
        yield found


def ours() -> tuple[Job, ...]:
    raw = yaml.safe_load(UNKNOWN_TO_US.sub("([A-Za-z]|d)", TEXT))["scrape_configs"]
    return compile_jobs(msgspec.convert(raw, list[ScrapeConfig]))


JOBS = {job.name: job.targets() for job in ours()}


@pytest.mark.parametrize("job", JOBS)
def test_targets_are_those_of_prometheus(prometheus: dict[str, Any], job: str) -> None:
    theirs = [target for target in prometheus["activeTargets"] if target["scrapePool"] == job]
    assert _sorted([t.labels, t.url] for t in JOBS[job].kept) == _sorted([t["labels"], t["scrapeUrl"]] for t in theirs)
    if job not in OVERWRITTEN:
        discovered = [target["discoveredLabels"] for target in theirs]
        assert _sorted(target.discovered for target in JOBS[job].kept) == _sorted(discovered)
    times = {t["scrapeUrl"]: (t["scrapeInterval"], t["scrapeTimeout"]) for t in theirs}
    for target in JOBS[job].kept:
        assert times[target.url] == (_duration(target.interval_s), _duration(target.timeout_s))


def test_dropped_targets_are_those_of_prometheus(prometheus: dict[str, Any]) -> None:
    dropped = [labels for targets in JOBS.values() for labels in targets.dropped]
    assert dropped
    assert _sorted(dropped) == _sorted(target["discoveredLabels"] for target in prometheus["droppedTargets"])


def test_the_file_uses_every_action() -> None:
    from collector.prometheus.relabel import _ACTIONS

    rules = [rule.action for job in ours() for rule in job.relabel_rules]
    assert set(rules) == set(_ACTIONS)


def test_discovered_targets_are_those_of_prometheus(tmp_path: Path, pages: PageServer) -> None:
    rules = "relabel_configs: [{source_labels: [__meta_filepath, __meta_url], regex: '.*?([^/]*);(.*)', "
    rules += "target_label: found, replacement: '$1 $2'}]"
    text = f"""
scrape_configs:
- job_name: files
  file_sd_configs: [{{files: [sd/*.yml, sd/x.json]}}]
  {rules}
- job_name: http
  http_sd_configs: [{{url: "http://{pages.address}/sd"}}]
  {rules}
"""
    pages.answer = Answer(
        b'[{"targets": ["a:1", "b"], "labels": {"dc": "x", "empty": ""}}, {"targets": []}]', "application/json"
    )
    (tmp_path / "sd").mkdir()
    (tmp_path / "sd/a.yml").write_text("- targets: [c:1, d]\n  labels: {version: 1.10, __metrics_path__: /m}\n- {}\n")
    (tmp_path / "sd/broken.yml").write_text("- targets: [\n")
    (tmp_path / "sd/x.json").write_text('[{"targets": ["e:1"]}, {"targets": ["e:1"], "labels": {"other": "1"}}]')
    raw = yaml.safe_load(text)["scrape_configs"]
    found = {job.name: _discovered(job) for job in compile_jobs(msgspec.convert(raw, list[ScrapeConfig]), tmp_path)}
    with prometheus_with(tmp_path, text, sum(map(len, found.values()))) as theirs:
        for job, targets in found.items():
            assert _sorted([t.labels, t.url] for t in targets) == _sorted(
                [t["labels"], t["scrapeUrl"]] for t in theirs["activeTargets"] if t["scrapePool"] == job
            )


PAGE = b"""# TYPE a gauge
a{job="own",instance="i",x="1"} 1
a{exported_job="taken",job="own",pod=""} 2
a{rack="",tmp_x="7"} 3
go_gc{x="1"} 4
old_name{x="1",le="0.5"} 5
b 6
"""
_RULES = """[
  {source_labels: [__name__], regex: 'go_.*', action: drop},
  {source_labels: [__name__], regex: 'old_(.*)', target_label: __name__, replacement: 'new_$1'},
  {source_labels: [__name__, instance, x], target_label: where},
  {regex: 'tmp_(.*)', action: labelmap, replacement: 'was_$1'},
  {regex: 'tmp_.*', action: labeldrop}]"""
SCRAPED = {
    "own": "honor_labels: true",
    "target": "honor_labels: false",
    "own-rules": f"honor_labels: true\n  metric_relabel_configs: {_RULES}",
    "target-rules": f"metric_relabel_configs: {_RULES}",
    "samples": "sample_limit: 5",
    "enough-samples": f"sample_limit: 5\n  metric_relabel_configs: {_RULES}",
    "labels": "label_limit: 7",
    "enough-labels": "label_limit: 8",
    "name-length": "label_name_length_limit: 11",
    "enough-name-length": "label_name_length_limit: 21",
    "value-length": "label_value_length_limit: 7",
}
"""Jobs that all scrape PAGE, with keys of theirs."""


def test_scraped_series_and_limits_are_those_of_prometheus(tmp_path: Path, pages: PageServer, store: Store) -> None:
    pages.answer = Answer(PAGE)
    text = "scrape_configs:\n" + "".join(
        f"- job_name: {job}\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  {keys}\n"
        f"  static_configs: [{{targets: ['{pages.address}'], labels: {{rack: r1, check: {job}}}}}]\n"
        for job, keys in SCRAPED.items()
    )
    jobs = compile_jobs(msgspec.convert(yaml.safe_load(text)["scrape_configs"], list[ScrapeConfig]))
    health = asyncio.run(_scraped(jobs, store))
    own = store.database.table("metric_series").filter(~pl.col("name").str.contains("^(up|scrape_.*)$"))
    with prometheus_with(tmp_path, text, len(jobs), scraped=True) as theirs:
        series = _get(theirs["address"], "series?match[]=%7Bcheck!=%22%22%7D")
    for target in theirs["activeTargets"]:
        mine = health[target["scrapePool"]]
        assert (mine.up, bool(mine.last_error)) == (target["health"] == "up", bool(target["lastError"])), mine
    assert {job for job, mine in health.items() if not mine.up} == {"samples", "labels", "name-length", "value-length"}
    named = ({"__name__": row["name"], **json.loads(row["labels"])} for row in own.iter_rows(named=True))
    assert _sorted({name: value for name, value in labels.items() if value} for labels in named) == _sorted(
        labels for labels in series if not re.fullmatch("up|scrape_.*", labels["__name__"])
    )


async def _scraped(jobs: tuple[Job, ...], store: Store) -> dict[str, Health]:
    scraper = Scraper((), store.submit, store.clock, jobs)
    found = {job.name: await scraper.scrape_once(job.targets().kept[0]) for job in jobs}
    await scraper.close()
    return found


def _discovered(job: Job) -> tuple[Target, ...]:
    async def go() -> tuple[Target, ...]:
        discovery = JobDiscovery(job, lambda: START)
        await discovery.refresh(0)
        return discovery.targets.kept

    return asyncio.run(go())


def _sorted(items: Any) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True, ensure_ascii=False) for item in items)


def _duration(seconds: float) -> str:
    from datetime import timedelta

    from store.window import format_duration

    return format_duration(timedelta(seconds=seconds))
