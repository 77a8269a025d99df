"""Sizes set so that small sheaves take the ways of large ones."""

import pytest


@pytest.fixture
def small_clusters(monkeypatch):
    """Several levels on sheaves of a few dimensions."""
    monkeypatch.setattr("sheafcoarsen.sections.reduction.VERTICES", 3)
    monkeypatch.setattr("sheafcoarsen.sections.reduction.DIMENSION", 8)
    monkeypatch.setattr("sheafcoarsen.sections.reduction.LAST", 3)
    monkeypatch.setattr("sheafcoarsen.sections.zeroth.LAST", 3)


@pytest.fixture
def always_sparse(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.basis.DENSE_ENTRIES", 0)
    monkeypatch.setattr("sheafcoarsen.sections.basis.DENSE_COLUMNS", 0)
