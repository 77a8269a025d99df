"""Pages of documentation: what they name exists, and prose keeps to 100 columns."""

import importlib.util
import re
from pathlib import Path

import pytest

import sheafcoarsen as sc
from benchmarks import answers, report, synchronization
from sheafcoarsen._kernels import compile_notice

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
def test_prose_has_at_most_100_columns(page):
    lines = prose_of(page).splitlines()
    assert [line for line in lines if len(line) > WIDTH and not line.startswith("|")] == []


@pages
def test_link_targets_exist(page):
    text = prose_of(page)
    for target in re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r'<img src="([^"]+)"', text):
        # the site shows notebooks next to its pages
        of_the_site = ROOT / target.removeprefix("../")
        exists = target[-6:] == ".ipynb" and of_the_site.exists()
        assert target.startswith("https://") or exists or (page.parent / target).exists(), target


def test_pages_name_one_compile_time():
    """The time in the notice of the first call is the one that pages name."""
    [time] = re.findall(r"the first coarsening takes .* half a minute", compile_notice.NOTICE)
    pages = ("README.md", "docs/install.md", "docs/troubleshooting.md", "docs/should_i_use_this.md")
    texts = [" ".join((ROOT / page).read_text(encoding="utf-8").split()) for page in pages]
    assert [time in text for text in texts] == [True] * len(pages)


def test_broken_links_of_the_site_are_found(tmp_path):
    spec = importlib.util.spec_from_file_location("links", ROOT / "docs" / "links.py")
    links = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(links)
    text = '<a href="b.html#x"><a href="b.html#y"><a href="c.html"><a href="mailto:d"><img src="e">'
    (tmp_path / "a.html").write_text(text, encoding="utf-8")
    (tmp_path / "b.html").write_text('<p id="x"><a href="#x">', encoding="utf-8")
    assert links.broken(tmp_path) == [("a.html", name) for name in ("b.html#y", "c.html", "e")]


def test_tables_of_benchmarks_have_a_place():
    text = report.PAGE.read_text(encoding="utf-8")
    names = [f"<!-- {name} -->" for name in ("benchmark", answers.MARKER, synchronization.MARKER)]
    assert [text.count(name) for name in names] == [2, 2, 2]


@pages
def test_named_files_exist(page):
    """A path in backticks is one of the repository, or of the package."""
    if page.stem == "CHANGELOG":  # tells of files that are gone, too
        return
    for name in re.findall(r"`(\w[\w./]*/|\w[\w/]*\.(?:py|md|toml))`", prose_of(page)):
        places = (ROOT, PACKAGE, page.parent)
        assert name == "dist/" or any((place / name).exists() for place in places), name


@pages
def test_named_modules_and_functions_exist(page):
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
