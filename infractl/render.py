"""A Result (or a table) as text: table, JSON, CSV, Markdown. Each renderer takes exactly one value."""

import csv
import io
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from analytics.codec import rows, to_json, whole
from analytics.result import Finding, Result, distinct
from infractl.fleet_text import FLEET, remarks, table
from store.money import money_text
from store.sizes import format_size
from store.window import Window, format_time
from store.zone import DEFAULT, local_text, local_time

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    import polars as pl

FORMATS = ("table", "json", "csv", "md", "html")
FRAME_FORMATS = ("table", "json", "csv", "md")
MAX_TABLE_ROWS = 20
EXAMPLES = 3
SHOWN_ITEMS = 6  # of a list in a table; the other formats have all
_CHART_FRAMES = ("windows", "residuals", "timeline")  # data for figures: whole in json and csv, left out of text


def render(result: Result, form: str, zone: "ZoneInfo" = DEFAULT) -> str:
    """Text of a Result in one of FORMATS; times in a zone, but in UTC in JSON and CSV, which programs read."""
    if form == "json":
        return to_json(result).decode() + "\n"
    if form == "csv":
        return _csv_blocks(result)
    if form == "html":
        return _html(result, zone)
    return _text(result, "pipe" if form == "md" else "simple", form == "md", zone)


def status_text(status: Mapping[str, Any], zone: "ZoneInfo" = DEFAULT) -> str:
    """Text of what `infractl status` found, its times in a zone."""
    import polars as pl

    status = _on_clock(status, zone)
    lock = status["lock"]
    owner = f"server {lock['server']} (process {lock['pid']})" if lock["server"] else "free (opened by this command)"
    lines = [f"data    {status['data']}  {status['size_bytes'] / 1e6:.1f} MB", f"lock    {owner}"]
    lines += _store_lines(status["store"])
    lines += [f"rows    {name}: {n}" for name, n in status["tables"].items() if n]
    lines += [f"time    {n}: {w['start']} – {w['end']}" for n, w in status["extent"].items() if w]
    lines += [f"zone    {zone.key}"] if zone.key != DEFAULT.key else []
    for title, columns in FLEET.items():
        if status.get(title):
            lines += ["", title, table(status[title], columns)]
    lines += ["", *remarks(status)] if remarks(status) else []
    lines += ["", *(f"{n['at']}  {n['what']}; {n['remedy']}" for n in status["notices"])] if status["notices"] else []
    for title in ("upkeep", "receivers", "sources", "drops"):
        if status.get(title):
            frame = pl.DataFrame(status[title], infer_schema_length=None)
            lines += ["", "rows refused" if title == "drops" else title, grid(frame, "simple")]
    lines += [] if status["sources"] else ["", "Nothing stored yet: infractl import FILE, or infractl serve."]
    return "\n".join(lines) + "\n"


def _store_lines(store: Mapping[str, Any]) -> list[str]:
    """Say what of the disk and the memory the store has."""
    sizes = {name: format_size(value) for name, value in store.items() if name.endswith("_bytes")}
    memory = f"{sizes['memory_limit_bytes']} for queries ({store['memory_basis']}), {store['threads']} threads"
    return [
        f"sealed  {store['sealed_files']} files, {sizes['sealed_bytes']} in {store['lake']}",
        f"disk    journal {sizes['journal_bytes']}, free {sizes['free_bytes']}",
        f"memory  {memory}, spills up to {sizes['spill_limit_bytes']} to {store['spill_directory']}",
    ]


def _on_clock(value: Any, zone: "ZoneInfo") -> Any:
    """Write all times within plain values in a zone."""
    if isinstance(value, Mapping):
        return {name: _on_clock(item, zone) for name, item in value.items()}
    if isinstance(value, list):
        return [_on_clock(item, zone) for item in value]
    return local_text(value, zone) if isinstance(value, str) else value


def render_frame(frame: "pl.DataFrame", form: str, zone: "ZoneInfo" = DEFAULT) -> str:
    """Text of one table in one of FRAME_FORMATS; JSON is a list of rows. JSON and CSV have their times in UTC."""
    if form == "json":
        import orjson

        return orjson.dumps(rows(frame), default=str).decode() + "\n"
    if form == "csv":
        return _csv(frame)
    return grid(frame, "pipe" if form == "md" else "simple", zone) + "\n"


def grid(frame: "pl.DataFrame", style: str, zone: "ZoneInfo" = DEFAULT) -> str:
    """Aligned columns; missing values stay empty, times are in a zone."""
    from tabulate import tabulate

    body = [[cell(value, zone) for value in row] for row in whole(frame).iter_rows()]
    if style == "pipe":
        body = [[text.replace("|", "\\|") for text in row] for row in body]
    return tabulate(body, headers=frame.columns, tablefmt=style, disable_numparse=True, colalign=_align(frame))


def cell(value: Any, zone: "ZoneInfo" = DEFAULT) -> str:
    """One value for a person: six significant digits (money: all), times in a zone, nothing for a missing value."""
    if isinstance(value, datetime):
        return local_time(value, zone)
    if isinstance(value, list) and len(value) > SHOWN_ITEMS:
        return f"[{', '.join(map(str, value[:SHOWN_ITEMS]))}, … {len(value)} in all]"
    if isinstance(value, float) and 1e6 <= abs(value) < 1e15:
        return f"{value:.0f}"
    return f"{value:.6g}" if isinstance(value, float) and value == value else exact(value)


def exact(value: Any) -> str:
    """One value with all its digits, as CSV has it; nothing for a missing value."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, Decimal):
        return money_text(value)
    return format_time(value) if isinstance(value, datetime) else str(value)


def sentence(finding: Finding, zone: "ZoneInfo" = DEFAULT) -> str:
    """One line for a finding: severity, when, what."""
    until = "now" if finding.until is None else local_time(finding.until, zone)
    since = local_time(finding.since, zone)
    return f"{finding.severity.upper():8} {since} – {until}  {local_text(finding.summary, zone)}"


def _spoken(window: Window, zone: "ZoneInfo") -> str:
    """Write a window on the clock of a zone, and name the zone where it is not UTC."""
    named = "" if zone.key == DEFAULT.key else f" (times in {zone.key})"
    return local_text(str(window), zone) + named


def _align(frame: "pl.DataFrame") -> tuple[str, ...] | None:
    return tuple("right" if dtype.is_numeric() else "left" for dtype in frame.dtypes) if frame.height else None


def _text(result: Result, style: str, markdown: bool, zone: "ZoneInfo") -> str:
    head = "## " if markdown else ""
    lines = [f"{head}{result.analysis}: {result.status}, {_spoken(result.window, zone)}", ""]
    for finding in distinct(result.findings):
        lines.append(("- " if markdown else "") + sentence(finding, zone))
        if traces := finding.evidence.get("trace_ids"):
            lines.append(("  " if markdown else " " * 9) + "traces " + ", ".join(traces[:EXAMPLES]))
    if not result.findings and result.status == "ok":
        lines.append("No findings.")
    for name, frame in result.frames.items():
        if name in _CHART_FRAMES or not frame.height:
            continue
        lines += ["", f"{head}{name}", *([""] if markdown else []), grid(frame.head(MAX_TABLE_ROWS), style, zone)]
        if frame.height > MAX_TABLE_ROWS:
            lines.append(f"… {frame.height - MAX_TABLE_ROWS} more rows (--format json or csv has all)")
    notes = [("- " if markdown else "note: ") + local_text(note, zone) for note in result.notes]
    lines += ["", *notes] if notes else []
    return "\n".join(lines) + "\n"


def _html(result: Result, zone: "ZoneInfo") -> str:
    """Build a self-contained page: findings, tables, notes."""
    from html import escape

    title = f"{result.analysis}: {result.status}, {_spoken(result.window, zone)}"
    items = [f"<li>{escape(sentence(finding, zone))}</li>" for finding in distinct(result.findings)] or [
        "<li>No findings.</li>"
    ]
    parts = [f"<h1>{escape(title)}</h1>", "<ul>", *items, "</ul>"]
    for name, frame in result.frames.items():
        if name not in _CHART_FRAMES and frame.height:
            parts += [f"<h2>{escape(name)}</h2>", grid(frame, "html", zone)]
    parts += [f"<p>{escape(local_text(note, zone))}</p>" for note in result.notes]
    head = f'<!doctype html><meta charset="utf-8"><title>{escape(title)}</title>'
    return head + "<style>body{font:14px sans-serif}td,th{padding:2px 8px}</style>" + "\n".join(parts) + "\n"


def _csv(frame: "pl.DataFrame") -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows([[exact(value) for value in row] for row in whole(frame).iter_rows()])
    return out.getvalue()


def _csv_blocks(result: Result) -> str:
    """Every frame as a block, `# name` before it, an empty line after it."""
    return "\n".join(f"# {name}\n{_csv(frame)}" for name, frame in result.frames.items())
