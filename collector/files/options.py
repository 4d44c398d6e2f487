"""`ImportOptions`: how the columns of a file are to be read, as a value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from collector.files.units import unit
from collector.otlp.content import DEFAULT_CONTENT, ContentOptions
from store.errors import UsageError
from store.nearest import nearest


class FileKind(StrEnum):
    """What a file holds."""

    REQUESTS = "requests"
    SERIES = "series"
    OTLP = "otlp"
    PROMETHEUS = "prometheus"
    NVIDIA_SMI = "nvidia_smi"
    ROCM_SMI = "rocm_smi"
    INTEL_GPU_TOP = "intel_gpu_top"
    KERNEL_LOG = "kernel_log"
    FABRIC_MANAGER = "fabric_manager"
    INFINIBAND = "infiniband"
    ACCESS_LOG = "access_log"
    BENCHMARK = "benchmark"
    JAEGER = "jaeger"
    LANGFUSE = "langfuse"
    SDK_SPANS = "sdk_spans"
    SERVEGEN = "servegen"
    MOONCAKE_TRACE = "mooncake_trace"
    LMCACHE_AGENT_TRACE = "lmcache_agent_trace"
    KV_EVENTS = "kv_events"
    BILL = "bill"
    LLM_USAGE = "llm_usage"
    LLM_CALLS = "llm_calls"
    PRICES = "prices"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of one import; the same for all its files.

    `mapping` is field → column (or an expression over columns; empty: take no column for this field), `units` is
    field → unit. `start` is the wall-clock time of zero for a clock that counts from zero; `at` is the time of content
    that carries none. `time_zone` is the zone of times that name none. `content` says whether prompts are kept.
    """

    kind: FileKind | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    time_zone: str = "UTC"
    start: datetime | None = None
    at: datetime | None = None
    content: ContentOptions = DEFAULT_CONTENT

    def __post_init__(self) -> None:
        for name in self.units.values():
            unit(name)
        if not _is_zone(self.time_zone):
            raise UsageError(
                f"no time zone is called {self.time_zone!r}", "write it like UTC, Europe/Berlin or America/New_York"
            )
        for moment in (self.start, self.at):
            if moment is not None and moment.tzinfo is None:
                raise ValueError("ImportOptions takes aware times")

    @property
    def zone(self) -> ZoneInfo:
        """The zone of times that name none. Raises UsageError where Python has no data of it."""
        try:
            return ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise UsageError(
                f"the time zone {self.time_zone} is not installed", "install tzdata, or use UTC"
            ) from error


def _is_zone(name: str) -> bool:
    try:
        pl.Series([], dtype=pl.Datetime("us")).dt.replace_time_zone(name)
    except pl.exceptions.PolarsError:
        return False
    return bool(name)


def kind_named(text: str) -> FileKind:
    """Return the kind of that name. Raises UsageError for an unknown one."""
    try:
        return FileKind(text)
    except ValueError:
        raise UsageError(
            f"no file kind is called {text!r}", nearest(text, FileKind) or f"kinds: {', '.join(FileKind)}"
        ) from None


def parse_pairs(option: str, texts: Iterable[str], *, comma: bool = True) -> dict[str, str]:
    """Read 'FIELD=VALUE,FIELD=VALUE' texts of an option that may be given more than once.

    Without `comma` each text is one pair and its value may hold commas. Raises UsageError for a part without '=' or a
    field given twice.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        for part in text.split(",") if comma else [text]:
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not name:
                raise UsageError(f"{option} {part.strip()!r} is no pair", f"write it like {option} name=value")
            if pairs.get(name, value) != value:
                raise UsageError(f"{option} gives {name} twice: {pairs[name]!r} and {value!r}")
            pairs[name] = value
    return pairs
