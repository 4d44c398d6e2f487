"""The bytes of a file, unpacked, and what they look like: OTLP, Prometheus text or a table."""

import codecs
import gzip
import re
import zlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from store.errors import SourceError

_HEAD = 8192  # bytes looked at to tell formats apart
_TOLD = 65_536  # bytes looked at to tell which tool wrote a file
_SUFFIXES = {".gz", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".txt", ".log", ".prom", ".pb", ".otlp"}
_OTLP_KEY = re.compile(r'"resource_?(spans|metrics|logs)"\s*:', re.IGNORECASE)
_PROMETHEUS = re.compile(
    r"^(# (HELP|TYPE|UNIT) \S|[a-zA-Z_:][\w:]*(\{.*\})?[ \t]+[-+]?(\d|\.\d|NaN|Inf)\S*([ \t]+-?\d+)?\s*$)"
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")  # ESC is text: nvidia-smi topo -m underlines its header


class Format(StrEnum):
    """How the bytes are written."""

    PARQUET = "Parquet"
    JSON = "JSON"
    CSV = "CSV"
    OTLP_JSON = "OTLP/JSON"
    OTLP_PROTOBUF = "OTLP protobuf"
    PROMETHEUS = "Prometheus text"


@dataclass(frozen=True, slots=True)
class Content:
    """Unpacked bytes of a file and their format."""

    path: Path
    body: bytes
    format: Format

    @property
    def stem(self) -> str:
        """File name without the endings that only say how it is written."""
        return stem_of(self.path)

    @property
    def head(self) -> str:
        """The beginning as text, for telling what it is; empty for Parquet."""
        return "" if self.format is Format.PARQUET else self.body[:_TOLD].decode("utf-8-sig", errors="replace")

    def text(self) -> str:
        """Return the content as text. Raises SourceError, with the line, for a byte that is no UTF-8."""
        try:
            return self.body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.body.count(b"\n", 0, error.start) + 1
            raise SourceError(
                f"{self.path}:{line}: byte {error.start} is no UTF-8", "convert the file to UTF-8"
            ) from None


def stem_of(path: Path) -> str:
    """File name without the endings that only say how it is written ('client.jsonl.gz' → 'client')."""
    name = path.name
    while (ending := Path(name).suffix.lower()) in _SUFFIXES:
        name = name[: -len(ending)]
    return name


def open_content(path: Path) -> Content:
    """Read a file, unpack gzip, and tell its format from what it holds (never from its name).

    Raises SourceError for a file that cannot be read, is cut short, is empty or has no known format.
    """
    try:
        body = path.read_bytes()
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}", "check the path and its permissions") from error
    if body.startswith(b"\x1f\x8b"):
        try:
            body = gzip.decompress(body)
        except (EOFError, OSError, zlib.error) as error:
            raise SourceError(
                f"{path}: the gzip stream is broken or cut short ({error})",
                "fetch the file again; nothing was imported",
            ) from error
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # what `>` writes in Windows PowerShell
        body = body.decode("utf-16", errors="replace").encode()
    if not body.strip():
        raise SourceError(f"{path} is empty", "nothing was imported")
    return Content(path, body, _format(path, body))


def _format(path: Path, body: bytes) -> Format:
    if body.startswith(b"PAR1"):
        return Format.PARQUET
    if body.startswith(b"\x28\xb5\x2f\xfd"):
        raise SourceError(f"{path} is packed with zstd", "unpack it first: zstd -d")
    head = body[:_HEAD].decode("utf-8-sig", errors="replace")
    if _CONTROL.search(head):
        if body[0] in b"\x0a\x00":  # field 1 of an export request, or the length before it
            return Format.OTLP_PROTOBUF
        raise SourceError(
            f"{path} is neither text, Parquet nor OTLP protobuf",
            "import takes CSV, JSON, JSONL, Parquet, OTLP or Prometheus text",
        )
    if head.lstrip()[:1] in ("{", "["):
        return Format.OTLP_JSON if _OTLP_KEY.search(head) else Format.JSON
    lines = [line for line in head.splitlines() if line.strip()]
    return Format.PROMETHEUS if _PROMETHEUS.match(lines[0]) else Format.CSV
