"""How a command reaches the store: the file where it is free, else the server that owns it."""

import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from collector.prometheus.masking import shown
from infractl import wire
from infractl.storage import configured_store
from store.batch import Batch, Receipt
from store.errors import ExitCode, InfractlError, SourceError, StoreError, StoreLockedError, UsageError
from store.settings import StoreSettings
from store.window import format_time, parse_duration

if TYPE_CHECKING:
    import pyarrow as pa

    from analytics.result import Result
    from collector.prices.override import Entry
    from store.database import Database

SERVER_FILE = "server.json"
PATIENCE_S = 5.0
"""How long a command waits for another one to let go of the file, or for a starting server to answer."""


class Access(Protocol):
    """What commands may do, with the file or through a server."""

    def append(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Store the batches in one transaction."""
        ...

    def analyze(self, name: str, params: Mapping[str, Any], window: str | None) -> "Result":
        """Run one analysis; `window` as in Window.parse, None for the newest data."""
        ...

    def sql(self, text: str, limit: int | None, all_rows: bool = False) -> "pa.Table":
        """Run one SELECT under the limits of a person's query; `all_rows` is not cut."""
        ...

    def status(self) -> dict[str, Any]:
        """Describe sources, rows, drops, size and lock holder."""
        ...

    def doctor(self, since: str, limits_s: Mapping[str, float]) -> dict[str, Any]:
        """Look for what is missing, stale, renamed or mistyped (see infractl.doctor)."""
        ...

    def maintain(self, tasks: Sequence[str], verify: bool, backup: Path | None) -> dict[str, Any]:
        """Do tasks of the store (store.upkeep.TASKS), check everything, write a backup; `lines` and `flaws` tell."""
        ...

    def close(self) -> None:
        """Release the file or connection."""
        ...


class LocalAccess:
    """The store of a directory that nobody else has open."""

    def __init__(self, database: "Database", prices: "Sequence[Entry]" = ()) -> None:
        self.database = database
        self.prices = prices

    def append(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Store the batches in one transaction."""
        return self.database.append(batches)

    def analyze(self, name: str, params: Mapping[str, Any], window: str | None) -> "Result":
        """Run one analysis here."""
        from infractl.priced import PricedReader
        from infractl.runner import run_named

        return run_named(PricedReader(self.database, self.prices), name, params, window)

    def sql(self, text: str, limit: int | None, all_rows: bool = False) -> "pa.Table":
        """Run one SELECT here."""
        limits = self.database.query_limits
        return self.database.sql(text, limit, None if all_rows else limits)

    def status(self) -> dict[str, Any]:
        """Describe the store; no server, so no targets."""
        from infractl.fleet import fleet
        from infractl.pricing import recent_models
        from infractl.status import store_status

        now = self.database.newest() or datetime.now(UTC)
        return (
            store_status(self.database)
            | fleet(self.database, now)
            | {"prices": recent_models(self.database, now, self.prices)}
            | {"at": format_time(now), "lock": {"pid": os.getpid(), "server": None}}
        )

    def doctor(self, since: str, limits_s: Mapping[str, float]) -> dict[str, Any]:
        """Look at what is stored, up to the newest row."""
        from infractl.doctor.facts import gather
        from infractl.doctor.report import report

        now = self.database.newest() or datetime.now(UTC)
        return report(gather(self.database, now, parse_duration(since), self.prices, limits_s=limits_s))

    def maintain(self, tasks: Sequence[str], verify: bool, backup: Path | None) -> dict[str, Any]:
        """Do it here."""
        from infractl.maintenance import maintain

        return maintain(self.database, tasks, verify, backup)

    def close(self) -> None:
        """Release the file."""
        self.database.close()


class RemoteAccess:
    """The store of a running `infractl serve`, through its API."""

    def __init__(self, url: str) -> None:
        import httpx

        self.url = url.rstrip("/")
        self._http = httpx.Client(base_url=self.url, timeout=httpx.Timeout(300, connect=5), trust_env=False)

    def append(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Send the batches; the server stores them in one transaction."""
        answer = self._ask("POST", "/api/v1/append", wire.MEDIA_TYPE, content=wire.pack(batches))
        return wire.receipts(answer)

    def analyze(self, name: str, params: Mapping[str, Any], window: str | None) -> "Result":
        """Have the server run one analysis."""
        from analytics.catalog import load
        from analytics.codec import from_json

        query = {"params": orjson.dumps(params).decode()} | ({"window": window} if window else {})
        return from_json(self._ask("GET", f"/api/v1/analyses/{name}", params=query), load(name).frames)

    def sql(self, text: str, limit: int | None, all_rows: bool = False) -> "pa.Table":
        """Have the server run one SELECT; rows come as an Arrow stream."""
        import pyarrow as pa

        asked = {"sql": text, "limit": limit, "all_rows": all_rows}
        answer = self._ask("POST", "/api/v1/sql", content=orjson.dumps(asked))
        return pa.ipc.open_stream(answer).read_all()

    def status(self) -> dict[str, Any]:
        """Status as the server sees it."""
        found: dict[str, Any] = orjson.loads(self._ask("GET", "/api/v1/status"))
        return found

    def doctor(self, since: str, limits_s: Mapping[str, float]) -> dict[str, Any]:
        """Have the server look; it knows its targets too."""
        query: list[tuple[str, str]] = [("since", since), *(("limit", f"{n}={s!r}") for n, s in limits_s.items())]
        found: dict[str, Any] = orjson.loads(self._ask("GET", "/api/v1/doctor", params=query))
        return found

    def maintain(self, tasks: Sequence[str], verify: bool, backup: Path | None) -> dict[str, Any]:
        """Have the server do it; a backup is written on its machine."""
        asked = {"tasks": list(tasks), "verify": verify, "backup": str(backup.resolve()) if backup else None}
        found: dict[str, Any] = orjson.loads(self._ask("POST", "/api/v1/maintain", content=orjson.dumps(asked)))
        return found

    def answers(self) -> None:
        """Make sure that a server answers. Raises SourceError."""
        self._ask("GET", "/healthz")

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _ask(self, method: str, path: str, media_type: str = "application/json", **more: Any) -> bytes:
        import httpx

        try:
            answer = self._http.request(method, path, headers={"Content-Type": media_type}, **more)
        except httpx.HTTPError as error:
            fact = shown(f"{self.url} does not answer: {error}")
            raise SourceError(fact, "is infractl serve running there?") from error
        if answer.is_success:
            return answer.content
        raise _refused(shown(self.url), answer.status_code, answer.content)


def open_access(
    directory: Path,
    server: str | None = None,
    create: bool = False,
    prices: "Sequence[Entry]" = (),
    settings: StoreSettings | None = None,
) -> Access:
    """Open the store of a directory, or the server that owns it, or the server named.

    `prices` are a person's own, `settings` those of the store (None: those of the running command's configuration); a
    server has those of its own configuration.

    Raises StoreError when there is no store and none shall be created, StoreLockedError naming the owner when that is
    no server that answers and does not let go within PATIENCE_S.
    """
    if server:
        return RemoteAccess(server)
    from store.database import FILE_NAME, Database

    if not create and not (directory / FILE_NAME).exists():
        raise StoreError(
            f"nothing is stored in {directory}", "infractl import FILE, infractl serve, or name --data DIR"
        )

    patience = time.monotonic() + PATIENCE_S
    settings = settings or configured_store()
    while True:
        try:
            return LocalAccess(Database(directory, settings), prices)
        except StoreLockedError:
            remote = _owner(directory)
            if remote is not None:
                return remote
            if time.monotonic() > patience:
                raise
        time.sleep(0.2)


def _owner(directory: Path) -> RemoteAccess | None:
    """Return the server that owns the directory, None where the owner is no server that answers."""
    url = _server_of(directory)
    if url is None:
        return None
    remote = RemoteAccess(url)
    try:
        remote.answers()
    except SourceError:
        remote.close()
        return None
    return remote


def _server_of(directory: Path) -> str | None:
    """Address that the owning serve wrote beside the file."""
    try:
        url: str | None = orjson.loads((directory / SERVER_FILE).read_bytes())["url"]
    except (OSError, ValueError, KeyError):
        return None
    return url


def _refused(url: str, status: int, body: bytes) -> InfractlError:
    """Make the server's JSON error the error it was there."""
    try:
        told = orjson.loads(body)
        kinds = {ExitCode.USAGE: UsageError, ExitCode.STORE: StoreError, ExitCode.SOURCE: SourceError}
        return kinds.get(ExitCode(told["code"]), StoreError)(told["error"], told["hint"])
    except (ValueError, KeyError, TypeError):
        return SourceError(f"{url} answered {status}", "is that an infractl server?")
