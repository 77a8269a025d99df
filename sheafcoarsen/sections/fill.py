"""Whether a sparse matrix is worth factoring: what its factors cost beside iterating."""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, dijkstra

DIRECT_UP_TO = 5000
"""Unknowns up to which a factorization is always affordable."""


DIRECT_CYCLES = 1000
"""Independent cycles up to which a graph is nearly a forest, and its factors hardly fill."""


DIRECT_BEFORE = 20
"""How much is spent on a factorization, in units of depth nnz(L).

With breadth-first levels up to the size w, and ``depth`` of them, factors take some w^3 operations;
some 4 depth iterations cost a few nnz(L) each. Surfaces are factored, space grids iterated on from
30^3.
"""


def fills_little(L: scipy.sparse.csr_array) -> bool:
    """Tell whether L can be factored without much fill.

    By the widths of breadth-first levels and the number of cycles.
    """
    n = L.shape[0]
    if n <= DIRECT_UP_TO:
        return True
    L = scipy.sparse.csr_array((np.ones(L.nnz), L.indices, L.indptr), shape=L.shape)
    count, labels = connected_components(L, directed=False)
    cycles = (L.nnz - int((L.diagonal() != 0).sum())) // 2 - n + count
    if cycles <= DIRECT_CYCLES:
        return True
    largest = np.flatnonzero(labels == np.bincount(labels).argmax())
    start = largest[0]
    for _ in range(2):  # from an end, so that levels are separators
        depth = dijkstra(L, unweighted=True, indices=start)
        depth[np.isinf(depth)] = -1
        start = int(depth.argmax())
    levels = np.bincount(depth[depth >= 0].astype(np.int64))
    return float(levels.max()) ** 3 <= float(DIRECT_BEFORE) * len(levels) * L.nnz
