"""A lake in S3-compatible storage through obstore: for writing, and as a file system that DuckDB reads."""

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store.errors import StoreError
from store.lake.storage import DRAFT, Found

if TYPE_CHECKING:
    import duckdb

    from store.settings import S3Settings

_REASON = re.compile(r"Error: (Generic S3 error: .*|Object at location .*|The operation lacked .*)")
_RETRIES = 3
_CONNECT_TIMEOUT_S = 5
_UNCHANGED = datetime(2000, 1, 1, tzinfo=UTC)


class Bucket:
    """A lake below s3://bucket/prefix/. Credentials come from the AWS variables or the role of machine or pod."""

    def __init__(self, root: str, settings: "S3Settings", drafts: Path) -> None:
        """Name the place; nothing is asked yet. Raises StoreError where obstore is not installed."""
        self.root = root.rstrip("/") + "/"
        bucket, _, prefix = self.root.removeprefix("s3://").partition("/")
        if not bucket:
            raise StoreError(f"the lake cannot be at {root}", "name a bucket: s3://bucket/prefix")
        with _library():
            from obstore.store import S3Store
        self._store = S3Store(bucket, prefix=prefix.rstrip("/") or None, **options(settings))
        self._drafts = drafts

    def draft(self, folder: str) -> Path:  # noqa: ARG002 (drafts of all folders lie together)
        """Return a path of this machine."""
        self._drafts.mkdir(parents=True, exist_ok=True)
        return self._drafts / f"{uuid.uuid4().hex}{DRAFT}"

    def create(self, path: str, draft: Path) -> None:
        """Send the draft in one request that fails where the key exists."""
        from obstore.exceptions import AlreadyExistsError

        with self._told():
            try:
                self._store.put(path, draft, mode="create", use_multipart=False)
            except AlreadyExistsError as error:
                raise FileExistsError(self.root + path) from error
        draft.unlink()

    def replace(self, path: str, data: bytes) -> None:
        """Send the data in one request."""
        with self._told():
            self._store.put(path, data, use_multipart=False)

    def read(self, path: str) -> bytes:
        """Return the content of an object. Raises FileNotFoundError."""
        with self._told():
            return bytes(self._store.get(path).bytes())

    def files(self, prefix: str = "") -> Iterator[Found]:
        """Yield the objects below a folder."""
        with self._told():
            for chunk in self._store.list(prefix or None):
                for item in chunk:
                    yield Found(item["path"], item["size"], item["last_modified"])

    def names(self) -> Sequence[str]:
        """Return the names of the objects right below the prefix."""
        with self._told():
            return sorted(item["path"] for item in self._store.list_with_delimiter()["objects"])

    def delete(self, path: str) -> None:
        """Delete an object, if it is there."""
        with self._told():
            try:
                self._store.delete(path)
            except FileNotFoundError:
                return

    def tidy(self, before: datetime) -> None:
        """Do nothing: a bucket has no folders."""

    @contextmanager
    def _told(self) -> Iterator[None]:
        from obstore.exceptions import BaseError, NotFoundError

        try:
            yield
        except NotFoundError as error:
            raise FileNotFoundError(f"{self.root}: {error}".splitlines()[0]) from error
        except BaseError as error:
            raise unreachable(self.root, str(error)) from error


def options(settings: "S3Settings") -> dict[str, Any]:
    """Return what obstore is told of a place: where, and how long it may take to answer."""
    told: dict[str, Any] = {
        "client_options": {
            "timeout": timedelta(seconds=settings.timeout_s),
            "connect_timeout": timedelta(seconds=min(_CONNECT_TIMEOUT_S, settings.timeout_s)),
            "allow_http": (settings.endpoint or "").startswith("http://"),
        },
        "retry_config": {"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=settings.timeout_s)},
    }
    if settings.endpoint:
        told["endpoint"] = settings.endpoint
    if settings.region:
        told["region"] = settings.region
    return told


def make_readable(con: "duckdb.DuckDBPyConnection", settings: "S3Settings") -> None:
    """Let a connection read s3:// addresses, within what its allowed_directories allow.

    Sealed files are never changed: size and time are asked for once, so DuckDB's cache of what was read stays valid.
    """
    with _library():
        from fsspec.asyn import sync
        from obstore.fsspec import FsspecStore

    class SealedFiles(FsspecStore):
        """Objects whose size, once known, stays."""

        cachable = False

        def __init__(self, **more: Any) -> None:
            super().__init__("s3", **more)
            self._known: dict[str, dict[str, Any]] = {}

        def info(self, path: str, **more: Any) -> dict[str, Any]:
            if path not in self._known:
                self._known[path] = sync(self.loop, self._info, path, **more)
            return self._known[path]

        def open(self, path: str, mode: str = "rb", **more: Any) -> Any:
            self.info(path)  # a file that is not there must not become half an object, whose end is an error again
            return super().open(path, mode, **more)

        def modified(self, path: str) -> datetime:  # noqa: ARG002 (the same for every file)
            return _UNCHANGED

    con.register_filesystem(SealedFiles(**options(settings)))


def unreachable(root: str, text: str) -> StoreError:
    """Say what storage answered, whole or from within what DuckDB says; without the library's inner detail."""
    found = _REASON.search(text)
    reason = found[1] if found else text.strip().splitlines()[0]
    return StoreError(
        f"the lake {root} does not answer as it should: {reason.strip()}",
        "rows that are not sealed yet can be read; check network, credentials and store.s3",
    )


def refused(root: str, text: str) -> StoreError | None:
    """Explain an error of DuckDB that comes from the storage of a lake at `root`; None for any other error."""
    return unreachable(root, text) if root.startswith("s3://") and _REASON.search(text) else None


@contextmanager
def _library() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise StoreError("a lake in S3 needs obstore", "pip install 'infractl[s3]'") from error
