"""The loader: what it yields fits the store, joins by service, and is counted."""

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from sample_data import fleet
from sample_data.blocks import BLOCK_TOKENS
from sample_data.gateway import CHURN
from sample_data.load import batches, incidents
from store.batch import Batch
from store.database import Database
from store.query import MetricQuery, SpanQuery
from store.tables import BY_NAME
from store.window import Window

DRIVERS = ("requests_waiting", "requests_running", "kv_cache_usage_ratio")
DAY = Window(fleet.WINDOW.start, fleet.END + timedelta(hours=1))


@pytest.fixture(scope="module")
def loaded() -> dict[str, Batch]:
    """All batches by source."""
    return {batch.source: batch for batch in batches()}


def test_all_rows_are_there_and_none_is_refused(loaded: dict[str, Batch]) -> None:
    assert loaded["sample_data/real/client"].frames["spans"].height == 1575
    assert loaded["sample_data/real/otlp"].frames["spans"].height == 1458
    assert loaded["sample_data/real/vllm"].frames["metric_samples"]["ts"].n_unique() == 319
    assert all(not batch.drops for batch in loaded.values())


def test_every_frame_conforms_to_its_table(loaded: dict[str, Batch]) -> None:
    for batch in loaded.values():
        for name, frame in batch.frames.items():
            assert frame.schema == BY_NAME[name].schema()


def test_every_engine_span_has_the_client_s_span_as_its_parent(loaded: dict[str, Batch]) -> None:
    client, engine = (loaded[f"sample_data/real/{name}"].frames["spans"] for name in ("client", "otlp"))
    joined = engine.join(client, left_on=["trace_id", "parent_span_id"], right_on=["trace_id", "span_id"], how="inner")
    assert joined.height == 1458
    assert joined.filter(pl.col("output_tokens") != pl.col("output_tokens_right")).is_empty()


def test_simulated_latencies_add_up(loaded: dict[str, Batch]) -> None:
    spans = loaded["sample_data/simulated/requests"].frames["spans"].filter(pl.col("error_code").is_null())
    parts = spans["queue_s"] + spans["prefill_s"] + spans["decode_s"]
    assert (parts - spans["e2e_s"]).abs().max() < 3e-6
    assert (spans["queue_s"] + spans["prefill_s"] - spans["ttft_s"]).abs().max() < 1e-9
    assert (spans["cached_input_tokens"] <= spans["input_tokens"]).all()


def test_a_cache_that_never_evicts_finds_in_the_blocks_what_the_simulated_engine_found(
    loaded: dict[str, Batch],
) -> None:
    spans = loaded["sample_data/simulated/requests"].frames["spans"].filter(pl.col("service") == "chat-api")
    blocks = loaded["sample_data/simulated/blocks"].frames["request_blocks"].filter(pl.col("service") == "chat-api")
    seen: set[int] = set()
    found = 0
    for prompt in blocks.sort("ts")["block_hashes"].to_list():
        found += sum(block in seen for block in prompt)
        seen.update(prompt)
    cached = (spans["cached_input_tokens"] // BLOCK_TOKENS).sum()
    assert found == pytest.approx(cached, rel=0.01)  # the first prompts have no earlier one that is long enough


def test_connections_of_the_gateway_serve_fourteen_requests_and_two_while_clients_close_them(
    loaded: dict[str, Batch],
) -> None:
    spans = (
        loaded["sample_data/simulated/gateway"]
        .frames["spans"]
        .with_columns(
            pl.col("attributes").str.json_path_match("$['connection.id']").alias("connection"),
            pl.col("ts").is_between(*(at.replace(tzinfo=None) for at in CHURN)).alias("churn"),
        )
    )
    reuse = dict(spans.group_by("churn").agg(pl.len() / pl.col("connection").n_unique()).iter_rows())
    assert reuse[False] == pytest.approx(14, rel=0.15)
    assert reuse[True] == pytest.approx(2, rel=0.1)


def test_the_bill_has_every_hour_its_credit_and_its_tax(loaded: dict[str, Batch]) -> None:
    costs = loaded["sample_data/simulated/bill"].frames["costs"]
    assert costs.filter(pl.col("sku") == "gpu-instance", pl.col("service") == "chat-api").height == 1000
    assert set(costs["category"]) == {"Usage", "Credit", "Tax"}
    assert costs["currency"].unique().to_list() == ["USD"]


def test_a_refused_request_has_no_latency_of_tokens(loaded: dict[str, Batch]) -> None:
    refused = loaded["sample_data/simulated/requests"].frames["spans"].filter(pl.col("status") == "error")
    assert refused.height > 100
    for column in ("ttft_s", "tpot_s", "decode_s", "output_tokens", "response_model"):
        assert refused[column].null_count() == refused.height


def test_appending_twice_stores_once_and_metrics_meet_the_requests_by_service(
    loaded: dict[str, Batch], tmp_path: Path
) -> None:
    given = list(loaded.values())
    with Database(tmp_path) as database:
        first = database.append(given)
        again = database.append(given)
        assert not any(sum(receipt.duplicates.values()) for receipt in first)
        assert not any(sum(receipt.stored.values()) for receipt in again)
        requests = database.read(SpanQuery(("ts", "service"), requests_only=True), DAY)
        samples = database.read(MetricQuery((*DRIVERS, "gpu_pcie_bytes_per_second")), DAY)
    assert requests.height == 39_402 + 1458 + 1575
    simulated = {service.name for service in fleet.SERVICES}
    for name in DRIVERS:
        assert set(samples.filter(pl.col("name") == name)["service"]) == simulated | {"vllm-tiny"}
    assert set(samples.filter(pl.col("name") == "gpu_pcie_bytes_per_second")["service"]) == simulated


def test_incidents_of_both_parts_come_in_order_of_time_and_name_services_that_exist(loaded: dict[str, Batch]) -> None:
    known = incidents()
    fours = [f"{part}-{n}" for part in ("bill", "real", "sim") for n in range(1, 5)]
    assert sorted(i.id for i in known) == sorted([*fours, "edge-1"])
    assert known == sorted(known, key=lambda incident: incident.start)
    tables = ("spans", "costs")
    frames = [batch.frames[name] for batch in loaded.values() for name in tables if name in batch.frames]
    services = {service for frame in frames for service in frame["service"]}
    assert {s for i in known for s in (i.service, *i.seen_by)} <= services
