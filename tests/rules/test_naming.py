"""Names that Prometheus accepts, and no two of them the same."""

import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rules.naming import VALUE_CHARS, alert_labels, label_name, label_names, metric_name

VALID = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")


@given(st.text())
def test_any_text_becomes_a_valid_name(text: str) -> None:
    assert VALID.match(label_name(text))
    assert not label_name(text).startswith("__")
    assert re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", metric_name(text))


@given(st.lists(st.text(alphabet="ab._2-"), unique=True))
def test_distinct_texts_get_distinct_names_whatever_their_order(texts: list[str]) -> None:
    names = label_names(texts)
    assert len(set(names.values())) == len(texts)
    assert names == label_names(texts[::-1])
    assert all(names[t] == t for t in texts if label_name(t) == t)


def test_span_attributes_become_labels_that_alertmanager_takes(shared: Path) -> None:
    case = shared / "cases" / "70-dotted-and-invalid-alert-labels"
    labels = alert_labels(json.loads((case / "attributes.json").read_text()))
    pattern = re.compile(json.loads((case / "expected.json").read_text())["valid_name_regex"])
    assert all(pattern.match(name) for name in labels)
    assert labels["gen_ai_request_model"] == "other"
    assert labels["gen_ai_request_model_2"] == "m"
    assert labels["http_route"] == "/v1/chat"
    assert labels["bad_label"] == "x"
    assert "empty" not in labels
    assert len(labels["long"]) == VALUE_CHARS
