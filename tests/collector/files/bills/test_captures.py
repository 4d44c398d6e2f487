"""Real bills and recorded calls: the totals their publishers state."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from collector.files.load import load
from collector.files.options import FileKind, ImportOptions
from tests.collector.files.bills.bills import costs, spans

DATA = "data/cloud_bills"


def total(frame: pl.DataFrame, column: str = "billed_cost") -> float:
    return round(float(frame[column].sum()), 6)


def test_a_focus_bill_adds_up_by_provider_service_and_category(shared: Path) -> None:
    found = load(shared / "data/focus_1_0/focus_sample.csv", ImportOptions())
    lines = costs(found)
    by_provider = {name: total(part) for (name,), part in lines.group_by("provider")}
    ec2 = lines.filter(pl.col("cost_service") == "Amazon Elastic Compute Cloud")
    assert (found.kind, lines.height, lines["line_id"].n_unique()) == (FileKind.BILL, 1000, 1000)
    assert (total(lines), total(lines, "effective_cost")) == (20.520227, 14.976514)
    assert by_provider == {"AWS": 18.006639, "Microsoft": 1.976514, "Oracle": 0.537074}
    assert (total(ec2), ec2.height) == (16.041693, 554)
    assert round(total(lines.filter(pl.col("category") == "Credit")), 4) == -2.6137
    assert int((lines["billed_cost"] < 0).sum()) == 13
    assert set(lines["currency"]) == {"USD"}
    assert set(lines["source"]) == {"focus_1.0"}


def test_text_null_is_null_and_tags_speak(shared: Path) -> None:
    lines = costs(load(shared / "data/focus_1_0/focus_sample.csv", ImportOptions()))
    assert lines["zone"].null_count() > 0
    assert "NULL" not in set(lines["zone"]) | set(lines["resource"]) | set(lines["tags"].fill_null(""))
    assert "dev" in set(lines["environment"])


def test_an_aws_usage_report_adds_up(shared: Path) -> None:
    lines = costs(load(shared / f"{DATA}/aws_cur_anonymous_export.csv", ImportOptions()))
    services = {name: round(total(part), 4) for (name,), part in lines.group_by("cost_service")}
    assert (lines.height, lines["line_id"].n_unique(), total(lines)) == (1281, 1281, 1.682309)
    assert services["Amazon Simple Storage Service"] == 1.4406
    assert services["AWS Key Management Service"] == 0.2406
    assert lines.filter(pl.col("category") == "Tax").height == 12
    assert set(lines["provider"]) == {"AWS"}


@pytest.mark.parametrize(
    ("file", "rows", "billed", "currency"),
    [
        ("azure_ea_anonymous_export.csv", 27, 1.261369, "CAD"),
        ("finops-toolkit_EA_ActualCost_Small.csv", 11, 8.545008, "USD"),
    ],
)
def test_an_azure_export_adds_up(shared: Path, file: str, rows: int, billed: float, currency: str) -> None:
    lines = costs(load(shared / DATA / file, ImportOptions()))
    assert (lines.height, lines["line_id"].n_unique(), total(lines)) == (rows, rows, billed)
    assert set(lines["currency"]) == {currency}
    assert set((lines["end_ts"] - lines["ts"]).dt.total_hours()) == {24}


def test_azure_services_and_tags_are_read(shared: Path) -> None:
    lines = costs(load(shared / f"{DATA}/finops-toolkit_EA_ActualCost_Small.csv", ImportOptions()))
    machines = lines.filter(pl.col("cost_service") == "Virtual Machines")
    assert round(total(machines), 2) == 5.89
    assert {"prod"} <= set(lines["environment"])
    assert {"databricks"} <= set(lines["service"])
    factory = costs(load(shared / f"{DATA}/azure_ea_anonymous_export.csv", ImportOptions()))
    assert total(factory.filter(pl.col("cost_service").str.contains("Data Factory"))) == 0.479357


def test_a_costs_page_of_openai_is_a_bill(shared: Path) -> None:
    found = load(shared / "data/llm_api_usage/openai_costs.json", ImportOptions())
    line = costs(found).row(0, named=True)
    assert found.kind is FileKind.LLM_USAGE
    assert (line["billed_cost"], line["currency"], line["quality"]) == (Decimal("0.06"), "USD", None)
    assert (line["ts"], line["end_ts"]) == (datetime(2024, 11, 1), datetime(2024, 11, 2))


def test_a_usage_page_of_openai_counts_every_token_once_and_claims_no_cost(shared: Path) -> None:
    found = load(shared / "data/llm_api_usage/openai_usage_completions.json", ImportOptions())
    lines = costs(found)
    tokens = dict(zip(lines["tokens_kind"], lines["quantity"], strict=True))
    assert tokens == {"input": 500, "cached_input": 400, "cache_write": 100, "output": 500}
    assert lines["billed_cost"].null_count() == 4
    assert set(lines["quality"]) == {"unpriced"}
    assert lines["requests"].sum() == 5
    assert any("further pages" in note for note in found.notes)


def test_recorded_calls_are_spans_with_their_tokens(shared: Path) -> None:
    at = datetime(2025, 11, 30, tzinfo=UTC)
    found = load(shared / "data/llm_api_usage/openllmetry_recorded_calls.jsonl", ImportOptions(at=at))
    rows = spans(found)
    assert (found.kind, rows.height, rows["span_id"].n_unique()) == (FileKind.LLM_CALLS, 679, 679)
    assert rows["cache_write_tokens"].sum() == 20461
    headers = [json.loads(text) for text in rows["attributes"]]
    took_ms = pl.Series(
        [float(h["http.response.header.openai-processing-ms"]) for h in headers
         if "http.response.header.openai-processing-ms" in h]
    )  # fmt: skip
    quantiles = [took_ms.quantile(q, "linear") for q in (0.5, 0.9, 0.99)]
    assert took_ms.len() == 408
    assert quantiles == pytest.approx([296.5, 1659.1, 7845.69])
    assert sum(h.get("usage", {}).get("prompt_tokens", 0) for h in headers) == 28449
    assert set(rows["error_code"].drop_nulls()) == {"HTTP_400", "HTTP_401", "HTTP_404", "HTTP_409"}


def test_only_model_requests_are_counted_as_such(shared: Path) -> None:
    rows = spans(load(shared / "data/llm_api_usage/openllmetry_recorded_calls.jsonl", ImportOptions()))
    others = rows.filter(pl.col("operation").is_null())
    assert others["input_tokens"].null_count() == others.height
    assert "llamaindex" not in " ".join(rows.filter(pl.col("provider") == "x_ai")["server_address"])
    anthropic = rows.filter(pl.col("provider") == "anthropic")
    assert anthropic["cached_input_tokens"].sum() == 3493
    assert (anthropic["input_tokens"] >= anthropic["cached_input_tokens"]).all()


def test_calls_without_a_date_are_refused_by_line_unless_a_time_is_given(shared: Path) -> None:
    found = load(shared / "data/llm_api_usage/openllmetry_recorded_calls.jsonl", ImportOptions())
    (refusal,) = found.refused.values()
    assert (spans(found).height, refusal.count) == (668, 11)
    assert refusal.first.endswith(".jsonl:174")
