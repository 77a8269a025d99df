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


@pytest.fixture(params=NAMES)
def text(request):
    return (FOLDER / request.param).read_text(encoding="utf-8")


@pytest.fixture
def notebook(text):
    return json.loads(text)


@pytest.fixture
def code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_notebooks_are_numbered():
    numbers = [int(name[:2]) for name in NAMES]
    assert numbers[:7] == [1, 2, 3, 4, 5, 6, 7]
    assert len(set(numbers)) == len(numbers)


def test_it_is_stored_with_the_outputs_of_one_run(notebook, code):
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    kinds = {"stream", "display_data", "execute_result"}
    assert {output["output_type"] for output in outputs} <= kinds
    assert {output.get("name", "stdout") for output in outputs} == {"stdout"}
    assert any("image/png" in output.get("data", ()) for output in outputs)
    assert not any(cell.get("attachments") for cell in notebook["cells"])


def test_all_are_small():
    assert sum((FOLDER / name).stat().st_size for name in NAMES) < 2e6


@pytest.mark.parametrize(
    ("stored", "fresh", "equal"),
    [
        ("error 0.123,   took 12 ms", "error 0.123, took 5.2 s", True),
        ("error 0.123,   took 12 ms", "error 0.124, took 12 ms", True),
        ("error 0.123,   took 12 ms", "error 0.128, took 12 ms", False),
        ("error 0.123,   took 12 ms", "error -0.123, took 12 ms", False),
        ("error 0.123,   took 12 ms", "errors 0.123, took 12 ms", False),
        ("error 0.123,   took 12 ms", "error 0.123, took 12 ms 7", False),
        ("off by 1.1e-13", "off by 3.0e-14", True),
        ("off by 1.1e-13", "off by 1.1e-03", False),
        ("5 clusters", "6 clusters", False),
    ],
)
def test_outputs_are_compared_up_to_times_and_rounding_and_the_last_digit(stored, fresh, equal):
    assert notebook_outputs.same(stored, fresh) == equal


def test_cells_that_differ_are_named_until_they_are_stored():
    names = ("stderr", "stdout")
    said = [{"output_type": "stream", "name": name, "text": [name]} for name in names]
    same = {"id": "a", "cell_type": "markdown"}
    fresh = {"cells": [same, {"id": "b", "cell_type": "code", "outputs": said}]}
    stored = {"cells": [same, {"id": "b", "cell_type": "code", "outputs": []}]}
    assert notebook_outputs.differences(stored, fresh) == ["b"]
    notebook_outputs.store(stored, fresh)
    assert notebook_outputs.differences(stored, fresh) == []
    assert stored["cells"][1]["outputs"] == said[1:]


def test_notebooks_have_cell_ids_and_the_default_kernel_and_a_title(notebook, code):
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", id) for id in ids)
    first = notebook["cells"][0]
    assert first["cell_type"] == "markdown"
    assert "".join(first["source"]).startswith("# ")
    assert any("import sheafcoarsen as sc" in "".join(cell["source"]) for cell in code)


def test_notebooks_contain_no_machine_paths_or_network_access(text, code):
    text = re.sub(r'"image/png": "[^"]*"', "", text)
    assert not re.search(r"(^|[^\w.])/(home|root|tmp|opt|work|usr|Users)/", text)
    assert not re.search(r"\b[A-Z]:\\\\", text)
    lines = "\n".join("".join(cell["source"]) for cell in code)
    network = r"^\s*[!]|\bpip install\b|urllib|requests\b|urlopen"
    assert not re.search(network, lines, re.MULTILINE)
