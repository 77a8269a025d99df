"""Singular values of small components, and the sheaf on the other components."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.quality.smallest_singular_values import split_components
from tests.support.helpers import assert_residual


@pytest.mark.parametrize("dtype", [float, complex])
def test_small_components_and_the_rest_have_the_whole_spectrum(dtype):
    graphs = [nx.path_graph(2 + i % 3) for i in range(9)] + [nx.grid_2d_graph(9, 9)]
    graphs.insert(3, nx.empty_graph(2))
    G = nx.disjoint_union_all(graphs)
    rng = np.random.default_rng(3)
    dims = rng.integers(0, 4, G.number_of_nodes())
    edge_dims = rng.integers(0, 4, G.number_of_edges())
    F = sc.CellularSheaf.random(G, dims, edge_dims, seed=5, dtype=dtype)
    D = sc.coboundary(F)
    sigma, V, others, rest = split_components(D, F)
    assert rest.n_vertices == 81
    assert others.sum() == rest.dim_c0
    assert_residual(
        sc.coboundary(rest).toarray()[:, :5]
        - D[D.shape[0] - rest.dim_c1 :, others].toarray()[:, :5],
        1.0,
        n=1,
    )
    exact = np.linalg.svd(D[:, ~others].toarray(), compute_uv=False)
    exact = np.append(exact, np.zeros((~others).sum() - len(exact)))[::-1]
    assert len(sigma) == (~others).sum()
    assert_residual(sigma - exact, exact, n=len(exact))
    X = V.toarray()
    assert_residual(X.conj().T @ X - np.eye(len(exact)), n=len(exact))
    assert_residual(np.linalg.norm(D @ X, axis=0) - sigma, exact, n=len(exact))
    assert not X[others].any()


def test_a_connected_sheaf_has_no_small_components():
    F = sc.CellularSheaf.constant(nx.path_graph(200))
    assert split_components(sc.coboundary(F), F) is None
