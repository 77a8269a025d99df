"""LAPACK's Hermitian eigensolvers from inside numba, in the way that numba can cache.

A ctypes pointer compiled into a kernel cannot be cached; a *named* external symbol can. So the addresses that scipy exports
for Cython are registered with LLVM under names of our own, once per process, and kernels call those names. With the JIT off an
external call would silently do nothing, so the plain Python bodies below call ``scipy.linalg.lapack`` instead.

Conventions: matrices are row-major with the lower triangle filled, which Fortran sees as the upper triangle of the transpose;
for a complex matrix that is the conjugate, and the eigenvectors are conjugated back on the way out.
"""

from typing import NamedTuple

import llvmlite.binding
import numpy as np
import scipy.linalg.lapack as scipy_lapack
from numba import types
from numba.extending import get_cython_function_address, overload

from sheafcoarsen._kernels.jit import JIT_IS_OFF, kernel

SMALL = 24
"""Up to this size all pairs are computed by divide and conquer, which needs no repair of orthogonality."""

_PREFIX = {np.float32: "s", np.float64: "d", np.complex64: "c", np.complex128: "z"}


def _external(name: str, n_arguments: int):
    symbol = f"sheafcoarsen_{name}"
    llvmlite.binding.add_symbol(symbol, get_cython_function_address("scipy.linalg.cython_lapack", name))
    return types.ExternalFunction(symbol, types.void(*[types.voidptr] * n_arguments))


_ssyevr, _dsyevr = _external("ssyevr", 21), _external("dsyevr", 21)
_cheevr, _zheevr = _external("cheevr", 23), _external("zheevr", 23)
_ssyevd, _dsyevd = _external("ssyevd", 11), _external("dsyevd", 11)
_cheevd, _zheevd = _external("cheevd", 13), _external("zheevd", 13)
_sgesvd, _dgesvd = _external("sgesvd", 14), _external("dgesvd", 14)
_cgesvd, _zgesvd = _external("cgesvd", 15), _external("zgesvd", 15)

_INT32_REAL = {types.float32: (_ssyevr, _ssyevd, _sgesvd), types.float64: (_dsyevr, _dsyevd, _dgesvd)}
_INT32_COMPLEX = {types.complex64: (_cheevr, _cheevd, _cgesvd), types.complex128: (_zheevr, _zheevd, _zgesvd)}


class Workspace(NamedTuple):
    """Room for eigenproblems up to one size and one number of vectors; private to a thread.

    a : (n * n,) the matrix, destroyed; w : (n,) eigenvalues; z : (wanted * n,) eigenvectors as rows; spare : room for a copy of
    the matrix; the rest is LAPACK's.
    """

    a: np.ndarray
    spare: np.ndarray
    w: np.ndarray
    z: np.ndarray
    work: np.ndarray
    rwork: np.ndarray
    iwork: np.ndarray
    support: np.ndarray
    ints: np.ndarray
    reals: np.ndarray
    chars: np.ndarray


def svd_workspace(rows: int, columns: int, dtype) -> Workspace:
    """Allocate room for the singular value decomposition of matrices up to ``rows`` by ``columns``, all right vectors included."""
    rows, columns = max(int(rows), 1), max(int(columns), 1)
    room = workspace(columns, columns, dtype)
    small, large = min(rows, columns), max(rows, columns)
    return room._replace(
        a=np.empty(max(rows * columns, columns * columns), room.a.dtype),
        work=np.empty(small * small + 70 * (small + large) + 1024, room.a.dtype),
        rwork=np.empty(5 * small + 1, room.w.dtype),
    )


def workspace(n: int, wanted: int, dtype) -> Workspace:
    """Allocate room for matrices up to ``n`` by ``n`` of which up to ``wanted`` eigenvectors are asked."""
    n = max(int(n), 1)
    dtype = np.dtype(dtype)
    real = np.zeros(0, dtype).real.dtype
    square = 2 * n * n + 80 * n + 1024  # syevd asks for 1 + 6n + 2n^2, syevr runs best with a block of 64
    return Workspace(
        a=np.empty(n * n, dtype),
        spare=np.empty(n * n, dtype),
        w=np.empty(n, real),
        z=np.empty(max(int(wanted), 1) * n, dtype),
        work=np.empty(square, dtype),
        rwork=np.empty(square if dtype.kind == "c" else 1, real),
        iwork=np.empty(16 * n + 64, np.int32),
        support=np.empty(2 * n + 2, np.int32),
        ints=np.zeros(8, np.int32),
        reals=np.zeros(4, real),
        chars=np.frombuffer(b"VIUNA", np.uint8).copy(),
    )


# ints: 0 n, 1 first index, 2 last index, 3 number found, 4 info, 5 lwork, 6 lrwork, 7 liwork
# chars: V = vectors, I = by index, U = Fortran's upper triangle (row-major lower), N = no vectors, A = all of them


def _syevr(a, n, last, s):
    """Eigenpairs 1..last of the n x n matrix ``a`` into s.w and the first rows of s.z; returns LAPACK's info, -99 if some are missing."""
    name = _PREFIX[a.dtype.type]
    full = a[: n * n].reshape(n, n).T  # as Fortran sees it
    solver = getattr(scipy_lapack, name + ("heevr" if a.dtype.kind == "c" else "syevr"))
    w, z, m, _, info = solver(full, range="I", il=1, iu=last, lower=0)
    s.w[:last] = w[:last]
    s.z[: last * n] = z[:, :last].T.ravel()
    return info if info != 0 or m == last else -99


def _syevd(a, n, vectors, s):
    """All eigenvalues into s.w and, where asked, eigenvectors into the rows of ``a``; returns LAPACK's info."""
    name = _PREFIX[a.dtype.type]
    full = a[: n * n].reshape(n, n).T
    solver = getattr(scipy_lapack, name + ("heevd" if a.dtype.kind == "c" else "syevd"))
    w, v, info = solver(full, compute_v=int(vectors), lower=0)
    s.w[:n] = w
    if vectors:
        a[: n * n] = v.T.ravel()
    return info


def _gesvd(a, rows, columns, vectors, s):
    """Singular values, descending, of the rows x columns matrix ``a`` into s.w; see ``singular_rows`` for the vectors."""
    name = _PREFIX[a.dtype.type]
    full = a[: rows * columns].reshape(rows, columns).T  # as Fortran sees it
    u, w, _, info = getattr(scipy_lapack, name + "gesvd")(full, compute_uv=int(vectors), full_matrices=1)
    s.w[: len(w)] = w
    if vectors:
        s.z[: columns * columns] = u.T.ravel()
    return info


if not JIT_IS_OFF:

    @overload(_syevr)
    def _compiled_syevr(a, n, last, s):
        if a.dtype in _INT32_REAL:
            solver = _INT32_REAL[a.dtype][0]

            def real(a, n, last, s):
                i = s.ints
                i[0], i[1], i[2], i[3], i[4] = n, 1, last, 0, 0
                i[5], i[7] = s.work.size, s.iwork.size
                s.reals[:] = 0
                solver(
                    s.chars.ctypes, s.chars[1:].ctypes, s.chars[2:].ctypes, i.ctypes, a.ctypes, i.ctypes,
                    s.reals.ctypes, s.reals[1:].ctypes, i[1:].ctypes, i[2:].ctypes, s.reals[2:].ctypes, i[3:].ctypes,
                    s.w.ctypes, s.z.ctypes, i.ctypes, s.support.ctypes,
                    s.work.ctypes, i[5:].ctypes, s.iwork.ctypes, i[7:].ctypes, i[4:].ctypes,
                )  # fmt: skip
                if i[4] == 0 and i[3] != last:
                    return -99
                return np.int64(i[4])

            return real
        solver = _INT32_COMPLEX[a.dtype][0]

        def hermitian(a, n, last, s):
            i = s.ints
            i[0], i[1], i[2], i[3], i[4] = n, 1, last, 0, 0
            i[5], i[6], i[7] = s.work.size, s.rwork.size, s.iwork.size
            s.reals[:] = 0
            solver(
                s.chars.ctypes, s.chars[1:].ctypes, s.chars[2:].ctypes, i.ctypes, a.ctypes, i.ctypes,
                s.reals.ctypes, s.reals[1:].ctypes, i[1:].ctypes, i[2:].ctypes, s.reals[2:].ctypes, i[3:].ctypes,
                s.w.ctypes, s.z.ctypes, i.ctypes, s.support.ctypes,
                s.work.ctypes, i[5:].ctypes, s.rwork.ctypes, i[6:].ctypes, s.iwork.ctypes, i[7:].ctypes, i[4:].ctypes,
            )  # fmt: skip
            if i[4] == 0 and i[3] != last:
                return -99
            return np.int64(i[4])

        return hermitian

    @overload(_syevd)
    def _compiled_syevd(a, n, vectors, s):
        if a.dtype in _INT32_REAL:
            solver = _INT32_REAL[a.dtype][1]

            def real(a, n, vectors, s):
                i = s.ints
                job = 0 if vectors else 3
                i[0], i[4], i[5], i[7] = n, 0, s.work.size, s.iwork.size
                solver(
                    s.chars[job:].ctypes, s.chars[2:].ctypes, i.ctypes, a.ctypes, i.ctypes, s.w.ctypes,
                    s.work.ctypes, i[5:].ctypes, s.iwork.ctypes, i[7:].ctypes, i[4:].ctypes,
                )  # fmt: skip
                return np.int64(i[4])

            return real
        solver = _INT32_COMPLEX[a.dtype][1]

        def hermitian(a, n, vectors, s):
            i = s.ints
            job = 0 if vectors else 3
            i[0], i[4], i[5], i[6], i[7] = n, 0, s.work.size, s.rwork.size, s.iwork.size
            solver(
                s.chars[job:].ctypes, s.chars[2:].ctypes, i.ctypes, a.ctypes, i.ctypes, s.w.ctypes,
                s.work.ctypes, i[5:].ctypes, s.rwork.ctypes, i[6:].ctypes, s.iwork.ctypes, i[7:].ctypes, i[4:].ctypes,
            )  # fmt: skip
            return np.int64(i[4])

        return hermitian

    @overload(_gesvd)
    def _compiled_gesvd(a, rows, columns, vectors, s):
        if a.dtype in _INT32_REAL:
            solver = _INT32_REAL[a.dtype][2]

            def real(a, rows, columns, vectors, s):
                i = s.ints
                job = 4 if vectors else 3
                i[0], i[1], i[2], i[4], i[5] = columns, rows, 1, 0, s.work.size
                solver(
                    s.chars[job:].ctypes, s.chars[3:].ctypes, i.ctypes, i[1:].ctypes, a.ctypes, i.ctypes, s.w.ctypes,
                    s.z.ctypes, i.ctypes, s.z.ctypes, i[2:].ctypes, s.work.ctypes, i[5:].ctypes, i[4:].ctypes,
                )  # fmt: skip
                return np.int64(i[4])

            return real
        solver = _INT32_COMPLEX[a.dtype][2]

        def hermitian(a, rows, columns, vectors, s):
            i = s.ints
            job = 4 if vectors else 3
            i[0], i[1], i[2], i[4], i[5] = columns, rows, 1, 0, s.work.size
            solver(
                s.chars[job:].ctypes, s.chars[3:].ctypes, i.ctypes, i[1:].ctypes, a.ctypes, i.ctypes, s.w.ctypes,
                s.z.ctypes, i.ctypes, s.z.ctypes, i[2:].ctypes, s.work.ctypes, i[5:].ctypes, s.rwork.ctypes, i[4:].ctypes,
            )  # fmt: skip
            return np.int64(i[4])

        return hermitian


@kernel
def orthonormalize_rows(z, n, r):
    """Make the first r rows of length n orthonormal by Gram-Schmidt, twice; they are nearly so already."""
    for _ in range(2):
        for j in range(r):
            for k in range(j):
                s = z[0] * 0
                for i in range(n):
                    s += np.conj(z[k * n + i]) * z[j * n + i]
                for i in range(n):
                    z[j * n + i] -= s * z[k * n + i]
            size = 0.0
            for i in range(n):
                size += abs(z[j * n + i]) ** 2
            size = np.sqrt(size)
            for i in range(n):
                z[j * n + i] /= size


@kernel
def eigh_lowest(n, wanted, s):
    """Lowest eigenpairs of the Hermitian n x n matrix in s.a (entries at most about 1 in modulus).

    s.a is row-major with the lower triangle filled, and is destroyed. The ``wanted`` lowest eigenvalues ascend in s.w, their orthonormal eigenvectors are the first rows of s.z.
    Returns 0, or LAPACK's info when even the most robust solver failed.
    """
    a = s.a
    if n == 1:
        s.w[0] = a[0].real
        s.z[0] = 1
        return 0
    if n > SMALL and wanted < n:
        for i in range(n * n):
            s.spare[i] = a[i]
        info = _syevr(a, n, wanted, s)
        if info == 0:
            # inverse iteration leaves vectors orthogonal to eps over their relative gap; one pass makes that eps
            for i in range(wanted * n):
                s.z[i] = np.conj(s.z[i])
            orthonormalize_rows(s.z, n, wanted)
            return 0
        for i in range(n * n):
            a[i] = s.spare[i]
    info = _syevd(a, n, True, s)
    for i in range(wanted * n):
        s.z[i] = np.conj(a[i])
    return info


@kernel
def eigvalsh(n, s):
    """All eigenvalues of the Hermitian n x n matrix in s.a, as in ``eigh_lowest``, ascending in s.w; returns LAPACK's info."""
    return _syevd(s.a, n, False, s)


@kernel
def singular_rows(rows, columns, vectors, s):
    """Singular values of the row-major rows x columns matrix in s.a, descending in s.w (min(rows, columns) of them).

    With ``vectors`` all right singular vectors, those of the null space last, are the rows of s.z. Returns LAPACK's info.
    """
    if rows == 0:
        if vectors:
            for i in range(columns * columns):
                s.z[i] = 0
            for i in range(columns):
                s.z[i * columns + i] = 1
        return 0
    info = _gesvd(s.a, rows, columns, vectors, s)
    if vectors:  # Fortran saw the transpose, whose left singular vectors are the conjugates
        for i in range(columns * columns):
            s.z[i] = np.conj(s.z[i])
    return info
