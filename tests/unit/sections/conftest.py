"""Checks of sections, and sizes for which small sheaves are treated like large ones."""

import numpy as np
import pytest

import sheafcoarsen as sc
from tests.support.helpers import assert_residual, eps_of, normal


def check_basis(F, S, *, locally=False):
    """Assert orthonormal columns of the correct scalar type, and a small residual.

    ``locally`` asserts rounding level of each edge, on a part of many edges.
    """
    B = S.toarray()
    assert B.shape == (F.dim_c0, S.h0)
    assert B.dtype == F.dtype
    eps, precise = eps_of(F.dtype), B.astype(np.result_type(F.dtype, np.float64))
    n = S.h0 if locally else F.dim_c0
    assert_residual(precise.conj().T @ precise - np.eye(S.h0), n=n, eps=eps)
    for e in range(0, F.n_edges, 97 if locally and F.n_edges > 1000 else 1):
        A, C = F.tail_map(e), F.head_map(e)
        x, y = (precise[slice(*F.vertex_offsets[v : v + 2])] for v in F.edges[e])
        maps = np.concatenate([A.ravel(), C.ravel()])
        columns, rows = ([], sum(A.shape)) if locally else ([np.ones(max(S.h0, 1))], 10 * F.dim_c0)
        assert_residual(A @ x - C @ y, maps, *columns, n=rows, eps=eps)
    return B


def neighbours(n, dim=3, k=6, seed=0):
    return sc.gallery.nearest_neighbors(np.random.default_rng(seed).random((n, dim)), k)


def gaussian(edges, dim, dtype=np.float64, scale=1.0, seed=3):
    """Return random maps, which expand by 1e+1000 and more along a path of 10,000 edges."""
    maps = normal(np.random.default_rng(seed), (2, len(edges), dim, dim), dtype)
    return sc.CellularSheaf(edges, *(scale * maps).astype(dtype))


@pytest.fixture
def cluster_sizes(monkeypatch):
    """Return a function that sets the sizes of clusters and of the last level."""

    def choose(vertices, dimension, last):
        for name, size in (("VERTICES", vertices), ("DIMENSION", dimension), ("LAST", last)):
            monkeypatch.setattr(f"sheafcoarsen.sections.clustering.{name}", size)

    return choose


@pytest.fixture(params=[False, True], ids=["one level", "several levels"])
def levels(request, cluster_sizes):
    """Force several levels on sheaves of small dimension."""
    if request.param:
        cluster_sizes(3, 8, 3)
    return request.param


@pytest.fixture
def no_forests(monkeypatch):
    """Force coarsening for forests."""
    monkeypatch.setattr("sheafcoarsen.sections._global_sections.forest_sections", lambda F: None)


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def sparse(request, monkeypatch):
    """Force sparse bases."""
    if request.param:
        monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 0)
        monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_COLUMNS", 0)
    return request.param
