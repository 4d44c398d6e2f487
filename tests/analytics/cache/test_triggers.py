"""When a cache counts as polluted: rules on made windows, and a public trace through a cache that shrinks."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.cache import ANALYSIS, traces
from analytics.cache.findings import excess, found, unused
from tests.analytics.cache.given import imported, run, simulated
from tests.analytics.frames_of import START

HALF = 0.6
"""Share of the requests before the cache shrinks."""


def row(cpi: float, hit: float, ceiling: float, i: int) -> dict[str, Any]:
    at = {"bucket": START + timedelta(minutes=5 * i), "basis": "exact", "accesses": 1000, "dominant": "expired"}
    return at | {"cpi": cpi, "hit_ratio": hit, "ceiling": ceiling}


CALM = [row(0.2 + 0.01 * (i % 3), 0.7, 0.72, i) for i in range(12)]
BAD = [row(0.6, 0.5, 0.7, 12 + i) for i in range(3)]


def test_the_baseline_trigger_needs_three_windows_and_lost_hits() -> None:
    params = ANALYSIS.make_params({})
    dead = [row(0.6, 0.5, 0.52, 12 + i) for i in range(3)]

    def over(rows: list[dict[str, Any]]) -> bool:
        at = excess(rows, params)
        return at is not None and at[0] > 0

    assert over(CALM + BAD)
    assert not over(CALM + BAD[:2])
    assert not over(CALM + dead)
    assert excess(BAD, params) is None


def test_the_documents_triggers_fire_at_their_level_and_rise() -> None:
    params = ANALYSIS.make_params({"trigger": "documents"})
    level: Any = excess([row(c, 0, 0, i) for i, c in enumerate([0.4, 0.4, 0.4])], params)
    assert level == (pytest.approx(0, abs=1e-8), "level")
    assert (excess([row(c, 0, 0, i) for i, c in enumerate([0.4, 0.39, 0.4])], params) or (0,))[0] < 0
    rise: Any = excess([row(c, 0, 0, i) for i, c in enumerate([0.1, 0.36])], params)
    assert rise == (pytest.approx(0.01), "rise")


def test_pollution_that_is_over_is_a_finding_with_an_end() -> None:
    params = ANALYSIS.make_params({})
    (lasting,) = found({}, CALM + BAD, params, 300)
    assert (lasting.since.replace(tzinfo=None), lasting.until) == (BAD[0]["bucket"], None)
    after = [row(0.2, 0.7, 0.72, 15 + i) for i in range(2)]
    (past,) = found({}, CALM + BAD + after, params, 300)
    assert past.until is not None
    assert past.until.replace(tzinfo=None) == BAD[-1]["bucket"] + timedelta(minutes=5)
    assert "reached 0.60" in past.summary
    assert len(past.evidence["windows"]) == 3


def test_windows_of_blocks_that_nobody_uses_are_advice_with_their_time() -> None:
    idle = [row(0.9, 0.02, 0.02, 12 + i) | {"dominant": "redundant"} for i in range(3)]
    text = unused(CALM + idle)
    assert text is not None
    assert "from 2026-11-30T13:00:00Z: 3 windows, index up to 0.90, hit ratio 0.02 against 0.70" in text
    assert unused(CALM + idle[:2]) is None
    most = unused(CALM[:2] + idle)
    assert most is not None
    assert most.startswith("3 of 5 windows load mostly blocks that nobody uses")
    assert "usual where prompts seldom repeat" in most


@pytest.fixture(scope="module")
def prompts(shared: Path) -> list[tuple[datetime, list[int]]]:
    blocks = imported(shared / "data/mooncake_trace/conversation_trace.jsonl.gz", "request_blocks")
    ordered = blocks.sort("ts", maintain_order=True)
    return list(zip(ordered["ts"].to_list(), ordered["block_hashes"].to_list(), strict=True))


def test_a_healthy_trace_is_calm_whatever_the_size_and_the_documents_fire_all_along(shared: Path) -> None:
    trace = traces.read(imported(shared / "data/mooncake_trace/conversation_trace.jsonl.gz", "request_blocks"))
    assert trace is not None
    for size in (1_000, 10_000, 30_000, 50_000, 100_000):
        for bucket in (60, 300):
            params = ANALYSIS.make_params({"blocks": size, "bucket": bucket})
            windows = [made | {"dominant": None} for made in traces.windows(traces.judged(trace, params), params)]
            assert found({}, windows, params, bucket) == []  # at no time within the hour
            documents = ANALYSIS.make_params({"trigger": "documents"})
            runs = found({}, windows, documents, bucket)
            assert sum(len(one.evidence["windows"]) for one in runs) >= 4


def test_a_cache_that_becomes_ten_times_smaller_is_found_and_one_that_stays_is_not(
    prompts: list[tuple[datetime, list[int]]],
) -> None:
    sizes = {"stays": [30_000] * len(prompts), "shrinks": [30_000] * int(HALF * len(prompts))}
    sizes["shrinks"] += [3_000] * (len(prompts) - len(sizes["shrinks"]))
    answers = {}
    for name, size in sizes.items():
        events, counters = simulated(prompts, size, tokens=512)
        answers[name] = run({"events": events, "counters": counters})
    assert answers["stays"].findings == ()
    (finding,) = answers["shrinks"].findings
    shrank = prompts[int(HALF * len(prompts))][0]
    # three windows must break the bound, the first of them within one window of the change
    assert timedelta(0) <= shrank - finding.since.replace(tzinfo=None) < timedelta(minutes=5)
    assert finding.until is None
    assert "would have been found had nothing been evicted" in finding.summary
    # as a run at that time sees it, when blocks that will never be used are still there
    now = pl.col("ts") < shrank + timedelta(minutes=20)
    then = run({"events": events.filter(now), "counters": counters.filter(now)})
    assert [one.until for one in then.findings] == [None]
