"""A file about KV-cache blocks → its batch; and how such a file is told from all others."""

from collections.abc import Callable

from collector.files.blocks import lmcache, mooncake
from collector.files.blocks.lmcache import is_lmcache, read_lmcache
from collector.files.blocks.mooncake import is_mooncake, read_mooncake
from collector.files.blocks.recording import is_recording, read_recording
from collector.files.blocks.request import Layout, Traced, frames_of
from collector.files.content import Content
from collector.files.intake import Decoded, Intake
from collector.files.options import FileKind, ImportOptions
from collector.files.refusals import Refusal, counts
from store.batch import Batch
from store.tables import KV_EVENTS

_TRACES: dict[FileKind, tuple[Callable[[Content, dict[str, Refusal]], list[Traced]], Layout]] = {
    FileKind.MOONCAKE_TRACE: (read_mooncake, mooncake.LAYOUT),
    FileKind.LMCACHE_AGENT_TRACE: (read_lmcache, lmcache.LAYOUT),
}
_TOLD: dict[FileKind, Callable[[Content], bool]] = {
    FileKind.MOONCAKE_TRACE: is_mooncake,
    FileKind.LMCACHE_AGENT_TRACE: is_lmcache,
    FileKind.KV_EVENTS: is_recording,
}


def decode_blocks(content: Content, kind: FileKind, options: ImportOptions, source: str) -> Decoded:
    """Return the batch of a file, what was refused, and remarks.

    Raises SourceError, naming file and line, where nothing of it can be read, and UsageError where the options do not
    fit.
    """
    refused: dict[str, Refusal] = {}
    if kind is FileKind.KV_EVENTS:
        events, remarks = read_recording(content, options, refused)
        frames = {KV_EVENTS.name: events}
    else:
        read, layout = _TRACES[kind]
        requests = read(content, refused)
        frames, reading = frames_of(requests, layout, options, content.stem) if requests else ({}, "no request")
        remarks = (f"ts: {reading}", f"blocks of {layout.block_size} {layout.block_unit}")
    return Batch(source, frames, counts(refused)), refused, remarks


def _told(content: Content) -> FileKind | None:
    return next((kind for kind, told in _TOLD.items() if told(content)), None)


INTAKE = Intake(frozenset(_TOLD), _told, decode_blocks)
