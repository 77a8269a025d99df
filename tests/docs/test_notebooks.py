"""The notebooks as they are stored; ``make notebooks`` runs them.

There are no outputs, nothing of one machine, and what a reader needs.
"""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def cells_of(name: str) -> list[dict]:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))["cells"]


def code_of(name: str) -> list[str]:
    return ["".join(cell["source"]) for cell in cells_of(name) if cell["cell_type"] == "code"]


def test_they_are_numbered():
    numbers = [int(name[:2]) for name in NAMES]
    assert numbers[:7] == [1, 2, 3, 4, 5, 6, 7]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_stored_without_outputs(name):
    for cell in cells_of(name):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], cell["id"]
            assert cell["execution_count"] is None, cell["id"]
        assert not cell.get("attachments"), cell["id"]


@pytest.mark.parametrize("name", NAMES)
def test_its_format_has_cell_ids_and_the_plain_kernel(name):
    notebook = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", id) for id in ids)


@pytest.mark.parametrize("name", NAMES)
def test_it_names_no_path_of_a_machine_and_no_network(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert not re.search(r"(^|[^\w.])/(home|root|tmp|opt|work|usr|Users)/", text)
    assert not re.search(r"\b[A-Z]:\\\\", text)
    assert not re.search(
        r"^\s*[!]|\bpip install\b|urllib|requests\b|urlopen", "\n".join(code_of(name)), re.MULTILINE
    )


@pytest.mark.parametrize("name", NAMES)
def test_it_begins_with_a_title_and_imports_the_library_under_its_name(name):
    first = cells_of(name)[0]
    assert first["cell_type"] == "markdown"
    assert "".join(first["source"]).startswith("# ")
    assert any("import sheafcoarsen as sc" in code for code in code_of(name))
