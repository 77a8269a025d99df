"""Dense and sparse bases of H^0."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from tests.support import reference
from tests.support.helpers import assert_residual, dense_rank
from tests.unit.sections.test_global_sections import check_basis, neighbours


@pytest.mark.parametrize("dtype", [float, complex])
def test_many_sections_have_a_sparse_basis(dtype, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 1 << 16)
    graph = nx.grid_2d_graph(12, 12)
    F = sc.CellularSheaf.random(graph, 3, 1, seed=0, dtype=dtype)
    S = sc.global_sections(F)
    assert S.h0 == F.dim_c0 - dense_rank(reference.coboundary(F)) == 168
    assert scipy.sparse.issparse(S.basis)
    assert S.basis.nnz < S.h0 * F.dim_c0 / 2
    assert S.residual < 1e-13
    gram = (S.basis.conj().T @ S.basis).toarray()
    assert_residual(gram - np.eye(S.h0), n=F.dim_c0)
    assert sc.cohomology_dims(F) == (168, 168 - F.dim_c0 + F.dim_c1)


def test_sections_of_many_components_and_isolated_vertices():
    parts = [sc.gallery.bundle(neighbours(30, seed=s), 2, seed=s) for s in range(15)]
    F, _, _ = sc.disjoint_union([*parts, sc.CellularSheaf([], [], [], vertex_dims=[3, 0, 1])])
    S = sc.global_sections(F)
    assert S.h0 == 15 * 2 + 4
    assert len(S.levels) > 1
    check_basis(F, S)


def test_sections_of_small_components_are_zero_elsewhere(monkeypatch, cluster_sizes):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 0)
    cluster_sizes(4, 12, 30)
    parts = [sc.gallery.bundle(nx.grid_2d_graph(5, 5), 2, seed=seed) for seed in range(20)]
    F = sc.disjoint_union(parts)[0]
    S = sc.global_sections(F)
    assert len(S.levels) > 3
    assert S.basis.nnz < 2 * 2 * F.dim_c0
    check_basis(F, S)


@pytest.mark.parametrize(("components", "sparse"), [(16, False), (17, True)])
def test_few_sections_have_a_dense_basis_at_any_length(components, sparse, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 0)
    F = sc.CellularSheaf.constant(nx.disjoint_union_all([nx.path_graph(3)] * components))
    assert scipy.sparse.issparse(sc.global_sections(F).basis) == sparse


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
@pytest.mark.parametrize(("size", "sparse"), [(20, False), (40, True)])
def test_a_basis_with_more_than_4_million_entries_is_sparse(size, sparse):
    """There are 440 sections of 1200 coordinates, and 1680 of 4800."""
    F = sc.CellularSheaf.random(nx.grid_2d_graph(size, size), 3, 1, seed=0)
    S = sc.global_sections(F)
    assert scipy.sparse.issparse(S.basis) == sparse
    assert S.h0 * F.dim_c0 == (8_064_000 if sparse else 528_000)


@pytest.mark.parametrize(("copies", "shear"), [(1, 1e3), (1, 1e4), (20, 1e3)])
def test_bases_are_orthonormal_for_ill_conditioned_stalks(copies, shear, monkeypatch):
    """In sheared coordinates sections are nearly parallel, with condition ``shear``^2."""
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 0)
    graph = nx.random_regular_graph(4, 40, seed=0)
    edges = np.array(nx.disjoint_union_all([graph] * copies).edges)
    base = np.triu(np.full((3, 3), shear), 1) + np.eye(3)
    F = sc.CellularSheaf(edges, *np.broadcast_to(base, (2, len(edges), 3, 3)))
    S = sc.global_sections(F)
    assert S.h0 == 3 * copies
    assert scipy.sparse.issparse(S.basis) == (copies == 20)
    check_basis(F, S)
