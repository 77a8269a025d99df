"""Dense linear algebra on small row-major matrices in flat arrays: scaling, QR, LAPACK.

numba cannot cache code that contains the address of a function, but it can cache calls of *named*
external symbols. Therefore the addresses of LAPACK's routines that scipy exports for Cython are
registered with LLVM under names of this package, once per process, and kernels call these names.
With the JIT off, an external call would silently do nothing, so the Python bodies below call
``scipy.linalg.lapack``.

LAPACK's matrices are row-major with the lower triangle filled, which Fortran reads as the upper
triangle of the transpose. For Hermitian matrices that is the conjugate, so eigenvectors are
conjugated afterwards.

>>> from sheafcoarsen._kernels.dense import power_of_two
>>> power_of_two(3.0), power_of_two(0.0)
(4.0, 1.0)
"""

import math
from typing import NamedTuple

import llvmlite.binding
import numpy as np
import scipy.linalg.lapack as scipy_lapack
from numba import types
from numba.extending import get_cython_function_address, overload, register_jitable

from sheafcoarsen._kernels.jit import (
    JIT_IS_OFF,
    borrowing_kernel,
    reassociating_subkernel,
    subkernel,
)

EPS = 2.0**-52
"""Distance from 1 to the next larger number in double precision."""

LANES = 8
"""Number of eigenpairs of a tridiagonal matrix computed together, one per lane of a register."""

DENSE_SHARE = 3
"""Minimum number of rows per wanted eigenpair; with fewer, LAPACK computes all eigenpairs."""

PANEL = 4
"""Number of reflections of a tridiagonalization that are applied together."""

VECTORS, UPPER, NEITHER, ALL, ADJOINT, TRANSPOSED = range(6)
"""Indices of LAPACK's options in ``Workspace.chars``: the names' initials, and C for ADJOINT.

LAPACK takes the addresses of these letters.
"""

ASSIGN, SUBTRACT = (1.0, 0.0), (-1.0, 1.0)
"""Factors of ``gemm``."""

SIZE, COUNT, RANK, INFO, WORK, RWORK, IWORK = range(7)
"""Indices in ``Workspace.ints``. SIZE, COUNT: dimensions of matrices. RANK, INFO: results. WORK,
RWORK, IWORK: lengths of the work arrays.
"""


@borrowing_kernel
def power_of_two(size):
    """Return the power of two just above ``size``, clipped to 2^-1000 .. 2^1000; 1 for size 0."""
    if size == 0:
        return 1.0
    power = math.frexp(size)[1]
    if abs(power) > 1000:
        power = -1000 if power < 0 else 1000
    return math.ldexp(1.0, power)


@subkernel
def largest_entry(data, begin, end, largest):
    """Return the largest absolute value of data[begin:end], or ``largest`` if that is larger."""
    for i in range(begin, end):
        size = float(abs(data[i]))
        if size > largest:
            largest = size
    return largest


@reassociating_subkernel
def inf_norm(a, n, sums):
    """Return norm(A, inf) of a Hermitian matrix given by its lower triangle.

    ``sums`` is workspace for n numbers.
    """
    for i in range(n):
        sums[i] = 0
    for i in range(n):
        row = a[i * n : i * n + i + 1]
        total = float(abs(row[i]))
        for j in range(i):
            size = float(abs(row[j]))
            total += size
            sums[j] += size
        sums[i] += total
    return largest_entry(sums, np.int64(0), n, 0.0)


@subkernel
def brought_near_one(a, n):
    """Divide a semidefinite A (lower triangle) by a power of 2 unless its largest entry is near 1.

    Returns that power, or 0 if A = 0. The largest entry of A is on its diagonal.
    """
    largest = 0.0
    for i in range(n):
        size = float(abs(a[i * n + i]))
        if size > largest:
            largest = size
    if largest == 0 or 1e-3 < largest < 1e3:
        return 1.0 if largest > 0 else 0.0
    scale = power_of_two(largest)
    for i in range(n):
        row = a[i * n : i * n + i + 1]
        for j in range(i + 1):
            row[j] /= scale
    return scale


@subkernel
def triangular_factor(m, rows, w, v, s):
    """Overwrite the rows x w matrix in m with the triangular factor of its QR decomposition.

    By Householder reflections. Norms are computed of columns divided by a power of two, so that
    nothing over- or underflows. Rows with a zero in the column, such as those of an earlier factor,
    are skipped. The diagonal is real, of either sign. ``v`` and ``s`` are workspace for a column
    and a row.
    """
    for k in range(min(rows, w)):
        largest = 0.0
        for i in range(k, rows):
            largest = max(largest, float(abs(m[i * w + k].real)), float(abs(m[i * w + k].imag)))
        if largest == 0:
            continue
        scale = power_of_two(largest)
        square = 0.0
        for i in range(k, rows):
            v[i] = m[i * w + k] / scale
            square += float(v[i].real) ** 2 + float(v[i].imag) ** 2
        beta = -math.copysign(math.sqrt(square), float(v[k].real))
        tau = (beta - v[k]) / beta
        factor = 1 / (v[k] - beta)
        for j in range(k + 1, w):
            s[j] = m[k * w + j]
        for i in range(k + 1, rows):
            if v[i] == 0:
                continue
            v[i] *= factor
            for j in range(k + 1, w):
                s[j] += np.conj(v[i]) * m[i * w + j]
        for j in range(k + 1, w):
            s[j] *= np.conj(tau)
            m[k * w + j] -= s[j]
        for i in range(k + 1, rows):
            m[i * w + k] = 0
            if v[i] == 0:
                continue
            for j in range(k + 1, w):
                m[i * w + j] -= v[i] * s[j]
        m[k * w + k] = beta * scale


class ReductionWorkspace(NamedTuple):
    """Arrays of a reduction to a tridiagonal T and of the eigenproblem of T."""

    tau: np.ndarray  # (n,) scalars of the reflections
    panel: np.ndarray  # (2 PANEL, n) delayed updates, V and W
    p: np.ndarray  # (n,) product of the matrix and a vector
    d: np.ndarray  # (n,) diagonal of T
    e: np.ndarray  # (n,) subdiagonal of T
    e2: np.ndarray  # (n,) squares of e
    w: np.ndarray  # (wanted,) eigenvalues
    z: np.ndarray  # (wanted * n,) eigenvectors as rows
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
    sums: np.ndarray  # (n + 3,) row sums for norms, in double precision


def worth_reducing(dims, wanted) -> bool:
    """Return whether it pays to compile the eigensolver of ``hermitian.py`` for given sizes.

    ``dims`` are sizes of matrices, ``wanted`` their numbers of wanted eigenpairs.
    """
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
            z=np.empty(wanted * n),
            lanes=np.empty((7, n + 2, LANES)),
        )
    square = work_size(n)
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
        ints=np.zeros(7, np.int32),
        chars=np.frombuffer(b"VUNACT", np.uint8).copy(),
        sums=np.empty(n + 3),
    )


@register_jitable
def work_size(n):
    """Return the size of LAPACK's workspace for all eigenvectors of an n x n matrix."""
    return 2 * n * n + 6 * n + 64


def external(name: str, n_arguments: int, module: str = "cython_lapack"):
    """Return a routine that scipy exports for Cython, as a named external function."""
    symbol = f"sheafcoarsen_{name}"
    llvmlite.binding.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.{module}", name))
    return types.ExternalFunction(symbol, types.void(*[types.voidptr] * n_arguments))


_dsyevd, _zheevd = external("dsyevd", 11), external("zheevd", 13)
_dgesvd, _zgesvd = external("dgesvd", 14), external("zgesvd", 15)
_dpotrf, _zpotrf = external("dpotrf", 5), external("zpotrf", 5)
_dpstrf, _zpstrf = external("dpstrf", 9), external("zpstrf", 9)
dsterf = external("dsterf", 4)  # eigenvalues of a tridiagonal matrix
_dpotrs, _zpotrs = external("dpotrs", 8), external("zpotrs", 8)
_dgemm, _zgemm = external("dgemm", 13, "cython_blas"), external("zgemm", 13, "cython_blas")


def heevd(a, n, vectors, s):
    """Write eigenvalues to s.w and, if ``vectors``, conjugate eigenvectors to the rows of ``a``.

    Returns LAPACK's info.
    """
    full = a[: n * n].reshape(n, n).T
    solver = scipy_lapack.zheevd if a.dtype.kind == "c" else scipy_lapack.dsyevd
    w, v, info = solver(full, compute_v=int(vectors), lower=0)
    s.w[:n] = w
    if vectors:
        a[: n * n] = v.T.ravel()
    return info


def _gesvd(a, rows, columns, vectors, s):
    """Write the singular values of ``a`` to s.w; for the vectors see ``singular_rows``."""
    full = a[: rows * columns].reshape(rows, columns).T  # as column-major Fortran would read it
    solver = scipy_lapack.get_lapack_funcs("gesvd", (a,))
    u, w, _, info = solver(full, compute_uv=int(vectors), full_matrices=1)
    s.w[: len(w)] = w
    if vectors:
        s.z[: columns * columns] = u.T.ravel()
    return info


def potrf(a, n, s):
    """Overwrite the lower triangle of the n x n ``a`` with its Cholesky factor; return info."""
    solver = scipy_lapack.get_lapack_funcs("potrf", (a,))
    factor, info = solver(a[: n * n].reshape(n, n).T, lower=0, clean=0)
    a[: n * n] = factor.T.ravel()
    return info


def potrs(a, n, b, count, s):
    """Overwrite ``count`` consecutive vectors b with conj(A)^{-1} b, A as factored by ``potrf``."""
    solver = scipy_lapack.get_lapack_funcs("potrs", (a,))
    x, info = solver(a[: n * n].reshape(n, n).T, b[: n * count].reshape(count, n).T, lower=0)
    b[: n * count] = x.T.ravel()
    return info


def gemm(operations, shape, factors, a, b, out, s):
    """Write alpha op(A) op(B) + beta C to C, where C is ``out`` and ``factors`` are alpha and beta.

    ``operations`` are NEITHER, TRANSPOSED or ADJOINT, for A and for B. ``shape`` has the numbers of
    rows and columns of C, and of columns of op(A). The rows of A, B and C must not be empty.
    """
    (rows, columns, inner), (alpha, beta) = shape, factors
    sizes, operands = ((rows, inner), (inner, columns)), []
    for x, operation, (height, width) in zip((a, b), operations, sizes, strict=True):
        matrix = x[: height * width]
        if operation == NEITHER:
            operands.append(matrix.reshape(height, width))
        else:
            matrix = matrix.reshape(width, height).T
            operands.append(matrix.conj() if operation == ADJOINT else matrix)
    product = alpha * (operands[0] @ operands[1]).ravel()
    before = out[: rows * columns]
    before[:] = product + beta * before if beta else product


def pstrf(a, n, least, s):
    """Compute a pivoted Cholesky factorization while pivots exceed ``least``; return the rank.

    a[p][:, p] = L L*, where the first columns of L overwrite ``a`` and the order p, counted from
    1, is s.iwork[:n]. LAPACK does not compare the first pivot with ``least``.
    """
    solver = scipy_lapack.get_lapack_funcs("pstrf", (a,))
    factor, order, rank, _ = solver(a[: n * n].reshape(n, n).T, tol=least, lower=0)
    a[: n * n] = factor.T.ravel()
    s.iwork[:n] = order
    return rank


if not JIT_IS_OFF:

    @overload(potrf)
    def _compiled_potrf(a, n, s):
        solver = _zpotrf if isinstance(a.dtype, types.Complex) else _dpotrf

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

    @overload(gemm)
    def _compiled_gemm(operations, shape, factors, a, b, out, s):
        product = _zgemm if isinstance(a.dtype, types.Complex) else _dgemm

        def compiled(operations, shape, factors, a, b, out, s):
            ints, numbers = s.ints, s.sums
            ints[SIZE], ints[COUNT], ints[RANK] = shape
            numbers[0], numbers[1], numbers[2], numbers[3] = factors[0], 0.0, factors[1], 0.0
            rows, columns, inner = ints.ctypes, ints[COUNT:].ctypes, ints[RANK:].ctypes
            width_a = inner if operations[0] == NEITHER else rows
            width_b = columns if operations[1] == NEITHER else inner
            left, right = s.chars[operations[0] :].ctypes, s.chars[operations[1] :].ctypes
            alpha, beta = numbers.ctypes, numbers[2:].ctypes
            # Fortran reads row-major matrices as their transposes: compute that of the product
            second, first = (b.ctypes, width_b), (a.ctypes, width_a)
            sizes = right, left, columns, rows, inner, alpha
            product(*(sizes + second + first + (beta, out.ctypes, columns)))

        return compiled

    @overload(pstrf)
    def _compiled_pstrf(a, n, least, s):
        is_complex = isinstance(a.dtype, types.Complex)
        solver = _zpstrf if is_complex else _dpstrf

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
        is_complex = isinstance(a.dtype, types.Complex)
        solver = _zheevd if is_complex else _dsyevd

        def compiled(a, n, vectors, s):
            ints, upper = s.ints, s.chars[UPPER:].ctypes
            job = s.chars[VECTORS if vectors else NEITHER :].ctypes
            ints[SIZE], ints[INFO] = n, 0
            # LAPACK's choice of blocks must not depend on the size of other matrices
            ints[WORK] = ints[RWORK] = work_size(n)
            ints[IWORK] = s.iwork.size
            size, works = ints.ctypes, ints[WORK:].ctypes
            matrix = job, upper, size, a.ctypes, size, s.w.ctypes, s.work.ctypes, works
            rwork = (s.rwork.ctypes, ints[RWORK:].ctypes) if is_complex else ()
            iwork = s.iwork.ctypes, ints[IWORK:].ctypes, ints[INFO:].ctypes
            solver(*(matrix + rwork + iwork))
            return np.int64(ints[INFO])

        return compiled

    @overload(_gesvd)
    def _compiled_gesvd(a, rows, columns, vectors, s):
        is_complex = isinstance(a.dtype, types.Complex)
        solver = _zgesvd if is_complex else _dgesvd

        def compiled(a, rows, columns, vectors, s):
            ints, none = s.ints, s.chars[NEITHER:].ctypes
            job = s.chars[ALL if vectors else NEITHER :].ctypes
            ints[SIZE], ints[COUNT], ints[INFO], ints[WORK] = columns, rows, 0, s.work.size
            size, z = ints.ctypes, s.z.ctypes
            matrix = job, none, size, ints[COUNT:].ctypes, a.ctypes, size, s.w.ctypes
            work = z, size, z, size, s.work.ctypes, ints[WORK:].ctypes
            rwork = (s.rwork.ctypes,) if is_complex else ()
            solver(*(matrix + work + rwork + (ints[INFO:].ctypes,)))
            return np.int64(ints[INFO])

        return compiled


@subkernel
def singular_rows(rows, columns, vectors, s):
    """Write the singular values of the rows x columns matrix in s.a to s.w, descending.

    With ``vectors``, all right singular vectors are written to the rows of s.z, those of the null
    space last. Returns LAPACK's info.
    """
    if rows == 0:
        if vectors:
            for i in range(columns * columns):
                s.z[i] = 0
            for i in range(columns):
                s.z[i * columns + i] = 1
        return 0
    info = _gesvd(s.a, rows, columns, vectors, s)
    if vectors:  # conjugate the left singular vectors of the transpose, which Fortran read
        for i in range(columns * columns):
            s.z[i] = np.conj(s.z[i])
    return info
