"""The file that pages load: small, alone, and both a script and a module."""

import gzip

from collector.browser.script import script
from tests.collector.browser.site import Site


def test_it_is_small() -> None:
    assert len(gzip.compress(script(), 9)) < 4300
    assert len(script()) < 11_000


def test_it_loads_nothing_else() -> None:
    assert not {word for word in (b"import", b"require(", b"http://", b"https://") if word in script()}


def test_it_is_a_module_as_well_as_a_script(site: Site) -> None:
    site.page.goto(f"{site.url}/module")
    site.page.wait_for_function("window.done === 1")
    site.run("infractl.stream().end()")
    assert site.span()["service"] == "chat-page"
    assert site.wrong == []
