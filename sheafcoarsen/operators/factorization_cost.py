"""Comparison of the cost of a sparse factorization with that of iterative solvers."""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from sheafcoarsen.operators.ordering import elimination_order

DIRECT_BEFORE = 20
"""Maximum number of operations of a factorization, relative to nnz(L) times the number of
breadth-first levels.

An iterative solver needs about 4 iterations per level, each of a few nnz(L) operations. Surfaces
are factored; 3-D grids are solved iteratively from 30^3 vertices on.
"""


DIRECT_OPERATIONS = 1e9
"""Number of operations up to which L is always factored; they take a third of a second.

Iterative solvers may fail to converge because of the maps. An example is a pose graph of 6000
poses and 1000 chords with one anchored frame, where a factorization takes 5e8 operations.
"""


def fills_little(L: scipy.sparse.csr_array) -> bool:
    """Return whether factoring L is cheaper than solving with L iteratively.

    Breadth-first levels of the graph are separators: if the largest has size w, a factorization
    takes about w^3 operations. This quick estimate is far too large for sparse graphs with wide
    levels, such as a path with chords; for these the operations are counted in a fill-reducing
    order.
    """
    # Number of unknowns up to which L is factored unless its rows have many entries
    direct_up_to = 5000
    # Mean number of entries per row of L above which even the factors of small matrices fill in.
    # For 5000 vertices with 200 edges each, a factorization takes twenty times as long as
    # multigrid.
    full_rows = 50
    if L.shape[0] <= direct_up_to and L.nnz <= full_rows * L.shape[0]:
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
    """Return the sizes of a component's breadth-first levels, seen from a peripheral vertex."""
    start = component[0]
    for _ in range(2):
        depth = dijkstra(L, unweighted=True, indices=start)
        depth[np.isinf(depth)] = -1
        start = int(depth.argmax())
    return np.bincount(depth[depth >= 0].astype(np.int64))
