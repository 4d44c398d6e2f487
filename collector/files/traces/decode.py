"""Exports of trace tools, told from their content → rows of `spans`; and the load model that stands beside them."""

from collections.abc import Callable

from collector.files.content import Content, Format
from collector.files.intake import Intake
from collector.files.options import FileKind, ImportOptions
from collector.files.traces.jaeger import is_jaeger, read_jaeger
from collector.files.traces.langfuse import is_langfuse, read_langfuse
from collector.files.traces.printed import is_printed, read_printed
from collector.files.traces.servegen import is_servegen, read_servegen
from collector.files.traces.spans import Taken

_READERS: dict[FileKind, Callable[[Content, ImportOptions, str], Taken]] = {
    FileKind.JAEGER: read_jaeger,
    FileKind.LANGFUSE: read_langfuse,
    FileKind.SDK_SPANS: read_printed,
    FileKind.SERVEGEN: read_servegen,
}


def decode_traces(content: Content, kind: FileKind, options: ImportOptions, source: str) -> Taken:
    """Return the batch of a file, what was refused, and remarks.

    Raises SourceError, naming file and line, for a broken file, and UsageError where a time is missing.
    """
    return _READERS[kind](content, options, source)


def _told(content: Content) -> FileKind | None:
    if content.format is Format.JSON:
        if is_jaeger(content.head):
            return FileKind.JAEGER
        if is_langfuse(content.body):
            return FileKind.LANGFUSE
        if is_printed(content):
            return FileKind.SDK_SPANS
    return FileKind.SERVEGEN if is_servegen(content) else None


INTAKE = Intake(frozenset(_READERS), _told, decode_traces)
