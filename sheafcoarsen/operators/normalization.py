"""The normalized sheaf, as a change of maps."""

import warnings
from typing import Literal, TypeAlias, get_args

import numpy as np

from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._support import (
    choice,
    eps_of,
    offsets,
    ranges,
    real_number,
    single_threaded_blas,
    zero_level,
)
from sheafcoarsen.exceptions import SingularDegreeWarning
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, trusted_sheaf

Singular: TypeAlias = Literal["pinv", "regularize", "augment"]
"""What to do about a singular block of D."""


def normalize(
    sheaf: CellularSheaf, singular: Singular = "pinv", eps: float = 1e-8
) -> CellularSheaf:
    """Return the sheaf with maps F_{v->e} D_v^{-1/2}, whose Laplacian is D^{-1/2} L D^{-1/2}.

    That is the normalized sheaf Laplacian (``eq:app-normalized-sheaf-laplacian``), of the constant
    sheaf the normalized graph Laplacian (``eq:app-graph-normalized-laplacian``); D_v is the
    diagonal block of L (``eq:app-sheaf-degree``), loops included, so everything else in the library
    runs on the normalized sheaf as on any other.

    Parameters
    ----------
    sheaf : CellularSheaf
    singular : {"pinv", "regularize", "augment"}
        What to do about singular D_v: take the pseudo-inverse; use D + eps max_v norm(D_v) I; or
        use D + I.
    eps : float
        For "regularize", relative to the largest Frobenius norm of a block.

    Returns
    -------
    CellularSheaf

    Warns
    -----
    SingularDegreeWarning
        With "pinv", where a block is singular to working accuracy.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> sc.laplacian(sc.normalize(sc.CellularSheaf.constant(nx.path_graph(2)))).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return normalized(sheaf, singular, eps, stacklevel=3)


def normalized(
    sheaf: CellularSheaf, singular: Singular = "pinv", eps: float = 1e-8, *, stacklevel: int
) -> CellularSheaf:
    """Return what ``normalize`` returns; a warning points ``stacklevel`` calls up."""
    check_sheaf(sheaf)
    choice("singular", singular, get_args(Singular))
    if not 0 < real_number("eps", eps) < np.inf:
        raise ValueError(f"`eps` must be positive and finite, got {eps!r}")
    f = sheaf.arrays
    starts = offsets(f.vertex_dims**2)
    # in double precision also for single, where a shift of 1e-8 would drown
    blocks = np.zeros(int(starts[-1]), np.result_type(sheaf.dtype, np.float64))
    kernels.diagonal_blocks(f, starts, blocks)
    roots = np.zeros_like(blocks)
    machine_eps = eps_of(sheaf.dtype)
    grouped = []
    shift = 1.0 if singular == "augment" else 0.0
    for d in np.unique(f.vertex_dims[f.vertex_dims > 0]).tolist():  # one batch per dimension
        vertices = np.flatnonzero(f.vertex_dims == d)
        where = ranges(starts[vertices], np.full(len(vertices), d * d))
        with single_threaded_blas():
            values, vectors = np.linalg.eigh(blocks[where].reshape(-1, d, d))
        grouped.append((d, vertices, where, values, vectors))
        if singular == "regularize":  # the Frobenius norm of a block is that of its eigenvalues
            largest = values[:, -1:].clip(min=np.finfo(values.dtype).tiny)
            shift = max(
                shift, float(eps * (largest[:, 0] * np.linalg.norm(values / largest, axis=1)).max())
            )
    first_singular, n_singular = sheaf.n_vertices, 0
    for d, vertices, where, values, vectors in grouped:
        values = values.clip(min=0) + values.dtype.type(shift)
        zero = values <= (zero_level(d, machine_eps, values[:, -1:]) if singular == "pinv" else 0)
        inverse = np.where(zero, 0, 1 / np.sqrt(np.where(zero, 1, values)))
        roots[where] = ((vectors * inverse[:, None, :]) @ vectors.conj().swapaxes(1, 2)).reshape(-1)
        bad = vertices[zero.any(axis=1)]
        if bad.size:
            first_singular, n_singular = min(first_singular, int(bad[0])), n_singular + bad.size
    if n_singular and singular == "pinv":
        warnings.warn(
            f"the diagonal block of the Laplacian is singular at {n_singular} of {sheaf.n_vertices} vertices, first at "
            f"vertex {first_singular}: the pseudo-inverse was taken "
            f'(normalize(..., singular="regularize") or "augment" would shift it; an isolated vertex always counts)',
            SingularDegreeWarning,
            stacklevel=stacklevel,
        )
    scaled = []
    for end, data, begins in ((0, f.tail_data, f.tail_offsets), (1, f.head_data, f.head_offsets)):
        out = np.empty_like(data)
        kernels.multiply_maps(
            f.edges, end, f.edge_dims, f.vertex_dims, data, begins, roots, starts, out
        )
        scaled.append(out)
    return trusted_sheaf(
        sheaf.edges, sheaf.vertex_dims, sheaf.edge_dims, scaled[0], scaled[1], sheaf.vertex_labels
    )
