"""Sends what a collector reads to a server elsewhere, through a spool on disk that survives restarts and outages.

What is collected is acknowledged when it is in the spool (`store.journal`, fsynced). A thread sends the entries in
order to /api/v1/append and forgets them when the server has committed them; one that was sent and not answered is sent
again, which stores nothing twice.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collector.prometheus.masking import shown
from infractl import wire
from store import packing
from store.batch import Batch, Receipt
from store.errors import JournalFullError, UsageError
from store.journal import Journal

if TYPE_CHECKING:
    import httpx

SPOOL_FULL = "spool full"
GROUP = 50
"""Batches in one request."""
LONGEST_REST_S = 60.0
PATIENCE_S = 5.0
"""How long a stop goes on sending what is left."""
_REFUSED = (400, 413, 415, 422)
"""Answers that say the batch itself is bad: it is kept aside. Any other refusal may pass, so it is tried again."""


class Pusher:
    """Stands where a store would: `append` spools, a thread sends."""

    def __init__(self, url: str, directory: Path, limit_bytes: int, headers: Mapping[str, str]) -> None:
        """Open the spool in `directory` and begin with what an earlier run left. Raises StoreError."""
        import httpx

        self._url = url.rstrip("/")
        self._directory = directory
        self._journal = Journal(directory, limit_bytes=limit_bytes)
        self._sent = self._read_sent()
        self._journal.advance(self._sent)
        self._http = httpx.Client(headers=dict(headers), timeout=httpx.Timeout(60, connect=5), trust_env=False)
        self._lost: Counter[str] = Counter()
        self.refused = 0
        self._failed = 0
        self._told = ""
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="push", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Batches that the server has not acknowledged."""
        return self._journal.last_sequence - self._sent

    def append(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Spool the batches; where the spool is full they are counted as lost, and that is sent when there is room."""
        kept = [*self._losses(), *batches]
        try:
            self._journal.append(kept)
            self._lost.clear()
        except JournalFullError as error:
            for batch in batches:
                self._lost[batch.source] += batch.rows
            self._tell(f"{error}: {sum(self._lost.values())} rows lost so far")
            return [Receipt(batch.batch_id, dict.fromkeys(batch.frames, 0), {}) for batch in batches]
        self._wake.set()
        rows = [{name: frame.height for name, frame in batch.frames.items()} for batch in batches]
        return [Receipt(batch.batch_id, stored, {}) for batch, stored in zip(batches, rows, strict=True)]

    def close(self) -> None:
        """Send what is left for a few seconds; the rest stays in the spool for the next start."""
        patience = time.monotonic() + PATIENCE_S
        while self.waiting and time.monotonic() < patience:
            self._wake.set()
            time.sleep(0.05)
        self._stop.set()
        self._wake.set()
        self._thread.join(PATIENCE_S)
        if self.waiting:
            click.echo(f"{self.waiting} batches wait in {self._directory} for the next start", err=True)
        self._http.close()
        self._journal.close()

    def _losses(self) -> list[Batch]:
        return [Batch(source, {}, {SPOOL_FULL: rows}) for source, rows in self._lost.items()]

    def _run(self) -> None:
        while not self._stop.is_set():
            group = list(islice(self._journal.entries(self._sent), GROUP))
            if not group:
                self._sent = self._journal.last_sequence  # what was damaged is named by the journal
                self._wake.wait(1.0)
                self._wake.clear()
                continue
            rest_s = self._send(group)
            if rest_s:
                self._stop.wait(rest_s)

    def _send(self, group: Sequence[tuple[int, Batch]]) -> float:
        """Send a group; return how long to rest before the next, 0 when all is well."""
        import httpx

        try:
            body = wire.pack([batch for _, batch in group])
            answer = self._http.post(
                f"{self._url}/api/v1/append", content=body, headers={"Content-Type": wire.MEDIA_TYPE}
            )
        except httpx.HTTPError as error:
            return self._rest(f"{self._url} does not answer: {error}", None)
        if answer.is_success:
            self._failed = 0
            self._tell("")
            self._acknowledge(group[-1][0])
            return 0.0
        if answer.status_code in _REFUSED:
            if len(group) > 1:
                return max(self._send([item]) for item in group[:1])  # alone, so that one bad batch fails only itself
            self._keep_aside(*group[0], answer.text)
            return 0.0
        return self._rest(f"{self._url} answers {answer.status_code}: {answer.text[:200]}", _retry_after(answer))

    def _rest(self, said: str, asked_s: float | None) -> float:
        self._tell(f"{said}; {self.waiting} batches wait in the spool")
        self._failed += 1
        longest: float = min(LONGEST_REST_S, 0.5 * 2.0 ** min(self._failed, 10))
        return asked_s if asked_s is not None else random.uniform(longest / 2, longest)  # noqa: S311 - no secret

    def _acknowledge(self, sequence: int) -> None:
        self._sent = sequence
        with suppress(OSError):
            (self._directory / "sent").write_text(str(sequence))
        self._journal.trim(sequence)

    def _keep_aside(self, sequence: int, batch: Batch, why: str) -> None:
        folder = self._directory / "refused"
        folder.mkdir(exist_ok=True)
        path = folder / f"{sequence}.batch"
        path.write_bytes(packing.pack(batch))
        self.refused += 1
        click.echo(f"{self._url} refuses a batch of {batch.source}, kept as {path}: {why[:300]}", err=True)
        self._acknowledge(sequence)

    def _read_sent(self) -> int:
        try:
            return int((self._directory / "sent").read_text())
        except (OSError, ValueError):
            return 0

    def _tell(self, said: str) -> None:
        """Say a thing once until it changes."""
        subject = said.partition(":")[0]
        if subject != self._told and (said or self._told):
            click.echo(shown(said) if said else f"{shown(self._url)} answers again", err=True)
        self._told = subject


def headers(texts: Sequence[str]) -> dict[str, str]:
    """Read --push-header 'Name: value'. Raises UsageError."""
    return dict(_header(text) for text in texts)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError("--push-header is no 'Name: value'", "write it like 'Authorization: Bearer …'")
    return name.strip(), value.strip()


def _retry_after(answer: "httpx.Response") -> float | None:
    try:
        return float(answer.headers["Retry-After"])
    except (KeyError, ValueError):
        return None
