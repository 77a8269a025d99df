"""Plain words in docstrings, comments, pages and notebooks."""

import json
import pathlib

import pytest

from benchmarks.size import occurrences, prose

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "sheafcoarsen"
UNREAD = ("__pycache__", "py.typed")
ABSENT = ("so many", "room", "judge", "told", "beside", "None where")
REVIEWED = sorted(path.name for path in PACKAGE.iterdir() if path.name not in UNREAD)


def test_prose_is_found_in_docstrings_comments_and_messages():
    source = '"""So\nmany."""\nx = 1  # so many\ny = "so many"\nz = "room"\n'
    found = [(line, kind) for line, kind, text in prose(source) if occurrences("so many", text)]
    assert sorted(found) == [(1, "docstring"), (3, "comment"), (4, "message")]


@pytest.mark.parametrize("name", REVIEWED)
def test_unclear_words_are_absent(name):
    path = PACKAGE / name
    offenders = [
        f"{file.relative_to(PACKAGE)}:{line}: {word}"
        for file in ([path] if path.suffix else sorted(path.rglob("*.py")))
        for line, kind, text in prose(file.read_text("utf-8"))
        for word in ABSENT
        if kind != "message" and occurrences(word, text)
    ]
    assert not offenders, "\n".join(offenders)


def test_unclear_words_are_absent_from_pages_and_notebooks():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/guides/*.md")]
    texts = {page.name: page.read_text("utf-8") for page in pages}
    for path in ROOT.glob("notebooks/*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        prose_cells = ("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        texts[path.name] = "\n".join(prose_cells)
    found = [(name, w) for name, text in texts.items() for w in ABSENT if occurrences(w, text)]
    assert sorted(found) == []
