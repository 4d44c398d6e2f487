"""A streamed answer, timed: what a client measures of delays that the server chose."""

from tests.collector.probe.asking import ask, ask_once
from tests.collector.probe.server import FIRST_S, NEXT_S, Engine, Script


def test_first_token_gaps_and_end_are_not_shorter_than_the_delays_of_the_server(served: Engine) -> None:
    attempt = ask_once(f"http://{served.address}/v1")
    assert attempt.fault is None
    assert attempt.ttft_s is not None
    assert attempt.ttft_s >= FIRST_S
    assert len(attempt.gaps_s) == 2
    assert attempt.ttft_s + sum(attempt.gaps_s) >= FIRST_S + 2 * NEXT_S
    assert attempt.ttft_s + sum(attempt.gaps_s) <= attempt.e2e_s < 10
    assert attempt.ttfb_s is not None
    assert 0 < attempt.ttfb_s <= attempt.ttft_s
    assert attempt.tpot_s is not None
    assert abs(attempt.tpot_s - sum(attempt.gaps_s) / 2) < 1e-9


def test_the_phases_of_a_connection_follow_each_other(served: Engine) -> None:
    attempt = ask_once(f"http://localhost:{served.address.rpartition(':')[2]}/v1")
    assert [phase.name for phase in attempt.timeline.phases if not phase.failed] == ["dns.lookup", "connect"]
    times = [time for phase in attempt.timeline.phases for time in (phase.start_ns, phase.end_ns)]
    times += [attempt.timeline.sent_ns, attempt.timeline.head_ns, attempt.answer.arrivals[0].at_ns]
    assert times == sorted(times)
    assert attempt.tls_s is None


def test_an_address_needs_no_lookup(served: Engine) -> None:
    attempt = ask_once(f"http://{served.address}/v1")
    assert attempt.dns_s is None
    assert attempt.tcp_s is not None


def test_what_the_answer_says_of_itself_is_kept_and_its_text_is_not(served: Engine) -> None:
    attempt = ask_once(f"http://{served.address}/v1", prompt="a secret prompt")
    answer = attempt.answer
    assert (answer.input_tokens, answer.output_tokens, answer.finish_reason) == (7, 3, "length")
    assert (answer.request_id, answer.model, attempt.model) == ("r-1", "tiny-2", "tiny")
    assert "three" not in repr(attempt)
    assert "secret" not in repr(attempt)


def test_text_completions_are_asked_and_read_as_such(served: Engine) -> None:
    attempt = ask_once(f"http://{served.address}/v1/completions", prompt="x", max_tokens=5, body={"seed": 1})
    assert len(attempt.answer.arrivals) == 3
    [asked] = served.requests
    assert asked.path == "/v1/completions"
    assert asked.body == {
        "model": "tiny",
        "prompt": "x",
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
        "seed": 1,
    }


def test_an_answer_that_comes_whole_has_an_end_and_no_first_token(served: Engine) -> None:
    attempt = ask_once(f"http://{served.address}/v1", stream=False)
    assert attempt.fault is None
    assert attempt.ttft_s is None
    assert attempt.e2e_s >= FIRST_S
    assert attempt.answer.output_tokens == 3
    assert "stream_options" not in served.requests[0].body


def test_null_in_body_takes_a_field_out(served: Engine) -> None:
    ask(f"http://{served.address}/v1", body={"max_tokens": None, "max_completion_tokens": 9})
    assert "max_tokens" not in served.requests[0].body
    assert served.requests[0].body["max_completion_tokens"] == 9


def test_the_engines_that_can_are_asked_for_a_count_with_every_chunk(served: Engine) -> None:
    for owner, asked in (("vllm", True), ("somebody", False)):
        served.script.owner = owner
        ask(f"http://{served.address}/v1")
        assert ("continuous_usage_stats" in served.requests[-1].body["stream_options"]) is asked


def test_a_model_that_is_given_is_not_looked_up(served: Engine) -> None:
    assert ask_once(f"http://{served.address}/v1", model="given").model == "given"
    assert [one.path for one in served.asked] == ["/v1/chat/completions"]


def test_the_trace_context_sent_is_that_of_the_attempt(served: Engine) -> None:
    attempts = ask(f"http://{served.address}/v1", count=3)
    assert [one.headers["traceparent"] for one in served.requests] == [
        f"00-{attempt.trace_id}-{attempt.span_id}-01" for attempt in attempts
    ]
    assert len({attempt.trace_id for attempt in attempts}) == 3


def test_every_attempt_opens_a_connection_unless_they_are_kept(served: Engine) -> None:
    attempts = ask(f"http://{served.address}/v1", count=3, model="m")
    assert all(attempt.timeline.connected for attempt in attempts)
    assert served.opened == 3
    attempts = ask(f"http://{served.address}/v1", count=3, model="m", keep_alive=True)
    assert [attempt.timeline.connected for attempt in attempts] == [True, False, False]
    assert served.opened == 4


def test_a_kept_connection_that_the_server_closed_is_no_fault(served: Engine) -> None:
    served.script.idle_close = True
    attempts = ask(f"http://{served.address}/v1", count=3, model="m", keep_alive=True)
    assert [attempt.fault for attempt in attempts] == [None] * 3
    assert len(served.requests) == 3


def test_a_request_lost_with_its_kept_connection_is_sent_once_more(served: Engine) -> None:
    served.script.fault = "close_reused"
    attempts = ask(f"http://{served.address}/v1", count=3, model="m", keep_alive=True)
    assert [(attempt.fault, attempt.resend_count) for attempt in attempts] == [(None, 0), (None, 1), (None, 1)]
    assert len(served.requests) == 5


def test_as_many_attempts_run_at_a_time_as_told(served: Engine) -> None:
    served.script = Script(first_s=0.2)
    attempts = ask(f"http://{served.address}/v1", count=4, concurrency=4, model="m")
    starts = [attempt.timeline.zero_ns for attempt in attempts]
    ends = [attempt.timeline.zero_ns + attempt.end_ns for attempt in attempts]
    assert len(attempts) == 4
    assert max(starts) < min(ends)


def test_a_prompt_of_a_size_differs_each_time(served: Engine) -> None:
    ask(f"http://{served.address}/v1/completions", prompt_tokens=50, count=2, model="m")
    first, second = (one.body["prompt"].split() for one in served.requests)
    assert len(first) == len(second) == 50
    assert first != second


def test_credentials_and_headers_are_sent(served: Engine) -> None:
    from collector.prometheus.config import Authorization

    ask(f"http://{served.address}/v1", authorization=Authorization(credentials="s3cret"), headers={"X-Team": "a"})
    assert {one.headers["authorization"] for one in served.asked} == {"Bearer s3cret"}
    assert {one.headers["x-team"] for one in served.asked} == {"a"}
    ask(f"http://{served.address}/v1", headers={"Authorization": "Bearer other"})
    assert served.asked[-1].headers["authorization"] == "Bearer other"
    attempt = ask_once(f"http://me:pass@{served.address}/v1?api_key=k", model="m")
    assert served.asked[-1].headers["authorization"] == "Basic bWU6cGFzcw=="
    assert served.asked[-1].path == "/v1/chat/completions?api_key=k"
    assert attempt.fault is None
