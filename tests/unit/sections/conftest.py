"""Sizes for which small sheaves are treated like large ones."""

import pytest


@pytest.fixture
def cluster_sizes(monkeypatch):
    """Return a function that sets the sizes of clusters and of the last level."""

    def choose(vertices, dimension, last):
        monkeypatch.setattr("sheafcoarsen.sections.clustering.VERTICES", vertices)
        monkeypatch.setattr("sheafcoarsen.sections.clustering.DIMENSION", dimension)
        monkeypatch.setattr("sheafcoarsen.sections.clustering.LAST", last)

    return choose


@pytest.fixture
def small_clusters(cluster_sizes):
    """Force several levels on sheaves of small dimension."""
    cluster_sizes(3, 8, 3)


@pytest.fixture
def no_forests(monkeypatch):
    """Force coarsening for forests."""
    monkeypatch.setattr("sheafcoarsen.sections._global_sections.forest_sections", lambda F: None)


@pytest.fixture
def always_sparse(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 0)
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_COLUMNS", 0)
