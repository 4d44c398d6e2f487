"""A file of a tool of accelerators, kernel or fabric → its batch; and how such a file is told from all others."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b

import orjson
import polars as pl

from collector.files.content import Content
from collector.files.devices.fabric_manager import is_fabric_log, read_fabric_log
from collector.files.devices.infiniband import is_capture, read_infiniband
from collector.files.devices.intel import is_intel_top, read_intel_top
from collector.files.devices.kernel_log import is_kernel_log, read_kernel_log
from collector.files.devices.parts import part_of
from collector.files.devices.reading import Event, Reading, When
from collector.files.devices.session import is_session, read_smi
from collector.files.intake import Intake
from collector.files.options import FileKind, ImportOptions
from collector.files.refusals import Refusal
from collector.prometheus.exposition import Exposition, Sample, Series
from collector.prometheus.series import to_batch
from store.batch import Batch
from store.errors import SourceError, UsageError
from store.tables import EVENTS

_ROCM = re.compile(r'"card\d+"\s*:\s*\{')
_HEAD = 65_536  # characters looked at


def read_rocm(text: str, when: When, line: int = 1) -> Reading:
    """Return the samples of `rocm-smi -a --json`."""
    from collector.gpu.rocm import rocm_samples

    try:
        samples = rocm_samples(text)
    except SourceError as error:
        raise SourceError(f"{line}: {error}", error.hint) from error
    return Reading([s if s.ts_ms is not None else s._replace(ts_ms=when.at_ms) for s in samples])


_READERS: dict[FileKind, Callable[[str, When], Reading]] = {
    FileKind.NVIDIA_SMI: read_smi,
    FileKind.ROCM_SMI: read_rocm,
    FileKind.INTEL_GPU_TOP: read_intel_top,
    FileKind.KERNEL_LOG: read_kernel_log,
    FileKind.FABRIC_MANAGER: read_fabric_log,
    FileKind.INFINIBAND: read_infiniband,
}


def device_kind(text: str) -> FileKind | None:
    """Tell which tool printed a text; None where none of them did."""
    head = text[:_HEAD]
    if _ROCM.search(head[:4000]):
        return FileKind.ROCM_SMI
    if is_intel_top(head):
        return FileKind.INTEL_GPU_TOP
    if is_capture(head):
        return FileKind.INFINIBAND
    if is_fabric_log(head):
        return FileKind.FABRIC_MANAGER
    if is_kernel_log(head):
        return FileKind.KERNEL_LOG
    return FileKind.NVIDIA_SMI if part_of(head) or is_session(head) else None


def decode_devices(
    content: Content, kind: FileKind, options: ImportOptions, source: str
) -> tuple[Batch, dict[str, Refusal], tuple[str, ...]]:
    """Return the batch of a file, what was refused, and remarks.

    Raises SourceError, naming file and line, where nothing of it can be read, and UsageError where it states no time
    and --time does not.
    """
    try:
        reading = _READERS[kind](content.text(), _when(options))
    except SourceError as error:
        raise _in_file(content, error) from error
    except UsageError as error:
        raise UsageError(f"{content.path}: {error}", error.hint) from error
    refused = {why: Refusal(n, f"{content.path}:{line}") for why, (n, line) in reading.refused.items()}
    batch = _metrics(content, reading.samples, options, source)
    frames = dict(batch.frames)
    if reading.events:
        frames[EVENTS.name] = events_frame(reading.events, options.labels, source)
    drops = {**batch.drops, **{why: refusal.count for why, refusal in refused.items()}}
    late = {why: Refusal(n, str(content.path)) for why, n in batch.drops.items()}
    return replace(batch, frames=frames, drops=drops), {**refused, **late}, tuple(dict.fromkeys(reading.notes))


def _in_file(content: Content, error: SourceError) -> SourceError:
    text = str(error)
    return error if text.startswith(str(content.path)) else SourceError(f"{content.path}:{text}", error.hint)


def _when(options: ImportOptions) -> When:
    at, start = (None if moment is None else _ms(moment) for moment in (options.at, options.start))
    return When(options.zone, at, start)


def _ms(moment: datetime) -> int:
    return round(moment.astimezone(UTC).timestamp() * 1000)


def _metrics(content: Content, samples: Sequence[Sample], options: ImportOptions, source: str) -> Batch:
    if not samples:
        return Batch(source, {})
    undated = sum(sample.ts_ms is None for sample in samples)
    if undated:
        raise UsageError(
            f"{content.path}: {undated} of {len(samples)} values state no time",
            "say when the tool ran: --time 2026-11-30T12:00:00Z",
        )
    page = page_of(samples, options.labels)
    latest = max(sample.ts_ms or 0 for sample in samples)
    return to_batch(source, page, datetime.fromtimestamp(latest / 1000, UTC))


def page_of(samples: Sequence[Sample], labels: Mapping[str, str]) -> Exposition:
    """Return samples as a page; `labels` are added and win, for the person at the terminal knows the host."""
    series: dict[tuple[str, frozenset[tuple[str, str]]], Series] = {}
    found = []
    for sample in samples:
        merged = {**sample.labels, **labels}
        kind = "counter" if sample.name.endswith("_total") else "gauge"
        identity = (sample.name, frozenset(merged.items()))
        found.append(series.setdefault(identity, Series(sample.name, merged, kind)))
    return Exposition(found, [sample.value for sample in samples], [sample.ts_ms for sample in samples])


def events_frame(events: Sequence[Event], labels: Mapping[str, str], source: str) -> pl.DataFrame:
    """Return rows of `events`. Equal events of one moment are told apart by their order, so that each is kept."""
    seen: dict[tuple[str, ...], int] = {}
    rows = []
    for event in events:
        host = labels.get("host", event.host)
        said = (str(event.ts_us), event.kind, host or "", event.entity or "", event.code or "", event.message)
        seen[said] = seen.get(said, 0) + 1
        rows.append(
            {
                "event_id": _hash(*said, str(seen[said])),
                "ts": event.ts_us,
                "kind": event.kind,
                "severity": event.severity,
                "host": host,
                "service": labels.get("service"),
                "entity": event.entity,
                "code": event.code,
                "message": event.message,
                "labels": orjson.dumps({**event.labels, **labels}, option=orjson.OPT_SORT_KEYS).decode(),
                "source": source,
            }
        )
    schema = {**EVENTS.schema(), "ts": pl.Int64()}
    return EVENTS.conform(pl.DataFrame(rows, schema=schema).with_columns(pl.col("ts").cast(pl.Datetime("us"))))


def _hash(*parts: str) -> str:
    return blake2b(b"\xff".join(part.encode(errors="surrogatepass") for part in parts), digest_size=16).hexdigest()


def _told(content: Content) -> FileKind | None:
    return device_kind(content.head)


INTAKE = Intake(frozenset(_READERS), _told, decode_devices)
