"""Factors of block matrices on graphs that are trees, cycles, grids, stars and none of these."""

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen.operators import BlockCholesky
from tests.support.helpers import assert_residual

GRAPHS = {
    "one vertex": nx.empty_graph(1),
    "without edges": nx.empty_graph(5),
    "path": nx.path_graph(17),
    "cycle": nx.cycle_graph(12),
    "triangle": nx.complete_graph(3),
    "complete": nx.complete_graph(9),
    "star with a hub past what is looked through": nx.star_graph(80),
    "wheel": nx.wheel_graph(15),
    "tree": nx.random_labeled_tree(40, seed=1),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(9, 8)),
    "chains between hubs": nx.barbell_graph(6, 20),
    "random": nx.gnm_random_graph(60, 110, seed=3),
}


def block_matrix(graph, d, seed=0, parallel=True):
    """Return edges, blocks and the dense matrix: positive definite, with parallel edges."""
    rng = np.random.default_rng(seed)
    edges = np.array(graph.edges, dtype=np.int64).reshape(-1, 2)
    turned = rng.random(len(edges)) < 0.5
    edges[turned] = edges[turned, ::-1]
    if parallel and len(edges):
        edges = np.concatenate([edges, edges[:2], edges[:1, ::-1]])
    n = len(graph)
    couplings = rng.standard_normal((len(edges), d, d))
    dense = np.zeros((n, d, n, d))
    for (u, v), block in zip(edges, couplings, strict=True):
        dense[u, :, v] += block
        dense[v, :, u] += block.T
    diagonal = rng.standard_normal((n, d, d))
    diagonal += diagonal.swapaxes(1, 2)
    sums = abs(dense).sum(axis=(2, 3))
    diagonal += (sums.max(initial=1) + 5 * d) * np.eye(d)
    for v in range(n):
        dense[v, :, v] += diagonal[v]
    return edges, diagonal, couplings, dense.reshape(n * d, n * d)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_it_solves(graph, d):
    edges, diagonal, couplings, A = block_matrix(graph, d)
    factors = BlockCholesky(len(graph), edges, d)
    factors.factor(diagonal, couplings)
    rng = np.random.default_rng(1)
    for k in (1, 4, 6):
        b = rng.standard_normal((len(A), k))
        x = factors.solve(b)
        assert_residual(A @ x - b, A, x, n=len(A))
        np.testing.assert_array_equal(x, factors.solve(np.asfortranarray(b)))


def test_other_values_need_no_other_analysis():
    graph = GRAPHS["grid"]
    edges, diagonal, couplings, A = block_matrix(graph, 2)
    factors = BlockCholesky(len(graph), edges, 2)
    b = np.ones((len(A), 1))
    factors.factor(diagonal, couplings)
    first = factors.solve(b)
    factors.factor(3 * diagonal, 3 * couplings)
    x = factors.solve(b)
    assert_residual(3 * A @ x - b, A, x, n=len(A))
    assert_residual(A @ first - b, A, first, n=len(A))


def test_an_indefinite_matrix_is_refused():
    edges, diagonal, couplings, _ = block_matrix(GRAPHS["grid"], 3)
    factors = BlockCholesky(72, edges, 3)
    diagonal[40] *= -1
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factors.factor(diagonal, couplings)


def test_operations_are_those_of_the_fill():
    """A path has one entry below each pivot, whatever the order; a complete graph all of them."""
    path = BlockCholesky(50, np.array(nx.path_graph(50).edges), 1)
    assert path.operations == 49 * 2**2 + 1
    full = BlockCholesky(9, np.array(nx.complete_graph(9).edges), 3)
    assert full.operations == 27 * (np.arange(1, 10) ** 2).sum()


def test_long_chains_make_no_fill():
    """A ring of 2000 with a chord: three entries in a column at most."""
    ring = np.array([*nx.cycle_graph(2000).edges, (0, 1000)])
    assert BlockCholesky(2000, ring, 1).operations <= 3**2 * 2000
