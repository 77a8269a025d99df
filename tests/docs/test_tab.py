"""What TAB shows: the public names and nothing that happens to be imported."""

import inspect

import pytest

import sheafcoarsen as sc

SHOWN = {
    "gallery": [
        "bar_framework",
        "bundle",
        "connection_from_points",
        "cycle",
        "field_indices",
        "nearest_neighbors",
        "tangent_bundle",
        "tangent_frames",
        "vertex_areas",
    ],
    "plot": [
        "elimination",
        "field",
        "hierarchy",
        "ledger",
        "modes",
        "partition",
        "poses",
        "quality",
        "spectra",
        "surface",
    ],
    "ranks": ["below", "budget", "fixed", "gap", "kernel"],
}


@pytest.mark.parametrize("name", SHOWN)
def test_tab_shows_what_is_meant(name):
    module = getattr(sc, name)
    assert dir(module) == sorted(module.__all__) == SHOWN[name]
    assert all(inspect.isfunction(getattr(module, item)) for item in dir(module))


@pytest.mark.parametrize("name", SHOWN)
def test_a_star_import_brings_the_same(name):
    scope = {}
    exec(f"from sheafcoarsen.{name} import *", scope)
    assert sorted(scope.keys() - {"__builtins__"}) == SHOWN[name]
