"""Unclear words do not occur in docstrings and comments."""

import pathlib

import pytest

from benchmarks.size import occurrences, prose

PACKAGE = pathlib.Path(__file__).parents[2] / "sheafcoarsen"
UNREAD = ("__pycache__", "py.typed")
ABSENT = ("so many", "room", "judge", "told", "beside", "stands", "None where")
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
