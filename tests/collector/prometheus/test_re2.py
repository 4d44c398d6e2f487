"""RE2 syntax in Python: what is the same, what is translated, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.prometheus.re2 import compile_re2
from store.errors import UsageError


@pytest.mark.parametrize(
    ("regex", "matching", "other"),
    [
        ("a|ab", ["a", "ab"], ["b", "abb"]),
        ("", [""], ["a"]),
        ("a$", ["a"], ["a\n"]),
        (".*", ["", "é"], ["a\nb"]),
        (r"\d+", ["12"], ["٣", ""]),
        (r"\w", ["_", "a"], ["é"]),
        ("[[:alpha:]_]+", ["aZ_"], ["a1"]),
        ("[^[:space:]]", ["a"], [" "]),
        (r"\Qa.b\E\.", ["a.b."], ["axb."]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        ("x{,2}", ["x{,2}"], ["xx"]),
        ("x{2,3}?", ["xx", "xxx"], ["x"]),
        (r"\x{41}\x42", ["AB"], ["ab"]),
        ("(?i)ab", ["AB"], ["c"]),
        ("a(?i:b)c", ["aBc"], ["aBC"]),
        (r"a\z", ["a"], ["a\n"]),
        ("[]a]+", ["]a"], ["["]),
        ("[[a]", ["[", "a"], ["]"]),
        ("(?P<n>a)(?<m>b)", ["ab"], []),
        (r"a\.b\-c\/", ["a.b-c/"], ["axb-c/"]),
    ],
)
def test_a_whole_value_matches_as_in_re2(regex: str, matching: list[str], other: list[str]) -> None:
    pattern = compile_re2(regex)
    assert [text for text in matching if not pattern.fullmatch(text)] == []
    assert [text for text in other if pattern.fullmatch(text)] == []


@pytest.mark.parametrize(
    "regex",
    [
        *("(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\1", "a++", "a*+", "a**", "a{2}{3}", "(?>a)", "(?P=n)", "(?#c)"),
        *(r"\pL", r"\p{Greek}", r"\Z", r"\G", "[[:nope:]]", "(a", "a)", "[a", "*a", "a{3,2}", "\\"),
    ],
)
def test_what_re2_does_not_have_is_refused_with_the_regex(regex: str) -> None:
    with pytest.raises(UsageError, match="regex") as caught:
        compile_re2(regex)
    assert repr(regex) in str(caught.value)
    assert "RE2" in caught.value.hint


@given(st.text(max_size=20))
def test_a_quoted_text_matches_itself_and_nothing_longer(text: str) -> None:
    if r"\E" in text or text.endswith("\\"):
        return
    pattern = compile_re2(rf"\Q{text}\E")
    assert pattern.fullmatch(text)
    assert not pattern.fullmatch(text + "x")
