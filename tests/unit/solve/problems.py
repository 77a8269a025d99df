"""Sheaves of all kinds for the tests in this folder, small enough for dense reference solutions."""

import networkx as nx
import numpy as np

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support import reference

GRID = nx.convert_node_labels_to_integers(nx.grid_2d_graph(7, 8))
MULTIGRAPH = nx.MultiGraph([(0, 0), (0, 1), (0, 1), (2, 2), *((i, i + 1) for i in range(1, 40))])


def _mixed(dtype, seed: int) -> CellularSheaf:
    rng = np.random.default_rng(seed)
    dims = rng.integers(0, 5, GRID.number_of_nodes())
    edge_dims = rng.integers(0, 5, GRID.number_of_edges())
    return CellularSheaf.random(GRID, dims, edge_dims, seed=seed, dtype=dtype)


SHEAVES = {
    "graph": CellularSheaf.constant(GRID),
    "two components": CellularSheaf.constant(
        nx.disjoint_union(nx.path_graph(30), nx.cycle_graph(25)), 2
    ),
    "consistent bundle": sc.gallery.bundle(GRID, 3, seed=1),
    "noisy bundle": sc.gallery.bundle(GRID, 2, noise=0.1, seed=2),
    "complex connection": CellularSheaf.random(
        GRID, 2, 2, kind="orthogonal", seed=3, dtype=complex
    ),
    "mixed stalks": _mixed(float, 5),
    "complex mixed stalks": _mixed(complex, 6),
    "loops, parallel edges": CellularSheaf.random(MULTIGRAPH, 2, 3, seed=7),
    "large kernel": CellularSheaf.random(GRID, 3, 1, seed=8),
    "sections of clusters": CellularSheaf.random(
        nx.random_regular_graph(3, 80, seed=14), 2, 1, seed=14
    ),
    "isolated vertices": CellularSheaf.constant(
        np.array([[i, i + 1] for i in range(40)]), 2, n_vertices=60, weight=None
    ),
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


def corridors(
    n: int = 15_115,
    closures: int = 1613,
    streets: int = 8,
    length: int = 40,
    spread: float = 0.0,
    seed: int = 0,
) -> CellularSheaf:
    """Return the rotations of a simulated pose graph: long chains of poses and few loop closures.

    A robot walks along the streets of a square, ``length`` poses from one crossing to the next, and
    recognizes some of the places it has visited. ``spread`` is the standard deviation of the
    logarithms of the weights.
    """
    rng = np.random.default_rng(seed)
    crossings = [(0, 0)]
    for _ in range(-(-n // length)):
        x, y = crossings[-1]
        ways = [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
        ways = [v for v in ways if 0 <= min(v) <= max(v) < streets and v not in crossings[-2:-1]]
        crossings.append(ways[rng.integers(len(ways))])
    steps = np.repeat(np.diff(crossings, axis=0), length, axis=0)[: n - 1]
    places = np.cumsum([[0, 0], *steps], axis=0) @ [streets * length, 1]
    order = np.argsort(places, kind="stable")
    again = places[order[1:]] == places[order[:-1]]
    seen = np.stack([order[:-1], order[1:]], axis=1)[again]
    seen = seen[rng.choice(len(seen), closures, replace=False)]
    edges = np.concatenate([np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), seen])
    headings = rng.uniform(-np.pi, np.pi, n)
    angles = np.diff(headings[edges], axis=1)[:, 0] + 0.01 * rng.standard_normal(len(edges))
    cosines, sines = np.cos(angles), np.sin(angles)
    turns = np.stack([cosines, -sines, sines, cosines], axis=1).reshape(-1, 2, 2)
    weights = np.exp(spread * rng.standard_normal(len(edges)))
    return CellularSheaf.connection(edges, turns, weight=weights, n_vertices=n)
