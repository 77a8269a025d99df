"""Room for dense problems, allocated once for a range of clusters."""

from typing import NamedTuple

import numpy as np

LANES = 8
"""Eigenpairs of a tridiagonal matrix that are computed side by side: the width of a vector register."""


PANEL = 4
"""Reflections by which a tridiagonalization may be behind."""


class TridiagonalRoom(NamedTuple):
    """Room for a real tridiagonal eigenproblem, in double precision always; see ``hermitian.py``."""

    d: np.ndarray  # (n,) diagonal
    e: np.ndarray  # (n,) subdiagonal
    e2: np.ndarray  # (n,) its squares
    w: np.ndarray  # (wanted,) eigenvalues
    z: np.ndarray  # (wanted, n) eigenvectors as rows
    lanes: np.ndarray  # (7, n + 2, LANES)


class Workspace(NamedTuple):
    """Room for eigenproblems up to one size and one number of vectors; private to a thread.

    a : (n * n,) the matrix, destroyed; w : (n,) eigenvalues; z : (wanted * n,) eigenvectors as
    rows; spare : room for a copy of the matrix; tau, panel, p, t : for the reduction to a
    tridiagonal matrix and its eigenproblem; the rest is LAPACK's.
    """

    a: np.ndarray
    spare: np.ndarray
    w: np.ndarray
    z: np.ndarray
    map: np.ndarray
    tau: np.ndarray
    panel: np.ndarray
    p: np.ndarray
    t: TridiagonalRoom
    work: np.ndarray
    rwork: np.ndarray
    iwork: np.ndarray
    ints: np.ndarray
    chars: np.ndarray


def svd_workspace(rows: int, columns: int, dtype, map_size: int) -> Workspace:
    """Allocate room for the singular value decomposition of matrices up to ``rows`` by ``columns``, all right vectors included."""
    rows, columns = max(int(rows), 1), max(int(columns), 1)
    room = workspace(columns, columns, dtype, map_size)
    small, large = min(rows, columns), max(rows, columns)
    return room._replace(
        a=np.empty(max(rows * columns, columns * columns), room.a.dtype),
        work=np.empty(small * small + 70 * (small + large) + 1024, room.a.dtype),
        rwork=np.empty(5 * small + 1, room.w.dtype),
    )


def workspace(n: int, wanted: int, dtype, map_size: int = 0) -> Workspace:
    """Allocate room for matrices up to ``n`` by ``n`` of which up to ``wanted`` eigenvectors are asked; ``map_size``: entries of both maps of an edge."""
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
        tau=np.empty(n, dtype),
        panel=np.empty((2 * PANEL, n), dtype),
        p=np.empty(n, dtype),
        t=TridiagonalRoom(
            np.empty(n),
            np.empty(n),
            np.empty(n),
            np.empty(wanted),
            np.empty((wanted, n)),
            np.empty((7, n + 2, LANES)),
        ),
        work=np.empty(square, dtype),
        rwork=np.empty(square if dtype.kind == "c" else 1, real),
        iwork=np.empty(5 * n + 64, np.int32),
        ints=np.zeros(8, np.int32),
        chars=np.frombuffer(b"VUNAC", np.uint8).copy(),
    )
