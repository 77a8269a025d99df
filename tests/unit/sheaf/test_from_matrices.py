"""Construction of a sheaf from its Laplacian."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given

import sheafcoarsen as sc
from tests.support import reference
from tests.support.helpers import assert_residual, covering, eps_of, normal
from tests.support.strategies import DTYPES, sheaves

GRAPH = nx.random_regular_graph(4, 20, seed=3)


def assert_comes_back(L, dims):
    """Assert that the sheaf of L has the Laplacian L, and return it."""
    F = sc.CellularSheaf.from_laplacian(L, dims)
    dense = L.toarray() if scipy.sparse.issparse(L) else np.asarray(L)
    assert F.dim_c0 == len(dense)
    error = reference.coboundary(F).conj().T @ reference.coboundary(F) - dense
    assert_residual(error, dense, n=F.dim_c0, eps=eps_of(F.dtype))
    return F


def rotations(m, d, dtype, seed):
    return np.linalg.qr(normal(np.random.default_rng(seed), (m, d, d), dtype))[0]


@pytest.mark.parametrize(("unit", "dtype", "d"), covering([1e-12, 1.0, 1e12], DTYPES, [1, 2, 3]))
def test_connections_are_recovered_from_their_laplacians(dtype, d, unit):
    weights = np.random.default_rng(d).uniform(0.1, 9, GRAPH.number_of_edges())
    weights = (unit * weights).astype(np.dtype(dtype).type(0).real.dtype)
    edges = np.sort(np.array(GRAPH.edges), axis=1)
    edges = edges[np.lexsort(edges.T[::-1])]
    F = sc.CellularSheaf.connection(edges, rotations(len(edges), d, dtype, d), weights)
    G = assert_comes_back(sc.laplacian(F), d)
    assert G.dtype == F.dtype
    assert G.allclose(F)  # not the Laplacian alone: sqrt(w) I and sqrt(w) U, and no loop


@given(sheaves(dims=(0, 1)))
def test_every_laplacian_of_one_dimensional_stalks_gives_a_sheaf(F):
    """What is left over goes to loops; nothing but rounding is refused."""
    L = sc.laplacian(F)
    try:
        G = assert_comes_back(L, F.vertex_dims)
        assert G.n_edges > 0 or not L.data.any()
        assert L.data.any() or G.n_edges == 0
    except ValueError as error:
        assert "is too small for the balanced maps" in str(error)
        dense = np.abs(L.toarray())  # maps that differ by 1e12 leave rests below rounding
        filled = dense[dense > 0]
        assert filled.min() < 1e-9 * filled.max()


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.float64])
def test_laplacians_of_single_edges_with_rounding_errors_are_accepted(dtype):
    """The diagonal blocks times one another are the square of the other block but for rounding."""
    for seed in range(40):
        F = sc.CellularSheaf.random(nx.path_graph(2), 1, 1, seed=seed, dtype=dtype)
        assert_comes_back(sc.laplacian(F), 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_errors_of_many_edges_give_no_loop(dtype):
    weights = np.full(20000, np.float32(0.1), float)  # rounding errors of their sum add up
    L = sc.laplacian(sc.CellularSheaf.constant(nx.star_graph(20000), weight=weights)).astype(dtype)
    assert sc.CellularSheaf.from_laplacian(L, 1).n_edges == 20000


@pytest.mark.parametrize("d", [1, 2])
def test_loops_contain_the_remainder_of_diagonal_blocks(d):
    F = sc.CellularSheaf.constant(GRAPH, d)
    L = sc.laplacian(F).toarray()
    more = np.zeros_like(L)
    more[0, 0], more[5 * d, 5 * d] = 2.0, 3.0
    G = assert_comes_back(L + more, d)
    assert G.edges[F.n_edges :].tolist() == [[0, 0], [5, 5]]
    assert G.edge_dims[F.n_edges :].tolist() == [1, 1]
    assert not G.head_map(F.n_edges).any()


def test_stalks_may_have_different_dimensions():
    rng = np.random.default_rng(3)
    dims = [2, 0, 1, 3, 2]
    A = rng.standard_normal((8, 8))
    A = (A + A.T) / 2
    L = A + np.diag(np.abs(A).sum(axis=1) + 1)
    F = assert_comes_back(L, dims)
    assert F.edges[:6].tolist() == [[0, 2], [0, 3], [0, 4], [2, 3], [2, 4], [3, 4]]
    assert F.edge_dims[:6].tolist() == [1, 2, 2, 1, 1, 2]
    assert_comes_back(scipy.sparse.csc_matrix(L), dims)


@pytest.mark.parametrize("d", [1, 3])
def test_normalized_laplacians_give_sheaves(d):
    """With hubs, equal singular values at both ends would exceed the small diagonal blocks."""
    transports = rotations(78, d, float, 9)
    F = sc.CellularSheaf.connection(nx.karate_club_graph(), transports)
    G = assert_comes_back(sc.laplacian(sc.normalize(F)), d)
    assert (G.edges[:, 0] < G.edges[:, 1]).all()


def test_light_edges_between_parts_do_not_prevent_a_sheaf():
    """They make a second eigenvalue of the normalized Laplacian that is far below sqrt(eps)."""
    weights = [1.0, 2.0, 1e-9, 3.0, 1.0]
    F = sc.CellularSheaf.constant([[i, i + 1] for i in range(5)], weight=weights)
    assert_comes_back(sc.laplacian(sc.normalize(F)), 1)


def test_one_edge_with_differently_scaled_ends():
    F = assert_comes_back([[4, -2], [-2, 1]], 1)
    np.testing.assert_allclose(np.abs([F.tail_data[0], F.head_data[0]]), [2, 1], rtol=1e-7)
