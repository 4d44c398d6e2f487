"""The seven rules of reading metric names, each a trap that broke somebody's dashboard."""

import pytest

from collector.presets.catalog import catalog, lookup
from collector.presets.names import key
from tests.collector.presets.read_page import read


@pytest.mark.parametrize(
    ("spellings", "canonical"),
    [
        (
            ("vllm:num_requests_running", "vllm_num_requests_running", "ray_vllm_num_requests_running"),
            "requests_running",
        ),
        (("sglang:num_running_reqs", "sglang_num_running_reqs", "ray_sglang_num_running_reqs"), "requests_running"),
        (("trtllm:kv_cache_utilization", "trtllm_kv_cache_utilization"), "kv_cache_usage_ratio"),
    ],
)
def test_1_names_are_one_whatever_stands_for_a_colon_and_whichever_prefix_ray_adds(
    spellings: tuple[str, ...], canonical: str
) -> None:
    for name in spellings:
        page = read(f"{name} 1\n")
        assert page.value(canonical) == 1.0
        assert page.rows[0].name == name


def test_1_a_bare_name_is_of_the_source_that_the_page_is_from() -> None:
    first_of_trtllm = read(
        "kv_cache_utilization 0.25\nkv_cache_hit_rate 0.5\nrequest_success_total 7\n"
        "time_per_output_token_seconds_sum 1\ntime_per_output_token_seconds_count 2\n"
    )
    assert first_of_trtllm.value("kv_cache_usage_ratio") == 0.25
    assert first_of_trtllm.of("requests_total")[0].labels == {}
    nim = read("num_requests_running 2\ngpu_cache_usage_perc 0.5\nnum_request_max 8\nrequest_success_total 7\n")
    assert nim.value("requests_total", outcome="success") == 7.0
    assert catalog().sources({key("num_request_max"), key("gpu_cache_usage_perc")}) == ("nim",)


def test_1_a_bare_name_on_a_page_of_something_else_means_nothing() -> None:
    assert read("iteration_latency_seconds 3\nmy_app_up 1\n").raw() == {"iteration_latency_seconds", "my_app_up"}


def test_2_a_counter_is_found_with_and_without_total() -> None:
    assert read("vllm:prompt_tokens 5\n").value("prompt_tokens_total") == 5.0
    assert read("litellm_spend_metric 5\n").value("cost_usd_total") == 5.0
    assert read("litellm_spend_metric_total 5\n").value("cost_usd_total") == 5.0


def test_2_the_histogram_that_ends_in_total_is_one() -> None:
    parts = [f"vllm:iteration_tokens_total_{part}" for part in ("bucket", "sum", "count")]
    assert [lookup(name)[0].canonical for name in parts] == [
        f"iteration_tokens_{part}" for part in ("bucket", "sum", "count")
    ]
    assert lookup("vllm:iteration_tokens_total") == ()


def test_3_an_old_name_counts_until_the_new_one_is_there() -> None:
    old, new = "vllm:gpu_cache_usage_perc 0.4\n", "vllm:kv_cache_usage_perc 0.4\n"
    for page in (read(old), read(old + new), read(new)):
        assert page.value("kv_cache_usage_ratio") == 0.4
    assert catalog().renamed("vllm:gpu_cache_usage_perc") == "vllm:kv_cache_usage_perc"
    assert "vllm:kv_cache_usage_perc" in catalog().files["vllm"].removed["vllm:gpu_cache_usage_perc"]


def test_4_a_router_never_adds_to_its_engines() -> None:
    router = read(
        'vllm:num_requests_running{server="http://a"} 3\nvllm:num_requests_waiting{server="http://a"} 2\n'
        'vllm:gpu_cache_usage_perc{server="http://a"} 0.5\nvllm:healthy_pods_total{server="http://a"} 1\n'
        'vllm:input_tokens_total{server="http://a"} 9\n'
    )
    assert router.of("requests_running") == router.of("kv_cache_usage_ratio") == []
    assert router.value("router_requests_running", server="http://a", tier="gateway") == 3.0
    assert router.value("router_kv_cache_usage_ratio") == 0.5
    assert router.value("prompt_tokens_total", tier="gateway") == 9.0
    engine = read('vllm:num_requests_running{engine="0",model_name="m"} 4\n')
    assert engine.value("requests_running", model="m") == 4.0


def test_4_a_router_is_told_from_an_engine_by_its_own_names() -> None:
    shared = ("vllm:num_requests_running", "vllm:num_requests_waiting")
    assert catalog().sources({key(name) for name in (*shared, "vllm:current_qps")}) == ("vllm_router",)
    assert catalog().sources({key(name) for name in (*shared, "vllm:prompt_tokens_total")}) == ("vllm",)
    assert catalog().sources({key(name) for name in shared}) == ("vllm",)
    assert catalog().sources({key("vllm:of_a_release_to_come")}) == ("vllm",)


def test_5_what_a_number_is_does_not_depend_on_the_declared_type() -> None:
    for kind in ("counter", "gauge", "untyped"):
        (row,) = read(f"# TYPE DCGM_FI_PROF_PCIE_TX_BYTES {kind}\nDCGM_FI_PROF_PCIE_TX_BYTES 1\n").rows
        assert row.semantic == "rate"
    (row,) = read("# TYPE gpu_energy_consumed gauge\ngpu_energy_consumed 1e6\n").rows
    assert (row.semantic, row.value) == ("cumulative", 1.0)


def test_6_values_are_in_base_units() -> None:
    page = read(
        "nv_inference_queue_duration_us 2e6\nsglang:kv_transfer_latency_ms_sum 1500\nDCGM_FI_DEV_FB_USED 1\n"
        "litellm_overhead_latency_metric_sum 1500\nlitellm_request_total_latency_metric_sum 1.5\n"
        "sglang:kv_transfer_total_mb_sum 2\n"
    )
    assert page.value("queue_seconds_sum") == 2.0
    assert page.value("kv_transfer_seconds_sum") == 1.5
    assert page.value("gpu_memory_bytes", state="used") == 1048576.0
    assert page.value("gateway_overhead_seconds_sum") == 1.5
    assert page.value("e2e_seconds_sum") == 1.5
    assert page.value("kv_transfer_bytes_sum") == 2097152.0


def test_6_the_bounds_of_buckets_are_in_base_units_and_untouched_where_they_are_already() -> None:
    page = read(
        'nv_inference_first_response_histogram_ms_bucket{le="2.5e2"} 1\n'
        'nv_inference_first_response_histogram_ms_bucket{le="+Inf"} 2\n'
        'vllm:time_to_first_token_seconds_bucket{le="0.50"} 3\n'
    )
    assert [(r.labels["le"], r.value) for r in page.of("ttft_seconds_bucket")] == [
        ("0.25", 1.0),
        ("+Inf", 2.0),
        ("0.50", 3.0),
    ]


def test_7_the_ranks_of_one_engine_count_once() -> None:
    page = read("".join(f'sglang:num_running_reqs{{tp_rank="{tp}",pp_rank="0"}} 5\n' for tp in range(4)))
    assert [r.labels["tp_rank"] for r in page.of("requests_running")] == ["0"]
    assert len(page.rows) == 4


def test_7_data_parallel_engines_count_each_whatever_their_rank() -> None:
    """With attention data parallelism engine 1 is tp_rank 1 or, where every rank reports, 2 and 3."""
    few = read("".join(f'sglang:num_queue_reqs{{dp_rank="{dp}",tp_rank="{dp}"}} {dp + 1}\n' for dp in range(2)))
    assert [r.value for r in few.of("requests_waiting")] == [1.0, 2.0]
    ranks = ((dp, tp) for dp in range(2) for tp in (2 * dp, 2 * dp + 1))
    every = read("".join(f'sglang:num_queue_reqs{{dp_rank="{dp}",tp_rank="{tp}"}} {dp + 1}\n' for dp, tp in ranks))
    assert [(r.labels["tp_rank"], r.value) for r in every.of("requests_waiting")] == [("0", 1.0), ("2", 2.0)]
    assert [r.labels["engine"] for r in every.of("requests_waiting")] == ["0", "1"]


def test_7_rows_by_priority_are_parts_of_the_total_where_there_is_one() -> None:
    rows = 'sglang:num_running_reqs{priority="1"} 3\nsglang:num_running_reqs{priority="2"} 4\n'
    with_total = read('sglang:num_running_reqs{priority=""} 7\n' + rows)
    assert [r.value for r in with_total.of("requests_running")] == [7.0]
    assert [r.value for r in read(rows).of("requests_running")] == [3.0, 4.0]
