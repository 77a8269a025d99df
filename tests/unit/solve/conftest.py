"""Multigrids with several levels, although the sheaves of this folder are small."""

import pytest


@pytest.fixture
def several_levels(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.solve.multigrid.COARSEST", 20)
