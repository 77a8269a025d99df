"""How many operations a sparse factorization takes, counted before it is done."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def mark_stalks(indptr, indices, begins):
    """Mark every row of a pattern but those coupled to the one before, with the same entries."""
    for i in range(begins.size):
        lo, hi = indptr[i], indptr[i + 1]
        same = i > 0 and hi - lo == lo - indptr[i - 1]
        coupled = False
        k = lo
        while same and k < hi:
            same = indices[k] == indices[k - (hi - lo)]
            coupled = coupled or indices[k] == i
            k += 1
        begins[i] = not (same and coupled)


@kernel
def count_operations(indptr, indices, widths, place, most, counts):
    """Write the sum of squared column lengths of the Cholesky factor, and its number of entries.

    Above ``most`` operations a part of both. Vertex ``v`` of the symmetric pattern stands for
    widths[v] rows with the same entries, and is eliminated as number place[v]. Each row of the
    factor is a subtree of the elimination tree (Liu 1990): from the entries of the row up to its
    number.
    """
    n = place.size
    order = np.empty(n, np.int64)
    for v in range(n):
        order[place[v]] = v
    parent = np.full(n, -1, np.int64)
    row = np.full(n, -1, np.int64)  # the last row that has an entry in a column
    below = np.zeros(n, np.int64)  # entries of a column outside of its own block
    operations, entries = 0, 0
    for k in range(n):
        v = order[k]
        wide = widths[v]
        operations += wide * (wide + 1) * (2 * wide + 1) // 6
        entries += wide * (wide + 1) // 2
        row[k] = k
        for p in range(indptr[v], indptr[v + 1]):
            j = place[indices[p]]
            while j < k and row[j] != k:
                row[j] = k
                w = widths[order[j]]
                operations += w * wide * (2 * below[j] + wide + w + 1)
                entries += w * wide
                below[j] += wide
                if parent[j] < 0:
                    parent[j] = k
                j = parent[j]
        if operations > most:
            break
    counts[0], counts[1] = operations, entries
