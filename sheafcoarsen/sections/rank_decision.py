"""Step (d): decomposing the last sheaf densely, and deciding which singular values are zero."""

import numpy as np

from sheafcoarsen._kernels.sections import ZERO_ROUNDING
from sheafcoarsen._support import EPS, blocks, eps_of
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sheaf import CellularSheaf, component_labels, spanning_forest, unit_sheaf

DENSE_ROWS = 1000
"""Minimum number of rows of delta that are converted to a dense array at a time."""


def right_singular_vectors(sheaf: CellularSheaf) -> tuple[np.ndarray, np.ndarray]:
    """Return the right singular vectors of delta as columns, and the singular values, ascending."""
    n = sheaf.dim_c0
    delta = coboundary(sheaf)
    rows = max(DENSE_ROWS, 2 * n)  # so that the dense block has at most a few times n^2 entries
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
    """Return the threshold at or below which singular values count as zero, in dimension n.

    Elimination divides rounding errors by the eliminated singular values, which are at least
    ``dropped``.
    """
    return ZERO_ROUNDING * max(eps, n * EPS) / dropped


def doubt(
    zero: float, nonzero: float, threshold: float, weight: float, dtype: np.dtype, rows: int
) -> str | None:
    """Return the reason why rounding may have determined the rank, or None if the rank is clear.

    ``rows`` is the number of rows of delta on the finest level. Ill-conditioned maps amplify
    rounding errors of zeros by the factor ``weight``. The decision is unclear if such errors may
    move a singular value across the threshold.
    """
    # Size of a zero singular value, in units of eps, above which it is doubtful unless it is far
    # below the threshold or explained by the rounding of many rows, eps sqrt(rows)
    large_zero = 100
    rounding = max(large_zero * eps_of(dtype), EPS * np.sqrt(rows))
    # Minimum ratio of the threshold to values that are clearly zero, and of the smallest nonzero
    # value to the largest zero
    small_gap = 1e3
    largest = max(rounding, threshold / small_gap) * weight
    # Ratio to the threshold at which a singular value is clearly positive, by bytes per real
    # number. The ratio is smaller for single precision: only the maps are rounded to it, and the
    # effect of that error is known more precisely.
    clear = {8: 1e3, 4: 3.0}
    smallest = max(clear[real_bytes(dtype)] * threshold, small_gap * zero)
    if zero <= largest and nonzero >= smallest:
        return None
    other = "" if nonzero == np.inf else f" and the smallest nonzero one is {nonzero:.2g}"
    return (
        f"with edges and stalks scaled to 1 (see global_sections), the largest singular value "
        f"counted as zero is {zero:.2g}{other}; the decision would be clear without singular "
        f"values between {largest:.2g} and {smallest:.2g}"
    )


def real_bytes(dtype: np.dtype) -> int:
    """Return the size in bytes of a real number, or of the real part of a complex one."""
    return dtype.type(0).real.itemsize


def section_bound(F: CellularSheaf) -> int:
    """Return an upper bound on h0 from the ranks of individual maps.

    Since F_{v->e} x_v = F_{u->e} x_u, a section is determined by its values at the roots of a
    spanning forest and by its components in the kernels of the maps F_{v->e} at the ends v of tree
    edges that are farther from the root. The bound avoids products of maps, which could grow or
    decay along paths.
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
    """Return whether h0 exceeds ``section_bound``, which is computed only if necessary."""
    if h0 <= max(F.dim_c0 - F.dim_c1, F.vertex_dims.min(initial=0)):
        return False  # the bound is at least the maximum above
    return h0 > section_bound(F)


def _nullities(F: CellularSheaf, edges: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the kernel dimensions of half-edge maps, counting doubtful zeros as zeros."""
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
