"""`analyze connections`: reuse, handshakes and findings on simulated traffic and on logs as they are imported."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analytics.result import Result, Status
from collector.files import ImportOptions, load
from tests.analytics.connections.simulated import AFTER, BEFORE, run, traffic, window_of
from tests.analytics.frames_of import START, times

HOUR = 3600.0
ALB = (
    "https {end}Z app/edge/50dc6c495c0c9188 {client} 10.0.0.1:8000 0.001 {took} 0.001 200 200 345 5021 "
    '"POST https://api.example.com:443/v1/chat/completions HTTP/1.1" "python-requests/2.32" ECDHE-RSA-AES128 '
    'TLSv1.3 arn:aws:x "Root=1-58337262-{k:024x}" "api.example.com" "-" 0 {start}Z "forward" "-" "-" "10.0.0.1:8000" '
    '"200" "-" "-"'
)


def summary(result: Result) -> dict[str, Any]:
    return result.frames["summary"].row(0, named=True)


def imported(path: Path, text: str) -> pl.DataFrame:
    """Spans of an access log, attributes as columns."""
    path.write_text(text)
    rows = pl.concat([batch.frames["spans"] for batch in load(path, ImportOptions(labels={})).batches])
    names = ("connection.id", "connection.requests", "tls.handshake_s", "network.protocol.version", "client.network")
    found = [pl.col("attributes").str.json_path_match(f"$['{name}']").alias(name) for name in names]
    return rows.with_columns(found)


@pytest.fixture(scope="module")
def dropped() -> Result:
    return run(traffic(7, (3 * HOUR, BEFORE), (HOUR, AFTER)), window_of(4 * HOUR))


def test_the_documents_fall_of_reuse_and_rise_of_tls_is_recovered(dropped: Result) -> None:
    buckets = dropped.frames["buckets"]
    change = START + timedelta(hours=3)
    before, after = buckets.filter(pl.col("ts") < change), buckets.filter(pl.col("ts") >= change)
    assert before["reuse"].median() == pytest.approx(14.2, rel=0.05)
    assert after["reuse"].median() == pytest.approx(2.1, rel=0.05)
    assert before["handshake_share"].median() == pytest.approx(0.11, abs=0.01)
    assert after["handshake_share"].median() == pytest.approx(0.47, abs=0.01)
    assert set(buckets["handshake_basis"]) == {"measured"}


def test_a_fall_is_a_finding_since_the_bucket_in_which_it_began(dropped: Result) -> None:
    (finding,) = dropped.findings
    assert finding.trigger == "ConnectionReuseDropped"
    assert finding.until is None
    assert abs(finding.since.replace(tzinfo=None) - (START + timedelta(hours=3))) <= timedelta(minutes=5)
    assert finding.evidence["usual"] == pytest.approx(14.2, rel=0.1)
    assert len(finding.evidence["trace_ids"]) == 5
    assert "handshakes take 47% of the time, 11% before" in finding.summary


def test_a_fall_that_ended_is_an_earlier_episode() -> None:
    result = run(traffic(8, (2 * HOUR, BEFORE), (1200, AFTER), (HOUR, BEFORE)), window_of(3 * HOUR + 1200))
    (finding,) = result.findings
    assert finding.until is not None
    assert result.samples["connection_reuse_kept_ratio"]["value"][0] > 0.5


@pytest.mark.parametrize("seed", range(8))
def test_steady_traffic_gives_no_finding(seed: int) -> None:
    result = run(traffic(seed, (4 * HOUR, BEFORE)), window_of(4 * HOUR))
    assert result.findings == ()
    assert summary(result)["reuse"] == pytest.approx(14.2, rel=0.08)


def test_the_new_normal_ends_a_finding_after_as_long_again() -> None:
    result = run(traffic(9, (HOUR, BEFORE), (3 * HOUR, AFTER)), window_of(4 * HOUR))
    assert all(finding.until is not None for finding in result.findings)


def test_few_connections_are_not_judged() -> None:
    rows = traffic(3, (3 * HOUR, BEFORE), (HOUR, AFTER)).filter(pl.col("connection.id").cast(pl.Int64) % 100 == 0)
    result = run(rows, window_of(4 * HOUR), bucket="5m")
    assert result.findings == ()
    assert result.samples["connection_reuse_kept_ratio"]["value"].to_list() == [None]


def test_handshakes_that_few_connections_state_are_estimated_and_said_so() -> None:
    result = run(traffic(4, (4 * HOUR, BEFORE), timed=0.1), window_of(4 * HOUR))
    row = summary(result)
    assert row["handshake_basis"] == "estimated"
    assert row["handshake_share"] == pytest.approx(0.11, abs=0.01)


def test_without_a_measured_handshake_there_is_no_share() -> None:
    result = run(traffic(4, (HOUR, BEFORE), timed=0.0), window_of(HOUR))
    assert summary(result)["handshake_share"] is None
    assert summary(result)["handshake_basis"] is None


def test_a_repeated_handshake_time_counts_once_per_connection() -> None:
    rows = traffic(5, (HOUR, BEFORE))
    once = rows.with_columns(
        pl.when(pl.int_range(pl.len()).over("connection.id") == 0).then("tls.handshake_s").alias("tls.handshake_s")
    )
    assert summary(run(rows, window_of(HOUR))) == summary(run(once, window_of(HOUR)))


def rows_of(**columns: Any) -> pl.DataFrame:
    seconds = columns.pop("s")
    n = len(seconds)
    base = {"service": ["edge"] * n, "kind": ["server"] * n, "name": ["GET /"] * n, "duration_s": [1.0] * n}
    ids = {"trace_id": [f"{i:032x}" for i in range(n)]}
    return pl.DataFrame(base | ids | columns).with_columns(times(seconds).alias("ts"))


def test_an_address_and_port_that_was_silent_is_another_connection_an_id_is_not() -> None:
    numbered = rows_of(s=[0, 10, 100], **{"connection.id": ["a1b2c3d4-1"] * 3})
    stated = rows_of(s=[0, 10, 100], **{"connection.id": ["77"] * 3})
    assert summary(run(numbered, window_of(120)))["connections"] == 2
    assert summary(run(numbered, window_of(120), idle=300))["connections"] == 1
    assert summary(run(stated, window_of(120)))["connections"] == 1
    assert summary(run(numbered, window_of(120)))["basis"] == "address"


def test_a_long_request_is_no_silence() -> None:
    rows = rows_of(s=[0, 100], duration_s=[95.0, 1.0], **{"connection.id": ["a1b2c3d4-1"] * 2})
    assert summary(run(rows, window_of(120)))["connections"] == 1


def test_a_counter_that_begins_anew_is_a_restarted_server() -> None:
    rows = rows_of(s=[0, 10, 20, 30], **{"connection.id": ["7"] * 4, "connection.requests": ["1", "2", "1", "2"]})
    assert summary(run(rows, window_of(60)))["connections"] == 2


def test_a_connection_older_than_the_window_was_not_opened_in_it() -> None:
    rows = rows_of(s=[0, 10], **{"connection.id": ["7"] * 2, "connection.requests": ["41", "42"]})
    row = summary(run(rows, window_of(60)))
    assert (row["connections"], row["opened"], row["reuse"]) == (1, 0, 2.0)


def test_the_same_id_on_two_hosts_is_two_connections() -> None:
    rows = rows_of(s=[0, 1], host=["a", "b"], **{"connection.id": ["7"] * 2})
    assert summary(run(rows, window_of(60)))["connections"] == 2


def test_a_peer_address_names_a_connection_on_the_servers_side_only() -> None:
    peers = {"network.peer.address": ["10.0.0.1"] * 4, "network.peer.port": ["443"] * 4}
    result = run(rows_of(s=[0, 1, 2, 3], kind=["server", "server", "client", "client"], **peers), window_of(60))
    assert result.frames["summary"].select("side", "connections").rows() == [("server", 1)]


def test_a_client_that_says_new_or_reused_needs_no_id() -> None:
    said = ["new", "reused", "reused", "new"]
    rows = rows_of(s=[0, 1, 2, 3], kind=["client"] * 4, **{"infractl.probe.connection": said})
    row = summary(run(rows, window_of(60)))
    assert (row["side"], row["connections"], row["reuse"], row["basis"]) == ("client", 2, 2.0, "stated")


def test_a_probes_child_spans_are_its_handshake_within_its_time() -> None:
    asked = rows_of(s=[0, 10], kind=["client"] * 2, **{"infractl.probe.connection": ["new", "new"]})
    below = rows_of(s=[0, 0.1, 10, 10.1], kind=["internal"] * 4, name=["connect", "tls.handshake"] * 2)
    below = below.with_columns(duration_s=pl.lit(0.1), trace_id=asked["trace_id"].gather([0, 0, 1, 1]))
    row = summary(run(pl.concat([asked, below], how="diagonal"), window_of(60)))
    assert row["handshake_share"] == pytest.approx(0.4 / 2.0)
    assert (row["handshakes"], row["handshake_mean_s"]) == (2, pytest.approx(0.2))


def test_a_share_of_the_traces_cannot_count_connections_but_what_requests_say_holds() -> None:
    n = [str(i % 10 + 1) for i in range(1000)]
    rows = rows_of(s=[i / 10 for i in range(1000)], **{"connection.id": ["7"] * 1000, "connection.requests": n})
    result = run(rows.with_columns(share_read=pl.lit(0.5)), window_of(100))
    row = summary(result)
    assert (row["requests"], row["connections"], row["reuse"]) == (2000, None, 10.0)
    assert "50.0% of the traces" in result.notes[1]


def test_spans_without_a_connection_say_so_and_keep_their_concurrency() -> None:
    result = run(rows_of(s=[0, 0.5]), window_of(10))
    row = summary(result)
    assert (row["unknown"], row["reuse"], row["concurrency_peak"]) == (2, None, 2)
    assert "nothing says on which connections" in " ".join(result.notes)


def test_no_rows_are_empty() -> None:
    assert run(rows_of(s=[]), window_of(10)).status is Status.EMPTY


def test_an_alb_log_is_read_into_connections(tmp_path: Path) -> None:
    lines = []
    for k in range(60):
        at = START + timedelta(seconds=k)
        client = f"203.0.113.{k % 3}:{5000 + k // 20}"
        end = at + timedelta(seconds=0.502)
        lines.append(ALB.format(start=at.isoformat(), end=end.isoformat(), client=client, took="0.500", k=k))
    ends = [f"{(START + timedelta(seconds=i)).isoformat()}.000Z 203.0.113.9 {6000 + i} 443" for i in range(5)]
    handshakes = [f"{end} TLSv1.3 TLS_AES 0.02 - - - Success TID_{i}" for i, end in enumerate(ends)]
    row = summary(run(imported(tmp_path / "alb.log", "\n".join(lines)), window_of(60)))
    assert (row["service"], row["requests"], row["connections"]) == ("edge", 60, 9)
    found = imported(tmp_path / "connections.log", "\n".join(handshakes))
    row = summary(run(found, window_of(60)))
    assert (row["requests"], row["connections"], row["handshakes"]) == (0, 5, 5)
    assert row["handshake_mean_s"] == pytest.approx(0.02)


def test_http_2_is_said_to_be_another_thing() -> None:
    rows = rows_of(s=[0, 1], **{"connection.id": ["7"] * 2, "network.protocol.version": ["2.0", "1.1"]})
    result = run(rows, window_of(10))
    assert summary(result)["multiplexed"] == 0.5
    assert any("HTTP/2" in note for note in result.notes)


def test_a_drivers_connect_to_its_database_is_neither_request_nor_handshake() -> None:
    rows = rows_of(s=[0, 1], kind=["client"] * 2, name=["GET /", "connect"], **{"http.conn.reused": ["true", None]})
    row = summary(run(rows, window_of(10)))
    assert (row["requests"], row["handshakes"]) == (1, 0)
