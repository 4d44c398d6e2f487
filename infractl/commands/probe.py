"""`infractl probe`: synthetic requests, now or again and again."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from infractl.render import FRAME_FORMATS
from infractl.settings import current_config, report_zone, store_options
from store.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collector.probe.config import Probe
    from infractl.probe_result import Round

API_KEY = "OPENAI_API_KEY"
COUNT = 5
"""Requests where none is told: enough to see that one was odd."""


@click.command()
@click.argument("urls", metavar="[URL]...", nargs=-1)
@click.option("--count", type=click.IntRange(1), help=f"Requests to each URL  [default: {COUNT}]")
@click.option("--concurrency", type=click.IntRange(1), help="Requests at a time  [default: 1]")
@click.option("--every", metavar="TIME", help="Again and again, until interrupted: 60s.")
@click.option("--model", help="Model to ask  [default: the first that the endpoint lists]")
@click.option("--prompt", metavar="TEXT", help="Prompt of every request.")
@click.option("--prompt-tokens", type=click.IntRange(1), help="A prompt of about so many tokens, new each time.")
@click.option("--max-tokens", type=click.IntRange(1), help="Tokens to generate at most  [default: 32]")
@click.option("--stream/--no-stream", default=None, help="Answer token by token, or whole  [default: stream]")
@click.option("--body", metavar="JSON", help='More fields of the request: {"temperature": 0}; null removes one.')
@click.option("--header", metavar="K=V", multiple=True, help=f"Header; {API_KEY} is sent where none says who asks.")
@click.option("--timeout", metavar="TIME", help="Longest time for one request, answer included  [default: 30s]")
@click.option("--keep-alive/--no-keep-alive", default=None, help="Use connections again  [default: a new one each]")
@click.option("--service", help="service.name of the spans  [default: infractl-probe]")
@click.option("--format", type=click.Choice(FRAME_FORMATS), default="table", show_default=True)
@click.option("--no-store", is_flag=True, help="Print only.")
@click.option("--fail-on-error", is_flag=True, help="Exit 1 when a request failed.")
@store_options
def command(urls: Sequence[str], header: Sequence[str], **given: Any) -> int:
    """Make synthetic requests: name lookup, TCP, TLS, first token, tokens after it, errors.

    URL is the base of an OpenAI-compatible API (http://127.0.0.1:8000/v1) or its …/chat/completions or …/completions,
    any other http or https address, or tcp://HOST:PORT. Without one, the probes of infractl.yaml are made. Each request
    is stored as a client span with its phases and token arrivals; nothing of prompts and answers is.
    """
    import asyncio

    from infractl.probing import configured_probes, probe_all, probe_forever
    from store.window import parse_duration

    probes = _named(urls, header, given) if urls else _changed(configured_probes(current_config()), header, given)
    every_s = parse_duration(given["every"]).total_seconds() if given["every"] else None
    if every_s == 0:
        raise UsageError(f"--every {given['every']!r} is no time to wait", "write it like 60s")
    if every_s is None:
        return _take(asyncio.run(probe_all(probes)), given)
    asyncio.run(probe_forever(probes, every_s, partial(_take, given=given)))
    return ExitCode.OK


_KEYS = (
    "count", "concurrency", "every", "model", "prompt", "prompt_tokens", "max_tokens", "stream", "timeout",
    "keep_alive", "service",
)  # fmt: skip


def _named(urls: Sequence[str], header: Sequence[str], given: Mapping[str, Any]) -> "tuple[Probe, ...]":
    """Probes of the URLs on the command line."""
    from collector.probe.config import ProbeConfig, compile_probe
    from collector.probe.target import parse_target

    for_models = [key for key in ("model", "prompt", "prompt_tokens", "max_tokens", "body") if given[key] is not None]
    if for_models and not any(parse_target(url).operation.is_inference for url in urls):
        option = for_models[0].replace("_", "-")
        raise UsageError(f"--{option} is for model requests, and no URL asks a model", "end the URL in /v1")
    return tuple(
        compile_probe(ProbeConfig(url=url, **{"count": COUNT, **_values(header, given, url=url)})) for url in urls
    )


def _changed(probes: "Sequence[Probe]", header: Sequence[str], given: Mapping[str, Any]) -> "tuple[Probe, ...]":
    """Probes of the configuration, with what the command line says otherwise."""
    import msgspec

    from collector.probe.config import compile_probe

    if not probes:
        raise UsageError("nothing to probe is named", "give a URL, or name probes in infractl.yaml")
    return tuple(compile_probe(msgspec.structs.replace(p.config, **_values(header, given))) for p in probes)


def _values(header: Sequence[str], given: Mapping[str, Any], url: str | None = None) -> dict[str, Any]:
    """Keys of a probe that the command line gives."""
    from collector.files import parse_pairs
    from collector.probe.target import parse_target
    from collector.prometheus.config import Authorization

    values = {key: given[key] for key in _KEYS if given[key] is not None}
    headers = parse_pairs("--header", header, comma=False)
    if headers:
        values["headers"] = headers
    if given["body"] is not None:
        values["body"] = _body(given["body"])
    key = os.environ.get(API_KEY)
    named = "authorization" in {name.lower() for name in headers}
    if url and key and not named and parse_target(url).operation.is_inference:
        values["authorization"] = Authorization(credentials=key)
    return values


def _body(text: str) -> dict[str, Any]:
    import msgspec

    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UsageError(f"--body is no JSON object: {error}", """write it like '{"temperature": 0}'""") from error


def _store(rounds: "Sequence[Round]", given: Mapping[str, Any]) -> None:
    from collector.probe.rows import batch_of
    from infractl.access import open_access

    access = open_access(given["data"], given["server"], create=True)
    try:
        access.append([batch_of(made.probe, made.attempts) for made in rounds])
    finally:
        access.close()


def _take(rounds: "Sequence[Round]", given: Mapping[str, Any]) -> int:
    """Store and print a round; return the exit code that it means."""
    from infractl.probe_result import result_of
    from infractl.render import render

    if not given["no_store"]:
        _store(rounds, given)
    result = result_of(rounds)
    click.echo(render(result, given["format"], report_zone()), nl=False)
    if not any(made.answered for made in rounds):
        return ExitCode.SOURCE
    return ExitCode.FINDINGS if given["fail_on_error"] and result.findings else ExitCode.OK
