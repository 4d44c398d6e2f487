"""The model obeys what any queue must obey, and each labelled incident shows in its own signal."""

import numpy as np
import pytest

from sample_data import fleet, pcie, scenario, workload
from sample_data.engine import Engine
from sample_data.scenario import Disturbance
from sample_data.workload import Workload

SERVICES = [service.name for service in fleet.SERVICES]
BY_ID = {d.id: d for d in scenario.DISTURBANCES}


def mean_level(engine: Engine, field: str, start: float = 0.0, end: float = float("inf")) -> float:
    """Time-weighted mean of a state field between two times."""
    at = np.array([s.at_s for s in engine.states])
    values = np.array([getattr(s, field) for s in engine.states], dtype=float)
    edges = np.clip(at, start, end)
    return float(np.average(values[:-1], weights=np.diff(edges)))


def ttft_s(engine: Engine, start: float = 0.0, end: float = float("inf")) -> list[float]:
    """Time to first token of the requests that arrived between two times."""
    return [s.first_token_s - s.arrival_s for s in engine.done if start <= s.arrival_s < end and s.first_token_s]


@pytest.mark.parametrize("service", SERVICES)
def test_little_s_law_holds_for_the_running_requests(engines: dict[str, Engine], service: str) -> None:
    engine = engines[service]
    span = engine.states[-1].at_s - engine.states[0].at_s
    spent = sum(s.done_s - (s.scheduled_s or 0.0) for s in engine.done) / span
    preempted = engine.totals.preemptions > 0  # a preempted request waits again after it was first scheduled
    assert mean_level(engine, "running") == pytest.approx(spent, rel=0.03 if preempted else 1e-6)


@pytest.mark.parametrize("service", ["chat-api", "rag-search"])
def test_little_s_law_holds_for_the_waiting_requests(engines: dict[str, Engine], service: str) -> None:
    engine = engines[service]
    span = engine.states[-1].at_s - engine.states[0].at_s
    waited = sum((s.scheduled_s or 0.0) - s.arrival_s for s in engine.done) / span
    assert mean_level(engine, "waiting") == pytest.approx(waited, rel=1e-6)


@pytest.mark.parametrize("service", SERVICES)
def test_every_request_is_served_or_refused_and_the_engine_ends_empty(engines: dict[str, Engine], service: str) -> None:
    engine = engines[service]
    assert len(engine.done) + int((engine.work.error >= 0).sum()) == engine.work.arrival_s.size
    last = engine.states[-1]
    assert (last.waiting, last.running, last.kv_ratio) == (0, 0, 0.0)


@pytest.mark.parametrize("service", SERVICES)
def test_limits_of_slots_and_cache_are_kept(engines: dict[str, Engine], service: str) -> None:
    engine = engines[service]
    assert max(s.running for s in engine.states) <= engine.service.slots
    assert 0.0 <= min(s.kv_ratio for s in engine.states) <= max(s.kv_ratio for s in engine.states) <= 1.0


@pytest.mark.parametrize("service", SERVICES)
def test_nobody_waits_while_the_engine_is_idle(engines: dict[str, Engine], service: str) -> None:
    assert all(s.waiting == 0 for s in engines[service].states if s.running == 0)


@pytest.mark.parametrize("service", SERVICES)
def test_each_request_is_served_in_order_of_time(engines: dict[str, Engine], service: str) -> None:
    for s in engines[service].done:
        assert s.scheduled_s is not None
        assert s.first_token_s is not None
        assert s.arrival_s <= s.scheduled_s < s.first_token_s <= s.done_s


@pytest.mark.parametrize("service", SERVICES)
def test_generated_tokens_are_those_the_requests_wanted(engines: dict[str, Engine], service: str) -> None:
    engine = engines[service]
    wanted = sum(s.output_tokens for s in engine.done)
    assert engine.totals.generation_tokens == pytest.approx(wanted, rel=1e-3)


def test_a_lone_request_meets_no_queue_and_decodes_at_the_idle_speed() -> None:
    one = np.array([1.0])
    work = Workload(
        arrival_s=one,
        input_tokens=np.array([900]),
        output_tokens=np.array([11]),
        prefix_tokens=np.array([0]),
        cache_draw=one,
        prefill_noise=one,
        stall_s=0 * one,
        tail=one,
        error=np.array([-1]),
        codes=(),
    )
    engine = Engine(fleet.CHAT_API, work, pcie.PcieLoad(np.array([0.1])))
    engine.run()
    (done,) = engine.done
    assert done.scheduled_s == 1.0
    assert done.first_token_s == pytest.approx(1.0 + 0.030 + 900 / 9000)
    assert done.done_s - (done.first_token_s or 0.0) == pytest.approx(10 * 0.022)


def test_prefill_slows_only_above_the_knee_and_then_with_the_load() -> None:
    assert pcie.slowdown(0.4, 1.0, 5.0) == 1.0
    assert 1.0 < pcie.slowdown(0.6, 1.0, 1.0) < pcie.slowdown(0.9, 1.0, 1.0) < pcie.slowdown(0.9, 1.0, 3.0)
    assert pcie.slowdown(0.9, 0.0, 3.0) == 1.0


def test_arrivals_follow_the_stated_rate() -> None:
    at_s = workload.draw(fleet.RAG_SEARCH, np.random.default_rng(5)).arrival_s
    expected = float(workload.rate_rps(fleet.RAG_SEARCH, np.arange(0.0, 21_600.0, 1.0)).sum())
    assert abs(at_s.size - expected) < 4 * expected**0.5


@pytest.mark.parametrize("incident", ["sim-1", "sim-2", "sim-3"])
def test_a_latency_incident_multiplies_the_tail(engines: dict[str, Engine], incident: str) -> None:
    d = BY_ID[incident]
    engine, (start, end) = engines[d.service.name], d.bounds_s
    usual = np.percentile(ttft_s(engine, 0.0, start), 99)
    assert np.percentile(ttft_s(engine, start, end), 99) > 3 * usual
    assert np.percentile(ttft_s(engine, end + 300, end + 2700), 99) < 1.5 * usual


def driver_level(engines: dict[str, Engine], d: Disturbance, start: float, end: float) -> float:
    """Mean of the disturbance's driver between two times."""
    engine = engines[d.service.name]
    if d.driver == "gpu_pcie_bytes_per_second":
        steps = slice(int(start / pcie.STEP_S), int(end / pcie.STEP_S))
        return float(engine.link.ratio[steps].mean())
    field = {"requests_waiting": "waiting", "kv_cache_usage_ratio": "kv_ratio"}[d.driver or ""]
    return mean_level(engine, field, start, end)


@pytest.mark.parametrize("incident", ["sim-1", "sim-2", "sim-3"])
def test_the_stated_driver_rises_with_its_incident(engines: dict[str, Engine], incident: str) -> None:
    d = BY_ID[incident]
    start, end = d.bounds_s
    assert driver_level(engines, d, start, end) > 3 * driver_level(engines, d, start - 1800, start)


def test_the_error_storm_refuses_its_share_and_leaves_the_latency_alone(engines: dict[str, Engine]) -> None:
    d = BY_ID["sim-4"]
    engine, (start, end) = engines[d.service.name], d.bounds_s
    work = engine.work
    inside = (work.arrival_s >= start) & (work.arrival_s < end)
    refused = work.error == work.codes.index("HTTP_429")
    assert refused[inside].mean() == pytest.approx(d.error_ratio, abs=0.08)
    assert not refused[~inside].any()
    usual = np.percentile(ttft_s(engine, start - 3000, start), 99)
    assert np.percentile(ttft_s(engine, start, end), 99) < 1.5 * usual
