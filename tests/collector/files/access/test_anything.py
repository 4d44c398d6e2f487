"""Whatever text reaches the reader of access logs, it answers with rows or with an error for a person."""

import contextlib
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.files.access.client import network_of, split_port
from collector.files.access.clock import microseconds
from collector.files.access.decode import INTAKE, decode_access_log
from collector.files.access.logformat import line_format
from collector.files.content import Content, Format
from collector.files.options import FileKind, ImportOptions
from store.errors import SourceError, UsageError
from tests.collector.files.access.test_access_logs import ENVOY, GET, ISTIO

ALB = (
    "https 2024-01-15T12:30:45.123456Z app/a/b 192.0.2.1:5 10.0.0.1:80 0.001 -1 0.000 200 200 2 1 "
    '"GET https://[a/b HTTP/1.1" "x" - - arn "Root=1-a" "-" "-" 0 2024-01-15T12:30:45Z "forward" "-" "-" "-" "-" "-"'
)
SEEDS = (
    ALB, ENVOY, ISTIO, GET, GET + ' rt=1 urt="-"', '{"response_code": 1e999, "path": [], "duration": {}}',
    '{"time": 1e300, "request": "GET //[ HTTP/1.1", "status": true, "remote_addr": ""}',
)  # fmt: skip
FORMS = (
    '$remote_addr [$time_local] "$request" $upstream_status',
    "%h %t %r %>s %D",
    "combined",
    "$time_local ${request}",
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Any text, or a line of a log with a piece cut out and another text put there."""
    if draw(st.booleans()):
        return draw(st.text())
    seed = draw(st.sampled_from(SEEDS))
    at = draw(st.integers(0, len(seed)))
    end = draw(st.integers(at, min(len(seed), at + 20)))
    return seed[:at] + draw(st.text(max_size=20) | st.sampled_from(SEEDS)) + seed[end:]


@settings(max_examples=300, deadline=None)
@given(text=texts(), form=st.none() | st.sampled_from(FORMS) | st.text(alphabet='$%{}[]" abtrms_', max_size=40))
def test_any_text_is_answered(text: str, form: str | None, tmp_path_factory: pytest.TempPathFactory) -> None:
    content = Content(tmp_path_factory.getbasetemp() / "f", text.encode(errors="replace"), Format.CSV)
    options = ImportOptions(at=datetime(2026, 11, 30, tzinfo=UTC), mapping={} if form is None else {"log_format": form})
    assert INTAKE.told(content) in (None, FileKind.ACCESS_LOG)
    with contextlib.suppress(SourceError, UsageError):
        decode_access_log(content, FileKind.ACCESS_LOG, options, "import:f")


@settings(deadline=None)
@given(st.text(max_size=40))
def test_times_addresses_and_formats_answer_any_text(text: str) -> None:
    found = microseconds(text, UTC)
    assert found is None or isinstance(found, int)
    address, _ = split_port(text)
    network_of(address)
    with contextlib.suppress(UsageError):
        line_format(text)


@given(st.ip_addresses(v=4).map(str))
def test_an_address_and_its_neighbours_share_a_network(address: str) -> None:
    head, _, last = address.rpartition(".")
    neighbour = f"{head}.{255 - int(last)}"
    assert network_of(address) == network_of(neighbour) != address
