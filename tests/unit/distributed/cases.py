"""Sheaves that the tests in this folder share, and the comparison of two coarsenings."""

import networkx as nx
import numpy as np

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from tests.support.helpers import ties_allowed


def ragged_sheaf(dtype=np.float64, seed=0, n=40, m=90):
    """Return a sheaf of ragged stalks, with parallel edges, loops and isolated vertices."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n - 2, (m, 2))
    edges[:5] = edges[5:10]
    edges[10, 1] = edges[10, 0]
    vertex_dims, edge_dims = rng.integers(1, 4, n), rng.integers(0, 4, m)
    data = []
    for end in (0, 1):
        count = int((edge_dims * vertex_dims[edges[:, end]]).sum())
        values = rng.standard_normal(count)
        if np.dtype(dtype).kind == "c":
            values = values + 1j * rng.standard_normal(count)
        data.append(values.astype(dtype))
    return sc.CellularSheaf.from_flat(edges, *data, vertex_dims, edge_dims)


def grid_sheaf(side=9, dtype=np.float64):
    return sc.CellularSheaf.random(nx.grid_2d_graph(side, side), 2, 3, seed=3, dtype=dtype)


def coarsened_twice(place, F, P, rank, part_bytes=5000, *, n_shards=3, compress=True, **options):
    """Return a coarsening made in memory, and the same made from store to store."""
    src = dist.to_store(place("src"), F, part_bytes)
    with ties_allowed():
        C = sc.coarsen(F, P, rank, compress=compress, **options)
        D = dist.coarsen(
            src, place("out"), P, rank, n_shards=n_shards, compress=compress, **options
        )
    return C, D


def differences(C, D):
    """Return the names of the attributes in which two coarsenings in memory differ by any bit."""
    pairs = [(f"sheaf.{name}", getattr(C.sheaf, name), getattr(D.sheaf, name)) for name in ARRAYS]
    pairs += [
        (f"R.{name}", getattr(C.prolongation, name), getattr(D.prolongation, name))
        for name in ("data", "indices", "indptr")
    ]
    pairs += [(name, getattr(C.modes, name), getattr(D.modes, name)) for name in MODES]
    pairs.append(("crossing_rows", C.crossing_rows, D.crossing_rows))
    found = [name for name, one, other in pairs if not same(one, other)]
    settings = ("local_operator", "singular")
    found += [name for name in settings if getattr(C.modes, name) != getattr(D.modes, name)]
    return found + (["loops"] if C.loops != D.loops else [])


ARRAYS = ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data")
MODES = ("ranks", "scores", "next_eigenvalues", "tied", "operator_norms")


def same(one, other):
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and np.array_equal(one, other)
