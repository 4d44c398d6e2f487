"""`read`, `sniff` and `load`: one file → its batches, whole or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from collector.files.content import Content, Format, open_content
from collector.files.dialects import MEASURED
from collector.files.intake import Intake
from collector.files.intakes import INTAKES
from collector.files.options import FileKind, ImportOptions
from collector.files.otlp import decode_otlp
from collector.files.prometheus import decode_prometheus
from collector.files.refusals import Refusal, counts
from collector.files.requests import decode_requests, plan_requests
from collector.files.rows import Rows, read_rows
from collector.files.series import decode_series
from store.batch import Batch
from store.errors import SourceError, UsageError

_OTLP = (Format.OTLP_JSON, Format.OTLP_PROTOBUF)
_TAKEN = {kind: intake for intake in INTAKES for kind in intake.kinds}
_STREAMS = frozenset({FileKind.OTLP, FileKind.PROMETHEUS, *_TAKEN})


@dataclass(frozen=True, slots=True)
class Imported:
    """One file, decoded: its batches, the rows refused by reason, and what a person should know of how it was read."""

    path: Path
    kind: FileKind
    batches: tuple[Batch, ...]
    refused: dict[str, Refusal]
    mapping: str = ""
    recognised: str = ""
    notes: tuple[str, ...] = ()


def read(path: Path, options: ImportOptions | None = None) -> list[Batch]:
    """Return the batches of a file, to be appended together. Raises as `load` does."""
    return list(load(path, options or ImportOptions()).batches)


def sniff(path: Path, options: ImportOptions | None = None) -> FileKind:
    """Tell what a file holds from its content. Raises SourceError for a broken file."""
    content = open_content(path)
    told = _told(content)
    return told or _kind(read_rows(content), options or ImportOptions())


def load(path: Path, options: ImportOptions) -> Imported:
    """Decode a whole file before anything is stored.

    Raises SourceError, with file and line, where the file is broken or no row of it can be used, and UsageError where
    the options do not fit it.
    """
    content = open_content(path)
    kind = options.kind or _told(content)
    if kind in _STREAMS:
        return _stream(content, kind, options)
    rows = read_rows(content)
    kind = kind or _kind(rows, options)
    decoded = (
        decode_requests(rows, options, content.stem) if kind is FileKind.REQUESTS else decode_series(rows, options)
    )
    batch = Batch(_source(path), decoded.frames, counts(decoded.refused))
    if not batch.rows:
        raise _unusable(path, decoded.refused)
    return Imported(
        path, kind, (batch,), dict(decoded.refused), str(decoded.plan), decoded.plan.recognised, decoded.notes
    )


def _unusable(path: Path, refused: Mapping[str, Refusal]) -> SourceError:
    reasons = "; ".join(f"{r.count} {reason} (first: {r.first})" for reason, r in refused.items())
    return SourceError(
        f"{path}: no row can be used: {reasons or 'all values are missing'}", "see --map, --unit and --as"
    )


def _told(content: Content) -> FileKind | None:
    """Tell the kind where the bytes alone say it; a table needs its columns read."""
    if content.format in _OTLP:
        return FileKind.OTLP
    if content.format is Format.PROMETHEUS:
        return FileKind.PROMETHEUS
    return next((kind for intake in INTAKES if (kind := intake.told(content)) is not None), None)


def _kind(rows: Rows, options: ImportOptions) -> FileKind:
    """Tell the kind; a table is a request log where it has (or --map names) a field that only requests have."""
    recognised = {source.field for source in plan_requests(rows, ImportOptions()).sources}
    return FileKind.REQUESTS if MEASURED & (recognised | options.mapping.keys()) else FileKind.SERIES


def _stream(content: Content, kind: FileKind, options: ImportOptions) -> Imported:
    """Decode OTLP, Prometheus text or what a tool printed, whose fields and units are their own."""
    maps = kind in _TAKEN and _TAKEN[kind].maps
    for option, given in (("--map", options.mapping and not maps), ("--unit", options.units)):
        if given:
            raise UsageError(
                f"{option} does not apply to {kind} files",
                "it names columns of requests and series; --as series reads any table as one",
            )
    if kind in _TAKEN:
        return _taken(_TAKEN[kind], content, kind, options)
    if kind is FileKind.PROMETHEUS:
        batch = decode_prometheus(content, options, _source(content.path))
    else:
        batch = decode_otlp(content, options, _source(content.path))
    refused = {reason: Refusal(count, str(content.path)) for reason, count in batch.drops.items()}
    return Imported(content.path, kind, (batch,), refused, notes=_nameless(batch))


def _taken(intake: Intake, content: Content, kind: FileKind, options: ImportOptions) -> Imported:
    """Decode a file that states its own fields."""
    batch, refused, notes = intake.decode(content, kind, options, _source(content.path))
    if not batch.rows:
        reasons = "; ".join((*(f"{r.count} {why} (first: {r.first})" for why, r in refused.items()), *notes))
        raise SourceError(f"{content.path}: nothing to import: {reasons or 'it holds no row'}", "see --as")
    return Imported(content.path, kind, (batch,), dict(refused), notes=notes)


def _nameless(batch: Batch) -> tuple[str, ...]:
    """Remark where spans do not say which service they are of."""
    spans = batch.frames.get("spans")
    count = spans["service"].null_count() if spans is not None else 0
    return (f"{count} spans name no service (resource service.name)",) if count else ()


def _source(path: Path) -> str:
    return f"import:{path.name}"
