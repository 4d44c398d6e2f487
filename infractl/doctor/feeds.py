"""KV-cache event streams with gaps, and probes that fail."""

from collections.abc import Iterator

from analytics.result import Severity
from infractl.doctor.advice import Advice
from infractl.doctor.facts import Facts

_REPLAY = (
    "name the engine's replay_endpoint in kv_events (vLLM: --kv-events-config), so that missed messages come again"
)


def check(facts: Facts) -> Iterator[Advice]:
    """Look at the streams and probes of the running process."""
    for feed in facts.kv_events:
        if feed["error"]:
            remedy = "see bind, endpoint and replay_endpoint in docs/sources/kv-events.md"
            yield Advice("feeds", Severity.CRITICAL, feed["endpoint"], feed["error"], remedy)
        lost = sum(stream["lost"] for stream in feed["streams"])
        if lost:
            fact = f"{lost} messages were missed and never came again: block counts are incomplete"
            yield Advice("feeds", Severity.WARNING, feed["endpoint"], fact, _REPLAY)
        if feed["dropped"]:
            fact = f"{feed['dropped']} rows were not taken by the store"
            yield Advice("feeds", Severity.WARNING, feed["endpoint"], fact, "give the store a faster disk")
    for probe in facts.probes:
        if probe["up"] is False:
            fact = f"no attempt of the last round succeeded: {probe['last_error']}"
            yield Advice("feeds", Severity.WARNING, probe["url"], fact, probe["remedy"] or "try it with infractl probe")
