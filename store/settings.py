"""`StoreSettings`: what the section `store` of the configuration says, each key once."""

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Retention:
    """How long and how much of a table is kept; None sets no bound."""

    age: timedelta | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class S3Settings:
    """Where an S3-compatible storage is, for a lake at an s3:// address.

    `endpoint` is its URL and None for AWS; `region` is None where AWS_REGION says it. A request that is not answered
    within `timeout_s` is tried again for as long, then given up. Credentials are never settings: they come from the AWS
    variables or the role of the machine or pod.
    """

    endpoint: str | None = None
    region: str | None = None
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How a store keeps, bounds and seals what it holds.

    `hot` is how long rows stay in the DuckDB file before their hour is sealed to Parquet: the journal keeps what is
    hot, so a longer time costs the disk twice. `lake` is a directory or an s3:// address, None for `lake` in the data
    directory. `node` names this machine in the lake. Ingest is refused while less than `min_free_bytes` of the disk is
    free. The query limits hold for SQL that a person writes.
    """

    hot: timedelta = timedelta(hours=6)
    lake: str | None = None
    node: str | None = None
    s3: S3Settings = field(default_factory=S3Settings)
    journal_limit_bytes: int | None = None
    min_free_bytes: int = 512 * 1024**2
    memory_limit_bytes: int | None = None
    threads: int | None = None
    spill_limit_bytes: int | None = None
    query_time_s: float = 60.0
    query_rows: int = 1_000_000
    query_memory_bytes: int | None = None
    queries: int = 4
    retention: dict[str, Retention] = field(default_factory=dict)
