"""Several answers at once: findings first, silence in a line, and one failure that stops nothing."""

import pytest

from analytics.result import Result, Status
from infractl.report import Failed, ask_all, html_of, text_of
from store.errors import ExitCode, StoreError
from tests.dashboards import answers

SILENT = answers.silent("stream", Status.EMPTY, "no token arrivals within the window")
FAILED = Failed("anomalies", StoreError("out of memory", "raise memory_limit"))


def test_a_failure_of_one_analysis_does_not_stop_the_others() -> None:
    def ask(name: str) -> Result:
        if name == "errors":
            raise ZeroDivisionError("division by zero")
        return SILENT

    results, failures = ask_all(["errors", "stream"], ask)
    assert [result.analysis for result in results] == ["stream"]
    assert (failures[0].fact, failures[0].code) == ("ZeroDivisionError: division by zero", ExitCode.STORE)


def test_where_all_fail_the_first_error_is_raised() -> None:
    def ask(name: str) -> Result:
        raise StoreError(f"{name}: the store is locked")

    with pytest.raises(StoreError, match="errors: the store is locked"):
        ask_all(["errors", "stream"], ask)


@pytest.mark.parametrize(("form", "mark"), [("table", ""), ("md", "- ")])
def test_findings_of_all_come_first_and_silence_takes_one_line(form: str, mark: str) -> None:
    lines = text_of([answers.errors(), SILENT], [FAILED], form).splitlines()
    assert lines[0].removeprefix("# ") == "3 analyses: 1 finding"
    assert lines[2].startswith(f"{mark}WARNING ")
    assert lines[2].endswith("errors: 94 of 200 requests to chat-api failed with HTTP_429")
    assert f"{mark}stream       nothing: no token arrivals within the window" in lines
    assert f"{mark}anomalies    failed: out of memory" in lines
    assert sum("no token arrivals" in line for line in lines) == 1, "what has nothing to say has no section"


def test_json_and_csv_of_several_are_one_after_the_other() -> None:
    assert text_of([SILENT, SILENT], (), "json").count('"analysis"') == 2


def test_the_file_names_the_store_and_what_failed() -> None:
    said = html_of([SILENT], [FAILED], "/srv/infractl")
    assert "/srv/infractl" in said
    assert "raise memory_limit" in said
