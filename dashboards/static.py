"""Component trees as HTML text: the same pages, in a file that needs no server."""

from html import escape
from typing import Any

import orjson

BODY = "data-body"
"""Attribute in which a table carries its rows as HTML."""
VOID = ("br", "hr", "img", "input")
SAID = {"className": "class", "colSpan": "colspan"}
CONTROLS = {"evidence", "button", "preset", "choice"}
"""Links that change what a page shows; a file cannot."""
KEPT = ("id", "className", "title", "role", "href", "type", "hidden", "open", "colSpan")


def to_html(tree: Any, links: bool = False) -> str:
    """Return the HTML of a tree of dash components; everything that is text is escaped.

    Links within the app lead nowhere in a file: they become text, a trace's link its whole id, unless `links`. Figures
    become a place with their data beside it. Raises TypeError for a component that has no static form.
    """
    if tree is None:
        return ""
    if isinstance(tree, (list, tuple)):
        return "".join(to_html(item, links) for item in tree)
    if isinstance(tree, (str, int, float)):
        return escape(str(tree))
    kind = type(tree).__name__
    if kind == "Graph":
        return _figure(tree)
    if kind == "Link":
        return _element("a", tree, tree.children, links) if links else _link(tree)
    if not type(tree).__module__.startswith("dash.html"):
        raise TypeError(f"{kind} has no static form")
    return _element(kind.lower(), tree, getattr(tree, "children", None), links)


def as_json(value: Any) -> str:
    """Return JSON that may stand within a script element: no text in it can end the element."""
    text = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _element(tag: str, tree: Any, children: Any, links: bool) -> str:
    start = f"<{tag}{_attributes(tree)}>"
    rows = getattr(tree, BODY, None)  # made by dashboards.cells, escaped there
    body = f"<tbody>{rows}</tbody>" if rows else ""
    return start if tag in VOID else f"{start}{to_html(children, links)}{body}</{tag}>"


def _attributes(tree: Any) -> str:
    given = {name: value for name, value in sorted(vars(tree).items()) if _is_kept(name) and value is not None}
    if type(tree).__name__ == "A" and not str(given.get("href", "")).startswith("#"):
        given.pop("href", None)
    texts = [
        f" {SAID.get(name, name)}" if value is True else f' {SAID.get(name, name)}="{escape(str(value))}"'
        for name, value in given.items()
        if value is not False
    ]
    style = getattr(tree, "style", None)
    return "".join(texts) + (f' style="{escape(_css(style))}"' if style else "")


def _is_kept(name: str) -> bool:
    return name in KEPT or (name.startswith(("data-", "aria-")) and name != BODY)


def _css(style: dict[str, Any]) -> str:
    dashed = {"".join(f"-{c.lower()}" if c.isupper() else c for c in name): value for name, value in style.items()}
    return ";".join(f"{name}:{value}" for name, value in dashed.items())


def _link(tree: Any) -> str:
    name = getattr(tree, "className", None) or ""
    if name == "trace":
        text = str(getattr(tree, "title", "")).removeprefix("trace ")
        return f'<code class="trace">{escape(text)}</code>'
    return "" if set(name.split()) & CONTROLS else f'<span class="{escape(name)}">{to_html(tree.children)}</span>'


def _figure(tree: Any) -> str:
    height = tree.figure["layout"].get("height", 300)
    return (
        f'<div class="plot" style="height:{int(height)}px"><script type="application/json">'
        f"{as_json(tree.figure)}</script></div>"
    )
