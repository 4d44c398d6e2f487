"""Deep links into the app: the page of an alert's analysis with the alert's service in view."""

from urllib.parse import quote_plus

DASHBOARD_URL = "http://127.0.0.1:8050"
"""Where `infractl serve` answers by default; set it to where your people open it."""

PAGES = {"overview": "/", "p99": "/latency", "latency": "/segments"}
"""Pages whose path is not the name of their analysis."""
ENGINES = "/engines"
MEANT_FOR_URLS = "urlquery"
"""Go's function that escapes a text for a query; quote_plus does the same."""


def page_of(analysis: str | None, of_service: bool = False) -> str:
    """Return the path of an analysis' page; without one, that of the engines for an alert on a service."""
    if analysis is None:
        return ENGINES if of_service else "/"
    return PAGES.get(analysis, f"/{analysis}")


def url_template(base: str, path: str, service_label: str | None) -> str:
    """Return the URL as Prometheus' template; a sample without the label leads to the page of all services."""
    query = (
        f"{{{{ with $labels.{service_label} }}}}?service={{{{ . | {MEANT_FOR_URLS} }}}}{{{{ end }}}}"
        if service_label
        else ""
    )
    return base.rstrip("/") + path + query


def url_at(base: str, path: str, service: str = "") -> str:
    """Return the URL with a service in view; an empty one shows all."""
    return base.rstrip("/") + path + (f"?service={quote_plus(service)}" if service else "")
