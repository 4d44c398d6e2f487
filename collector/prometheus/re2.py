r"""RE2 regular expressions (those of Prometheus) as Python's: the same language, the rest refused.

What differs is written out: `$` is the end of the text, POSIX classes and `\Q…\E` are spelt, letters and digits of
`\w`, `\d`, `\b` are ASCII. Look-around, back-references and possessive quantifiers do not exist.
"""

import re
import warnings

from store.errors import UsageError

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_GROUP = re.compile(r"\(\?(?:P?<[A-Za-z_]\w*>|[ims]*(?:-[ims]+)?[:)])", re.ASCII)
_REPEAT = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
_ESCAPE = re.compile(
    r"\\(?:[aftnrvdDsSwWbBAz]|x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]+\}|0[0-7]{0,2}|[1-7][0-7]{2}|[^a-zA-Z0-9])"
)
_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")


def compile_re2(text: str) -> re.Pattern[str]:
    """Compile for `fullmatch`. Raises UsageError for what RE2 does not have or cannot read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # `[[` and `--` in a class: literal in both
            return re.compile(_Translation(text).run(), re.ASCII)
    except (re.error, OverflowError) as error:
        raise UsageError(
            f"regex {text!r} cannot be read: {error}", "write it in RE2 syntax, as for Prometheus"
        ) from None


class _Translation:
    """One pass over an expression."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.out: list[str] = []

    def run(self) -> str:
        while self.at < len(self.text):
            char = self.text[self.at]
            repeat = _REPEAT.match(self.text, self.at)
            if repeat:
                self._repeat(repeat[0])
            elif char == "\\":
                self._escape(in_class=False)
            elif char == "[":
                self._char_class()
            elif char == "(" and self.text[self.at + 1 : self.at + 2] == "?":
                self._group()
            else:
                self._put({"$": r"\Z", "{": r"\{"}.get(char, char), 1)
        return "".join(self.out)

    def _put(self, piece: str, width: int) -> None:
        self.out.append(piece)
        self.at += width

    def _repeat(self, found: str) -> None:
        self._put(found, len(found))
        after = _REPEAT.match(self.text, self.at)
        if after:
            raise self._refused(f"a quantifier after a quantifier ({found}{after[0]})")

    def _escape(self, in_class: bool) -> None:
        if not in_class and self.text.startswith(r"\Q", self.at):
            literal, _, _ = self.text[self.at + 2 :].partition(r"\E")
            self._put(re.escape(literal), len(literal) + 2)
            self.at += 2 if self.text.startswith(r"\E", self.at) else 0
            return
        found = _ESCAPE.match(self.text, self.at)
        if found is None:
            raise self._refused(f"{self.text[self.at : self.at + 2]} (back-references, \\p and others)")
        piece = found[0]
        if piece.startswith(r"\x{"):
            piece_out = re.escape(chr(int(piece[3:-1], 16)))
        else:
            piece_out = {r"\z": r"\Z", r"\0": r"\x00"}.get(piece, piece)
        self._put(piece_out, len(piece))

    def _group(self) -> None:
        found = _GROUP.match(self.text, self.at)
        if found is None:
            raise self._refused(f"{self.text[self.at : self.at + 4]} (look-around and others)")
        self._put(found[0].replace("(?<", "(?P<"), len(found[0]))

    def _char_class(self) -> None:
        start = re.compile(r"\[\^?\]?").match(self.text, self.at)
        assert start is not None
        self._put(start[0].replace("]", r"\]"), len(start[0]))
        while self.at < len(self.text) and self.text[self.at] != "]":
            posix = _CLASS.match(self.text, self.at)
            if posix and (posix[1] or posix[2] not in _POSIX):
                raise self._refused(posix[0])
            if posix:
                self._put(_POSIX[posix[2]], len(posix[0]))
            elif self.text[self.at] == "\\":
                self._escape(in_class=True)
            else:
                self._put(r"\[" if self.text[self.at] == "[" else self.text[self.at], 1)
        self._put("]" if self.at < len(self.text) else "", 1)

    def _refused(self, what: str) -> UsageError:
        return UsageError(
            f"regex {self.text!r}: RE2 has no {what}", "regular expressions are those of Prometheus (RE2 syntax)"
        )
