"""Blocks of R; other methods are tested with the coarsening."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support.helpers import ties_allowed
from tests.support.strategies import partitions, sheaves


@given(sheaves(), st.data())
def test_blocks_are_the_diagonal_blocks_of_r(F, data):
    P = data.draw(partitions(F.n_vertices))
    with ties_allowed():
        C = sc.coarsen(F, P, 2)
    R = C.prolongation.toarray()
    for a in range(P.n_clusters):
        rows = [k for v in P.cluster(a) for k in range(*F.vertex_offsets[v : v + 2])]
        columns = slice(*C.sheaf.vertex_offsets[a : a + 2])
        np.testing.assert_array_equal(C.block(a), R[rows, columns])
    assert np.count_nonzero(R) == sum(np.count_nonzero(C.block(a)) for a in range(P.n_clusters))
