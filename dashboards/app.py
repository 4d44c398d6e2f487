"""The Dash app: layout, callbacks of a few lines over pure functions, and the path it is served under."""

from collections.abc import Callable, Iterable
from typing import Any, cast
from zoneinfo import ZoneInfo

import dash
from dash import ALL, MATCH, Input, Output, State, dcc, html

from dashboards.flight import SharedSource
from dashboards.frame import PARTS, REFRESH_S, filled, page_title, shell
from dashboards.source import Source, fetch
from dashboards.state import State as Shown
from dashboards.theme import Colours
from store.errors import UsageError
from store.zone import DEFAULT

INDEX = """<!DOCTYPE html>
<html lang="en" data-theme="dark">
<head>
{%metas%}
<title>{%title%}</title>
{%favicon%}
{%css%}
<script>document.documentElement.dataset.theme =
  new URLSearchParams(location.search).get("theme") === "light" ? "light" : "dark";</script>
</head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>"""
"""The page before any script: the theme is set at once, so that nobody is blinded at night."""


def create_app(source: Source, base_path: str = "/", zone: ZoneInfo = DEFAULT) -> dash.Dash:
    """Build the dashboard over a source, its times shown in `zone`; `app.server` is its WSGI application.

    It answers both with and without `base_path` in front of the path, so that proxies may keep or strip it. Raises
    UsageError for a base path that does not start with a slash.
    """
    base = _base(base_path)
    app = dash.Dash(
        "dashboards",
        requests_pathname_prefix=base,
        routes_pathname_prefix="/",
        title="infractl",
        update_title="",
        index_string=INDEX,
        suppress_callback_exceptions=True,
        add_log_handler=False,
    )
    app.layout = html.Div(
        [
            dcc.Location(id="url", refresh=False),
            dcc.Interval(id="tick", interval=REFRESH_S * 1000),
            dcc.Store(id="title"),
            html.Div(id="shell", className="shell"),
        ]
    )
    _callbacks(app, SharedSource(source), base, zone)
    app.server.wsgi_app = _under(base, app.server.wsgi_app)
    return app


def _callbacks(app: dash.Dash, source: Source, base: str, zone: ZoneInfo) -> None:
    colours = Colours()
    url = (Input("url", "pathname"), Input("url", "search"))

    @app.callback(Output("shell", "children"), Output("title", "data"), *url)
    def show(pathname: str | None, search: str | None) -> tuple[list[Any], str]:
        state = Shown.parse(pathname, search, base, zone)
        return shell(state), page_title(state)

    @app.callback(
        Output({"type": "panel", "name": MATCH, "at": MATCH}, "children"),
        Input({"type": "beat", "name": MATCH, "at": MATCH}, "data"),
        State({"type": "panel", "name": MATCH, "at": MATCH}, "id"),
    )
    def load(_beat: int | None, place: dict[str, str]) -> list[Any]:
        part, state = PARTS[place["name"]], Shown.parse(*_split(place["at"]), base, zone)
        return filled(part, fetch(source, part.needs, state), state, colours)

    browser, in_browser = dash.ClientsideFunction, cast("Any", app).clientside_callback
    in_browser(
        browser("infractl", "beat"),
        Output({"type": "beat", "name": MATCH, "at": MATCH}, "data"),
        Input("tick", "n_intervals"),
        Input("refresh", "n_clicks"),
        State({"type": "panel", "name": MATCH, "at": MATCH}, "id"),
        State("url", "search"),
        prevent_initial_call=True,
    )
    in_browser(browser("infractl", "theme"), Input("url", "search"))
    in_browser(browser("infractl", "title"), Input("title", "data"))
    in_browser(
        browser("infractl", "open"),
        Output("url", "pathname"),
        Input({"type": "figure", "name": ALL}, "clickData"),
        prevent_initial_call=True,
    )
    in_browser(
        browser("infractl", "range"),
        Output("url", "search"),
        Input("range", "n_submit"),
        Input("range", "n_blur"),
        Input({"type": "figure", "name": ALL}, "relayoutData"),
        State("range", "value"),
        State("url", "search"),
        prevent_initial_call=True,
    )


def _split(href: str) -> tuple[str, str]:
    path, mark, query = href.partition("?")
    return path, mark + query


def _base(text: str) -> str:
    if not text.startswith("/"):
        raise UsageError(f"base path {text!r} does not start with a slash", f"write it as /{text.strip('/')}/")
    return f"/{text.strip('/')}/".replace("//", "/")


def _under(base: str, application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Take `base` off the path where a proxy kept it; send `/infra` to `/infra/`."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == base[:-1] and base != "/":
            start_response("308 Permanent Redirect", [("Location", base), ("Content-Length", "0")])
            return []
        if path.startswith(base):
            environ = {**environ, "PATH_INFO": "/" + path.removeprefix(base)}
        return application(environ, start_response)

    return answer
