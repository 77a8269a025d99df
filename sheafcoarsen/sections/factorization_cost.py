"""Whether sparse factors are cheaper than iterating."""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from sheafcoarsen.operators import elimination_order

DIRECT_UP_TO = 5000
"""Number of unknowns up to which a factorization is affordable unless rows have many entries."""


FULL_ROWS = 50
"""Entries in a row of L, in the mean, above which factors of small matrices fill up, too: those of
5000 vertices with 200 edges each take twenty times as long as multigrid.
"""


DIRECT_BEFORE = 20
"""Affordable operations of a factorization over depth nnz(L), with depth the number of levels.

About 4 depth iterations cost a few nnz(L) each. Surfaces are factored; 3-D grids are iterated on
from 30^3.
"""


DIRECT_OPERATIONS = 1e9
"""Operations that are always affordable: a third of a second.

The number of iterations also depends on the maps: with one anchored frame, on a pose graph of 6000
poses and 1000 chords, iterating does not converge, and factors take 5e8 operations.
"""


def fills_little(L: scipy.sparse.csr_array) -> bool:
    """Return whether factors of L are cheaper than iterating with L.

    Breadth-first levels of the graph are separators: if the largest has size w, factors take about
    w^3 operations. This quick bound is far too large for sparse graphs with wide levels, such as a
    path with chords; for these the operations are counted in the order of the factorization.
    """
    if L.shape[0] <= DIRECT_UP_TO and L.nnz <= FULL_ROWS * L.shape[0]:
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
    """Return the sizes of the breadth-first levels of a component from a peripheral vertex."""
    start = component[0]
    for _ in range(2):
        depth = dijkstra(L, unweighted=True, indices=start)
        depth[np.isinf(depth)] = -1
        start = int(depth.argmax())
    return np.bincount(depth[depth >= 0].astype(np.int64))
