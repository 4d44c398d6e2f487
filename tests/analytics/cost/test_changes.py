"""Planned changes: read, written, and which drifts they cover."""

from datetime import UTC, datetime, timedelta

import pytest

from analytics.cost.changes import Change, covering, parse, restarts
from store.errors import UsageError

START, END = datetime(2026, 12, 1, tzinfo=UTC), datetime(2026, 12, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("2026-12-01T00:00Z..2026-12-03T00:00Z", Change(START, END)),
        ('2026-12-01..2026-12-03 service=chat "migration"', Change(START, END, (("service", "chat"),), "migration")),
        (
            '2026-12-01..2026-12-03 service=chat and env=prod "new, larger nodes" level',
            Change(START, END, (("service", "chat"), ("env", "prod")), "new, larger nodes", level=True),
        ),
        ("2026-12-01..2026-12-03 level", Change(START, END, level=True)),
    ],
)
def test_a_line_is_read_and_written_alike(text: str, change: Change) -> None:
    assert parse(text) == change
    assert parse(change.text()) == change


def test_times_without_an_offset_are_of_the_zone() -> None:
    assert parse("2026-12-01..2026-12-03", "Europe/Berlin").start == START - timedelta(hours=1)
    assert parse("2026-12-01T00:00Z..2026-12-03T00:00Z", "Europe/Berlin") == Change(START, END)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tomorrow", "cannot be read"),
        ("2026-12-01..2026-12-32", "is not a time"),
        ("2026-12-03..2026-12-01", "ends before it starts"),
        ("2026-12-01..2026-12-03 chat", "cannot be read"),
        ("2026-12-01..2026-12-03 service=", "where cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said_with_a_remedy(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as told:
        parse(text)
    assert told.value.hint


def test_a_drift_is_covered_that_begins_within_a_change_of_its_labels() -> None:
    chat = Change(START, END, (("service", "chat"), ("service", "search")), "migration")
    assert covering([chat], START, {"service": "chat", "env": "prod"}) is chat
    assert covering([chat], START, {"service": "search"}) is chat
    assert covering([chat], END, {"service": "chat"}) is None
    assert covering([chat], START - timedelta(seconds=1), {"service": "chat"}) is None
    assert covering([chat], START, {"service": "mail"}) is None
    assert covering([chat], START, {}) is None, "of all services together it is not known to be the reason"
    assert covering([Change(START, END)], START, {}) is not None


def test_the_level_begins_anew_only_where_a_change_says_so() -> None:
    changes = [
        Change(START, END, level=True),
        Change(START, END - timedelta(days=1)),
        Change(START, START + timedelta(1), (("a", "b"),), level=True),
    ]
    assert restarts(changes, {}) == [END]
    assert restarts(changes, {"a": "b"}) == [START + timedelta(days=1), END]
