"""The frame around every page: rail, top bar with range, services, refresh and theme, and the places panels load in."""

from functools import partial
from itertools import groupby
from typing import Any

from dash import dcc, html

from analytics.result import Result
from dashboards import words
from dashboards.catalog import PAGES, Page, Panel, page_at
from dashboards.panels import failed, icon, link, panel, skeleton
from dashboards.source import UNFILTERED, Answers, Failure, attempt
from dashboards.state import State
from dashboards.theme import Colours, named

PRESETS = ("15m", "1h", "6h", "24h", "7d")

KEYS = (("/", "choose services"), ("t", "set the time range"), ("r", "refresh now"), ("?", "show this help"))

REFRESH_S = 15
"""Seconds between refreshes; a panel still loading skips its turn."""


def shell(state: State) -> list[Any]:
    """Return everything inside the root element for a URL."""
    page = page_at(state.path)
    content = [slot(part, state) for part in page.panels] if page else [_not_found(state)]
    main = html.Main([html.Div(content, className="grid")], className="content")
    right = html.Div([_bar(state), main], className="right")
    return [_rail(state, page), right, _help()]


def page_title(state: State) -> str:
    """Return the title of the browser's tab."""
    page = page_at(state.path)
    return f"{page.title if page else 'Not found'} · infractl"


def slot(part: Panel, state: State) -> html.Div:
    """Return the place a panel loads into; its id holds the URL, so a new URL is a new panel."""
    at = state.href()
    beat = dcc.Store(id={"type": "beat", "name": part.name, "at": at})
    body = html.Div(skeleton(), id={"type": "panel", "name": part.name, "at": at}, className="slot")
    return html.Div([beat, body], className="slot")


def filled(part: Panel, answers: Answers, state: State, colours: Colours) -> list[Any]:
    """Return a panel's body and, for each need that failed, what failed and what still works."""
    broken = [failed(failure, _works(answers)) for failure in answers.failures]
    body = attempt(f"the {part.name} panel", partial(part.body, answers, state, colours))
    return [failed(body, _works(answers)), *broken] if isinstance(body, Failure) else [*body, *broken]


def services_menu(answers: Answers, state: State, colours: Colours) -> list[Any]:
    """Return the service filter and the time the data is as of."""
    result = answers.results.get(UNFILTERED)
    names = sorted(result.frames["services"]["service"].drop_nulls().to_list()) if result else []
    colours.learn(names)
    theme = named(state.theme)
    options = [
        link(
            [html.Span(className="dot", style={"background": colours.of(name, theme)}), name],
            state.href(services=state.toggled(name)),
            className="option on" if name in state.services else "option",
        )
        for name in sorted({*names, *state.services})
    ]
    every = link("All services", state.href(services=()), className="option" if state.services else "option on")
    label = ", ".join(state.services[:2]) + (f" +{len(state.services) - 2}" if len(state.services) > 2 else "")
    face = html.Summary([html.Span("service", className="quiet"), label or "all", icon("down")], className="button")
    menu = html.Details([face, html.Div([every, *options], className="menu")], id="services", className="dropdown")
    return [menu, *_as_of(result, state)]


SERVICES = Panel("menu", (UNFILTERED,), services_menu)

PARTS = {part.name: part for part in (SERVICES, *(part for page in PAGES for part in page.panels))}
"""Every panel by name."""


def _as_of(result: Result | None, state: State) -> list[Any]:
    if result is None:
        return []
    end = words.aware(result.window.end).astimezone(state.zone)
    fixed = state.href(window=str(result.window))
    pin = link(
        [icon("pin"), "Pin"],
        fixed,
        className="button ghost",
        title="Fix the range, so that a shared link shows this very window",
    )
    seen = html.Span(f"as of {end:%H:%M:%S} {state.zone.key}", className="as-of quiet", title=str(result.window))
    return [seen, pin]


def _rail(state: State, page: Page | None) -> html.Nav:
    items: list[Any] = []
    for group, pages in groupby((item for item in PAGES if item.listed), key=lambda item: item.group):
        items += [html.Div(group, className="group")] if group else []
        items += [_entry(item, state, item is page) for item in pages]
    brand = link(
        [html.Span(className="logo"), html.Span("infractl")],
        state.href("/", focus=None, residuals=False),
        className="brand",
    )
    return html.Nav(html.Div([brand, *items]), className="rail", title="pages")


def _entry(item: Page, state: State, here: bool) -> Any:
    return link(
        [icon(item.icon), html.Span(item.title)],
        state.href(item.path, focus=None, residuals=False),
        className="item active" if here else "item",
        title=item.title,
    )


def _bar(state: State) -> html.Header:
    presets = [
        link(text, state.href(window=text), className="preset on" if state.window == text else "preset")
        for text in PRESETS
    ]
    custom = dcc.Input(
        id="range", type="text", value=state.window or "", placeholder="24h or A..B", debounce=True, className="range"
    )  # fmt: skip
    other = "light" if state.theme == "dark" else "dark"
    live = link(
        [icon("pause" if state.live else "play"), "Pause" if state.live else "Resume"],
        state.href(live=not state.live),
        className="button" if state.live else "button on",
        title=f"refreshes every {REFRESH_S} s" if state.live else "paused",
    )
    right = [
        html.Button([icon("refresh"), "Refresh"], id="refresh", className="button", n_clicks=0),
        live,
        link(
            [icon("sun" if other == "light" else "moon"), other.capitalize()],
            state.href(theme=other),
            className="button",
            id="theme",
        ),
        html.Button([icon("link"), "Copy link"], id="share", className="button"),
    ]
    times = html.Div([icon("clock"), html.Div(presets, className="presets"), custom], className="times")
    return html.Header([times, slot(SERVICES, state), html.Div(right, className="actions")], className="bar")


def _help() -> html.Div:
    rows = [html.Div([html.Kbd(key), text]) for key, text in KEYS]
    return html.Div(
        [html.B("Keys"), *rows, html.P("Drag over a chart to zoom the page; Back undoes it.")],
        id="help",
        className="help",
        hidden=True,
    )


def _not_found(state: State) -> Any:
    home = link("Go to the overview", state.href("/"), className="button")
    return panel(f"There is no page {state.path}", "", home)


def _works(answers: Answers) -> str:
    names = [*answers.results, *(["the store's status"] if answers.status else [])]
    return f"Still working: {', '.join(names)}." if names else ""
