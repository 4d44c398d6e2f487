"""Requests of both protocols to rows: labels, values, types, refusals, native histograms."""

import contextlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.push import series as push_series
from collector.push.batch import committed
from collector.push.columns import STALE_NAN
from collector.remote_write.collect import Senders
from collector.remote_write.decode import MESSAGES, Written, decode
from store.errors import SourceError
from tests.collector.remote_write.builders import (
    COUNTER,
    GAUGE,
    START_MS,
    V1,
    V2,
    Point,
    Symbols,
    request_2,
    write_request,
)

FIRST, SECOND = MESSAGES
AT = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(minutes=1)
TTFT = {"__name__": "vllm:time_to_first_token_seconds_bucket", "job": "vllm", "instance": "a:1", "le": "0.5"}
UP = {"__name__": "up", "job": "vllm", "instance": "a:1"}


def read(request: Any, senders: Senders | None = None, at: datetime = AT) -> Written:
    """Decode a request of either protocol."""
    name = FIRST if isinstance(request, V1["WriteRequest"]) else SECOND
    senders = senders or Senders()
    written = decode(request.SerializeToString(), name, senders, at)
    committed(senders.series, written.pushed)
    return written


def rows(written: Written) -> list[tuple[str, dict[str, str], int, float | None]]:
    """Name, labels, time (ms) and value of every sample of a first request."""
    frames = written.pushed.batch.frames
    joined = frames["metric_samples"].join(frames["metric_series"], on="series_id")
    found = joined.select("name", "labels", "ts", "value").iter_rows()
    samples = [(n, json.loads(text), round(ts.replace(tzinfo=UTC).timestamp() * 1000), v) for n, text, ts, v in found]
    return sorted(samples, key=repr)


def plain(*series: Point) -> list[tuple[str, dict[str, str], int, float | None]]:
    found = []
    for labels, samples in series:
        rest = {name: value for name, value in sorted(labels.items()) if name != "__name__"}
        found += [(labels["__name__"], rest, at, None if value != value else value) for value, at in samples]
    return sorted(found, key=repr)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
LABELS = st.dictionaries(TEXT.filter(lambda name: name != "__name__"), TEXT, max_size=5)
SAMPLES = st.lists(
    st.tuples(st.floats(allow_nan=False), st.integers(START_MS - 10**9, START_MS)), min_size=1, max_size=3
)
SERIES = st.lists(
    st.tuples(LABELS, st.sampled_from(["a", "b:c", "ünï"]), SAMPLES), max_size=6, unique_by=lambda s: (str(s[0]), s[1])
)


@given(SERIES, st.sampled_from([write_request, request_2]))
def test_every_label_and_sample_comes_out_as_it_went_in(series: Any, build: Any) -> None:
    points = [({**labels, "__name__": name}, samples) for labels, name, samples in series]
    request = build(*points)
    senders = Senders()
    for _ in range(2):  # new, then known
        written = decode(request.SerializeToString(), FIRST if build is write_request else SECOND, senders, AT)
        assert rows(written) == plain(*points) if points else written.pushed.batch.rows == 0
        assert written.pushed.batch.drops == {}
        assert written.samples == sum(len(samples) for _, samples in points)


@pytest.mark.parametrize("build", [write_request, request_2])
def test_a_known_series_is_found_whatever_form_its_sample_has(build: Any) -> None:
    senders = Senders()
    read(build((UP, [(1.0, START_MS)])), senders)
    forms = [(0.0, START_MS + 1), (-0.0, START_MS + 2), (2.5, START_MS + 3), (1e300, 10**12)]
    for value, at in forms:
        frame = read(build((UP, [(value, at)])), senders).pushed.batch.frames["metric_samples"]
        assert [(v, round(t.replace(tzinfo=UTC).timestamp() * 1000)) for _, t, v in frame.iter_rows()] == [(value, at)]
    many = read(build((UP, [(5.0, START_MS + 4), (6.0, START_MS + 5)])), senders)
    assert many.pushed.batch.frames["metric_samples"]["value"].to_list() == [5.0, 6.0]
    assert len(senders.series) == 1


def test_both_protocols_give_the_same_rows() -> None:
    points = [(TTFT, [(3.0, START_MS)]), (UP, [(STALE_NAN, START_MS)])]
    first, second = read(write_request(*points, types={"up": GAUGE})), read(request_2(*points, kind=GAUGE))
    assert rows(first) == rows(second)
    one, two = (w.pushed.batch.frames["metric_series"].sort("name").drop("kind", "unit") for w in (first, second))
    assert one.equals(two)
    assert one["canonical"].to_list() == [None, "ttft_seconds_bucket"]


def test_the_type_is_that_of_the_metadata_whenever_it_comes() -> None:
    senders = Senders()
    assert kind(read(write_request((UP, [(1.0, START_MS)])), senders)) is None
    read(write_request(types={"up": GAUGE}), senders)
    assert kind(read(write_request((UP, [(1.0, START_MS + 1)])), senders)) == "gauge"
    parts = write_request((TTFT, [(1.0, START_MS)]), types={"vllm:time_to_first_token_seconds": 3})
    assert kind(read(parts)) == "histogram"
    later = Senders()
    assert kind(read(request_2((UP, [(1.0, START_MS)])), later)) is None
    assert kind(read(request_2((UP, [(1.0, START_MS + 1)]), kind=COUNTER), later)) == "counter"
    assert read(request_2((UP, [(1.0, START_MS + 2)]), kind=COUNTER), later).pushed.batch.rows == 1


def kind(written: Written) -> str | None:
    found: str | None = written.pushed.batch.frames["metric_series"]["kind"][0]
    return found


def test_a_unit_of_protocol_2_is_used_where_no_preset_knows_the_name() -> None:
    written = read(request_2(({"__name__": "my_seconds_total"}, [(1.0, START_MS)]), kind=COUNTER, unit="seconds"))
    assert written.pushed.batch.frames["metric_series"]["unit"].to_list() == ["s"]


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([("a", "1")], "no_name"),
        ([("__name__", "")], "no_name"),
        ([("", "1"), ("__name__", "x")], "empty_label_name"),
        ([("__name__", "x"), ("a", "1"), ("a", "2")], "duplicate_label"),
        ([("__name__", "x"), ("b", "1"), ("a", "2")], "unsorted_labels"),
        ([("a", "1"), ("__name__", "x")], "unsorted_labels"),
    ],
)
def test_a_series_with_wrong_labels_is_refused_by_reason_and_the_others_stay(
    pairs: list[tuple[str, str]], reason: str
) -> None:
    first = write_request((UP, [(1.0, START_MS)]))
    bad = first.timeseries.add()
    for name, value in pairs:
        bad.labels.add(name=name, value=value)
    bad.samples.add(value=1, timestamp=START_MS)
    second = with_refs(request_2((UP, [(1.0, START_MS)])), pairs)
    for written in (read(first), read(second)):
        assert written.pushed.refused == {reason: 1}
        assert [name for name, *_ in rows(written)] == ["up"]
        assert written.samples == 1


def with_refs(request: Any, pairs: list[tuple[str, str]]) -> Any:
    made = request.timeseries.add()
    for text in (text for pair in pairs for text in pair):
        request.symbols.append(text)
        made.labels_refs.append(len(request.symbols) - 1)
    made.samples.add(value=1, timestamp=START_MS)
    return request


def test_text_that_is_no_utf_8_refuses_its_own_series_only() -> None:
    points = (UP, [(1.0, START_MS)]), ({"__name__": "x", "a": "BAD"}, [(1.0, START_MS)])
    for name, request in ((FIRST, write_request(*points)), (SECOND, request_2(*points))):
        raw = request.SerializeToString().replace(b"BAD", b"\xff\xfe\xfd")
        written = decode(raw, name, Senders(), AT)
        assert written.pushed.refused == {"invalid_utf8": 1}
        assert written.samples == 1


@pytest.mark.parametrize("refs", [[0, 99], [1], []])
def test_references_that_lead_nowhere_refuse_their_series(refs: list[int]) -> None:
    request = request_2((UP, [(1.0, START_MS)]))
    request.timeseries.add(labels_refs=refs).samples.add(value=1, timestamp=START_MS)
    written = read(request)
    assert sum(written.pushed.refused.values()) == 1
    assert written.samples == 1


@pytest.mark.parametrize("body", [b"\xff\xff", b"\x0a\xff", b"\x0a\x02\x0a\x7f"])
def test_a_body_that_is_no_message_is_refused_whole(body: bytes) -> None:
    with pytest.raises(SourceError, match=r"is no prometheus\.WriteRequest"):
        decode(body, FIRST, Senders(), AT)


def test_a_created_timestamp_gives_a_zero_sample_once() -> None:
    senders, created = Senders(), START_MS - 5000
    labels = {"__name__": "requests_total"}
    first = read(request_2((labels, [(7.0, START_MS)]), kind=COUNTER, created_ms=created), senders)
    assert [(at, value) for *_, at, value in rows(first)] == [(created, 0.0), (START_MS, 7.0)]
    again = read(request_2((labels, [(9.0, START_MS + 1)]), kind=COUNTER, created_ms=created), senders)
    assert again.pushed.batch.rows == 1
    request = request_2((labels, [(2.0, START_MS + 9)]), kind=COUNTER)
    request.timeseries[0].samples[0].start_timestamp = START_MS + 5
    assert read(request, senders).pushed.batch.frames["metric_samples"]["value"].to_list() == [0.0, 2.0]


def native(counts: Mapping[int, int], schema: int, at: int, **fields: Any) -> dict[str, Any]:
    """Return fields of a native histogram with a count by index of the upper bound."""
    spans, deltas, last, end = [], [], 0, 0
    for index, count in sorted(counts.items()):
        spans.append({"offset": index - end, "length": 1})
        deltas.append(count - last)
        last, end = count, index + 1
    total = {"count_int": sum(counts.values()), "sum": 10.0, "schema": schema, "timestamp": at}
    return total | {"positive_spans": spans, "positive_deltas": deltas} | fields


@pytest.mark.parametrize("build", [write_request, request_2])
def test_native_histograms_become_buckets_sum_and_count(build: Any) -> None:
    senders = Senders()
    request = build(({"__name__": "lat", "job": "j"}, []))
    request.timeseries[0].histograms.add(**native({0: 3, 4: 1}, 2, START_MS, zero_count_int=2, zero_threshold=0.001))
    written = read(request, senders)
    found = {(name, labels.get("le")): value for name, labels, _, value in rows(written)}
    assert found[("lat_bucket", "0.001")] == 2
    assert found[("lat_bucket", "1")] == 5
    assert found[("lat_bucket", "2")] == 6
    assert found[("lat_bucket", "+Inf")] == found[("lat_count", None)] == 4
    assert found[("lat_sum", None)] == 10.0
    assert (written.samples, written.histograms) == (0, 1)
    assert set(written.pushed.batch.frames["metric_series"]["kind"]) == {"exponential_histogram"}
    stale = build(({"__name__": "lat", "job": "j"}, []))
    stale.timeseries[0].histograms.add(sum=STALE_NAN, timestamp=START_MS + 1)
    ends = read(stale, senders).pushed.batch.frames["metric_samples"]
    assert ends["value"].null_count() == ends.height == len(found)


def test_custom_buckets_keep_their_bounds() -> None:
    request = write_request(({"__name__": "lat"}, []))
    fields = native({0: 1, 2: 4}, -53, START_MS, custom_values=[0.1, 0.5, 2.5])
    request.timeseries[0].histograms.add(**fields)
    found = {labels.get("le"): value for name, labels, _, value in rows(read(request)) if name == "lat_bucket"}
    assert found == {"0.1": 1, "0.5": 1, "2.5": 5, "+Inf": 5}


@pytest.mark.parametrize(
    "fields",
    [
        {"schema": 99},
        {"positive_spans": [{"offset": 0, "length": 4_000_000_000}], "positive_deltas": [1]},
        {"positive_spans": [{"offset": 0, "length": 1}], "positive_deltas": [-1]},
        {"zero_threshold": float("nan")},
        {"schema": -53, "custom_values": [2.0, 1.0]},
    ],
)
def test_a_native_histogram_that_does_not_add_up_is_refused(fields: Mapping[str, Any]) -> None:
    request = write_request((UP, [(1.0, START_MS)]), ({"__name__": "lat"}, []))
    request.timeseries[1].histograms.add(timestamp=START_MS, **fields)
    written = read(request)
    assert written.pushed.refused == {"invalid_histogram": 1}
    assert (written.samples, written.histograms) == (1, 0)


def test_times_far_off_are_refused_in_samples_and_histograms() -> None:
    request = write_request((UP, [(1.0, START_MS), (1.0, 10), (1.0, 2**62)]), ({"__name__": "lat"}, []))
    request.timeseries[1].histograms.add(**native({0: 1}, 0, START_MS * 1000))
    written = read(request)
    assert written.pushed.refused == {"time_out_of_range": 3}
    assert (written.samples, written.histograms) == (1, 0)


def test_a_series_is_the_same_whatever_numbers_its_symbols_have() -> None:
    senders = Senders()
    for turn in range(4):
        request = V2["Request"]()
        symbols = Symbols(request)
        for i in range(turn * 90):
            symbols.ref(f"other-{turn}-{i}")
        made = request.timeseries.add(labels_refs=symbols.refs(UP))
        made.samples.add(value=turn, timestamp=START_MS + turn)
        for i in range(turn):  # what follows the sample differs too
            made.metadata.type, made.metadata.help_ref = GAUGE, i
        written = read(request, senders)
        assert written.pushed.batch.frames["metric_samples"]["value"].to_list() == [turn]
    assert len(senders.series) == 1


@pytest.mark.parametrize("build", [write_request, request_2])
def test_what_is_no_sample_is_not_taken_for_one(build: Any) -> None:
    senders = Senders()
    read(build((UP, [(1.0, START_MS)])), senders)
    request = build((UP, []))
    request.timeseries[0].exemplars.add(value=3.0, timestamp=START_MS)
    assert read(request, senders).pushed.batch.rows == 0
    both = build((UP, [(2.0, START_MS + 1)]))
    both.timeseries[0].exemplars.add(value=3.0, timestamp=START_MS)
    assert read(both, senders).pushed.batch.frames["metric_samples"]["value"].to_list() == [2.0]


@given(st.binary(max_size=60), st.sampled_from([FIRST, SECOND]))
def test_any_bytes_are_read_or_refused(body: bytes, name: str) -> None:
    with contextlib.suppress(SourceError):
        decode(body, name, Senders(), AT)


@given(st.binary(max_size=12), st.integers(0, 200), st.sampled_from([FIRST, SECOND]))
def test_a_body_with_changed_bytes_is_read_or_refused(noise: bytes, at: int, name: str) -> None:
    request = (
        write_request((UP, [(1.0, START_MS)])) if name == FIRST else request_2((UP, [(1.0, START_MS)]), kind=GAUGE)
    )
    body = request.SerializeToString()
    at %= len(body)
    with contextlib.suppress(SourceError):
        decode(body[:at] + noise + body[at + len(noise) :], name, Senders(), AT)


@pytest.mark.parametrize("build", [write_request, request_2])
def test_series_beyond_the_most_are_refused_and_known_ones_stay(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push_series, "MOST_SERIES", 1)
    senders = Senders()
    written = read(build((UP, [(1.0, START_MS)]), ({"__name__": "x"}, [(1.0, START_MS)])), senders)
    assert written.pushed.refused == {"too_many_series": 1}
    assert read(build((UP, [(1.0, START_MS + 1)])), senders).samples == 1
