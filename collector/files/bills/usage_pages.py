"""Pages of the usage and cost APIs of OpenAI and Anthropic → rows of `costs`, one a bucket, group and kind of token."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import polars as pl

from collector.files.bills.lines import digest, numbered, totals
from collector.files.bills.tags import LABELLED
from collector.files.content import Content
from collector.files.documents import line_of_break
from collector.files.intake import Decoded
from collector.files.options import ImportOptions
from collector.files.refusals import Refusal, counts
from store.batch import Batch
from store.errors import SourceError
from store.money import rounded, shifted
from store.tables import COSTS

Line = dict[str, Any]
_OPENAI = re.compile(r'"object"\s*:\s*"(organization\.(costs|usage\.\w+)\.result|bucket)"')
_ANTHROPIC = tuple(re.compile(rf'"{name}"\s*:') for name in ("starting_at", "ending_at", "results"))


def is_usage_pages(head: str) -> bool:
    """Tell whether a text is what those APIs answer."""
    return _OPENAI.search(head) is not None or all(pattern.search(head) for pattern in _ANTHROPIC)


def decode_usage_pages(content: Content, options: ImportOptions, source: str) -> Decoded:
    """Turn pages into rows of `costs`: costs as they are billed, usage as tokens without a cost ('unpriced').

    `requests` stands once per group, on its first line. Refused are buckets without a readable time and results whose
    amount is no number. Raises SourceError for text that is no JSON.
    """
    lines: list[Line] = []
    refused: dict[str, Refusal] = {}
    for number, bucket in enumerate(_buckets(content), 1):
        try:
            period = _period(bucket)
            lines += [period | line for result in bucket.get("results") or () for line in _lines(result)]
        except (KeyError, ValueError, TypeError, InvalidOperation, OverflowError, AttributeError):
            reason = "unreadable bucket"
            known = refused.get(reason, Refusal(0, f"{content.path} bucket {number}"))
            refused[reason] = Refusal(known.count + 1, known.first)
    if not lines:
        return Batch(source, {}, counts(refused)), refused, ("no bucket holds a result",)
    frame = _frame(lines, options)
    more = ("has_more: further pages of this report are not in the file",) if _has_more(content) else ()
    return Batch(source, {"costs": frame}, counts(refused)), refused, (*totals(frame), *more)


def _pages(content: Content) -> list[Mapping[str, Any]]:
    """Pages of a file: one, a list of them, or one a line."""
    text = content.text()
    try:
        document = json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError:
        try:
            document = [json.loads(line, parse_float=Decimal) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError as error:
            raise SourceError(
                f"{content.path}:{line_of_break(text)}: broken JSON ({error.msg})", "fetch the report again"
            ) from error
    pages = document if isinstance(document, list) else [document]
    return [page for page in pages if isinstance(page, Mapping)]


def _buckets(content: Content) -> Iterator[Mapping[str, Any]]:
    for page in _pages(content):
        buckets = page["data"] if isinstance(page.get("data"), list) else [page]
        yield from (bucket for bucket in buckets if isinstance(bucket, Mapping))


def _has_more(content: Content) -> bool:
    pages = _pages(content)
    return bool(pages) and pages[-1].get("has_more") is True


def _period(bucket: Mapping[str, Any]) -> Line:
    if "starting_at" in bucket:
        return {"ts": _rfc3339(bucket["starting_at"]), "end_ts": _rfc3339(bucket.get("ending_at"))}
    return {
        "ts": _epoch(bucket["start_time"]),
        "end_ts": _epoch(bucket["end_time"]),
    }


def _rfc3339(text: Any) -> datetime | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _epoch(seconds: Any) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC).replace(tzinfo=None)


def _lines(result: Mapping[str, Any]) -> Iterator[Line]:
    kind = str(result.get("object", ""))
    if kind == "organization.costs.result":
        yield _openai_cost(result)
    elif kind.startswith("organization.usage."):
        yield from _openai_usage(result, kind.split(".")[2])
    elif "amount" in result:
        yield _anthropic_cost(result)
    else:
        yield from _anthropic_usage(result)


def _openai_cost(result: Mapping[str, Any]) -> Line:
    amount = result["amount"]
    line_item = result.get("line_item")
    return {
        **_group(result, "OpenAI", "project_id", ("api_key_id",)),
        "source": "openai_costs",
        "category": "Usage",
        "description": line_item,
        "sku": line_item,
        "model": line_item.partition(",")[0] if line_item else None,
        "quantity": None if result.get("quantity") is None else float(result["quantity"]),
        "unit": result.get("quantity_unit"),
        **_cost(amount["value"]),
        "currency": str(amount["currency"]).upper() if amount.get("currency") else None,
    }


_OPENAI_UNITS = {
    "images": "images", "characters": "characters", "seconds": "seconds", "usage_bytes": "bytes",
    "num_sessions": "sessions",
}  # fmt: skip


def _openai_usage(result: Mapping[str, Any], endpoint: str) -> Iterator[Line]:
    """Split the prompt, which OpenAI counts with its cached part, into parts that add up to it."""
    group = {
        **_group(result, "OpenAI", "project_id", ("api_key_id", "user_id")),
        "source": "openai_usage",
        "category": "Usage",
        "cost_service": endpoint,
        "model": result.get("model"),
        "quality": "unpriced",
    }
    prompt, cached = result.get("input_tokens"), result.get("input_cached_tokens")
    written, fresh = result.get("input_cache_write_tokens"), result.get("input_uncached_tokens")
    if fresh is None and prompt is not None:
        fresh = prompt - (cached or 0) - (written or 0)
    if fresh is not None and fresh < 0:
        group["quality"], fresh = "unpriced,clamped", 0
    kinds = {"input": fresh, "cached_input": cached, "cache_write": written, "output": result.get("output_tokens")}
    yield from _counted(group, kinds, result.get("num_model_requests"))
    for name, unit in _OPENAI_UNITS.items():
        if result.get(name) is not None:
            yield group | {"quantity": float(result[name]), "unit": unit}


def _anthropic_cost(result: Mapping[str, Any]) -> Line:
    """Read a cost, which Anthropic states in cents."""
    kind = str(result.get("token_type") or "")
    return {
        **_group(result, "Anthropic", "workspace_id", ()),
        "source": "anthropic_costs",
        "category": "Usage",
        "cost_service": result.get("cost_type"),
        "description": result.get("description"),
        "sku": result.get("description"),
        "model": result.get("model"),
        **_cost(result["amount"], -2),
        "currency": str(result["currency"]).upper() if result.get("currency") else None,
        "tokens_kind": _ANTHROPIC_KINDS.get(kind.partition(".")[0]),
    }


_ANTHROPIC_KINDS = {
    "uncached_input_tokens": "input", "cache_read_input_tokens": "cached_input", "cache_creation": "cache_write",
    "output_tokens": "output",
}  # fmt: skip


def _anthropic_usage(result: Mapping[str, Any]) -> Iterator[Line]:
    group = {
        **_group(result, "Anthropic", "workspace_id", ("api_key_id",)),
        "source": "anthropic_usage",
        "category": "Usage",
        "model": result.get("model"),
        "quality": "unpriced",
    }
    created = result.get("cache_creation")
    written = sum(v for v in created.values() if v) if created else result.get("cache_creation_input_tokens")
    kinds = {
        "input": result.get("uncached_input_tokens"),
        "cached_input": result.get("cache_read_input_tokens"),
        "cache_write": written,
        "output": result.get("output_tokens"),
    }
    yield from _counted(group, kinds, None)
    searches = (result.get("server_tool_use") or {}).get("web_search_requests")
    if searches:
        yield group | {"cost_service": "web_search", "quantity": float(searches), "unit": "searches"}


def _counted(group: Line, kinds: Mapping[str, int | None], requests: int | None) -> Iterator[Line]:
    for kind, tokens in kinds.items():
        if tokens is not None:
            yield group | {"tokens_kind": kind, "quantity": float(tokens), "unit": "tokens", "requests": requests}
            requests = None


_TAKEN = frozenset({
    "object", "amount", "currency", "line_item", "quantity", "quantity_unit", "model", "description", "cost_type",
    "token_type", "num_model_requests", "project_id", "workspace_id", "results", "input_tokens", "output_tokens",
    "input_cached_tokens", "input_cache_write_tokens", "input_uncached_tokens", "uncached_input_tokens",
    "cache_read_input_tokens", "cache_creation", "cache_creation_input_tokens", "server_tool_use", *_OPENAI_UNITS,
})  # fmt: skip


def _group(result: Mapping[str, Any], provider: str, account: str, tenants: tuple[str, ...]) -> Line:
    """Return what the report groups by; what it says beyond goes to the tags."""
    rest = {key: value for key, value in result.items() if key not in _TAKEN and value is not None}
    return {
        "provider": provider,
        "sub_account": result.get(account),
        "tenant": next((result[name] for name in tenants if result.get(name)), None),
        "tags": json.dumps(rest, sort_keys=True, default=float) if rest else None,
        "group": json.dumps({k: v for k, v in rest.items() if not isinstance(v, int | Decimal) or isinstance(v, bool)}),
    }


def _cost(value: Any, places: int = 0) -> Line:
    """Return the cost of a line, times ten to the power of `places`, and the doubt where it lost digits."""
    exact = shifted(Decimal(str(value)), places)
    if not exact.is_finite():
        raise InvalidOperation
    kept = rounded(exact)
    if kept is None:
        raise OverflowError
    return {"billed_cost": kept} | ({} if kept == exact else {"quality": "rounded"})


_IDENTITY = (
    "source", "provider", "sub_account", "tenant", "cost_service", "model", "sku", "unit", "tokens_kind", "currency",
    "group",
)  # fmt: skip


def _frame(lines: list[Line], options: ImportOptions) -> pl.DataFrame:
    text: Callable[[Any], str | None] = lambda value: None if value is None else str(value)  # noqa: E731
    for line in lines:
        line["digest"] = digest(*(text(line.get(name)) for name in ("ts", "end_ts", *_IDENTITY)))
        line.pop("group")
        line |= {name: value for name, value in options.labels.items() if name in LABELLED and name != "currency"}
        if "billed_cost" in line and line.get("currency") is None:
            line["quality"] = ",".join(word for word in ("no_currency", line.get("quality")) if word)
    schema = {**COSTS.schema(), "digest": pl.String()}
    names = dict.fromkeys(name for line in lines for name in line)
    return COSTS.conform(numbered(_full(pl.DataFrame(lines, schema={name: schema[name] for name in names}))))


def _full(frame: pl.DataFrame) -> pl.DataFrame:
    schema = COSTS.schema()
    missing = [c for c in ("billed_cost", "effective_cost", "quantity") if c not in frame.columns]
    return frame.with_columns(pl.lit(None, schema[name]).alias(name) for name in missing)
