"""Sizes for which small sheaves are treated like large ones."""

import pytest


@pytest.fixture
def small_clusters(monkeypatch):
    """Force several levels on sheaves of small dimension."""
    monkeypatch.setattr("sheafcoarsen.sections.clustering.VERTICES", 3)
    monkeypatch.setattr("sheafcoarsen.sections.clustering.DIMENSION", 8)
    monkeypatch.setattr("sheafcoarsen.sections.clustering.LAST", 3)


@pytest.fixture
def no_forests(monkeypatch):
    """Force coarsening for forests."""
    monkeypatch.setattr("sheafcoarsen.sections._global_sections.forest_sections", lambda F: None)


@pytest.fixture
def always_sparse(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 0)
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_COLUMNS", 0)
