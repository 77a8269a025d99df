"""``docs/paper.md``: every label of the paper has a row, and its code and tests exist."""

import ast
import collections
import functools
import importlib
import inspect
import re
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
LABEL = re.compile(r"\b(?:eq|thm|prop|cor):[A-Za-z](?:[\w-]*\w)?")
TICKED = re.compile(r"`([^`]+)`")

# each row consists of label, statement, code and test, all as text
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split(" | "))
    for line in PAGE.splitlines()
    if re.match(r"\| `\w+:", line)
]
LABELS = [row[0].strip("`") for row in ROWS]


def names_of(cell: str) -> list[str]:
    """Return the dotted names of the package in a cell."""
    return [name for name in TICKED.findall(cell) if name.startswith("sheafcoarsen.")]


def resolve(name: str):
    """Return the object with a dotted name, and the object whose docstring describes it."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = owner = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            owner = found
            if not hasattr(found, part):  # a field of a dataclass is described by its class
                return getattr(found, "__dataclass_fields__", {})[part], found
            found = inspect.getattr_static(found, part) if inspect.isclass(found) else None
            found = getattr(owner, part) if found is None else found
        return found, found
    raise ModuleNotFoundError(name)


def source_of(item) -> str:
    """Return the source of a function, method, property or class; of a class, its docstring."""
    if isinstance(item, property):
        item = item.fget
    elif isinstance(item, cached_property):
        item = item.func
    elif isinstance(item, classmethod | staticmethod):
        item = item.__func__
    item = getattr(item, "py_func", item)  # a compiled kernel
    return item.__doc__ or "" if inspect.isclass(item) else inspect.getsource(inspect.unwrap(item))


@functools.cache
def functions_of(path: Path) -> set[str]:
    """Return the names of a test file's functions."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {item.name for item in body if isinstance(item, ast.FunctionDef)}


def test_every_label_has_one_row():
    assert [label for label, n in collections.Counter(LABELS).items() if n > 1] == []
    kinds = collections.Counter(label.partition(":")[0] for label in LABELS)
    assert kinds == {"eq": 86, "thm": 3, "prop": 2, "cor": 1}
    assert all(len(row) == 4 for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=LABELS)
def test_the_named_code_exists_and_cites_the_label(row):
    label, _, code, test = row
    names = names_of(code)
    if not names:  # then the cell must say why there is no code
        assert len(code.split()) > 2
        return
    assert test != "none"
    cited = [n for n in names if label.strip("`") in LABEL.findall(source_of(resolve(n)[1]))]
    assert cited, f"{label} is not cited in {names}"


@pytest.mark.parametrize("row", ROWS, ids=LABELS)
def test_the_named_tests_exist(row):
    if row[3] == "none":
        return
    ids = TICKED.findall(row[3])
    assert ids
    for path, _, name in (id.partition("::") for id in ids):
        file = ROOT / path
        if not file.is_file() or name not in functions_of(file):
            files = (ROOT / "tests").rglob("test_*.py")
            now = [str(f.relative_to(ROOT)) for f in files if name in functions_of(f)]
            raise AssertionError(f"{path} has no {name}; it is in {now}: change docs/paper.md")


def test_other_names_on_the_page_exist():
    for name in TICKED.findall(re.sub(r"^\|.*$", "", PAGE, flags=re.MULTILINE)):
        if name.startswith("sheafcoarsen."):
            resolve(name)
        elif "/" in name:
            assert (ROOT / name).exists(), name


def test_all_cited_labels_are_on_the_page():
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    files += (ROOT / "notebooks").glob("*.ipynb")
    for folder in ("sheafcoarsen", "tests", "benchmarks"):
        files += (ROOT / folder).rglob("*.py")
    for file in files:
        unknown = set(LABEL.findall(file.read_text(encoding="utf-8"))) - set(LABELS)
        assert not unknown, f"{file.relative_to(ROOT)}: {unknown}"
