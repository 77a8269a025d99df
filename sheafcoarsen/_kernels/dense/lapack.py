"""LAPACK's Hermitian eigensolvers and factorizations from inside numba, in the way that numba can cache.

A ctypes pointer compiled into a kernel cannot be cached; a *named* external symbol can. So the
addresses that scipy exports for Cython are registered with LLVM under names of our own, once per
process, and kernels call those names. With the JIT off an external call would silently do nothing,
so the plain Python bodies below call ``scipy.linalg.lapack`` instead.

Conventions: matrices are row-major with the lower triangle filled, which Fortran sees as the upper
triangle of the transpose; for a complex matrix that is the conjugate, and the eigenvectors are
conjugated back on the way out.
"""

import llvmlite.binding
import numpy as np
import scipy.linalg.lapack as scipy_lapack
from numba import types
from numba.extending import get_cython_function_address, overload

from sheafcoarsen._kernels.jit import JIT_IS_OFF, subkernel

_PREFIX = {np.float32: "s", np.float64: "d", np.complex64: "c", np.complex128: "z"}


def _external(name: str, n_arguments: int, module: str = "cython_lapack"):
    symbol = f"sheafcoarsen_{name}"
    llvmlite.binding.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.{module}", name))
    return types.ExternalFunction(symbol, types.void(*[types.voidptr] * n_arguments))


_SCALARS = (types.float32, types.float64, types.complex64, types.complex128)


_ssyevd, _dsyevd = _external("ssyevd", 11), _external("dsyevd", 11)


_cheevd, _zheevd = _external("cheevd", 13), _external("zheevd", 13)


_sgesvd, _dgesvd = _external("sgesvd", 14), _external("dgesvd", 14)


_cgesvd, _zgesvd = _external("cgesvd", 15), _external("zgesvd", 15)


_dsterf = _external("dsterf", 4)


_POTRF = {t: _external(c + "potrf", 5) for t, c in zip(_SCALARS, "sdcz", strict=True)}


_PSTRF = {t: _external(c + "pstrf", 9) for t, c in zip(_SCALARS, "sdcz", strict=True)}


_dpotrs, _zpotrs = _external("dpotrs", 8), _external("zpotrs", 8)


_dsyrk, _zherk = _external("dsyrk", 10, "cython_blas"), _external("zherk", 10, "cython_blas")


_INT32_REAL = {types.float32: (_ssyevd, _sgesvd), types.float64: (_dsyevd, _dgesvd)}


_INT32_COMPLEX = {types.complex64: (_cheevd, _cgesvd), types.complex128: (_zheevd, _zgesvd)}


def heevd(a, n, vectors, s):
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
    u, w, _, info = getattr(scipy_lapack, name + "gesvd")(
        full, compute_uv=int(vectors), full_matrices=1
    )
    s.w[: len(w)] = w
    if vectors:
        s.z[: columns * columns] = u.T.ravel()
    return info


def potrf(a, n, s):
    """Overwrite the lower triangle of the row-major n x n matrix ``a`` by its Cholesky factor, a = L L*; returns LAPACK's info."""
    factor, info = getattr(scipy_lapack, _PREFIX[a.dtype.type] + "potrf")(
        a[: n * n].reshape(n, n).T, lower=0, clean=0
    )
    a[: n * n] = factor.T.ravel()
    return info


def potrs(a, n, b, count, s):
    """B <- conj(A)^{-1} B with the factor that ``potrf`` left; b holds ``count`` vectors of length n, one after the other."""
    solver = scipy_lapack.get_lapack_funcs("potrs", (a,))
    x, info = solver(a[: n * n].reshape(n, n).T, b[: n * count].reshape(count, n).T, lower=0)
    b[: n * count] = x.T.ravel()
    return info


def gram(b, n, count, out, s):
    """Lower triangle, row-major, of the conjugate of B* B; b holds the ``count`` columns, of length n, one after the other."""
    B = b[: n * count].reshape(count, n)
    out[: count * count] = (B @ B.conj().T).ravel()


def pstrf(a, n, least, s):
    """Cholesky with complete pivoting: a[p, p] = L L* until no diagonal entry that is left exceeds ``least``; returns the rank r.

    The first r columns of L overwrite ``a``; the order p, counted from 1, is s.iwork[:n].
    """
    full = a[: n * n].reshape(n, n).T
    factor, order, rank, _ = getattr(scipy_lapack, _PREFIX[a.dtype.type] + "pstrf")(
        full, tol=least, lower=0
    )
    a[: n * n] = factor.T.ravel()
    s.iwork[:n] = order
    return rank


if not JIT_IS_OFF:

    @overload(potrf)
    def _compiled_potrf(a, n, s):
        solver = _POTRF[a.dtype]

        def compiled(a, n, s):
            i = s.ints
            i[0], i[4] = n, 0
            solver(s.chars[1:].ctypes, i.ctypes, a.ctypes, i.ctypes, i[4:].ctypes)
            return np.int64(i[4])

        return compiled

    @overload(potrs)
    def _compiled_potrs(a, n, b, count, s):
        solver = _zpotrs if isinstance(a.dtype, types.Complex) else _dpotrs

        def compiled(a, n, b, count, s):
            i = s.ints
            i[0], i[1], i[4] = n, count, 0
            solver(
                s.chars[1:].ctypes, i.ctypes, i[1:].ctypes, a.ctypes, i.ctypes, b.ctypes, i.ctypes, i[4:].ctypes
            )  # fmt: skip
            return np.int64(i[4])

        return compiled

    @overload(gram)
    def _compiled_gram(b, n, count, out, s):
        product = _zherk if isinstance(b.dtype, types.Complex) else _dsyrk

        def compiled(b, n, count, out, s):
            i = s.ints
            i[0], i[1] = count, n
            one_zero = np.array([1.0, 0.0])
            product(
                s.chars[1:].ctypes, s.chars[4:].ctypes, i.ctypes, i[1:].ctypes, one_zero.ctypes, b.ctypes, i[1:].ctypes,
                one_zero[1:].ctypes, out.ctypes, i.ctypes,
            )  # fmt: skip

        return compiled

    @overload(pstrf)
    def _compiled_pstrf(a, n, least, s):
        solver = _PSTRF[a.dtype]
        if isinstance(a.dtype, types.Complex):

            def hermitian(a, n, least, s):
                i = s.ints
                i[0], i[4] = n, 0
                s.w[0] = least
                solver(
                    s.chars[1:].ctypes, i.ctypes, a.ctypes, i.ctypes, s.iwork.ctypes, i[3:].ctypes, s.w.ctypes,
                    s.rwork.ctypes, i[4:].ctypes,
                )  # fmt: skip
                return np.int64(i[3])

            return hermitian

        def real(a, n, least, s):
            i = s.ints
            i[0], i[4] = n, 0
            s.w[0] = least
            solver(
                s.chars[1:].ctypes, i.ctypes, a.ctypes, i.ctypes, s.iwork.ctypes, i[3:].ctypes, s.w.ctypes,
                s.work.ctypes, i[4:].ctypes,
            )  # fmt: skip
            return np.int64(i[3])

        return real

    @overload(heevd)
    def _compiled_heevd(a, n, vectors, s):
        if a.dtype in _INT32_REAL:
            solver = _INT32_REAL[a.dtype][0]

            def real(a, n, vectors, s):
                i = s.ints
                job = 0 if vectors else 2
                i[0], i[4], i[5], i[7] = n, 0, s.work.size, s.iwork.size
                solver(
                    s.chars[job:].ctypes, s.chars[1:].ctypes, i.ctypes, a.ctypes, i.ctypes, s.w.ctypes,
                    s.work.ctypes, i[5:].ctypes, s.iwork.ctypes, i[7:].ctypes, i[4:].ctypes,
                )  # fmt: skip
                return np.int64(i[4])

            return real
        solver = _INT32_COMPLEX[a.dtype][0]

        def hermitian(a, n, vectors, s):
            i = s.ints
            job = 0 if vectors else 2
            i[0], i[4], i[5], i[6], i[7] = n, 0, s.work.size, s.rwork.size, s.iwork.size
            solver(
                s.chars[job:].ctypes, s.chars[1:].ctypes, i.ctypes, a.ctypes, i.ctypes, s.w.ctypes,
                s.work.ctypes, i[5:].ctypes, s.rwork.ctypes, i[6:].ctypes, s.iwork.ctypes, i[7:].ctypes, i[4:].ctypes,
            )  # fmt: skip
            return np.int64(i[4])

        return hermitian

    @overload(_gesvd)
    def _compiled_gesvd(a, rows, columns, vectors, s):
        if a.dtype in _INT32_REAL:
            solver = _INT32_REAL[a.dtype][1]

            def real(a, rows, columns, vectors, s):
                i = s.ints
                job = 3 if vectors else 2
                i[0], i[1], i[2], i[4], i[5] = columns, rows, 1, 0, s.work.size
                solver(
                    s.chars[job:].ctypes, s.chars[2:].ctypes, i.ctypes, i[1:].ctypes, a.ctypes, i.ctypes, s.w.ctypes,
                    s.z.ctypes, i.ctypes, s.z.ctypes, i[2:].ctypes, s.work.ctypes, i[5:].ctypes, i[4:].ctypes,
                )  # fmt: skip
                return np.int64(i[4])

            return real
        solver = _INT32_COMPLEX[a.dtype][1]

        def hermitian(a, rows, columns, vectors, s):
            i = s.ints
            job = 3 if vectors else 2
            i[0], i[1], i[2], i[4], i[5] = columns, rows, 1, 0, s.work.size
            solver(
                s.chars[job:].ctypes, s.chars[2:].ctypes, i.ctypes, i[1:].ctypes, a.ctypes, i.ctypes, s.w.ctypes,
                s.z.ctypes, i.ctypes, s.z.ctypes, i[2:].ctypes, s.work.ctypes, i[5:].ctypes, s.rwork.ctypes, i[4:].ctypes,
            )  # fmt: skip
            return np.int64(i[4])

        return hermitian


@subkernel
def sterf(n, d, e, s):
    """All eigenvalues of a real tridiagonal matrix, ascending into d; returns LAPACK's info.

    Only from compiled code.
    """
    s.ints[0], s.ints[4] = n, 0
    _dsterf(s.ints.ctypes, d.ctypes, e.ctypes, s.ints[4:].ctypes)
    return np.int64(s.ints[4])


@subkernel
def singular_rows(rows, columns, vectors, s):
    """Singular values of the row-major rows x columns matrix in s.a, descending in s.w (min(rows, columns) of them).

    With ``vectors`` all right singular vectors, those of the null space last, are the rows of s.z.
    Returns LAPACK's info.
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
