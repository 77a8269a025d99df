"""Whether a sparse matrix is worth factoring: what its factors cost beside iterating."""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from sheafcoarsen.operators import elimination_order

DIRECT_UP_TO = 5000
"""Unknowns up to which a factorization is always affordable."""


DIRECT_BEFORE = 20
"""How much is spent on a factorization, in units of depth nnz(L), depth counting levels.

Some 4 depth iterations cost a few nnz(L) each. Surfaces are factored, space grids iterated on from
30^3.
"""


DIRECT_OPERATIONS = 1e9
"""What is spent in any case: a third of a second, as long as an iteration may well take.

Iterations depend on the maps too, which no look at the graph tells: from one anchored frame of a
pose graph of 6000 poses and 1000 chords they never get there, and factors take 5e8 operations.
"""


def fills_little(L: scipy.sparse.csr_array) -> bool:
    """Tell whether the factors of L cost little beside iterating with L.

    Breadth-first levels of the graph are separators: with the largest of size w, factors take some
    w^3 operations. That is quick to see, but far too much where the levels are wide and the graph
    is sparse all the same, such as a path with chords; there the operations are counted, in the
    order that the factorization would take.
    """
    if L.shape[0] <= DIRECT_UP_TO:
        return True
    L = scipy.sparse.csr_array((np.ones(L.nnz), L.indices, L.indptr), shape=L.shape)
    labels = connected_components(L, directed=False)[1]
    levels = _level_sizes(L, np.flatnonzero(labels == np.bincount(labels).argmax()))
    affordable = float(DIRECT_BEFORE) * len(levels) * L.nnz
    if float(levels.max()) ** 3 <= affordable:
        return True
    most = max(affordable, DIRECT_OPERATIONS)
    return elimination_order(L, most).operations <= most


def _level_sizes(L: scipy.sparse.csr_array, component: np.ndarray) -> np.ndarray:
    """Return the sizes of breadth-first levels of a component, begun at an end of it."""
    start = component[0]
    for _ in range(2):
        depth = dijkstra(L, unweighted=True, indices=start)
        depth[np.isinf(depth)] = -1
        start = int(depth.argmax())
    return np.bincount(depth[depth >= 0].astype(np.int64))
