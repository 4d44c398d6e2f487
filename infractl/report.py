"""Several Results at once: the findings of all first, then each answer; and the same as one HTML file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from analytics.result import Finding, Result, Status, distinct, ranked
from infractl import __version__
from infractl.render import render, sentence
from store.errors import ExitCode, InfractlError
from store.window import format_time
from store.zone import DEFAULT, local_text

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True)
class Failed:
    """An analysis that could not run: the error, of which the others know nothing."""

    name: str
    error: Exception

    @property
    def code(self) -> ExitCode:
        """Exit code of the error; that of the store for one that nobody foresaw."""
        return self.error.code if isinstance(self.error, InfractlError) else ExitCode.STORE

    @property
    def fact(self) -> str:
        """What went wrong, in words."""
        kind = "" if isinstance(self.error, InfractlError) else f"{type(self.error).__name__}: "
        return f"{kind}{self.error}"

    @property
    def hint(self) -> str:
        """The next step; empty where none is known."""
        return getattr(self.error, "hint", "")


def ask_all(names: Sequence[str], ask: Callable[[str], Result]) -> tuple[list[Result], list[Failed]]:
    """Ask for each analysis; one that fails does not stop the others. Raises the error where all fail."""
    results: list[Result] = []
    failures: list[Failed] = []
    for name in names:
        try:
            results.append(ask(name))
        except Exception as error:  # noqa: BLE001  # whatever it was, the other answers are worth having
            failures.append(Failed(name, error))
    if failures and not results:
        raise failures[0].error
    return results, failures


def text_of(results: Sequence[Result], failures: Sequence[Failed], form: str, zone: "ZoneInfo" = DEFAULT) -> str:
    """Return the text of several Results: in JSON and CSV one after the other, else findings first."""
    if form in ("json", "csv"):
        return "\n".join(render(result, form, zone) for result in results)
    head = "# " if form == "md" else ""
    spoken = [render(result, form, zone) for result in results if result.status is Status.OK]
    return "\n".join([_summary(results, failures, head, zone), *spoken])


def html_of(results: Sequence[Result], failures: Sequence[Failed], store: str, zone: "ZoneInfo" = DEFAULT) -> str:
    """Return one self-contained HTML file with the figures of the dashboard."""
    from dashboards.report import Cover, page
    from dashboards.source import Failure

    made = local_text(format_time(datetime.now(UTC).replace(microsecond=0)), zone)
    failed = [Failure(failure.name, failure.fact, failure.hint) for failure in failures]
    return page(results, failed, Cover(store, __version__, made), zone)


def _summary(results: Sequence[Result], failures: Sequence[Failed], head: str, zone: "ZoneInfo") -> str:
    found = [(finding, result) for result in results for finding in distinct(result.findings)]
    names = {id(finding): result.analysis for finding, result in found}
    findings = ranked([finding for finding, _ in found])
    bullet = "- " if head else ""
    lines = [f"{head}{_count(len(results) + len(failures), 'analysis', 'analyses')}: {_counts(findings)}", ""]
    lines += [f"{bullet}{_at(sentence(finding, zone), names[id(finding)])}" for finding in findings]
    lines += [""] if findings else []
    lines += [bullet + _line(result, zone) for result in results]
    lines += [f"{bullet}{failure.name:12} failed: {failure.fact}" for failure in failures]
    return "\n".join(lines) + "\n"


def _counts(findings: Sequence[Finding]) -> str:
    lasting = [f for f in findings if f.until is None]
    over = len(findings) - len(lasting)
    parts = [_count(len(lasting), "finding")] if lasting else []
    parts += [_count(over, "episode") + " over"] if over else []
    return ", ".join(parts) or "nothing is wrong in what could be judged"


def _count(amount: int, one: str, many: str = "") -> str:
    return f"{amount} {one if amount == 1 else many or one + 's'}"


def _at(line: str, name: str) -> str:
    """Put the name of the analysis before a finding's first statement; its section has the rest."""
    severity, rest = line[:9], line[9:]
    times, _, summary = rest.partition("  ")
    return f"{severity}{times}  {name}: {summary.partition('; ')[0]}"


def _line(result: Result, zone: "ZoneInfo") -> str:
    if result.status is not Status.OK:
        why = local_text("; ".join(result.notes), zone) or "no data in this window"
        return f"{result.analysis:12} {'nothing' if result.status is Status.EMPTY else 'refused'}: {why}"
    amount = len(distinct(result.findings))
    said = _count(amount, "finding") if amount else "no findings"
    return f"{result.analysis:12} {said}, {local_text(str(result.window), zone)}"
