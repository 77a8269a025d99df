"""Workspace for dense problems, allocated once for a range of clusters."""

from typing import NamedTuple

import numpy as np

LANES = 8
"""Eigenpairs of a tridiagonal matrix computed side by side: the width of a vector register."""


DENSE_SHARE = 3
"""LAPACK computes all pairs where more than one in so many is wanted."""

PANEL = 4
"""Reflections by which a tridiagonalization may be behind."""


REDUCE_ABOVE = 5e5
"""Sum of n^3 from which on the eigensolver of ``hermitian.py`` is worth compiling.

Below, LAPACK alone takes half a millisecond longer at most.
"""


class ReductionWorkspace(NamedTuple):
    """Arrays of a reduction to a tridiagonal T and of its eigenproblem, in double precision."""

    tau: np.ndarray  # (n,) scalars of the reflections
    panel: np.ndarray  # (2 PANEL, n) reflections that the matrix is behind by
    p: np.ndarray  # (n,) matrix times vector
    d: np.ndarray  # (n,) diagonal of T
    e: np.ndarray  # (n,) subdiagonal
    e2: np.ndarray  # (n,) its squares
    w: np.ndarray  # (wanted,) eigenvalues
    z: np.ndarray  # (wanted, n) eigenvectors as rows
    lanes: np.ndarray  # (7, n + 2, LANES)


class Workspace(NamedTuple):
    """Arrays of dense problems up to one size and one number of vectors; private to a thread."""

    a: np.ndarray  # (n * n,) the matrix, destroyed
    spare: np.ndarray  # (n * n,) space for a copy of it
    w: np.ndarray  # (n,) eigenvalues or singular values
    z: np.ndarray  # (wanted * n,) vectors as rows
    map: np.ndarray  # both maps of an edge
    reduction: ReductionWorkspace | None  # None: LAPACK does it all, and nothing else is compiled
    work: np.ndarray  # this and what follows is LAPACK's
    rwork: np.ndarray
    iwork: np.ndarray
    ints: np.ndarray
    chars: np.ndarray
    sums: np.ndarray  # (n,) in double precision, for norms


def worth_reducing(dims, wanted) -> bool:
    """Return whether these sizes and numbers of eigenpairs want a ``ReductionWorkspace``."""
    dims = np.asarray(dims, dtype=np.float64)
    return bool((dims[DENSE_SHARE * np.asarray(wanted) <= dims] ** 3).sum() >= REDUCE_ABOVE)


def svd_workspace(rows: int, columns: int, dtype, map_size: int) -> Workspace:
    """Allocate for all right singular vectors of matrices up to ``rows`` by ``columns``."""
    rows, columns = max(int(rows), 1), max(int(columns), 1)
    work = workspace(columns, columns, dtype, map_size)
    small, large = min(rows, columns), max(rows, columns)
    return work._replace(
        a=np.empty(max(rows * columns, columns * columns), work.a.dtype),
        work=np.empty(small * small + 70 * (small + large) + 1024, work.a.dtype),
        rwork=np.empty(5 * small + 1, work.w.dtype),
    )


def workspace(
    n: int, wanted: int, dtype, map_size: int = 0, *, reduction: bool = False
) -> Workspace:
    """Allocate a workspace for n x n matrices of which up to ``wanted`` eigenvectors are asked.

    ``map_size``: entries of both maps of an edge; ``reduction``: as ``worth_reducing`` says, the
    same for all that runs side by side, since kernels are compiled for either.
    """
    n, wanted = max(int(n), 1), max(int(wanted), 1)
    dtype = np.dtype(dtype)
    real = np.zeros(0, dtype).real.dtype
    square = 2 * n * n + 6 * n + 64  # what ?syevd and ?heevd ask for
    return Workspace(
        a=np.empty(n * n, dtype),
        spare=np.empty(n * n, dtype),
        w=np.empty(n, real),
        z=np.empty(wanted * n, dtype),
        map=np.empty(map_size, dtype),
        reduction=reduction_workspace(n, wanted, dtype) if reduction else None,
        work=np.empty(square, dtype),
        rwork=np.empty(square if dtype.kind == "c" else 1, real),
        iwork=np.empty(5 * n + 64, np.int32),
        ints=np.zeros(8, np.int32),
        chars=np.frombuffer(b"VUNAC", np.uint8).copy(),
        sums=np.empty(n),
    )


def reduction_workspace(n: int, wanted: int, dtype) -> ReductionWorkspace:
    """Allocate a workspace for reductions of n x n matrices and ``wanted`` eigenvectors."""
    return ReductionWorkspace(
        tau=np.empty(n, dtype),
        panel=np.empty((2 * PANEL, n), dtype),
        p=np.empty(n, dtype),
        d=np.empty(n),
        e=np.empty(n),
        e2=np.empty(n),
        w=np.empty(wanted),
        z=np.empty((wanted, n)),
        lanes=np.empty((7, n + 2, LANES)),
    )
