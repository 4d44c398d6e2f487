"""What the fields of access logs mean, as data: names of nginx, Apache, Envoy and AWS ALB → our names.

Names of attributes are those of OpenTelemetry where it has one; connections and upstreams have none there.
"""

from collections.abc import Mapping

from collector.files.access.entry import Term

_T = Term

NGINX: Mapping[str, Term] = {
    # $time_local is when the line was written, that is when the request ended
    "time_local": _T("end_us", "time"), "time_iso8601": _T("end_us", "time"), "msec": _T("end_us", "time"),
    "time": _T("end_us", "time"), "timestamp": _T("end_us", "time"), "@timestamp": _T("end_us", "time"),
    "request_time": _T("duration_s", "s"), "request": _T("request"), "request_method": _T("method"),
    "request_uri": _T("target"), "uri": _T("target"), "server_protocol": _T("protocol"),
    "status": _T("status", "status"),
    "remote_addr": _T("client"), "remote_port": _T("client_port"), "remote_user": _T("user"),
    "http_x_forwarded_for": _T("forwarded"), "proxy_add_x_forwarded_for": _T("forwarded"),
    "http_referer": _T("referrer"), "http_user_agent": _T("user_agent.original"), "scheme": _T("url.scheme"),
    "host": _T("server.address"), "http_host": _T("server.address"), "server_name": _T("server.address"),
    "body_bytes_sent": _T("http.response.body.size", "int"), "bytes_sent": _T("http.response.size", "int"),
    "request_length": _T("http.request.size", "int"),
    "upstream_addr": _T("upstream"), "upstream_status": _T("upstream.status_code"),
    "upstream_response_time": _T("upstream.response_s", "s"), "upstream_connect_time": _T("upstream.connect_s", "s"),
    "upstream_header_time": _T("upstream.header_s", "s"), "upstream_cache_status": _T("upstream.cache_status"),
    "upstream_response_length": _T("upstream.response.size"), "proxy_upstream_name": _T("upstream.name"),
    "connection": _T("connection"), "connection_requests": _T("connection.requests", "int"),
    "connection_time": _T("connection.age_s", "s"),
    "ssl_protocol": _T("tls.protocol.version"), "ssl_cipher": _T("tls.cipher"), "ssl_curve": _T("tls.curve"),
    "ssl_session_reused": _T("tls.resumed", "flag"), "ssl_server_name": _T("tls.server_name"),
    "request_id": _T("request_id"), "req_id": _T("request_id"), "http_x_request_id": _T("request_id"),
    "http_traceparent": _T("traceparent"), "traceparent": _T("traceparent"),
    "http_x_amzn_trace_id": _T("amazon_trace"), "service": _T("service"),
}  # fmt: skip
"""nginx variables, also as names of a JSON log."""

SHORT_NAMES: Mapping[str, str] = {
    "rt": "request_time", "uct": "upstream_connect_time", "uht": "upstream_header_time",
    "urt": "upstream_response_time",
    "us": "upstream_status", "ua": "upstream_addr", "cs": "upstream_cache_status", "rid": "request_id",
    "conn": "connection", "creq": "connection_requests",
}  # fmt: skip
"""What is widely written before a value at the end of a combined line ('rt=0.120 urt="0.118"')."""

APACHE: Mapping[str, Term] = {
    "%t": _T("start_us", "time"), "%h": _T("client"), "%a": _T("client"), "%{c}a": _T("client"),
    "%{remote}p": _T("client_port"), "%u": _T("user"), "%r": _T("request"), "%m": _T("method"), "%U": _T("target"),
    "%H": _T("protocol"), "%s": _T("status", "status"), "%b": _T("http.response.body.size", "int"),
    "%B": _T("http.response.body.size", "int"), "%O": _T("http.response.size", "int"),
    "%I": _T("http.request.size", "int"), "%D": _T("duration_s", "us"), "%T": _T("duration_s", "s"),
    "%{s}T": _T("duration_s", "s"), "%{ms}T": _T("duration_s", "ms"), "%{us}T": _T("duration_s", "us"),
    "%k": _T("connection.requests", "next"), "%v": _T("server.address"), "%V": _T("server.address"),
    "%{Host}i": _T("server.address"), "%{Referer}i": _T("referrer"), "%{User-Agent}i": _T("user_agent.original"),
    "%{X-Forwarded-For}i": _T("forwarded"), "%{traceparent}i": _T("traceparent"),
    "%{X-Amzn-Trace-Id}i": _T("amazon_trace"), "%{X-Request-Id}i": _T("request_id"), "%L": _T("request_id"),
    "%{SSL_PROTOCOL}x": _T("tls.protocol.version"), "%{SSL_CIPHER}x": _T("tls.cipher"),
    "%{SSL_SESSION_RESUMED}x": _T("tls.resumed", "flag"), "%{UNIQUE_ID}e": _T("request_id"),
}  # fmt: skip
"""Directives of Apache's LogFormat. `%t` is when the request was received."""

ENVOY: Mapping[str, Term] = {
    "start_time": _T("start_us", "time"), "method": _T("method"), "path": _T("target"), "protocol": _T("protocol"),
    "response_code": _T("status", "status"), "response_flags": _T("envoy.response_flags"),
    "response_code_details": _T("envoy.response_code_details"),
    "connection_termination_details": _T("envoy.connection_termination_details"),
    "upstream_transport_failure_reason": _T("envoy.upstream_transport_failure_reason"),
    "bytes_received": _T("http.request.body.size", "int"), "bytes_sent": _T("http.response.body.size", "int"),
    "duration": _T("duration_s", "ms"), "upstream_service_time": _T("upstream.response_s", "ms"),
    "x_envoy_upstream_service_time": _T("upstream.response_s", "ms"), "request_duration": _T("request.read_s", "ms"),
    "response_duration": _T("upstream.header_s", "ms"), "response_tx_duration": _T("response.write_s", "ms"),
    "x_forwarded_for": _T("forwarded"), "user_agent": _T("user_agent.original"), "request_id": _T("request_id"),
    "x_request_id": _T("request_id"), "authority": _T("server.address"), "upstream_host": _T("upstream"),
    "upstream_cluster": _T("upstream.name"), "route_name": _T("envoy.route_name"),
    "downstream_remote_address": _T("client"), "requested_server_name": _T("tls.server_name"),
    "downstream_tls_version": _T("tls.protocol.version"), "downstream_tls_cipher": _T("tls.cipher"),
    "downstream_handshake_duration": _T("tls.handshake_s", "ms"), "connection_id": _T("connection"),
    "upstream_connection_id": _T("upstream.connection_id"), "traceparent": _T("traceparent"),
    "x_amzn_trace_id": _T("amazon_trace"), "upstream_local_address": _T("upstream.local_address"),
}  # fmt: skip
"""Envoy's command operators as its own and Istio's JSON formats name them; durations are milliseconds."""

ALB: Mapping[str, Term] = {
    "type": _T("load_balancer.listener"), "time": _T("end_us", "time"), "elb": _T("load_balancer.name"),
    "client:port": _T("client"), "target:port": _T("upstream"),
    "request_processing_time": _T("load_balancer.request_s", "s"),
    "target_processing_time": _T("upstream.response_s", "s"),
    "response_processing_time": _T("load_balancer.response_s", "s"), "elb_status_code": _T("status", "status"),
    "target_status_code": _T("upstream.status_code"), "received_bytes": _T("http.request.size", "int"),
    "sent_bytes": _T("http.response.size", "int"), "request": _T("request"),
    "user_agent": _T("user_agent.original"), "ssl_cipher": _T("tls.cipher"), "ssl_protocol": _T("tls.protocol.version"),
    "target_group_arn": _T("load_balancer.target_group"), "trace_id": _T("amazon_trace"),
    "domain_name": _T("tls.server_name"), "chosen_cert_arn": _T("load_balancer.certificate"),
    "matched_rule_priority": _T("load_balancer.rule"), "request_creation_time": _T("start_us", "time"),
    "actions_executed": _T("load_balancer.actions"), "redirect_url": _T("load_balancer.redirect"),
    "error_reason": _T("failure"), "target:port_list": _T("upstream.list"),
    "target_status_code_list": _T("upstream.status_code_list"), "classification": _T("load_balancer.classification"),
    "classification_reason": _T("load_balancer.classification_reason"), "conn_trace_id": _T("connection"),
    "transformed_host": _T("load_balancer.transformed_host"), "transformed_uri": _T("load_balancer.transformed_uri"),
    "request_transform_status": _T("load_balancer.transform_status"),
}  # fmt: skip
"""Fields of an AWS ALB access log in the order of a line; `time` is when the answer was made."""

ALB_CONNECTION: Mapping[str, Term] = {
    "timestamp": _T("end_us", "time"), "client_ip": _T("client"), "client_port": _T("client_port"),
    "listener_port": _T("listener", "int"), "tls_protocol": _T("tls.protocol.version"),
    "tls_cipher": _T("tls.cipher"), "tls_handshake_latency": _T("duration_s", "s"),
    "leaf_client_cert_subject": _T("user"), "leaf_client_cert_validity": _T("tls.client.validity"),
    "leaf_client_cert_serial_number": _T("user"), "tls_verify_status": _T("handshake"),
    "conn_trace_id": _T("connection"),
}  # fmt: skip
"""Fields of an AWS ALB connection log in the order of a line: a handshake each. A certificate names a person."""
