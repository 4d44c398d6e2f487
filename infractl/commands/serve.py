"""`infractl serve`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infractl.settings import config_option, content, current_config, data_option, schedules, telemetry, zone_option
from store.errors import UsageError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


@click.command()
@config_option
@data_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8050, show_default=True, help="Dashboard, API and /metrics; 0 takes a free one.")
@click.option("--otlp-http-port", default=4318, show_default=True, help="OTLP over HTTP; 0 free, -1 off.")
@click.option("--otlp-grpc-port", default=4317, show_default=True, help="OTLP over gRPC; 0 free, -1 off.")
@click.option(
    "--otlp-allowed-origin",
    "otlp_allowed_origins",
    multiple=True,
    metavar="ORIGIN",
    help="Origin whose pages may send OTLP/HTTP, e.g. https://chat.example.com; repeatable.  [default: none]",
)
@click.option("--base-path", default="/", show_default=True, help="Path the dashboard is served under, e.g. /infra/.")
@zone_option
def command(data: Path, base_path: str, time_zone: "ZoneInfo", **ports: Any) -> None:
    """Collect, store, analyse, alert and show, in one process."""
    from collector.otlp.cors import checked_origins
    from infractl.pricing import own_prices
    from infractl.probing import configured_probes
    from infractl.server.log import log_to_stderr
    from infractl.server.process import Options, serve
    from infractl.sources import kv_event_entries, local_targets, scrape_jobs
    from infractl.storage import store_settings

    log_to_stderr()
    config = current_config()
    options = Options(
        data=data,
        host=ports["host"],
        port=ports["port"],
        otlp_http_port=_or_off(ports["otlp_http_port"]),
        otlp_grpc_port=_or_off(ports["otlp_grpc_port"]),
        otlp_allowed_origins=checked_origins(ports["otlp_allowed_origins"]),
        base_path=checked_base(base_path),
        time_zone=time_zone,
        targets=local_targets(config),
        jobs=scrape_jobs(config),
        kv_events=kv_event_entries(config),
        probes=configured_probes(config),
        prices=own_prices(config),
        content=content(config),
        telemetry=telemetry(config),
        store=store_settings(config),
        schedules=schedules(config, time_zone),
    )
    serve(options, announce)


def announce(address: Any) -> None:
    """Say where everything listens."""
    click.echo(f"dashboard  {address.url}", err=True)
    click.echo(f"metrics    {address.url.rstrip('/')}/metrics", err=True)
    click.echo(f"receives   {address.root}/api/v1/write (Prometheus remote write)", err=True)
    if address.otlp_http_port:
        click.echo(f"OTLP/HTTP  port {address.otlp_http_port} (/v1/traces, /v1/metrics)", err=True)
    if address.otlp_grpc_port:
        click.echo(f"OTLP/gRPC  port {address.otlp_grpc_port}", err=True)


def checked_base(path: str) -> str:
    """Return the base path with both slashes. Raises UsageError for anything that is no path."""
    if not path.startswith("/") or any(c in path for c in "?#% "):
        raise UsageError(f"--base-path cannot be {path!r}", "write it like /infra/")
    return path if path.endswith("/") else path + "/"


def _or_off(port: int) -> int | None:
    return None if port < 0 else port
