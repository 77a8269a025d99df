"""Normalization of a sheaf by the diagonal blocks of its Laplacian."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import numpy as np

from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._support import EPS, checks, linalg, ragged, threads, warned
from sheafcoarsen.exceptions import SingularDegreeWarning
from sheafcoarsen.operators._laplacian import SERIAL_BELOW
from sheafcoarsen.sheaf import CellularSheaf, both_ends, check_sheaf, trusted_sheaf, unit_sheaf

Singular: TypeAlias = Literal["pinv", "regularize", "augment"]
"""Treatment of singular blocks of D."""


def normalize(
    sheaf: CellularSheaf, singular: Singular = "pinv", eps: float = 1e-8
) -> CellularSheaf:
    """Return the sheaf with maps F_{v->e} D_v^{-1/2}, whose Laplacian is D^{-1/2} L D^{-1/2}.

    This is the normalized sheaf Laplacian (``eq:app-normalized-sheaf-laplacian``); for the constant
    sheaf, the normalized graph Laplacian (``eq:app-graph-normalized-laplacian``). D_v is the
    diagonal block of L (``eq:app-sheaf-degree``), loops included.

    Parameters
    ----------
    sheaf : CellularSheaf
    singular : {"pinv", "regularize", "augment"}
        Treatment of singular D_v: use the pseudo-inverse, or shift all blocks, to
        D + eps max_v norm(D_v) I or to D + I.
    eps : float
        Shift for "regularize", relative to the largest Frobenius norm of a block.

    Returns
    -------
    CellularSheaf

    Raises
    ------
    ValueError, TypeError
        If ``sheaf`` is not a sheaf, ``singular`` is not one of these or ``eps`` is not positive.

    Warns
    -----
    SingularDegreeWarning
        If a block is singular to working accuracy, for "pinv".

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.laplacian(sc.normalize(sc.CellularSheaf.constant([[0, 1]]))).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    check_sheaf(sheaf)
    checks.choice("singular", singular, get_args(Singular))
    if not 0 < checks.real_number("eps", eps) < np.inf:
        raise ValueError(f"`eps` must be positive and finite, got {eps!r}")
    # in double precision: in single precision a shift of 1e-8 would be lost
    work, unit = unit_sheaf(sheaf)
    starts, factors = degree_factors(work)
    sizes = loop_norms(work, np.arange(sheaf.n_vertices), sheaf.n_vertices)
    machine_eps = linalg.eps_of(sheaf.dtype)
    decomposed, dims = [], sheaf.vertex_dims
    for vertices, stack in ragged.stacks(factors, np.stack([dims, dims], axis=1)):
        if stack.size:
            with threads.single_threaded_blas():
                _, sigma, adjoint = np.linalg.svd(stack)
            where = ragged.range_of_blocks(starts, vertices)
            decomposed.append((vertices, where, sigma, adjoint))
    root_shift = 1 / unit if singular == "augment" else 0.0
    if singular == "regularize":  # the shift is eps times the largest norm(D_v)_F
        norms = [np.linalg.norm(sigma**2, axis=1).max() for _, _, sigma, _ in decomposed]
        root_shift = math.sqrt(eps) * math.sqrt(max(norms, default=0.0))
    roots = np.zeros_like(factors)
    singular_at = []
    for vertices, where, sigma, adjoint in decomposed:
        against = np.maximum(sigma[:, 0], sizes[vertices])[:, None]
        zero = sigma <= linalg.zero_level(sigma.shape[1], machine_eps, against)
        # zeros are shifted unless D + shift rounds to D
        zero &= root_shift <= np.sqrt(linalg.zero_level(sigma.shape[1], EPS, 1.0)) * sigma[:, :1]
        inverse = np.where(zero, 0, 1 / np.where(zero, 1, np.hypot(sigma, root_shift)))
        with threads.single_threaded_blas():
            root = adjoint.conj().swapaxes(1, 2) @ (inverse[:, :, None] * adjoint)
        roots[where] = root.reshape(-1) / unit
        singular_at.append(vertices[zero.any(axis=1)])
    bad = np.concatenate([*singular_at, np.zeros(0, np.int64)])
    if bad.size and singular == "pinv":
        name = repr(sheaf.vertex_labels[bad.min()]) if sheaf.vertex_labels else bad.min()
        warned.warn(
            f"the diagonal block of the Laplacian is singular at {bad.size} of {sheaf.n_vertices} "
            f"vertices, first at vertex {name}: the pseudo-inverse is used "
            f'(laplacian_operator of normalize(..., singular="regularize") or "augment" has a '
            f"shifted one; vertices without edges always count, and other blocks are inverted)",
            SingularDegreeWarning,
        )
    return change_stalks(sheaf, roots)


def change_stalks(sheaf: CellularSheaf, W: np.ndarray) -> CellularSheaf:
    """Return the sheaf with maps F_{v->e} W_v and Laplacian W* L W; ``W`` holds the square W_v."""
    f, data = sheaf.arrays, (np.empty_like(sheaf.tail_data), np.empty_like(sheaf.head_data))
    bases = ragged.offsets(f.vertex_dims**2), f.vertex_dims, W
    kernels.multiply_maps(0, sheaf.n_edges, f, bases, (f.tail_offsets, f.head_offsets), data)
    return trusted_sheaf(
        sheaf.edges, sheaf.vertex_dims, sheaf.edge_dims, *data, sheaf.vertex_labels
    )


def degree_factors(sheaf: CellularSheaf) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and entries of the triangular factors R_v with R_v* R_v = D_v.

    The singular values of R_v are those of the stacked maps at v, accurate to eps times the
    largest; from D_v they would be accurate to sqrt(eps). Factors are in double precision.
    """
    n, m = sheaf.n_vertices, sheaf.n_edges
    starts = ragged.offsets(sheaf.vertex_dims**2)
    by_row, by_column = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    unsorted, half_edges = np.empty((2, 2 * m), np.int64)
    kernels.sort_half_edges(sheaf.edges, by_row, by_column, unsorted, half_edges)
    half_ptr = np.append(0, by_row[:n])
    factors = np.empty(int(starts[-1]), np.result_type(sheaf.dtype, np.float64))
    threads.run_ranges(
        lambda lo, hi: kernels.stacked_factors(
            lo, hi, sheaf.arrays, half_ptr, half_edges, starts, factors
        ),
        np.diff(half_ptr) * sheaf.vertex_dims**2 + 1.0,
        serial_below=SERIAL_BELOW,
    )
    return starts, factors


def loop_norms(sheaf: CellularSheaf, groups: np.ndarray, count: int) -> np.ndarray:
    """Return the largest norm of a loop's map in each of ``count`` groups of vertices.

    Where both maps of a loop cancel, their difference contains rounding errors of this norm.
    """
    loops, norms = np.flatnonzero(np.equal(*sheaf.edges.T)), np.zeros(count)
    for _, data, starts in both_ends(sheaf):
        own = ragged.offsets(np.diff(starts)[loops])
        norm = linalg.ragged_norms(ragged.blocks(data, starts, loops), own)
        np.maximum.at(norms, groups[sheaf.edges[loops, 0]], norm)
    return norms
