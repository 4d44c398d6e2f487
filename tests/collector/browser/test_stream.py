"""What a page tells of a stream, in a real browser and over a real socket, against what the model sent."""

import json
from itertools import pairwise

import polars as pl
import pytest

from tests.collector.browser.site import DELAYS_S, Site

ASK = "show(await infractl.fetch('/model/{}', {{method: 'POST', body: 'a secret'}}{}))"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_arrivals_ttft_and_usage_are_what_the_model_sent_and_no_text_leaves_the_page(site: Site) -> None:
    site.run(f"await {ASK.format('answer', '')}")
    span = site.span()
    assert (span["kind"], span["operation"], span["name"]) == ("client", "chat", "chat m")
    assert (span["service"], span["request_model"], span["model"]) == ("chat-page", "m", "m-2026")
    assert (span["input_tokens"], span["output_tokens"], span["cached_input_tokens"]) == (9, 12, 4)
    assert (span["finish_reason"], span["error_code"], span["request_id"]) == ("stop", None, "chatcmpl-7")
    assert (span["stream"], span["scope"]) == (True, "infractl-stream")
    assert site.url.endswith(span["server_address"])
    (arrived,) = site.stored.rows("token_arrivals")
    offsets_s = [us / 1e6 for us in arrived["offsets_us"]]
    assert arrived["measured_by"] == "client"
    assert sum(arrived["tokens"] or [1] * len(offsets_s)) == len(DELAYS_S)
    assert span["ttft_s"] == offsets_s[0] >= DELAYS_S[0]
    assert offsets_s == sorted(offsets_s)
    assert offsets_s[-1] <= span["e2e_s"]
    sent_s = [at - site.model.sent_s[0] for at in site.model.sent_s]
    assert offsets_s[-1] - offsets_s[0] == pytest.approx(sent_s[-1], abs=1)
    assert max(b - a for a, b in pairwise(offsets_s)) >= DELAYS_S[6] / 2
    assert "word11" in site.page.inner_text("#answer")
    assert len(site.reports) == 1
    assert "secret" not in site.reports[0]
    assert "word" not in site.reports[0]
    assert site.wrong == []


def test_a_paint_is_later_than_the_arrival_it_shows_and_none_is_missing_at_the_end(site: Site) -> None:
    site.run(f"await {ASK.format('answer', '')}")
    site.span()
    (arrived,) = site.stored.rows("token_arrivals")
    painted = arrived["paints_us"]
    assert 1 <= len(painted) <= len(arrived["offsets_us"])
    assert painted == sorted(painted)
    assert painted[0] >= arrived["offsets_us"][0]
    assert painted[-1] >= arrived["offsets_us"][-1]


def test_an_app_that_reads_by_itself_says_what_arrived(site: Site) -> None:
    parent = f"00-{TRACE}-{SPAN}-01"
    told = site.run(
        "const t = infractl.stream({traceparent: '" + parent + "', provider: 'openai', environment: 'prod'});"
        "t.chunk(); t.chunk(3); t.painted(); t.chunk(0); t.end({inputTokens: 5, outputTokens: 4}); t.chunk(); t.end();"
        "return t.traceparent"
    )
    span = site.span()
    assert (span["trace_id"], span["parent_span_id"]) == (TRACE, SPAN)
    assert told == f"00-{TRACE}-{span['span_id']}-01"
    assert (span["provider"], span["environment"]) == ("openai", "prod")
    assert (span["input_tokens"], span["output_tokens"]) == (5, 4)
    (arrived,) = site.stored.rows("token_arrivals")
    assert arrived["tokens"] == [1, 3]
    assert len(arrived["paints_us"]) == 1
    assert span["attributes"].get("infractl.page.hidden_s") is None


def test_chunks_of_no_known_format_count_as_one_token_each(site: Site) -> None:
    site.run(f"await {ASK.format('raw', '')}")
    assert site.span()["output_tokens"] is None
    (arrived,) = site.stored.rows("token_arrivals")
    assert (len(arrived["offsets_us"]), arrived["tokens"]) == (3, None)


def test_the_engine_is_told_the_trace_when_asked_to(site: Site) -> None:
    site.run(f"await {ASK.format('raw', ', {propagate: true}')}")
    span = site.span()
    assert site.model.headers[0]["traceparent"] == f"00-{span['trace_id']}-{span['span_id']}-01"
    site.run(f"await {ASK.format('raw', '')}")
    assert "traceparent" not in site.model.headers[1]


def test_streams_that_end_together_go_in_one_request(site: Site) -> None:
    site.run("for (const service of ['a', 'b', 'c']) { const t = infractl.stream({service}); t.chunk(); t.end(); }")
    assert sorted(span["service"] for span in site.spans(3)) == ["a", "b", "c"]
    assert len({span["trace_id"] for span in site.spans(3)}) == 3
    assert site.stored.tries == 1


def test_only_the_sampled_streams_are_sent(site: Site) -> None:
    flags = site.run(
        "const left = infractl.stream({sample: 0}), kept = infractl.stream({sample: 1, service: 'kept'});"
        "left.chunk(); left.end(); kept.end(); return [left, kept].map((t) => t.traceparent.slice(-2))"
    )
    assert [span["service"] for span in site.spans()] == ["kept"]
    assert flags == ["00", "01"]


def test_a_long_answer_is_sent_whole(site: Site) -> None:
    site.run("const t = infractl.stream(); for (let n = 0; n < 5000; n++) t.chunk(2); t.end()")
    site.spans()
    (arrived,) = site.stored.rows("token_arrivals")
    assert arrived["tokens"] == [2] * 5000
    assert len(site.reports[0]) > 64 * 1024


def test_times_are_those_of_the_wall_clock(site: Site) -> None:
    before, after = site.run("const was = Date.now(), t = infractl.stream(); t.end(); return [was, Date.now()]")
    ts = pl.Series([site.span()["ts"]]).dt.epoch("ms")[0]
    assert before - 200 <= ts <= after + 200


@pytest.mark.parametrize(
    ("event", "tokens"),
    [
        ({"choices": [{"text": "a"}, {"text": "b"}]}, 2),
        ({"choices": [{"delta": {"reasoning_content": "a"}}]}, 1),
        ({"choices": [{"delta": {"tool_calls": [{}]}}]}, 1),
        ({"choices": [{"delta": {"content": "several"}}], "usage": {"completion_tokens": 4}}, 4),
        ({"choices": [{"delta": None, "finish_reason": "stop"}], "usage": None}, 0),
        ({"type": "response.output_text.delta", "delta": "a"}, 1),
        ({"type": "content_block_delta", "delta": {"text": "a"}}, 1),
        ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}, 0),
        ({"choices": [{"delta": {"role": "assistant", "content": ""}}]}, 0),
    ],
)
def test_every_api_says_in_its_own_way_that_a_token_came(site: Site, event: dict[str, object], tokens: int) -> None:
    text = f"event: x\r\ndata: {json.dumps(event)}\r\n\r\n: comment\n\ndata: no json\n\ndata: [DONE]\n\n"
    site.run(
        f"const text = {json.dumps(text)}, bytes = new TextEncoder().encode(text), at = 25;"
        "const body = new ReadableStream({start(out) {"
        " for (const part of [bytes.slice(0, at), bytes.slice(at)]) out.enqueue(part); out.close(); }});"
        "const answer = new Response(body, {headers: {'content-type': 'text/event-stream; charset=utf-8'}});"
        "Object.defineProperty(answer, 'url', {value: location.href});"
        "if (await infractl.stream().response(answer).text() !== text) throw 'changed'"
    )
    site.span()
    arrived = site.stored.rows("token_arrivals")
    assert sum(sum(row["tokens"] or [1] * len(row["offsets_us"])) for row in arrived) == tokens
