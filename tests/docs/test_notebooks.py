"""The notebooks as they are stored; ``make notebooks`` runs them and compares the outputs.

They hold small outputs, nothing of one machine, and what a reader needs.
"""

import json
import re
from pathlib import Path

import pytest

from tests.docs import notebook_outputs

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def cells_of(name: str) -> list[dict]:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))["cells"]


def code_of(name: str) -> list[str]:
    return ["".join(cell["source"]) for cell in cells_of(name) if cell["cell_type"] == "code"]


def test_notebooks_are_numbered():
    numbers = [int(name[:2]) for name in NAMES]
    assert numbers[:7] == [1, 2, 3, 4, 5, 6, 7]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_stored_with_the_outputs_of_one_run(name):
    cells = cells_of(name)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    kinds = {"stream", "display_data", "execute_result"}
    assert {output["output_type"] for output in outputs} <= kinds
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
    assert any("image/png" in output.get("data", ()) for output in outputs)
    assert not any(cell.get("attachments") for cell in cells)


def test_all_are_small():
    assert sum((FOLDER / name).stat().st_size for name in NAMES) < 2e6


@pytest.mark.parametrize(
    ("fresh", "equal"),
    [
        ("error 0.123, took 5.2 s", True),
        ("error 0.124, took 12 ms", True),
        ("error 0.128, took 12 ms", False),
        ("error -0.123, took 12 ms", False),
        ("errors 0.123, took 12 ms", False),
        ("error 0.123, took 12 ms 7", False),
    ],
)
def test_outputs_are_compared_up_to_times_and_the_last_digit(fresh, equal):
    assert notebook_outputs.same("error 0.123,   took 12 ms", fresh) == equal


def test_numbers_of_rounding_are_equal_and_counts_are_exact():
    assert notebook_outputs.same("off by 1.1e-13", "off by 3.0e-14")
    assert not notebook_outputs.same("off by 1.1e-13", "off by 1.1e-03")
    assert not notebook_outputs.same("5 clusters", "6 clusters")


def test_the_cell_that_differs_is_named():
    stored = {"cells": [{"id": "a"}, {"id": "b", "outputs": []}]}
    printed = {"output_type": "stream", "name": "stdout", "text": ["new"]}
    fresh = {"cells": [{"id": "a"}, {"id": "b", "outputs": [printed]}]}
    assert notebook_outputs.differences(stored, fresh) == ["b"]


def test_what_is_stored_agrees_with_the_run():
    said = [
        {"output_type": "stream", "name": name, "text": [name]} for name in ("stderr", "stdout")
    ]
    fresh = {"cells": [{"id": "a", "cell_type": "code", "outputs": said}]}
    stored = {"cells": [{"id": "a", "cell_type": "code", "outputs": []}]}
    assert notebook_outputs.differences(stored, fresh) == ["a"]
    notebook_outputs.store(stored, fresh)
    assert notebook_outputs.differences(stored, fresh) == []
    assert stored["cells"][0]["outputs"] == said[1:]


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_have_cell_ids_and_the_default_kernel(name):
    notebook = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", id) for id in ids)


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_contain_no_machine_paths_or_network_access(name):
    text = re.sub(r'"image/png": "[^"]*"', "", (FOLDER / name).read_text(encoding="utf-8"))
    assert not re.search(r"(^|[^\w.])/(home|root|tmp|opt|work|usr|Users)/", text)
    assert not re.search(r"\b[A-Z]:\\\\", text)
    assert not re.search(
        r"^\s*[!]|\bpip install\b|urllib|requests\b|urlopen", "\n".join(code_of(name)), re.MULTILINE
    )


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_begin_with_a_title_and_import_the_library(name):
    first = cells_of(name)[0]
    assert first["cell_type"] == "markdown"
    assert "".join(first["source"]).startswith("# ")
    assert any("import sheafcoarsen as sc" in code for code in code_of(name))
