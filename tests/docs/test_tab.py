"""Tab completion shows the public names, and no imported modules."""

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
def test_tab_completion_shows_only_public_names(name):
    module = getattr(sc, name)
    assert dir(module) == sorted(module.__all__) == SHOWN[name]
    assert all(inspect.isfunction(getattr(module, item)) for item in dir(module))


@pytest.mark.parametrize("name", SHOWN)
def test_a_star_import_gives_the_public_names(name):
    scope = {}
    exec(f"from sheafcoarsen.{name} import *", scope)
    assert sorted(scope.keys() - {"__builtins__"}) == SHOWN[name]
