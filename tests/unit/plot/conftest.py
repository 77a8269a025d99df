"""Figures and fixtures for the tests of pictures."""

import matplotlib as mpl
import networkx as nx
import pytest
from matplotlib.figure import Figure

import sheafcoarsen as sc


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(autouse=True)
def no_figure_is_left_open():
    from matplotlib import pyplot

    mpl.use("Agg")
    pyplot.close("all")  # of other tests in this process
    yield
    assert pyplot.get_fignums() == []


@pytest.fixture
def C():
    F = sc.CellularSheaf.constant(nx.karate_club_graph())
    P = sc.select(F, 4)
    return sc.coarsen(F, P, [1, 2, 3, P.sizes[3]])  # all modes of the last cluster
