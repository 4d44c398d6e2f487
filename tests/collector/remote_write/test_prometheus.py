"""A real Prometheus writes what it scrapes into a receiver that goes away for a while, and is itself restarted."""

import contextlib
import json
import time
from collections.abc import Iterator
from datetime import UTC
from itertools import count
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from collector.otlp.receiver import ReceiverCounts, Submit
from collector.remote_write.receiver import PATH, create_routes
from store.database import Database
from tests.collector.otlp.conftest import Served
from tests.rules.servers import PROMETHEUS, free_port, http_server, prometheus, wait_for

pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="needs prometheus")

CONFIG = """
global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}
scrape_configs:
  - job_name: vllm
    static_configs: [{{targets: ["{target}"], labels: {{zone: "é \\"1\\""}}}}]
remote_write:
  - url: http://127.0.0.1:{port}{path}
    queue_config: {{min_backoff: 50ms, max_backoff: 200ms, batch_send_deadline: 200ms}}
    metadata_config: {{send_interval: 500ms}}
"""
TTFT = "vllm:time_to_first_token_seconds"
Samples = dict[tuple[str, str], dict[int, float]]
"""Value by time (ms), by name and labels (JSON)."""


class Page:
    """Metrics of an engine: each scrape finds other values. `gone` takes one series away."""

    def __init__(self) -> None:
        self._turns = count(1)
        self.gone = False

    def __call__(self) -> bytes:
        turn = next(self._turns)
        lines = [
            "# TYPE vllm:num_requests_running gauge",
            f'vllm:num_requests_running{{model_name="m"}} {turn % 3}',
            f"# TYPE {TTFT} histogram",
            f'{TTFT}_bucket{{model_name="m",le="0.5"}} {turn}',
            f'{TTFT}_bucket{{model_name="m",le="+Inf"}} {turn * 2}',
            f'{TTFT}_sum{{model_name="m"}} {turn * 0.3}',
            f'{TTFT}_count{{model_name="m"}} {turn * 2}',
            "# TYPE not_available gauge",
            "not_available NaN",
        ]
        if not self.gone:
            lines += ["# TYPE ending gauge", f"ending {turn}"]
        return "\n".join([*lines, ""]).encode()


@contextlib.contextmanager
def receiving(submit: Submit, port: int, counts: ReceiverCounts) -> Iterator[None]:
    """Serve the receiver on a port."""
    with Served(Starlette(routes=create_routes(submit, counts)), port):
        yield


def stored(database: Database) -> Samples:
    """Return what the store holds, nulls left out."""
    joined = database.table("metric_samples").join(database.table("metric_series"), on="series_id")
    found: Samples = {}
    for name, labels, ts, value in joined.drop_nulls("value").select("name", "labels", "ts", "value").iter_rows():
        raw = {k: v for k, v in json.loads(labels).items() if k in ("job", "instance", "zone", "model_name", "le")}
        at = found.setdefault((name, json.dumps(raw, sort_keys=True)), {})
        at[round(ts.replace(tzinfo=UTC).timestamp() * 1000)] = value
    return found


def scraped(url: str) -> Samples:
    """Return every sample that Prometheus itself has, NaN left out."""
    answer = httpx.get(f"{url}/api/v1/query", params={"query": '{__name__=~".+"}[1h]'}).json()
    found: Samples = {}
    for series in answer["data"]["result"]:
        labels = dict(series["metric"])
        values = {round(at * 1000): float(text) for at, text in series["values"] if text != "NaN"}
        if values:
            found[labels.pop("__name__"), json.dumps(labels, sort_keys=True)] = values
    return found


def test_what_prometheus_scraped_is_what_the_store_holds(tmp_path: Path, database: Database, submit: Submit) -> None:
    """Left out: the moment in which Prometheus stops. It does not send what it scrapes then, whoever receives."""
    page, port, counts = Page(), free_port(), ReceiverCounts()
    config = tmp_path / "prometheus.yml"

    def rows() -> int:
        return database.counts()["metric_samples"]

    def progressed(by: int = 60) -> None:
        before = rows()
        wait_for("more samples", lambda: rows() > before + by)

    with http_server(page) as (target, _), contextlib.ExitStack() as receivers:
        config.write_text(CONFIG.format(target=target, port=port, path=PATH))
        with prometheus(tmp_path, config):
            with receiving(submit, port, counts):
                progressed()
            gap = [time.time() * 1000]
            time.sleep(2)
            gap.append(time.time() * 1000)
            receivers.enter_context(receiving(submit, port, counts))
            progressed(150)
            stopping_ms = time.time() * 1000
        with prometheus(tmp_path, config) as url:
            started_ms = time.time() * 1000
            progressed()
            page.gone = True
            wait_for("the end mark", lambda: ended(database, "ending"))
            progressed()
            truth = scraped(url)
            last = max(max(samples) for samples in truth.values())
            wait_for("the last scrape", lambda: max(max(s) for s in stored(database).values()) > last)
            found = stored(database)
    truth = {key: {at: v for at, v in s.items() if not stopping_ms - 300 < at < started_ms} for key, s in truth.items()}
    missing = {k: set(v.items()) - set(found.get(k, {}).items()) for k, v in truth.items()}
    assert {k: v for k, v in missing.items() if v} == {}
    assert set(found) == set(truth)
    up = found[next(key for key in found if key[0] == "up")]
    assert sum(gap[0] < at < gap[1] for at in up) >= 5
    samples = database.table("metric_samples")
    assert samples.height == samples.unique(["series_id", "ts"]).height
    check_rows(database, target)
    assert ("remote_write", "metrics", "partial") not in counts.requests


def ended(database: Database, name: str) -> bool:
    """Whether the newest sample of a series is null."""
    joined = database.table("metric_samples").join(database.table("metric_series"), on="series_id")
    samples = joined.filter(joined["name"] == name).sort("ts")
    return samples.height > 0 and samples["value"][-1] is None


def check_rows(database: Database, target: str) -> None:
    """Look at names, types, labels and meanings; NaN that is no end is null too, and counted."""
    series = {
        (row["name"], json.loads(row["labels"]).get("le")): row for row in database.table("metric_series").to_dicts()
    }
    half = series[f"{TTFT}_bucket", "0.5"]
    assert (half["canonical"], half["kind"], half["job"]) == ("ttft_seconds_bucket", "histogram", "vllm")
    assert half["instance"] == target
    assert json.loads(half["labels"])["zone"] == 'é "1"'
    assert series["vllm:num_requests_running", None]["kind"] == "gauge"
    assert series["not_available", None]["kind"] == "gauge"
    drops = database.table("ingest_drops")
    assert set(drops["reason"]) == {"not_a_number"}
