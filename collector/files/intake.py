"""`Intake`: one family of files that state their own fields and units, with how it is told and how it is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collector.files.content import Content
from collector.files.options import FileKind, ImportOptions
from collector.files.refusals import Refusal
from store.batch import Batch

Decoded = tuple[Batch, Mapping[str, Refusal], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Intake:
    """`told` gives the kind of a file from its content, None where it is none of `kinds`.

    `decode(content, kind, options, source)` returns the batch of a file, what was refused, and remarks. It raises
    SourceError, naming file and line, where nothing of it can be read, and UsageError where the options do not fit.
    `maps` says that `decode` takes --map.
    """

    kinds: frozenset[FileKind]
    told: Callable[[Content], FileKind | None]
    decode: Callable[[Content, FileKind, ImportOptions, str], Decoded]
    maps: bool = False
