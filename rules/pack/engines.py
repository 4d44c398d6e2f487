"""Alerts on serving engines: requests that wait, stop or fail; what the cache and the prompts do."""

from datetime import timedelta

from rules.pack.packed import MINUTE, Packed
from rules.pack.recorded import Derived, Recorded

WAITING = Recorded("engine", "requests_waiting")
RUNNING = Recorded("engine", "requests_running")
KV_USE = Recorded("engine", "kv_cache_usage_ratio")
CAPACITY = Recorded("engine", "requests_waiting_by_reason", by=("reason",))
GENERATED = Recorded("engine", "generation_tokens_total", "rate", 5 * MINUTE)
PREEMPTIONS = Recorded("engine", "preemptions_total", "rate", 10 * MINUTE)
FINISHED = Recorded("engine", "requests_total", "rate", 10 * MINUTE, by=("outcome",))
QUERIES = Recorded("engine", "prefix_cache_queries_total", "rate", 30 * MINUTE)
HITS = Recorded("engine", "prefix_cache_hits_total", "rate", 30 * MINUTE)
TRANSFERS = Recorded("engine", "kv_transfer_failures_total", "increase", 10 * MINUTE, by=("stage",))
PROMPTS = Recorded("engine", "request_prompt_tokens", "rate", 30 * MINUTE, suffix="_sum")
PROMPT_COUNT = Recorded("engine", "request_prompt_tokens", "rate", 30 * MINUTE, suffix="_count")

LEVEL = WAITING.labels
_BY = ", ".join(LEVEL)
DONE = Derived("engine:requests:rate10m", f"sum by ({_BY}) ({FINISHED.name})", LEVEL)
HIT_RATIO = Derived("engine:prefix_cache_hit:ratio30m", f"{HITS.name} / ({QUERIES.name} > 100)", LEVEL)
PROMPT = Derived("engine:request_prompt_tokens:mean30m", f"{PROMPTS.name} / ({PROMPT_COUNT.name} > 0.05)", LEVEL)

WHO = ("service", "model", "instance")
FEWEST = 0.05
"""Finished requests a second, 30 in ten minutes, below which no share is judged."""
_ON = '{model_name="m", engine="0", job="vllm", instance="n1:8000", service="chat"}'
ALL = {"service": "chat", "model": "m", "host": "n1", "job": "vllm", "instance": "n1:8000"}


def vllm(name: str, **more: str) -> str:
    """Series of an engine, as vLLM shows it."""
    extra = "".join(f', {label}="{value}"' for label, value in more.items())
    return f"vllm:{name}{_ON[:-1]}{extra}}}"


def _share(outcome: str) -> str:
    return f'sum by ({_BY}) ({FINISHED.name}{{outcome=~"{outcome}"}}) / ({DONE.name} > {FEWEST})'


ALERTS = (
    Packed(
        name="EngineQueueGrowsCacheFull",
        severity="critical",
        reads=(WAITING, KV_USE),
        expr=(
            f"{WAITING.name} > 5 and deriv({WAITING.name}[10m]) > 0 "
            f"and on ({_BY}) avg_over_time({KV_USE.name}[5m]) > 0.9"
        ),
        summary="{service} ({instance}): {value:.0f} requests wait, more and more, and its KV cache is full",
        description="The engine cannot admit requests for want of KV cache. Ask why with: infractl analyze p99",
        runbook="engine-cache-full",
        kept=WHO,
        hold=5 * MINUTE,
        fires={vllm("num_requests_waiting"): "0+1x180", vllm("kv_cache_usage_perc"): "0.97x180"},
        quiet={vllm("num_requests_waiting"): "0+1x180", vllm("kv_cache_usage_perc"): "0.5x180"},
        labels=ALL,
        value=160,
    ),
    Packed(
        name="EngineWaitsForCapacity",
        severity="warning",
        reads=(CAPACITY,),
        expr=f'avg_over_time({CAPACITY.name}{{reason="capacity"}}[10m]) > 1',
        summary="{service} ({instance}): on average {value:.0f} requests wait for capacity",
        description="Batch slots or KV cache are used up for ten minutes: arrivals exceed what the engine can serve.",
        runbook="engine-queue",
        kept=WHO,
        hold=5 * MINUTE,
        fires={vllm("num_requests_waiting_by_reason", reason="capacity"): "6x180"},
        quiet={vllm("num_requests_waiting_by_reason", reason="deferred"): "6x180"},
        labels={**ALL, "reason": "capacity"},
        value=6,
    ),
    Packed(
        name="EnginePreempts",
        severity="warning",
        reads=(PREEMPTIONS, FINISHED, DONE),
        expr=f"{PREEMPTIONS.name} / ({DONE.name} > {FEWEST}) > 0.05",
        summary="{service} ({instance}) preempts {value:.0%} of its requests",
        description="Requests are put back for want of KV cache and computed anew: their tail latency grows.",
        runbook="engine-cache-full",
        kept=WHO,
        hold=5 * MINUTE,
        fires={
            vllm("num_preemptions_total"): "0+3x180",
            vllm("request_success_total", finished_reason="stop"): "0+30x180",
        },
        quiet={
            vllm("num_preemptions_total"): "0+3x180",
            vllm("request_success_total", finished_reason="stop"): "0+300x180",
        },
        labels=ALL,
        value=0.1,
    ),
    Packed(
        name="EngineStands",
        severity="critical",
        reads=(RUNNING, GENERATED),
        expr=f"min_over_time({RUNNING.name}[5m]) > 0 and {GENERATED.name} == 0",
        summary="{service} ({instance}) runs {value:.0f} requests and generates no token",
        description="The engine hangs: a collective that waits for a lost GPU, a deadlock, a stuck kernel. It may "
        "still answer health checks.",
        runbook="engine-stands",
        kept=WHO,
        fires={vllm("num_requests_running"): "4x180", vllm("generation_tokens_total"): "500x180"},
        quiet={vllm("num_requests_running"): "4x180", vllm("generation_tokens_total"): "500+20x180"},
        labels=ALL,
        value=4,
    ),
    Packed(
        name="EngineErrors",
        severity="critical",
        reads=(FINISHED, DONE),
        expr=f"{_share('error')} > 0.05",
        summary="{service} ({instance}): {value:.0%} of its requests end in an error",
        description="Of the requests that the engine finished in ten minutes, at least 30. Ask why with: "
        "infractl analyze errors",
        runbook="high-error-ratio",
        kept=WHO,
        hold=2 * MINUTE,
        fires={
            vllm("request_success_total", finished_reason="error"): "0+10x180",
            vllm("request_success_total", finished_reason="stop"): "0+40x180",
        },
        quiet={
            vllm("request_success_total", finished_reason="error"): "0+1x180",
            vllm("request_success_total", finished_reason="stop"): "0+40x180",
        },
        labels=ALL,
        value=0.2,
    ),
    Packed(
        name="EngineAborts",
        severity="warning",
        reads=(FINISHED, DONE),
        expr=f"{_share('abort')} > 0.2",
        summary="{service} ({instance}): clients give up {value:.0%} of its requests",
        description="Clients close the connection before the answer ends: time limits, impatience, a gateway.",
        runbook="engine-aborts",
        kept=WHO,
        hold=5 * MINUTE,
        fires={
            vllm("request_success_total", finished_reason="abort"): "0+20x180",
            vllm("request_success_total", finished_reason="stop"): "0+20x180",
        },
        quiet={
            vllm("request_success_total", finished_reason="abort"): "0+1x180",
            vllm("request_success_total", finished_reason="stop"): "0+20x180",
        },
        labels=ALL,
        value=0.5,
    ),
    Packed(
        name="EngineRepetition",
        severity="warning",
        reads=(FINISHED, DONE),
        expr=f"{_share('repetition')} > 0.02",
        summary="{service} ({instance}) stops {value:.0%} of its answers since they repeat themselves",
        description="A model, a template or a sampling parameter went wrong: answers run in circles and cost tokens.",
        runbook="engine-repetition",
        kept=WHO,
        hold=10 * MINUTE,
        fires={
            vllm("request_success_total", finished_reason="repetition"): "0+2x180",
            vllm("request_success_total", finished_reason="stop"): "0+18x180",
        },
        quiet={
            vllm("request_success_total", finished_reason="repetition"): "0+0x180",
            vllm("request_success_total", finished_reason="stop"): "0+20x180",
        },
        labels=ALL,
        value=0.1,
    ),
    Packed(
        name="PrefixCacheHitsDrop",
        severity="warning",
        reads=(QUERIES, HITS, HIT_RATIO),
        expr=f"avg_over_time({HIT_RATIO.name}[1d] offset 1h) - {HIT_RATIO.name} > 0.2",
        summary="{service} ({instance}): its prefix cache finds {value:.0%} of the tokens less than the day before",
        description="Prompts no longer share their beginning, the cache is too small, or replicas changed: "
        "infractl analyze cache",
        runbook="cache-polluted",
        kept=WHO,
        hold=15 * MINUTE,
        at=timedelta(minutes=170),
        fires={
            vllm("prefix_cache_queries_total"): "0+6000x700",
            vllm("prefix_cache_hits_total"): "0+4500x460 2070600+600x240",
        },
        quiet={vllm("prefix_cache_queries_total"): "0+6000x700", vllm("prefix_cache_hits_total"): "0+4500x700"},
        labels=ALL,
        value=0.65,
    ),
    Packed(
        name="KvTransfersFail",
        severity="critical",
        reads=(TRANSFERS,),
        expr=f"sum by ({_BY}) ({TRANSFERS.name}) > 5",
        summary="{service} ({instance}): {value:.0f} transfers of KV cache failed within 10 minutes",
        description="Between prefill and decode (NIXL, Mooncake) blocks are lost; requests are computed anew or fail.",
        runbook="kv-transfers-fail",
        kept=WHO,
        hold=2 * MINUTE,
        fires={vllm("nixl_num_failed_transfers_total"): "0+1x180"},
        quiet={vllm("nixl_num_failed_transfers_total"): "9x180"},
        labels=ALL,
        value=40,
    ),
    Packed(
        name="PromptsLonger",
        severity="info",
        reads=(PROMPTS, PROMPT_COUNT, PROMPT),
        expr=f"{PROMPT.name} / (avg_over_time({PROMPT.name}[1d] offset 1h) > 0) > 2",
        summary="{service} ({instance}): prompts are {value:.1f} times as long as the day before",
        description="Longer prompts need more prefill and KV cache: latency and cost follow. A new client, or abuse.",
        runbook="prompts-longer",
        kept=WHO,
        hold=15 * MINUTE,
        at=timedelta(minutes=170),
        fires={
            vllm("request_prompt_tokens_sum"): "0+3000x460 1389000+9000x240",
            vllm("request_prompt_tokens_count"): "0+10x700",
        },
        quiet={vllm("request_prompt_tokens_sum"): "0+3000x700", vllm("request_prompt_tokens_count"): "0+10x700"},
        labels=ALL,
        value=3,
    ),
)
