"""LAPACK from inside numba, in the way that numba can cache.

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


VECTORS, UPPER, NEITHER, ALL, ADJOINT = range(5)
"""Where the letters V, U, N, A and C stand in ``Workspace.chars``; LAPACK takes their addresses."""

SIZE, COUNT, LEADING, RANK, INFO, WORK, RWORK, IWORK = range(8)
"""What stands in ``Workspace.ints``: sizes of the problem, results, sizes of the work space."""

_SCALARS = (types.float32, types.float64, types.complex64, types.complex128)


def external(name: str, n_arguments: int, module: str = "cython_lapack"):
    """Return a routine that scipy exports for Cython, under a name that numba can cache."""
    symbol = f"sheafcoarsen_{name}"
    llvmlite.binding.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.{module}", name))
    return types.ExternalFunction(symbol, types.void(*[types.voidptr] * n_arguments))


def _of_every_type(real: str, hermitian: str, n_arguments: tuple[int, int]) -> dict:
    """Return a routine for the four scalar types; complex ones may take arguments of their own."""
    names = ("s" + real, "d" + real, "c" + hermitian, "z" + hermitian)
    counts = (n_arguments[0], n_arguments[0], n_arguments[1], n_arguments[1])
    return {
        scalar: external(name, count)
        for scalar, name, count in zip(_SCALARS, names, counts, strict=True)
    }


_HEEVD = _of_every_type("syevd", "heevd", (11, 13))
_GESVD = _of_every_type("gesvd", "gesvd", (14, 15))
_POTRF = _of_every_type("potrf", "potrf", (5, 5))
_PSTRF = _of_every_type("pstrf", "pstrf", (9, 9))
_dsterf = external("dsterf", 4)
_dpotrs, _zpotrs = external("dpotrs", 8), external("zpotrs", 8)
_dsyrk, _zherk = external("dsyrk", 10, "cython_blas"), external("zherk", 10, "cython_blas")


def heevd(a, n, vectors, s):
    """Eigenvalues into s.w and, where asked, eigenvectors as rows into ``a``; returns the info."""
    name = _PREFIX[a.dtype.type]
    full = a[: n * n].reshape(n, n).T
    solver = getattr(scipy_lapack, name + ("heevd" if a.dtype.kind == "c" else "syevd"))
    w, v, info = solver(full, compute_v=int(vectors), lower=0)
    s.w[:n] = w
    if vectors:
        a[: n * n] = v.T.ravel()
    return info


def _gesvd(a, rows, columns, vectors, s):
    """Singular values, descending, of ``a`` into s.w; for the vectors see ``singular_rows``."""
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
    """Overwrite the lower triangle of ``a``, n x n, by its Cholesky factor; returns the info."""
    factor, info = getattr(scipy_lapack, _PREFIX[a.dtype.type] + "potrf")(
        a[: n * n].reshape(n, n).T, lower=0, clean=0
    )
    a[: n * n] = factor.T.ravel()
    return info


def potrs(a, n, b, count, s):
    """B <- conj(A)^{-1} B with the factor that ``potrf`` left, for ``count`` vectors in a row."""
    solver = scipy_lapack.get_lapack_funcs("potrs", (a,))
    x, info = solver(a[: n * n].reshape(n, n).T, b[: n * count].reshape(count, n).T, lower=0)
    b[: n * count] = x.T.ravel()
    return info


def gram(b, n, count, out, s):
    """Lower triangle of the conjugate of B* B, whose ``count`` columns of length n follow in b."""
    B = b[: n * count].reshape(count, n)
    out[: count * count] = (B @ B.conj().T).ravel()


def pstrf(a, n, least, s):
    """Cholesky with complete pivoting until no diagonal entry exceeds ``least``; returns the rank.

    a[p, p] = L L*: the first columns of L overwrite ``a``; the order p, from 1, is s.iwork[:n].
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
            ints, chars = s.ints, s.chars
            ints[SIZE], ints[INFO] = n, 0
            size, info = ints.ctypes, ints[INFO:].ctypes
            solver(chars[UPPER:].ctypes, size, a.ctypes, size, info)
            return np.int64(ints[INFO])

        return compiled

    @overload(potrs)
    def _compiled_potrs(a, n, b, count, s):
        solver = _zpotrs if isinstance(a.dtype, types.Complex) else _dpotrs

        def compiled(a, n, b, count, s):
            ints, chars = s.ints, s.chars
            ints[SIZE], ints[COUNT], ints[INFO] = n, count, 0
            size, columns, info = ints.ctypes, ints[COUNT:].ctypes, ints[INFO:].ctypes
            solver(chars[UPPER:].ctypes, size, columns, a.ctypes, size, b.ctypes, size, info)
            return np.int64(ints[INFO])

        return compiled

    @overload(gram)
    def _compiled_gram(b, n, count, out, s):
        product = _zherk if isinstance(b.dtype, types.Complex) else _dsyrk

        def compiled(b, n, count, out, s):
            ints, upper, adjoint = s.ints, s.chars[UPPER:].ctypes, s.chars[ADJOINT:].ctypes
            ints[SIZE], ints[COUNT] = count, n
            size, length = ints.ctypes, ints[COUNT:].ctypes
            numbers = np.array([1.0, 0.0])
            one, zero = numbers.ctypes, numbers[1:].ctypes
            product(upper, adjoint, size, length, one, b.ctypes, length, zero, out.ctypes, size)

        return compiled

    @overload(pstrf)
    def _compiled_pstrf(a, n, least, s):
        solver, is_complex = _PSTRF[a.dtype], isinstance(a.dtype, types.Complex)

        def compiled(a, n, least, s):
            ints, upper = s.ints, s.chars[UPPER:].ctypes
            ints[SIZE], ints[INFO] = n, 0
            s.w[0] = least
            size, rank, info = ints.ctypes, ints[RANK:].ctypes, ints[INFO:].ctypes
            work = s.rwork.ctypes if is_complex else s.work.ctypes
            solver(upper, size, a.ctypes, size, s.iwork.ctypes, rank, s.w.ctypes, work, info)
            return np.int64(ints[RANK])

        return compiled

    @overload(heevd)
    def _compiled_heevd(a, n, vectors, s):
        solver = _HEEVD[a.dtype]

        def real(a, n, vectors, s):
            ints, upper = s.ints, s.chars[UPPER:].ctypes
            job = s.chars[VECTORS if vectors else NEITHER :].ctypes
            ints[SIZE], ints[INFO] = n, 0
            ints[WORK], ints[IWORK] = s.work.size, s.iwork.size
            size, info = ints.ctypes, ints[INFO:].ctypes
            works, iworks = ints[WORK:].ctypes, ints[IWORK:].ctypes
            work, iwork = s.work.ctypes, s.iwork.ctypes
            solver(job, upper, size, a.ctypes, size, s.w.ctypes, work, works, iwork, iworks, info)
            return np.int64(ints[INFO])

        def hermitian(a, n, vectors, s):
            ints, upper = s.ints, s.chars[UPPER:].ctypes
            job = s.chars[VECTORS if vectors else NEITHER :].ctypes
            ints[SIZE], ints[INFO] = n, 0
            ints[WORK], ints[RWORK], ints[IWORK] = s.work.size, s.rwork.size, s.iwork.size
            size, info = ints.ctypes, ints[INFO:].ctypes
            works, rworks, iworks = ints[WORK:].ctypes, ints[RWORK:].ctypes, ints[IWORK:].ctypes
            work, rwork, iwork = s.work.ctypes, s.rwork.ctypes, s.iwork.ctypes
            matrix, values = a.ctypes, s.w.ctypes
            solver(
                job,
                upper,
                size,
                matrix,
                size,
                values,
                work,
                works,
                rwork,
                rworks,
                iwork,
                iworks,
                info,
            )
            return np.int64(ints[INFO])

        return hermitian if isinstance(a.dtype, types.Complex) else real

    @overload(_gesvd)
    def _compiled_gesvd(a, rows, columns, vectors, s):
        solver = _GESVD[a.dtype]

        def real(a, rows, columns, vectors, s):
            ints, none = s.ints, s.chars[NEITHER:].ctypes
            job = s.chars[ALL if vectors else NEITHER :].ctypes
            ints[SIZE], ints[COUNT], ints[LEADING] = columns, rows, 1
            ints[INFO], ints[WORK] = 0, s.work.size
            size, count, info = ints.ctypes, ints[COUNT:].ctypes, ints[INFO:].ctypes
            one, works = ints[LEADING:].ctypes, ints[WORK:].ctypes
            matrix, values, z, work = a.ctypes, s.w.ctypes, s.z.ctypes, s.work.ctypes
            solver(job, none, size, count, matrix, size, values, z, size, z, one, work, works, info)
            return np.int64(ints[INFO])

        def hermitian(a, rows, columns, vectors, s):
            ints, none = s.ints, s.chars[NEITHER:].ctypes
            job = s.chars[ALL if vectors else NEITHER :].ctypes
            ints[SIZE], ints[COUNT], ints[LEADING] = columns, rows, 1
            ints[INFO], ints[WORK] = 0, s.work.size
            size, count, info = ints.ctypes, ints[COUNT:].ctypes, ints[INFO:].ctypes
            one, works, real_work = ints[LEADING:].ctypes, ints[WORK:].ctypes, s.rwork.ctypes
            matrix, values, z, work = a.ctypes, s.w.ctypes, s.z.ctypes, s.work.ctypes
            solver(
                job,
                none,
                size,
                count,
                matrix,
                size,
                values,
                z,
                size,
                z,
                one,
                work,
                works,
                real_work,
                info,
            )
            return np.int64(ints[INFO])

        return hermitian if isinstance(a.dtype, types.Complex) else real


@subkernel
def sterf(n, d, e, s):
    """All eigenvalues of a real tridiagonal matrix, ascending into d; returns LAPACK's info.

    Only from compiled code.
    """
    s.ints[SIZE], s.ints[INFO] = n, 0
    _dsterf(s.ints.ctypes, d.ctypes, e.ctypes, s.ints[INFO:].ctypes)
    return np.int64(s.ints[INFO])


@subkernel
def singular_rows(rows, columns, vectors, s):
    """Singular values of the rows x columns matrix in s.a, descending in s.w.

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
