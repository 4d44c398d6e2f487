"""What an error code means, in words common to all clouds and engines."""

import re

ABORT, CUT = "CLIENT_ABORT", "STREAM_CUT"
"""Codes of requests that carry no error: given up by the client; a stream that ended without its end."""
NOT_FAILED = (ABORT,)
"""Codes that are no failure of the service."""

MEANINGS = (
    ("GRPC_(ABORTED|ALREADY_EXISTS)|HTTP_409", "conflict"),
    ("CLIENT_ABORT|GRPC_CANCELLED|HTTP_499|HTTP_460|Cancelled(Error)?|.*Abort(ed)?(Error)?", "given up by the client"),
    ("STREAM_CUT|.*(IncompleteRead|ServerDisconnected|RemoteProtocolError|ChunkedEncoding).*", "cut in the middle"),
    (
        "HTTP_502|HTTP_521|.*(ConnectionRe(fused|set)|ECONNRE(FUSED|SET)|Connect(ion|or)?Error|ENOTFOUND|NameResolution).*",
        "not reachable",
    ),
    ("HTTP_429|GRPC_RESOURCE_EXHAUSTED|.*(ResourceExhausted|RateLimit|Throttl|TooManyRequests).*", "rate limited"),
    ("HTTP_402|.*Quota.*", "out of quota"),
    ("HTTP_503|HTTP_529|GRPC_UNAVAILABLE|.*(Overloaded|Unavailable).*", "overloaded or unavailable"),
    ("HTTP_408|HTTP_504|HTTP_52[24]|GRPC_DEADLINE_EXCEEDED|.*(Timeout|DeadlineExceeded).*", "timed out"),
    (
        "HTTP_401|HTTP_403|GRPC_UNAUTHENTICATED|GRPC_PERMISSION_DENIED|.*(Auth|Permission|AccessDenied).*",
        "not allowed",
    ),
    (".*(content_?filter|ContentPolicy|SAFETY|ResponsibleAI).*", "stopped by a content filter"),
    ("HTTP_404|GRPC_NOT_FOUND|.*NotFound.*", "not found"),
    ("HTTP_413|.*(ContextLength|RequestTooLarge).*", "too long"),
    (
        r"HTTP_4\d\d|GRPC_(INVALID_ARGUMENT|FAILED_PRECONDITION|OUT_OF_RANGE|UNIMPLEMENTED)|.*(BadRequest|Validation|InvalidRequest).*",
        "bad request",
    ),
    (".*(OutOfMemory|OOM).*", "out of memory"),
    (
        r"HTTP_5\d\d|GRPC_INTERNAL|GRPC_UNKNOWN|GRPC_DATA_LOSS|ApiError|.*(InternalServer|EngineDead).*",
        "fault of the server",
    ),
)
_KNOWN = tuple((re.compile(pattern, re.IGNORECASE), meaning) for pattern, meaning in MEANINGS)


def meaning(code: str) -> str:
    """Return what a code means: 'rate limited' for HTTP_429 and rate_limit_error; 'unknown' for one not known."""
    spellings = (code, re.sub("[^A-Za-z0-9]", "", code))
    return next((words for name in spellings for pattern, words in _KNOWN if pattern.fullmatch(name)), "unknown")
