"""Access logs through import: times that are none, connections, trace context, and addresses that stay behind.

Lines that no capture holds are written here after the formats' documentation.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from collector.files import ImportOptions, load
from collector.files.load import Imported
from collector.files.options import FileKind
from collector.otlp.content import ContentOptions
from store.database import Database
from store.errors import SourceError, UsageError

COMBINED = (
    '203.0.113.7 - alice [10/Oct/2026:13:55:36 +0200] "{request}" {status} 2326 "https://a.example/?q=x" "curl/8.5"'
)
GET = COMBINED.format(request="GET /v1/models?key=secret HTTP/1.1", status=200)
ENVOY = (
    '[2026-10-10T11:55:36.123Z] "POST /v1/chat/completions HTTP/2" 200 - 154 1042 357 352 "198.51.100.9" "py/3" '
    '"cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "llm.example" "10.0.2.1:8000"'
)
ISTIO = (
    '[2026-10-10T11:55:36.123Z] "GET /health HTTP/1.1" 503 UF via_upstream - "connection refused" 0 95 '
    '12 - "-" "probe" "af01" "llm" "10.0.2.2:8000" outbound|8000||llm.ns.svc 10.1.1.1:40000 10.1.1.2:8000 '
    "10.1.1.9:51000 - default"
)


def take(folder: Path, *lines: str, **options: Any) -> Imported:
    path = folder / "access.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return load(path, ImportOptions(**options))


def rows(imported: Imported) -> list[dict[str, Any]]:
    [batch] = imported.batches
    return [{**row, **json.loads(row["attributes"])} for row in batch.frames["spans"].to_dicts()]


def one(folder: Path, line: str, **options: Any) -> dict[str, Any]:
    [row] = rows(take(folder, line, **options))
    return row


def alb(shared: Path) -> Imported:
    return load(shared / "data" / "alb_access_log" / "conversem_alb_edge_cases.log", ImportOptions())


def test_an_alb_log_gives_a_server_span_a_line_and_no_model_request(shared: Path) -> None:
    found = rows(alb(shared))
    assert [row["name"] for row in found] == [
        "GET /api/data", "GET /api/timeout", "malformed request", "GET /ipv6-test", "GET /relative/path",
    ]  # fmt: skip
    assert {row["kind"] for row in found} == {"server"}
    assert {row["operation"] for row in found} == {None}
    assert [row["error_code"] for row in found] == [None, "HTTP_502", "HTTP_400", None, None]
    assert {row["service"] for row in found} == {"my-alb"}
    assert found[0]["ts"] == datetime(2024, 1, 15, 12, 30, 45, 123456)


def test_minus_one_of_an_alb_log_is_no_latency(shared: Path) -> None:
    durations = [row["duration_s"] for row in rows(alb(shared))]
    assert durations == [pytest.approx(0.003), None, pytest.approx(0.002), pytest.approx(0.008), pytest.approx(0.003)]
    failed = rows(alb(shared))[1]
    assert not {"upstream.response_s", "load_balancer.request_s", "http.request.size"} & failed.keys()
    assert failed["status_message"] == "LambdaInvalidResponse"


def test_an_alb_log_states_target_times_bytes_and_tls(shared: Path) -> None:
    row = rows(alb(shared))[3]
    assert (row["upstream.response_s"], row["http.request.size"], row["http.response.size"]) == (0.004, 512, 2048)
    assert (row["tls.protocol.version"], row["server_address"]) == ("TLSv1.3", "10.0.0.4:80")
    assert row["client.network"] == "2001:db8::/48"


def test_the_connection_of_an_alb_line_is_its_trace_id_where_it_has_one(tmp_path: Path, shared: Path) -> None:
    first = (shared / "data" / "alb_access_log" / "conversem_alb_edge_cases.log").read_text().splitlines()[0]
    trace = '"Root=1-67891233-abcdef012345678912345678"'
    row = one(tmp_path, first.replace('"Root=1-abc123"', trace) + " TID_1234abcd5678ef90 - - -")
    assert row["connection.id"] == "TID_1234abcd5678ef90"
    assert row["trace_id"] == "67891233abcdef012345678912345678"
    assert "aws.trace_header" not in row


def test_lines_of_one_address_and_port_are_one_connection(tmp_path: Path, shared: Path) -> None:
    first, second = (shared / "data" / "alb_access_log" / "conversem_alb_edge_cases.log").read_text().splitlines()[:2]
    found = rows(take(tmp_path, first, second, first.replace("/api/data", "/api/other")))
    ids = [row["connection.id"] for row in found]
    assert ids[0] == ids[2] != ids[1]


def test_a_combined_line_keeps_neither_query_nor_person(tmp_path: Path) -> None:
    row = one(tmp_path, GET)
    assert (row["name"], row["ts"], row["duration_s"]) == ("GET /v1/models", datetime(2026, 10, 10, 11, 55, 36), None)
    assert (row["client.network"], row["http.response.body.size"]) == ("203.0.113.0/24", 2326)
    assert row["user_agent.original"] == "curl/8.5"
    kept = json.dumps(row, default=str)
    assert not [secret for secret in ("203.0.113.7", "alice", "secret", "a.example") if secret in kept]


def test_content_switched_on_keeps_address_user_query_and_referrer(tmp_path: Path) -> None:
    row = one(tmp_path, GET, content=ContentOptions(store_content=True))
    assert (row["client.address"], row["user.name"], row["url.query"]) == ("203.0.113.7", "alice", "key=secret")
    assert row["http.request.header.referer"] == "https://a.example/?q=x"


def test_ids_do_not_give_the_address_away(tmp_path: Path) -> None:
    other = GET.replace("203.0.113.7", "203.0.113.8")
    assert one(tmp_path, GET)["span_id"] == one(tmp_path, other)["span_id"]


def test_two_equal_lines_are_two_requests_and_a_second_import_stores_nothing(tmp_path: Path) -> None:
    imported = take(tmp_path, GET, GET)
    with Database(tmp_path / "store") as store:
        assert [store.append(imported.batches)[0].stored["spans"] for _ in range(2)] == [2, 0]


def test_a_line_of_nginx_is_written_at_the_end_of_its_request(tmp_path: Path) -> None:
    row = one(tmp_path, GET + ' rt=1.500 uct="0.001" uht="0.250, 0.500" urt="0.300 : 1.100" conn=77 creq=3')
    assert (row["ts"], row["duration_s"]) == (datetime(2026, 10, 10, 11, 55, 34, 500_000), 1.5)
    assert (row["upstream.connect_s"], row["upstream.header_s"]) == (0.001, 0.75)
    assert row["upstream.response_s"] == pytest.approx(1.4)
    assert (row["connection.id"], row["connection.requests"]) == ("77", 3)


def test_the_format_of_ingress_nginx_is_known(tmp_path: Path) -> None:
    row = one(
        tmp_path,
        GET + " 812 0.120 [ns-llm-8000] [] 10.0.0.1:8000, 10.0.0.2:8000 0, 2326 0.020, 0.098 502, 200 8f2a",
    )
    assert (row["duration_s"], row["server_address"], row["request_id"]) == (0.12, "10.0.0.2:8000", "8f2a")
    assert (row["upstream.status_code"], row["upstream.response_s"]) == ("502, 200", pytest.approx(0.118))
    assert row["upstream.name"] == "ns-llm-8000"


def test_a_forwarded_address_behind_a_combined_line_is_the_client(tmp_path: Path) -> None:
    imported = take(tmp_path, GET + ' "198.51.100.23, 10.0.0.1"')
    assert rows(imported)[0]["client.network"] == "198.51.100.0/24"
    assert imported.notes == ()


def test_more_than_the_combined_format_is_said(tmp_path: Path) -> None:
    assert "log_format" in take(tmp_path, GET + " 1234").notes[0]


def test_a_stated_format_of_nginx_is_read(tmp_path: Path) -> None:
    form = (
        '$remote_addr:$remote_port [$time_local] "$request" $status $request_time $upstream_response_time '
        "$connection $connection_requests $ssl_session_reused $ssl_protocol $http_traceparent"
    )
    line = (
        '203.0.113.7:50000 [10/Oct/2026:11:55:36 +0000] "GET /a HTTP/1.1" 200 0.5 0.1, 0.2 9 4 r TLSv1.3 '
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    )
    row = one(tmp_path, line, kind=FileKind.ACCESS_LOG, mapping={"log_format": form})
    assert (row["duration_s"], row["connection.id"], row["connection.requests"]) == (0.5, "9", 4)
    assert (row["tls.resumed"], row["tls.protocol.version"]) == (True, "TLSv1.3")
    assert row["upstream.response_s"] == pytest.approx(0.3)
    assert (row["trace_id"], row["parent_span_id"]) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


def test_a_stated_format_of_apache_is_read(tmp_path: Path) -> None:
    form = r"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D %k"
    row = one(tmp_path, GET + " 250000 2", mapping={"log_format": form})
    assert (row["ts"], row["duration_s"]) == (datetime(2026, 10, 10, 11, 55, 36), 0.25)
    assert row["connection.requests"] == 3


@pytest.mark.parametrize("form", ["", "$status", "$remote_addr$time_local $request", "%h %l", "$time_local"])
def test_a_format_without_time_or_request_is_refused(tmp_path: Path, form: str) -> None:
    with pytest.raises(UsageError, match="log_format"):
        take(tmp_path, GET, mapping={"log_format": form})


def test_another_map_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no column 'ts'"):
        take(tmp_path, GET, mapping={"ts": "time"})


def test_a_json_log_of_nginx_is_read_and_unknown_fields_stay(tmp_path: Path) -> None:
    line = json.dumps(
        {
            "time_iso8601": "2026-10-10T11:55:36+00:00", "remote_addr": "203.0.113.7", "request": "GET /a?b=c HTTP/1.1",
            "status": 429, "request_time": "0.250", "ssl_session_reused": ".", "connection": 5,
            "connection_requests": 1, "http_cookie": "a=1",
        }
    )  # fmt: skip
    imported = take(tmp_path, line)
    [row] = rows(imported)
    assert (row["name"], row["error_code"], row["duration_s"], row["tls.resumed"]) == (
        "GET /a",
        "HTTP_429",
        0.25,
        False,
    )
    assert "http_cookie" not in row
    assert "http_cookie" in imported.notes[0]


def test_the_default_format_of_envoy_is_read(tmp_path: Path) -> None:
    row = one(tmp_path, ENVOY)
    assert (row["name"], row["ts"]) == ("POST /v1/chat/completions", datetime(2026, 10, 10, 11, 55, 36, 123_000))
    assert (row["duration_s"], row["upstream.response_s"], row["http.response.body.size"]) == (0.357, 0.352, 1042)
    assert (row["server_address"], row["client.network"]) == ("10.0.2.1:8000", "198.51.100.0/24")


def test_the_format_of_istio_names_flags_and_connections(tmp_path: Path) -> None:
    row = one(tmp_path, ISTIO)
    assert (row["error_code"], row["envoy.response_flags"], row["upstream.name"]) == (
        "HTTP_503", "UF", "outbound|8000||llm.ns.svc",
    )  # fmt: skip
    assert row["connection.id"].endswith("-1")
    assert "upstream.response_s" not in row


def test_a_request_that_envoy_never_answered_is_an_error_by_its_flag(tmp_path: Path) -> None:
    document = {
        "start_time": "2026-10-10T11:55:36.123Z", "method": "POST", "path": "/v1/chat", "protocol": "HTTP/1.1",
        "response_code": 0, "response_flags": "DC", "duration": 5000, "downstream_remote_address": "10.1.1.9:51000",
        "connection_id": 42, "downstream_handshake_duration": 12,
    }  # fmt: skip
    row = one(tmp_path, json.dumps(document))
    assert (row["status"], row["error_code"], row["duration_s"]) == ("error", "DC", 5.0)
    assert (row["connection.id"], row["tls.handshake_s"]) == ("42", 0.012)


def test_a_bad_line_is_counted_and_loses_no_other(tmp_path: Path) -> None:
    imported = take(tmp_path, GET, "garbage", GET.replace("Oct", "Foo"), COMBINED.format(request="-", status=400))
    assert [row["name"] for row in rows(imported)] == ["GET /v1/models", "malformed request"]
    assert {why: refusal.count for why, refusal in imported.refused.items()} == {
        "no line of an access log": 1, "unreadable time": 1,
    }  # fmt: skip
    assert imported.refused["no line of an access log"].first.endswith("access.log:2")


def test_a_file_without_one_access_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no line of an access log"):
        take(tmp_path, "garbage", kind=FileKind.ACCESS_LOG)


def test_a_log_of_model_requests_is_none_of_access(tmp_path: Path) -> None:
    line = '{"time": "2026-10-10T11:55:36Z", "remote_addr": "1.2.3.4", "uri": "/v1", "status": 200, "ttft_ms": 30}'
    assert take(tmp_path, line).kind is FileKind.REQUESTS


def test_labels_set_service_host_and_attributes(tmp_path: Path) -> None:
    row = one(tmp_path, GET, labels={"service": "edge", "host": "n1", "team": "a"})
    assert (row["service"], row["host"], row["team"]) == ("edge", "n1", "a")


def test_a_connection_log_of_alb_gives_handshakes_without_the_person_of_the_certificate(tmp_path: Path) -> None:
    line = (
        "2026-10-04T17:05:15.514108Z 203.0.113.1 36280 443 TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256 0.036 "
        '"CN=alice,O=Example" NotBefore=2023-09-21T22:43:21Z;NotAfter=2026-06-17T22:43:21Z FEF257372D5C14D4 {} TID_31'
    )
    bare = "2026-10-04T17:05:16Z 203.0.113.1 36281 80 - - - - - - - TID_32"
    first, second, third = rows(take(tmp_path, line.format("Success"), line.format("Failed:ClientCertUntrusted"), bare))
    assert (first["name"], first["duration_s"], first["connection.id"]) == ("TLS handshake", 0.036, "TID_31")
    assert first["tls.handshake_s"] == 0.036
    assert first["ts"] == datetime(2026, 10, 4, 17, 5, 15, 478108)
    assert (second["status"], second["error_code"]) == ("error", "ClientCertUntrusted")
    assert (third["name"], third["duration_s"]) == ("connection", None)
    assert "alice" not in json.dumps([first, second], default=str)


def test_a_label_that_names_a_column_of_numbers_is_an_attribute(tmp_path: Path) -> None:
    row = one(tmp_path, GET, labels={"ttft_s": "fast"})
    assert json.loads(row["attributes"])["ttft_s"] == "fast"
