"""Workspace for the dense problems of a range of clusters."""

from typing import NamedTuple

import numpy as np

LANES = 8
"""Number of eigenpairs of a tridiagonal matrix computed together, one per lane of a register."""


DENSE_SHARE = 3
"""Minimum number of rows per wanted eigenpair; with fewer, LAPACK computes all eigenpairs."""

PANEL = 4
"""Number of reflections of a tridiagonalization that are applied together."""


class ReductionWorkspace(NamedTuple):
    """Arrays of a reduction to a tridiagonal T and of the eigenproblem of T."""

    tau: np.ndarray  # (n,) scalars of the reflections
    panel: np.ndarray  # (2 PANEL, n) delayed updates, V and W
    p: np.ndarray  # (n,) product of the matrix and a vector
    d: np.ndarray  # (n,) diagonal of T
    e: np.ndarray  # (n,) subdiagonal of T
    e2: np.ndarray  # (n,) squares of e
    w: np.ndarray  # (wanted,) eigenvalues
    z: np.ndarray  # (wanted, n) eigenvectors as rows
    lanes: np.ndarray  # (7, n + 2, LANES)


class Workspace(NamedTuple):
    """Arrays for dense problems up to a given size and number of vectors; private to a thread."""

    a: np.ndarray  # (n * n,) the matrix, overwritten
    spare: np.ndarray  # (n * n,) a copy of the matrix
    w: np.ndarray  # (n,) eigenvalues or singular values
    z: np.ndarray  # (wanted * n,) vectors as rows
    map: np.ndarray  # both maps of an edge
    reduction: ReductionWorkspace | None  # None: use LAPACK only, and compile no reduction
    work: np.ndarray  # for LAPACK, like all later fields except ``sums``
    rwork: np.ndarray
    iwork: np.ndarray
    ints: np.ndarray
    chars: np.ndarray
    sums: np.ndarray  # (n + 1,) row sums for norms, in double precision


def worth_reducing(dims, wanted) -> bool:
    """Return whether it pays to reduce matrices of sizes ``dims`` for ``wanted`` eigenpairs."""
    dims = np.asarray(dims, dtype=np.float64)
    # Minimum sum of n^3 over all matrices for which the eigensolver in ``hermitian.py`` is
    # compiled. Below it, LAPACK takes at most half a millisecond longer.
    reduce_above = 5e5
    return bool((dims[DENSE_SHARE * np.asarray(wanted) <= dims] ** 3).sum() >= reduce_above)


def svd_workspace(
    rows: int, columns: int, dtype, map_size: int, *, reduction: bool = False
) -> Workspace:
    """Allocate a workspace for all right singular vectors of matrices up to rows x columns.

    It is also a workspace for all eigenvectors of matrices up to columns x columns.
    """
    rows, columns = max(int(rows), 1), max(int(columns), 1)
    s = workspace(columns, columns, dtype, map_size, reduction=reduction)
    small, large = min(rows, columns), max(rows, columns)
    size = max(s.work.size, small * small + 70 * (small + large) + 1024)
    return s._replace(
        a=np.empty(max(rows, columns) * columns, s.a.dtype), work=np.empty(size, s.a.dtype)
    )


def workspace(
    n: int, wanted: int, dtype, map_size: int = 0, *, reduction: bool = False
) -> Workspace:
    """Allocate a workspace for n x n matrices and up to ``wanted`` eigenvectors.

    ``dtype`` is a type of double precision, ``map_size`` the number of entries of both maps of an
    edge. ``reduction`` is the value of ``worth_reducing``, the same for all concurrent ranges,
    since kernels are compiled for either.
    """
    n, wanted = max(int(n), 1), max(int(wanted), 1)
    dtype = np.dtype(dtype)
    arrays = None
    if reduction:
        arrays = ReductionWorkspace(
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
    square = 2 * n * n + 6 * n + 64  # required by ?syevd and ?heevd
    return Workspace(
        a=np.empty(n * n, dtype),
        spare=np.empty(n * n, dtype),
        w=np.empty(n),
        z=np.empty(wanted * n, dtype),
        map=np.empty(map_size, dtype),
        reduction=arrays,
        work=np.empty(square, dtype),
        rwork=np.empty(square if dtype.kind == "c" else 1),
        iwork=np.empty(5 * n + 64, np.int32),
        ints=np.zeros(8, np.int32),
        chars=np.frombuffer(b"VUNAC", np.uint8).copy(),
        sums=np.empty(n + 1),
    )
