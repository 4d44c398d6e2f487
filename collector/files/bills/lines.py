"""Bill → rows of `costs`: one row a line, its identity, its tags, nothing mixed and nothing converted."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from decimal import Decimal
from hashlib import blake2b

import polars as pl

from collector.files.attributes import json_objects, other_columns
from collector.files.bills.columns import Columns, plain
from collector.files.bills.form import Form
from collector.files.bills.repeated import place_repeated_hours
from collector.files.bills.tags import LABELLED, as_json, meanings, read_tags, tag_columns
from collector.files.intake import Decoded
from collector.files.options import ImportOptions
from collector.files.refusals import counts, split
from collector.files.rows import Rows
from store.batch import Batch
from store.columns import Kind
from store.errors import UsageError
from store.money import amount_text
from store.tables import COSTS

_MONEY = tuple(column.name for column in COSTS.columns if column.kind is Kind.MONEY)
_ROUNDED = "rounded"
_WORDS = ("correction", "category")
_TIMES = {column.name for column in COSTS.columns if column.kind is Kind.TIME}
_JSON_TAGS = "tags"


def decode_lines(rows: Rows, form: Form, options: ImportOptions, source: str) -> Decoded:
    """Turn the lines of a bill into rows of `costs`.

    Refused are lines without a readable charge period and those with text where an amount should be. Negative lines,
    credits and taxes stay. An amount of more than 18 decimals is rounded, half to even, which quality says. Raises
    UsageError where no column holds a time and `options.at` does not state one.
    """
    columns = Columns(rows)
    frame, reasons = _fields(columns, form, options)
    frame = place_repeated_hours(columns, form, frame, options.time_zone)
    if form.derive:
        frame = frame.with_columns(**form.derive(columns, frame))
    if form.provider:
        frame = frame.with_columns(provider=pl.lit(form.provider))
    kept, refused = split(rows, reasons)
    tags = read_tags(columns, form)
    frame = _labelled(_completed(frame, meanings(tags)), options.labels)
    texts = columns.rows.frame.with_columns(as_json(tags))
    frame = frame.with_columns(
        _others(columns, form, options, Rows(rows.path, texts, rows.json | {_JSON_TAGS}, rows.lines)),
        pl.lit(form.source(columns)).alias("source"),
        digest=_digests(columns, form, frame),
    )
    lines = COSTS.conform(numbered(frame.filter(kept)))
    return Batch(source, {"costs": lines}, counts(refused)), refused, totals(lines)


def totals(lines: pl.DataFrame) -> tuple[str, ...]:
    """Say what the lines add up to, by currency: the figure to hold against the invoice."""
    texts = []
    for (currency,), part in lines.group_by("currency", maintain_order=True):
        billed = part["billed_cost"].drop_nulls()
        amount = f"{amount_text(sum(billed, Decimal(0)), currency)}" if len(billed) else "no cost stated"
        texts.append(f"billed: {amount} in {part.height} lines, {int((billed < 0).sum())} of them negative")
    return tuple(texts)


def numbered(frame: pl.DataFrame) -> pl.DataFrame:
    """Give every line its id: the digest of what makes it one line, and a number where a file has it more than once.

    The numbers follow the amounts, not the order of the file, so that an export in another order gives the same ids.
    """
    place = pl.int_range(pl.len()).alias("place")
    ordered = frame.with_columns(place).sort("digest", "billed_cost", "effective_cost", "quantity", maintain_order=True)
    count = pl.int_range(pl.len()).over("digest")
    line_id = pl.when(count == 0).then("digest").otherwise(pl.concat_str("digest", count, separator="-"))
    return ordered.with_columns(line_id=line_id).sort("place").drop("digest", "place")


def digest(*parts: str | None) -> str:
    """Hash of the texts that make a line one line; null differs from empty text."""
    joined = "\x1f".join("\x00" if part is None else part for part in parts)
    return blake2b(joined.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _fields(columns: Columns, form: Form, options: ImportOptions) -> tuple[pl.DataFrame, list[tuple[str, pl.Series]]]:
    """Values by column of `costs`, and the reasons to refuse a line."""
    values: dict[str, pl.Series] = {}
    reasons: list[tuple[str, pl.Series]] = []
    lost = pl.Series(_ROUNDED, [False]).new_from_index(0, columns.height)
    for field, names in form.fields.items():
        if field in _TIMES:
            values[field] = columns.instant(names, options)
        elif field in _MONEY:
            amounts = columns.money(names)
            values[field] = amounts.value
            lost |= amounts.rounded
            reasons.append((f"{field} is not a number", amounts.bad))
        elif field == "quantity":
            values[field], bad = columns.number(names)
            reasons.append((f"{field} is not a number", bad))
        else:
            values[field] = columns.text(names)
    if not columns.real(form.fields["ts"]):
        values["ts"] = _stated(columns, options)
    if form.days:
        values["end_ts"] = columns.instant(form.fields["ts"], options, plus_days=1)
    words = values.get("category", columns.text([])).str.to_lowercase()
    if form.categories:
        values["category"] = words.replace_strict(form.categories, default="Adjustment", return_dtype=pl.String)
        values["category"] = values["category"].set(words.is_null(), None)
    if "correction" in values:
        values["correction"] = values["correction"].str.to_lowercase().is_in(list(form.corrections)).fill_null(False)
    values[_ROUNDED] = lost
    frame = pl.DataFrame({name: series.alias(name) for name, series in values.items()})
    return frame, [("no readable charge period", frame["ts"].is_null()), *reasons]


def _stated(columns: Columns, options: ImportOptions) -> pl.Series:
    if options.at is None:
        raise UsageError(
            f"{columns.rows.path}: no column is known as the time of a charge",
            "call it time, start, date or day, or give one time for the whole file with --time",
        )
    at = options.at.astimezone(UTC).replace(tzinfo=None)
    return pl.repeat(at, columns.height, dtype=pl.Datetime("us"), eager=True)


def _completed(frame: pl.DataFrame, said: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Add the columns no field feeds, what the tags say, the currency in capitals, and doubts."""
    missing = [pl.lit(None, c.kind.polars()).alias(c.name) for c in COSTS.columns if c.name not in frame.columns]
    frame = frame.with_columns(missing).with_columns(
        pl.coalesce(said[name], pl.col(name)).alias(name) for name in said
    )  # fmt: skip
    return frame.with_columns(pl.col("currency").str.to_uppercase())


def _labelled(frame: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
    """Set what --label says; a currency only where the line states none."""
    given = {name: text for name, text in labels.items() if name in LABELLED}
    currency = given.pop("currency", None)
    frame = frame.with_columns(pl.lit(text).alias(name) for name, text in given.items())
    frame = frame.with_columns(pl.col("currency").fill_null(pl.lit(currency, pl.String)))
    doubts = [
        pl.when(pl.col("currency").is_null()).then(pl.lit("no_currency")),
        pl.when(pl.col("billed_cost").is_null()).then(pl.lit("no_cost")),
        pl.when(_ROUNDED).then(pl.lit(_ROUNDED)),
    ]
    words = pl.concat_str(doubts, separator=",", ignore_nulls=True)
    return frame.with_columns(quality=pl.when(words != "").then(words)).drop(_ROUNDED)


def _others(columns: Columns, form: Form, options: ImportOptions, rows: Rows) -> pl.Series:
    """Return what no column takes as a JSON object, tags as an object within it, conversation text left out."""
    used = {name for names in form.fields.values() for name in columns.real(names)[:1]}
    used |= {*tag_columns(columns, form), *columns.real(form.tags), _JSON_TAGS}
    free, _ = other_columns(rows, frozenset(used), options.content)
    if not options.content.store_content:
        free = [name for name in free if not plain(name).startswith(form.written)]
    labels = {name: text for name, text in options.labels.items() if name not in LABELLED}
    return json_objects(rows, [*free, _JSON_TAGS], labels, options.content)[0].alias("tags")


def _digests(columns: Columns, form: Form, frame: pl.DataFrame) -> pl.Series:
    texts: Sequence[pl.Series] = [columns.text([name]) for name in form.identity]
    times = [frame[name].cast(pl.Int64).cast(pl.String) for name in ("ts", "end_ts")]
    source = form.source(columns).partition(".")[0]
    return pl.Series("digest", [digest(source, *parts) for parts in zip(*times, *texts, strict=True)], pl.String)
