"""Step (d): dense decomposition of the last sheaf, and the decision which values are zero."""

import numpy as np

from sheafcoarsen._kernels.sections import ZERO_ROUNDING
from sheafcoarsen._support import EPS, blocks, eps_of
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sheaf import CellularSheaf, component_labels, spanning_forest, unit_sheaf

DENSE_ROWS = 1000
"""Least number of rows of delta that are converted to dense at a time."""


LARGE_ZERO = 100
"""Largest zero, in units of eps, above which a warning is given unless it is far below the
threshold."""


CLEAR = {8: 1e3, 4: 3.0}
"""Ratio of a singular value to the threshold of zero above which it is clearly positive, by bytes
of a real.

Single precision rounds the maps only, so that its effect is known more precisely.
"""


SMALL_GAP = 1e3
"""Least ratio of the threshold to clear zeros, and of other values to zeros."""


def right_singular_vectors(sheaf: CellularSheaf) -> tuple[np.ndarray, np.ndarray]:
    """Return the right singular vectors of delta as columns, and the singular values, ascending."""
    n = sheaf.dim_c0
    delta = coboundary(sheaf)
    rows = max(DENSE_ROWS, 2 * n)  # dense rows take at most a few times n^2
    triangle = np.zeros((0, n), sheaf.dtype)
    for lo in range(0, delta.shape[0], rows):
        triangle = np.concatenate([triangle, delta[lo : lo + rows].toarray()])
        if len(triangle) > n:
            triangle = np.asarray(np.linalg.qr(triangle, mode="r"))
    if n == 0:
        return np.zeros((0, 0), sheaf.dtype), np.zeros(0)
    _, found, vectors = np.linalg.svd(triangle, full_matrices=True)
    sigma = np.zeros(n)
    sigma[: len(found)] = found
    return vectors[::-1].conj().T, sigma[::-1]


def zero_threshold(n: int, eps: float, dropped: float) -> float:
    """Return the singular value at or below which a unit cochain is a section, in dimension n.

    Rounding errors of eliminated directions, of singular values at least ``dropped``, are divided
    by it.
    """
    return ZERO_ROUNDING * max(eps, n * EPS) / dropped


def doubt(
    zero: float, nonzero: float, threshold: float, weight: float, dtype: np.dtype
) -> str | None:
    """Return why rounding may have decided the rank, or None if it is clear.

    Rounding errors of ill-conditioned maps perturb zeros by a factor of ``weight``. The decision is
    unclear if such errors may move a singular value across the threshold.
    """
    largest = max(LARGE_ZERO * eps_of(dtype), threshold / SMALL_GAP) * weight
    smallest = max(CLEAR[real_bytes(dtype)] * threshold, SMALL_GAP * zero)
    if zero <= largest and nonzero >= smallest:
        return None
    other = "there is no other" if nonzero == np.inf else f"the smallest other is {nonzero:.2g}"
    return (
        f"the largest singular value taken for zero is {zero:.2g}, {other}; a clear decision has "
        f"none between {largest:.2g} and {smallest:.2g}"
    )


def real_bytes(dtype: np.dtype) -> int:
    """Return the size of a real number, or of the parts of a complex one."""
    return dtype.type(0).real.itemsize


def section_bound(F: CellularSheaf) -> int:
    """Return an upper bound of h0 from the ranks of single maps.

    A section is determined by its values at the roots of a spanning forest and its components in
    the kernels of the maps at the far ends of edges: F_{v->e} x_v = F_{u->e} x_u, with u nearer to
    the root. No products of maps occur, which could grow or decay along paths.
    """
    labels = component_labels(F.n_vertices, F.edges)
    by_dimension = np.lexsort((F.vertex_dims, labels))
    roots = by_dimension[np.diff(labels[by_dimension], prepend=-1) > 0]
    parent_edges = spanning_forest(F.n_vertices, F.edges, roots)[2]
    children = np.flatnonzero(parent_edges >= 0)
    edges = parent_edges[children]
    nullities = _nullities(F, edges, (F.edges[edges, 1] == children).astype(np.int64))
    return int(F.vertex_dims[roots].sum() + nullities.sum())


def exceeds_bound(F: CellularSheaf, h0: int) -> bool:
    """Return whether h0 exceeds its bound; ranks are computed only if it may."""
    if h0 <= max(F.dim_c0 - F.dim_c1, F.vertex_dims.min(initial=0)):
        return False  # h0 is at most a trivial bound
    return h0 > section_bound(F)


def _nullities(F: CellularSheaf, edges: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the dimensions of the kernels of half-edge maps, with clear and possible zeros."""
    out = np.zeros(len(edges), np.int64)
    unit, _ = unit_sheaf(F)
    eps = eps_of(F.dtype)
    columns, rows = F.vertex_dims[F.edges[edges, ends]], F.edge_dims[edges]
    for end, data, starts in (
        (0, unit.tail_data, F.tail_offsets),
        (1, unit.head_data, F.head_offsets),
    ):
        shapes = np.stack([rows, columns], axis=1)[ends == end]
        for p, q in np.unique(shapes, axis=0).tolist():
            here = np.flatnonzero((ends == end) & (rows == p) & (columns == q))
            maps = blocks(data, starts, edges[here]).reshape(len(here), p, q)
            sigma = np.linalg.svd(maps, compute_uv=False)
            level = ZERO_ROUNDING * max(p, q) * eps * sigma.max(axis=1, initial=0.0)
            out[here] = q - (sigma > level[:, None]).sum(axis=1)
    return out
