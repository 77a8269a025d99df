"""How many operations a sparse factorization takes, counted before it is done."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def count_operations(indptr, indices, place, most):
    """Return the sum of squared column lengths of the Cholesky factor; above ``most`` a part of it.

    Row ``v`` of the symmetric pattern is eliminated as number place[v]. Each row of the factor is a
    subtree of the elimination tree (Liu 1990): from the entries of the row up to its number.
    """
    n = place.size
    order = np.empty(n, np.int64)
    for v in range(n):
        order[place[v]] = v
    parent = np.full(n, -1, np.int64)
    row = np.full(n, -1, np.int64)  # the last row that has an entry in a column
    length = np.ones(n, np.int64)
    total = n
    for k in range(n):
        v = order[k]
        row[k] = k
        for p in range(indptr[v], indptr[v + 1]):
            j = place[indices[p]]
            while j < k and row[j] != k:
                row[j] = k
                total += 2 * length[j] + 1
                length[j] += 1
                if parent[j] < 0:
                    parent[j] = k
                j = parent[j]
        if total > most:
            break
    return total
