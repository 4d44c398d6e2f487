"""Why an attempt failed: one code, the same whatever library said it, and a sentence."""

import errno
import socket
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import httpcore

from collector.probe.timeline import TLS, Timeline

_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)
_HTTP_ERROR = 400


@dataclass(frozen=True, slots=True)
class Fault:
    """An error code as spans.error_code has it, and what happened. It never holds any of the answer."""

    code: str
    text: str
    remedy: str = ""


class FaultError(Exception):
    """An answer that is none."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.text)
        self.fault = fault


def http_fault(status: int) -> Fault | None:
    """Return the fault of an HTTP status; None below 400."""
    if status < _HTTP_ERROR:
        return None
    remedies = {
        401: "set OPENAI_API_KEY, --header or authorization",
        403: "set OPENAI_API_KEY, --header or authorization",
        404: "check the path and the model",
        429: "probe less often or ask for a higher limit",
    }
    return Fault(f"HTTP_{status}", f"answered HTTP {status}", remedies.get(status, "see the server's own log"))


def fault_of(error: BaseException, timeline: Timeline, timeout_s: float) -> Fault:
    """Name what an exception of the client means."""
    causes = list(_causes(error))
    for kind, fault in (*_late(timeline, timeout_s), *_named(causes, timeline), *_ended(timeline)):
        if any(isinstance(cause, kind) for cause in causes):
            return fault
    return Fault("CONNECTION_FAILED", f"the connection failed: {type(error).__name__}", "see the server's own log")


def _named(causes: Sequence[BaseException], timeline: Timeline) -> Iterator[tuple[type[BaseException], Fault]]:
    """Faults that the system names; the order matters, since some of these classes are among the others."""
    said = next((str(getattr(cause, "verify_message", "")) for cause in causes if isinstance(cause, ssl.SSLError)), "")
    why = f": {said}" if said else ""
    yield socket.gaierror, Fault("DNS", "the name cannot be looked up", "check the name and the resolver")
    yield ssl.SSLError, Fault("TLS", f"the TLS handshake failed{why}", "check the certificate; tls_config.ca_file")
    if timeline.failed_phase == TLS:
        yield Exception, Fault("TLS", "closed within the TLS handshake", "does that port speak TLS? try http://")
    yield ConnectionRefusedError, Fault("CONNECTION_REFUSED", "connection refused", "is the server running there?")
    numbers = {cause.errno for cause in causes if isinstance(cause, OSError)}
    if numbers.intersection(_UNREACHABLE):
        yield OSError, Fault("UNREACHABLE", "no route to the host", "check address and network")
    lost = Fault("CONNECTION_RESET", "the server dropped the connection", "see the server's own log")
    yield ConnectionResetError, lost
    yield BrokenPipeError, lost


def _late(timeline: Timeline, timeout_s: float) -> Iterator[tuple[type[BaseException], Fault]]:
    """Too late. First of all: what was interrupted shows as an error of its own, as ssl's wish to read more."""
    during = f" ({timeline.failed_phase})" if timeline.failed_phase else ""
    late = Fault("TIMEOUT", f"no complete answer within {timeout_s:g} s{during}", "raise timeout, or see the server")
    yield TimeoutError, late
    yield httpcore.TimeoutException, late


def _ended(timeline: Timeline) -> Iterator[tuple[type[BaseException], Fault]]:
    """Answers that end too early."""
    if timeline.head_ns is None:
        gone = Fault("NO_ANSWER", "closed without an answer that is HTTP", "does that port speak HTTP?")
        yield httpcore.RemoteProtocolError, gone
        yield httpcore.ReadError, gone
    cut = Fault("CUT_SHORT", "the answer is cut short", "see the server's own log")
    yield httpcore.RemoteProtocolError, cut
    yield httpcore.ReadError, cut


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those it came from, groups opened."""
    yield error
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    cause = error.__cause__ or error.__context__
    if cause is not None:
        yield from _causes(cause)
