"""The pages beside the code: what they name exists, and prose keeps to 100 columns."""

import importlib.util
import re
from pathlib import Path

import pytest

import sheafcoarsen as sc

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
]
WIDTH = 100
PACKAGE = ROOT / "sheafcoarsen"

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def prose_of(page: Path) -> str:
    """Return a page without its fenced blocks."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


@pages
def test_prose_keeps_to_100_columns(page):
    lines = prose_of(page).splitlines()
    assert [line for line in lines if len(line) > WIDTH and not line.startswith("|")] == []


@pages
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", prose_of(page)):
        # the site shows notebooks beside its pages
        of_the_site = ROOT / target.removeprefix("../")
        exists = (page.parent / target).exists() or (
            target[-6:] == ".ipynb" and of_the_site.exists()
        )
        assert target.startswith("https://") or exists, target


@pages
def test_files_that_are_named_exist(page):
    """A path in backticks is one of the repository, or of the package."""
    if page.stem == "CHANGELOG":  # tells of files that are gone, too
        return
    for name in re.findall(r"`(\w[\w./]*/|\w[\w/]*\.(?:py|md|toml))`", prose_of(page)):
        places = (ROOT, PACKAGE, page.parent)
        assert name == "dist/" or any((place / name).exists() for place in places), name


@pages
def test_modules_and_names_exist(page):
    text = page.read_text(encoding="utf-8")
    for module in re.findall(r"python -m ((?:benchmarks|sheafcoarsen)[\w.]*)", text):
        assert importlib.util.find_spec(module) is not None, module
    for name in re.findall(r"\bsc\.([A-Za-z]\w*(?:\.[a-z]\w*)?)", text):
        found = sc
        for part in name.split("."):
            if not hasattr(found, part) and part in getattr(found, "__dataclass_fields__", {}):
                break
            assert hasattr(found, part), f"sc.{name}"
            found = getattr(found, part)
