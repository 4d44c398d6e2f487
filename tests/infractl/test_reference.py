"""The reference pages in docs/ say what the program declares; `pytest --update-golden` rewrites them."""

from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from analytics.catalog import load_all
from collector.presets.catalog import catalog
from infractl.commands.catalog import COMMANDS
from infractl.reference import analyses_page, commands_page, tables_page
from infractl.sources_reference import metrics_page, source_page, sources_index
from store.tables import TABLES

ROOT = Path(__file__).parents[2]
COMMAND_OBJECTS = {n: import_module(f"infractl.commands.{e.module}").command for n, e in COMMANDS.items()}
PAGES = {
    "tables.md": lambda: tables_page(TABLES),
    "analyses.md": lambda: analyses_page(load_all()),
    "cli.md": lambda: commands_page(COMMAND_OBJECTS),
    "metrics.md": lambda: metrics_page(catalog()),
    **{f"sources/{source}.md": partial(source_page, source, catalog()) for source in catalog().files},
}


@pytest.mark.parametrize("name", PAGES)
def test_page_is_current(name: str, update_golden: bool):
    file, made = ROOT / "docs" / name, PAGES[name]()
    if update_golden:
        file.write_text(made, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == made, "run pytest --update-golden and read the diff"


def documentation() -> str:
    return "\n".join(
        p.read_text(encoding="utf-8") for p in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    )


def test_documentation_names_every_command_table_signal_alert_and_configuration_key():
    import yaml

    text = documentation()
    example = yaml.safe_load((ROOT / "infractl" / "infractl.example.yaml").read_text(encoding="utf-8"))
    wanted = [f"infractl {name}" for name in COMMANDS]
    wanted += [table.name for table in TABLES] + [c.name for table in TABLES for c in table.columns]
    wanted += [signal.metric for analysis in load_all() for signal in analysis.signals]
    wanted += [trigger.name for analysis in load_all() for trigger in analysis.triggers]
    wanted += list(example)
    assert [word for word in wanted if word not in text] == []


def test_every_source_has_a_page_that_says_what_it_needs_gives_and_how_to_check_it():
    index = (ROOT / "docs" / "sources" / "README.md").read_text(encoding="utf-8")
    assert [line for line in sources_index(catalog()) if line not in index] == []
    for page in (ROOT / "docs" / "sources").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        wanted = ("## What it needs", "## What it gives", "## How to check it")
        assert page.name == "README.md" or [title for title in wanted if title not in text] == [], page.name
        assert f"({page.name})" in index or page.name == "README.md"
    assert [source for source, file in catalog().files.items() if not (file.needs and file.check)] == []


def test_readme_names_the_two_commands_and_shows_a_screenshot_that_exists():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme
    picture = readme.split("](docs/")[1].split(")")[0]
    assert (ROOT / "docs" / picture).stat().st_size > 10_000


def test_every_link_between_documents_leads_somewhere():
    import re

    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    links = [(p, link) for p in pages for link in re.findall(r"\]\(([^)#:]+)\)", p.read_text(encoding="utf-8"))]
    broken = [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()]
    assert broken == []
