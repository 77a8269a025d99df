"""Sheaves of all kinds, small enough for dense reference solutions; multigrids with levels."""

import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support import reference

GRID = nx.convert_node_labels_to_integers(nx.grid_2d_graph(7, 8))
PATH_AND_CYCLE = nx.disjoint_union(nx.path_graph(30), nx.cycle_graph(25))
REGULAR = nx.random_regular_graph(3, 80, seed=14)
MULTIGRAPH = nx.MultiGraph([(0, 0), (0, 1), (0, 1), (2, 2), *((i, i + 1) for i in range(1, 40))])


def _mixed(dtype, seed: int) -> CellularSheaf:
    rng = np.random.default_rng(seed)
    dims = rng.integers(0, 5, GRID.number_of_nodes())
    edge_dims = rng.integers(0, 5, GRID.number_of_edges())
    return CellularSheaf.random(GRID, dims, edge_dims, seed=seed, dtype=dtype)


SHEAVES = {
    "graph": CellularSheaf.constant(GRID),
    "two components": CellularSheaf.constant(PATH_AND_CYCLE, 2),
    "consistent bundle": sc.gallery.bundle(GRID, 3, seed=1),
    "noisy bundle": sc.gallery.bundle(GRID, 2, noise=0.1, seed=2),
    "complex connection": CellularSheaf.random(GRID, 2, 2, "orthogonal", seed=3, dtype=complex),
    "mixed stalks": _mixed(float, 5),
    "complex mixed stalks": _mixed(complex, 6),
    "loops, parallel edges": CellularSheaf.random(MULTIGRAPH, 2, 3, seed=7),
    "large kernel": CellularSheaf.random(GRID, 3, 1, seed=8),
    "sections of clusters": CellularSheaf.random(REGULAR, 2, 1, seed=14),
    "isolated vertices": CellularSheaf.constant([[i, i + 1] for i in range(40)], 2, n_vertices=60),
}


def unit_coboundary(F: CellularSheaf) -> tuple[np.ndarray, float]:
    """Return delta in double precision, in units of its largest entry, and that entry."""
    delta = reference.coboundary(F).astype(np.result_type(F.dtype, np.float64))
    unit = float(np.abs(delta).max(initial=0.0)) or 1.0
    return delta / unit, unit


def unit_laplacian(F: CellularSheaf) -> tuple[np.ndarray, float]:
    """Return L in units of the largest entry of delta squared, and that entry."""
    delta, unit = unit_coboundary(F)
    return delta.conj().T @ delta, unit


def quietly(*arguments, **options):
    """Return the harmonic extension without warnings about singular problems."""
    with warnings.catch_warnings(action="ignore", category=sc.SingularProblemWarning):
        return sc.harmonic_extension(*arguments, **options)


def interior(F, vertices):
    """Return the coordinates of all other vertices."""
    inside = np.ones(F.dim_c0, bool)
    for v in vertices:
        inside[reference.vertex_coordinates(F, v)] = False
    return np.flatnonzero(inside)


def clear_rank(D, eps):
    """Return the rank of D, if it is clear, and its smallest positive singular value."""
    sigma = np.linalg.svd(D, compute_uv=False)
    largest = sigma.max(initial=0.0)
    assume(not ((sigma > 1e-2 * eps * largest) & (sigma < 1e-2 * largest)).any() or largest == 0)
    rank = int((sigma > 1e-3 * largest).sum()) if largest else 0
    return rank, float(sigma[rank - 1]) if rank else 1.0


@pytest.fixture
def several_levels(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.solve.multigrid.COARSEST", 20)
