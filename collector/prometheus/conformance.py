"""What a page breaks of its protocol, line by line: for a person who wants to know, since a scrape reads such pages."""

from collections.abc import Iterator, Sequence

from collector.prometheus.families import Families, Violation
from collector.prometheus.line import Line, number, read_line, read_metadata, read_type, time_ms
from collector.prometheus.measured import Measured
from collector.prometheus.openmetrics import grammar_fault
from collector.prometheus.plaintext import PlainText
from collector.prometheus.text import OPENMETRICS, TEXT, media_type


def violations(body: bytes, content_type: str = TEXT) -> list[Violation]:
    """Return the rules a page breaks, in the order of its lines: of OpenMetrics where that is its content type.

    Rules: prometheus.io/docs/specs/om/open_metrics_spec and prometheus.io/docs/instrumenting/exposition_formats.
    """
    lines = body.split(b"\n")
    return sorted(_openmetrics(lines) if media_type(content_type) == OPENMETRICS else _plain(lines))


def _openmetrics(lines: Sequence[bytes]) -> list[Violation]:
    faults: list[Violation] = []
    families, measured = Families(), Measured()
    for at, raw in enumerate(_before_end(lines, faults), 1):
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            faults.append(Violation(at, "it is no UTF-8"))
            continue
        if reason := grammar_fault(text):
            faults.append(Violation(at, reason))
        faults += _placed(at, text, families, measured)
    families.end()
    return faults + families.faults + [Violation(*fault) for fault in measured.end()]


def _before_end(lines: Sequence[bytes], faults: list[Violation]) -> Sequence[bytes]:
    """Return the lines before # EOF."""
    if b"# EOF" not in lines:
        faults.append(Violation(len(lines), "the page ends without # EOF"))
        return lines if lines[-1] else lines[:-1]
    end = lines.index(b"# EOF")
    if any(lines[end + 1 :]) or len(lines) > end + 2:
        faults.append(Violation(end + 2, "something stands after # EOF"))
    return lines[:end]


def _placed(at: int, text: str, families: Families, measured: Measured) -> Iterator[Violation]:
    """Follow a line that can be read, whether or not its form is right."""
    if comment := read_metadata(text):
        families.metadata(at, *comment)
    elif found := _sample(text, openmetrics=True):
        place = families.sample(at, found.name, found.labels, found.time is not None)
        for line, reason in measured.sample(place, found):
            yield Violation(line or at, reason)


def _plain(lines: Sequence[bytes]) -> list[Violation]:
    page = PlainText()
    if lines[-1]:
        page.faults.append(Violation(len(lines), "the last line does not end in a line feed"))
    for at, raw in enumerate(lines, 1):
        text = raw.decode("utf-8", "replace").strip()
        if text.startswith("#") and text[1:].split()[:1] == ["TYPE"] and read_type(text) is None:
            page.faults.append(Violation(at, "a TYPE without a name and a type that exists"))
        elif comment := read_metadata(text):
            page.metadata(at, *comment)
        elif found := _sample(text, openmetrics=False):
            page.sample(at, text, found)
        elif text and not text.startswith("#"):
            page.faults.append(Violation(at, "it cannot be read"))
    page.end()
    return page.faults


def _sample(text: str, openmetrics: bool) -> Line | None:
    """Read a sample whose numbers can be read too."""
    found = read_line(text)
    try:
        if found is not None:
            number(found.value.encode())
            if found.time is not None:
                time_ms(found.time.encode(), openmetrics)
    except ValueError:
        return None
    return found
