import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.solve.dirichlet import grounded
from tests.support.helpers import assert_residual
from tests.unit.solve.problems import SHEAVES


@pytest.mark.parametrize("name", SHEAVES)
def test_the_free_block_of_the_laplacian_is_the_laplacian_of_a_sheaf(name):
    F = SHEAVES[name]
    fixed = np.zeros(F.n_vertices, bool)
    fixed[[0, 1, 5, F.n_vertices - 1]] = True  # the edge between 0 and 1 is removed
    G = grounded(F, fixed)
    free = np.repeat(~fixed, F.vertex_dims)
    wanted = sc.laplacian(F).toarray()[np.ix_(free, free)]
    L = sc.laplacian(F).toarray()
    assert_residual(sc.laplacian(G).toarray() - wanted, L, n=10)
    assert G.n_vertices == F.n_vertices - 4
    inner = ~fixed[F.edges]
    assert G.n_edges == inner.any(axis=1).sum()
    loops = (G.edges[:, 0] == G.edges[:, 1]).sum()
    was_loop = F.edges[:, 0] == F.edges[:, 1]
    assert loops == (inner.sum(axis=1) == 1).sum() + (was_loop & inner[:, 0]).sum()


def test_fixing_all_vertices_leaves_an_empty_sheaf():
    F = SHEAVES["graph"]
    G = grounded(F, np.ones(F.n_vertices, bool))
    assert (G.n_vertices, G.n_edges) == (0, 0)
