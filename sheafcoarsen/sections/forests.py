"""Sections of a forest whose maps lead on from vertex to vertex: leaf by leaf, at any length.

Where every leaf follows from its neighbour, a section is given by its value at the root of each
tree, and no product of maps decides anything: h0 is exact. What grows and decays along the way is
kept with exponents of its own.
"""

import numpy as np

from sheafcoarsen._kernels.elimination import FREE, extend_with_exponents
from sheafcoarsen._support import RESIDUAL_LIMIT, eps_of, range_of_blocks
from sheafcoarsen.elimination import eliminate
from sheafcoarsen.sections import sizes
from sheafcoarsen.sections.lifting import section_residual
from sheafcoarsen.sheaf import CellularSheaf, component_labels

MOST_SECTIONS = 64
"""Up to so many the basis is dense here."""

CLEAR = 1e-4
"""Columns that are nearer to each other than this are left to another way."""


def forest_sections(F: CellularSheaf) -> np.ndarray | None:
    """Return an orthonormal basis of H^0; None where there is a cycle, or more than roots to fix.

    Small sheaves are left to dense decompositions.
    """
    n = F.n_vertices
    crossing = int((F.edges[:, 0] != F.edges[:, 1]).sum())
    if F.dim_c0 <= sizes.LAST or crossing >= n:
        return None
    labels = component_labels(n, F.edges)
    if crossing != n - (int(labels.max(initial=-1)) + 1):
        return None
    steps = eliminate(F).steps
    roots = steps.vertices[np.diff(steps.starts) == 0]
    free = int(steps.counters[FREE])
    h0 = int(F.vertex_dims[roots].sum())
    if free == 0:
        return np.zeros((F.dim_c0, 0), F.dtype)
    if free != h0 or h0 > MOST_SECTIONS:
        return None
    width = int(F.vertex_dims[roots].max())
    x = np.zeros((F.dim_c0, width), steps.blocks.dtype)
    exponents = np.zeros(n, np.int64)
    for v in roots.tolist():
        begin, d = int(F.vertex_offsets[v]), int(F.vertex_dims[v])
        x[begin : begin + d, :d] = np.eye(d)
    extend_with_exponents(steps, F.vertex_dims, F.vertex_offsets, x, exponents)
    return _orthonormal(F, x, exponents, labels[roots], labels, F.vertex_dims[roots])


def _orthonormal(
    F: CellularSheaf,
    x: np.ndarray,
    exponents: np.ndarray,
    trees: np.ndarray,
    labels: np.ndarray,
    dims: np.ndarray,
) -> np.ndarray | None:
    """Return orthonormal columns, tree by tree, if that can be done without losing any."""
    basis, column = np.zeros((F.dim_c0, int(dims.sum())), x.dtype), 0
    for tree, d in zip(trees.tolist(), dims.tolist(), strict=True):
        vertices = np.flatnonzero(labels == tree)
        rows = range_of_blocks(F.vertex_offsets, vertices)
        shift = np.maximum(exponents[vertices] - exponents[vertices].max(), -2000)
        scale = np.ldexp(1.0, shift)
        Q, R = np.linalg.qr(x[rows, :d] * np.repeat(scale, F.vertex_dims[vertices])[:, None])
        sizes_of = np.abs(np.diag(R))
        if d and sizes_of.min() < CLEAR * sizes_of.max():
            return None
        basis[rows, column : column + d] = Q
        column += d
    basis = basis.astype(F.dtype)
    good = section_residual(F, basis) <= RESIDUAL_LIMIT * eps_of(F.dtype) * basis.shape[1]
    return basis if good else None
