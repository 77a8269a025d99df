"""Random sheaves: of every kind and type, the same for one seed, spread as they should be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen import CellularSheaf
from tests.support.helpers import assert_residual, dense_rank, eps_of
from tests.support.strategies import DTYPES, graphs
from tests.unit.sheaf.test_container import (
    assert_same_sheaf,
    heads,
    tails,
)
from tests.unit.sheaf.test_from_graphs import named_graph


@given(
    graphs(),
    st.sampled_from(["general", "orthogonal", "diagonal"]),
    st.sampled_from(DTYPES),
    st.integers(0, 999),
)
def test_random_sheaves_have_the_dimensions_asked_for(graph, kind, dtype, seed):
    n, edges = graph
    rng = np.random.default_rng(seed)
    vertex_dims, edge_dims = rng.integers(0, 7, n), rng.integers(0, 7, len(edges))
    F = CellularSheaf.random(edges, vertex_dims, edge_dims, kind, seed=seed, dtype=dtype)
    assert F.dtype == dtype
    assert F.edges.tolist() == edges.tolist()
    assert F.vertex_dims.tolist() == vertex_dims.tolist()
    assert F.edge_dims.tolist() == edge_dims.tolist()
    for M in tails(F) + heads(F):
        k = min(M.shape)
        if kind == "orthogonal":  # orthonormal rows or columns, whichever are fewer
            gram = M @ M.conj().T if M.shape[0] == k else M.conj().T @ M
            assert_residual(gram - np.eye(k), n=max(*M.shape, 1), eps=eps_of(dtype))
        elif kind == "diagonal":
            assert (M * np.eye(*M.shape) == M).all()
            assert (M.diagonal() != 0).all()
        else:
            assert (M != 0).all()
        if F.dtype.kind == "c" and k:
            assert M.imag.any()


@pytest.mark.parametrize("kind", ["general", "orthogonal", "diagonal"])
def test_random_sheaves_repeat_with_their_seed_only(kind):
    edges = [[0, 1], [0, 1], [1, 2]]
    F = CellularSheaf.random(edges, 3, 3, kind, seed=4217)
    assert_same_sheaf(F, CellularSheaf.random(edges, 3, 3, kind, seed=4217))
    assert_same_sheaf(F, CellularSheaf.random(edges, 3, 3, kind, seed=np.random.default_rng(4217)))
    assert not np.array_equal(
        F.tail_data, CellularSheaf.random(edges, 3, 3, kind, seed=4218).tail_data
    )
    assert not np.array_equal(F.tail_data, F.head_data)
    assert not np.array_equal(F.tail_map(0), F.tail_map(1))
    with_entropy = [CellularSheaf.random(edges, 3, 3, kind).tail_data for _ in range(2)]
    assert not np.array_equal(*with_entropy)


def test_random_orthogonal_maps_are_spread_over_both_components():
    """QR alone, without its signs, would favour one."""
    F = CellularSheaf.random(np.zeros((400, 2), int), 2, 2, "orthogonal", seed=90013)
    signs = np.linalg.det(F.tail_data.reshape(-1, 2, 2))
    assert 140 < (signs > 0).sum() < 260
    entries = F.tail_data.reshape(-1, 2, 2)[:, 0, 0]
    assert 140 < (entries > 0).sum() < 260


def test_random_general_entries_are_standard_normal():
    F = CellularSheaf.random([[0, 1]], 100, 100, seed=90017)
    assert abs(F.tail_data.mean()) < 0.05
    assert abs(F.tail_data.std() - 1) < 0.05
    assert dense_rank(F.tail_map(0)) == 100


def test_random_sheaves_on_other_graphs():
    G = named_graph()
    F = CellularSheaf.random(G, [1, 2, 3, 4], 2, seed=6)
    assert F.vertex_labels == tuple(G.nodes)
    assert F.edges.tolist() == [[0, 2], [2, 3]]
    F = CellularSheaf.random([[0, 1]], [1, 2, 3], 2, seed=6)  # a third vertex, isolated
    assert F.vertex_dims.tolist() == [1, 2, 3]
    assert F.vertex_labels is None
