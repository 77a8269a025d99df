"""The recipes of the guides run as they stand: those for PyTorch where it is installed."""

import doctest
import os
import re
from pathlib import Path

import pytest

from tests.support.kernels import JIT_IS_OFF

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


def run_blocks(page):
    """Run the Python blocks of a page one after the other; return what they leave behind."""
    text = (GUIDES / page).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    names = {"__name__": "recipe"}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
    return names


@pytest.mark.parametrize("page", ["learned_maps.md", "power.md"])
def test_examples_of_the_page(page):
    result = doctest.testfile(str(GUIDES / page), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0


@pytest.mark.skipif("SHEAFCOARSEN_DATA" not in os.environ, reason="SHEAFCOARSEN_DATA is not set")
def test_power(monkeypatch, capsys):
    monkeypatch.chdir(os.environ["SHEAFCOARSEN_DATA"])
    names = run_blocks("power.md")
    out = capsys.readouterr().out
    # what the solved voltages lose by the definition, phase by phase
    assert re.search(r"^96\.0 kW lost", out)
    voltages, injections = map(float, re.findall(r"\d\.\de-\d\d", out))
    assert voltages < 1e-3
    assert injections < 2e-2
    assert names["G"].n_vertices == 68


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_torch(capsys):
    pytest.importorskip("torch")
    run_blocks("learned_maps.md")
    assert "the energy of what is pooled went from" in capsys.readouterr().out
