"""The documentation says what is: its links, names, numbers and diagram are looked up."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

import zkelect
from zkelect.core.lease import pace_of, steady_lease
from zkelect.errors import Refused
from zkelect.session.leadership import Leadership

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
PAGES: Final = sorted(DOCS.glob("*.md"))
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def text(page: Path) -> str:
    return page.read_text("utf-8")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text(page), re.DOTALL | re.MULTILINE)


def rows(page: Path, heading: str) -> list[list[str]]:
    """Return the cells of the table whose first heading is this."""
    table = re.search(
        rf"^\| {re.escape(heading)} \|.*\n\|[-:|]+\|\n((?:\|.*\n)+)", text(page), re.MULTILINE
    )
    assert table is not None
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table[1].splitlines()]


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", text(page), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)#\s]+)", prose)
    local = [link for link in links if "://" not in link]
    assert not [link for link in local if not (DOCS / link).exists()]


def test_the_index_has_every_page() -> None:
    index = text(DOCS / "README.md")
    assert not [page.name for page in PAGES if page.name != "README.md" and page.name not in index]


@every_page
def test_named_files_exist(page: Path) -> None:
    """A file is named by its path, or by the end of it; an example's are the reader's own."""
    prose = re.sub(r"^```python\n.*?^```", "", text(page), flags=re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"(?<!\.)\b[\w/*-]+\.(?:py|txt|cfg)\b", prose))
    known = [path.relative_to(ROOT).as_posix() for path in files()]
    assert not [name for name in named if not any(matches(name, path) for path in known)]


def files() -> list[Path]:
    folders = ("zkelect", "recipes", "tests", "integration", "docs")
    return [ROOT / "setup.cfg", *(path for name in folders for path in (ROOT / name).rglob("*.*"))]


def matches(name: str, path: str) -> bool:
    return PurePosixPath(path).match(name)


@every_page
def test_examples_are_python_and_use_public_names(page: Path) -> None:
    for example in blocks(page, "python"):
        compile(example, page.name, "exec")
        used = re.findall(r"\bzkelect\.(?!session|recipes)(\w+)", example)
        assert not [name for name in used if name not in zkelect.__all__]
        assert not [
            name
            for name in re.findall(r"\bstores\.(\w+)", example)
            if name not in zkelect.stores.__all__
        ]
        members = re.findall(r"\bleadership\.(\w+)", example)
        assert not [name for name in members if name not in dir(Leadership)]


def test_the_lease_table_is_what_the_rule_gives() -> None:
    for timeout, pace, unknown, slow, quick in rows(DOCS / "lease.md", "session timeout T"):
        seconds = float(timeout.removesuffix(" s"))
        assert pace == f"{pace_of(seconds):.2f} s"
        for cell, tick in ((unknown, None), (slow, 2.0), (quick, 0.2)):
            possible = tick is None or 2 * tick <= seconds
            assert cell == (f"{steady_lease(seconds, tick):.2f} s" if possible else "-")


def test_every_reason_a_leadership_ends_for_is_one() -> None:
    told = {row[2].strip("`") for row in rows(DOCS / "lease.md", "what happens")}
    assert told <= set(zkelect.Reason)


def test_every_refusal_is_explained() -> None:
    page = text(DOCS / "fencing.md")
    kinds = {kind.__name__ for kind in Refused.__subclasses__()}
    assert not [kind for kind in kinds if f"`{kind}`" not in page]


def test_the_diagram_is_the_one_drawn_from_the_table() -> None:
    """Copy it from transitions.md, which docs/transitions.py writes."""
    assert blocks(DOCS / "architecture.md", "mermaid") == blocks(DOCS / "transitions.md", "mermaid")


def test_every_module_of_core_and_session_has_its_place_in_the_house() -> None:
    house = text(DOCS / "architecture.md").partition("## The house")[2].partition("\n## ")[0]
    modules = [
        module.name
        for folder in ("core", "session")
        for module in (ROOT / "zkelect" / folder).glob("[!_]*.py")
    ]
    assert not [name for name in modules if f"`{name}`" not in house]
