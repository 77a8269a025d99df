"""Doctests of pages run in the root of the repository, and close the figures that they draw."""

from pathlib import Path

import matplotlib as mpl
import pytest

mpl.use("agg")


@pytest.fixture(autouse=True)
def page(monkeypatch):
    """Run a page."""
    monkeypatch.chdir(Path(__file__).parent.parent)
    yield
    from matplotlib import pyplot

    pyplot.close("all")
