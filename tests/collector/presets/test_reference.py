"""The table of canonical metrics and their names on the wire."""

from collector.presets.catalog import catalog
from collector.presets.reference import entries


def test_every_canonical_metric_is_listed_once_in_the_order_of_its_declaration() -> None:
    assert [entry.name for entry in entries(catalog())] == list(catalog().canonical)


def test_names_stand_by_source_the_newest_first_and_with_the_labels_that_tell_them_apart() -> None:
    wire = {entry.name: entry.wire for entry in entries(catalog())}
    assert wire["kv_cache_usage_ratio"]["vllm"] == ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
    assert wire["requests_running"]["triton"] == ('nv_trt_llm_request_metrics{request_type="active"}',)
    assert wire["router_requests_running"]["vllm_router"] == ('vllm:num_requests_running{server!=""}',)


def test_a_part_is_listed_with_its_histogram() -> None:
    wire = {entry.name: entry.wire for entry in entries(catalog())}
    assert "nv_inference_request_duration_us" in wire["e2e_seconds"]["triton"]


def test_every_wire_name_of_every_file_is_somewhere() -> None:
    listed = {name.split("{")[0] for entry in entries(catalog()) for names in entry.wire.values() for name in names}
    assert {name for file in catalog().files.values() for name in file.metrics} <= listed
