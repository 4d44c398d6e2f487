"""Request traces in Mooncake's form: arrival in ms, token counts, and an id for each 512-token block of the prompt."""

import re
from collections.abc import Iterator

import msgspec

from collector.files.blocks.request import Layout, Traced
from collector.files.content import Content, Format
from collector.files.refusals import Refusal

LAYOUT = Layout("ms", 512, "tokens")
"""Mooncake, FAST '25: a block is 512 tokens; equal ids mean equal prefixes up to the block's end."""
_OTHERS = re.compile(r'"(chat_id|text_input|delay)"\s*:')  # relatives with other block sizes, units or times
_KEYS = ("timestamp", "input_length", "output_length", "hash_ids")


class _Line(msgspec.Struct):
    timestamp: float
    input_length: int
    output_length: int
    hash_ids: list[int]
    session_id: str | None = None


def is_mooncake(content: Content) -> bool:
    """Tell whether a file is a trace in this form, and in none of its relatives'."""
    first = content.head.lstrip().split("\n", 1)[0] if content.format is Format.JSON else ""
    alone = first.startswith("{") and first.rstrip().endswith("}")
    return alone and all(f'"{key}"' in first for key in _KEYS) and not _OTHERS.search(first)


def read_mooncake(content: Content, refused: dict[str, Refusal]) -> list[Traced]:
    """Return the requests of a trace; a line that is none goes into `refused`."""
    return list(_requests(content, refused))


def _requests(content: Content, refused: dict[str, Refusal]) -> Iterator[Traced]:
    decoder = msgspec.json.Decoder(_Line)
    for number, text in enumerate(content.text().split("\n"), 1):
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
        except msgspec.DecodeError:
            refuse(refused, "no request of a Mooncake trace", f"{content.path}:{number}")
            continue
        if min(line.input_length, line.output_length, *line.hash_ids, 0) < 0:
            refuse(refused, "a number below zero", f"{content.path}:{number}")
            continue
        yield Traced(
            text,
            line.timestamp,
            line.hash_ids,
            conversation=line.session_id,
            input_tokens=line.input_length,
            output_tokens=line.output_length,
        )


def refuse(refused: dict[str, Refusal], reason: str, where: str) -> None:
    """Count a line that is refused, with the place of the first for each reason."""
    earlier = refused.get(reason)
    refused[reason] = Refusal(earlier.count + 1, earlier.first) if earlier else Refusal(1, where)
