"""An order of elimination that keeps the factors of a sparse matrix sparse, and what they cost."""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import spilu

from sheafcoarsen._kernels.operators import count_operations, mark_stalks, nested_dissection
from sheafcoarsen._support import ranges

DISSECT_ABOVE = 20_000
"""Vertices beyond which nested dissection is tried, too; up to that minimum degree costs nothing.

On meshes of 100,000 vertices it has up to twice the operations of minimum degree, on a chain of as
many poses with chords nine times; on grids four fifths to a half.
"""

HOPELESS = 16
"""Minimum degree is not tried where dissection takes so many times what is affordable."""

DEGREES_UP_TO = 2e11
"""Nor where dissection takes so many operations: minimum degree then is a second in finding out."""

MOST = 2**62
"""Counting ends here in any case."""


class Order(NamedTuple):
    """Rows in the order of elimination, and the operations and entries of the Cholesky factor."""

    rows: np.ndarray
    operations: float
    entries: float


def elimination_order(A: scipy.sparse.csr_array, most: float = np.inf) -> Order:
    """Return a good order of elimination for a matrix with a symmetric pattern, diagonal included.

    Beyond ``most`` operations it is not looked for any further, and a part of them is counted.
    Rows with the same entries, as those of a stalk, stay together, so that a sheaf is as quick to
    look at as its graph. Of nested dissection and minimum degree the better one is taken.
    """
    starts, Q = quotient(A)
    widths = np.diff(starts)
    n, most = len(widths), float(min(most, MOST))
    arrays = Q.indptr.astype(np.int64), Q.indices.astype(np.int64)
    found: list[tuple[float, float, np.ndarray]] = []
    degrees = True
    if n > DISSECT_ABOVE:
        place = np.empty(n, np.int64)
        place[nested_dissection(*arrays)] = np.arange(n)
        limit = min(max(HOPELESS * most, 1.0), DEGREES_UP_TO * float(widths.mean()) ** 3, MOST)
        found.append((*_counted(*arrays, widths, place, max(most, limit)), place))
        degrees = found[0][0] <= limit
    if degrees:
        place = _minimum_degree(Q).astype(np.int64)
        found.append((*_counted(*arrays, widths, place, most), place))
    operations, entries, place = min(found, key=lambda each: each[0])
    vertices = np.argsort(place)
    return Order(ranges(starts[vertices], widths[vertices]), operations, entries)


def quotient(A: scipy.sparse.csr_array) -> tuple[np.ndarray, scipy.sparse.csr_array]:
    """Return where runs of rows with the same entries begin, and the pattern of these runs."""
    A = scipy.sparse.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    A.sort_indices()
    begins = np.zeros(A.shape[0], bool)
    mark_stalks(A.indptr.astype(np.int64), A.indices.astype(np.int64), begins)
    first = np.flatnonzero(begins)
    return np.append(first, A.shape[0]), A if begins.all() else A[first][:, first]


def _counted(
    indptr: np.ndarray, indices: np.ndarray, widths: np.ndarray, place: np.ndarray, most: float
) -> tuple[float, float]:
    counts = np.zeros(2, np.int64)
    count_operations(indptr, indices, widths, place, int(most), counts)
    return float(counts[0]), float(counts[1])


def _minimum_degree(Q: scipy.sparse.csr_array) -> np.ndarray:
    """Return the number of every vertex; a factorization that keeps nothing finds the order."""
    n = Q.shape[0]
    dominant = scipy.sparse.csc_array(Q + 2 * n * scipy.sparse.eye_array(n))
    return spilu(
        dominant,
        drop_tol=1.0,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    ).perm_c
