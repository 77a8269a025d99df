"""Lowest eigenpairs of small dense Hermitian matrices; faster than LAPACK.

The matrix is reduced to a real tridiagonal T by Householder reflections (``tridiagonalize``),
eigenvalues of T are computed by bisection and their vectors by inverse iteration
(``lowest_of_tridiagonal``), and the reflections are applied to these vectors (``reflect``). If the
residuals are too large, LAPACK repeats the computation.

Loops run over slices of rows: numba then knows that no index is negative, and LLVM vectorizes.
"""

import math

import numpy as np

from sheafcoarsen._kernels.dense.lapack import DENSE_SHARE, PANEL, heevd, sterf
from sheafcoarsen._kernels.dense.scaling import EPS
from sheafcoarsen._kernels.dense.tridiagonal import lowest_of_tridiagonal
from sheafcoarsen._kernels.jit import JIT_IS_OFF, reassociating_subkernel, subkernel
from sheafcoarsen._kernels.llvm_intrinsics import multiply_add


@reassociating_subkernel
def multiply(a, i, x, p):
    """Write A x to p for the leading i x i block of A, given by its lower triangle."""
    for k in range(i):
        p[k] = 0
    zero = p[0] * 0
    j = 0
    while j + 4 <= i:
        r0, r1, r2, r3 = a[j, : j + 4], a[j + 1, : j + 4], a[j + 2, : j + 4], a[j + 3, : j + 4]
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for k in range(j):
            y = x[k]
            s0 += r0[k] * y
            s1 += r1[k] * y
            s2 += r2[k] * y
            s3 += r3[k] * y
            t = multiply_add(np.conj(r0[k]), x0, p[k])
            t = multiply_add(np.conj(r1[k]), x1, t)
            t = multiply_add(np.conj(r2[k]), x2, t)
            p[k] = multiply_add(np.conj(r3[k]), x3, t)
        p[j] += s0 + r0[j] * x0 + np.conj(r1[j]) * x1 + np.conj(r2[j]) * x2 + np.conj(r3[j]) * x3
        p[j + 1] += (
            s1 + r1[j] * x0 + r1[j + 1] * x1 + np.conj(r2[j + 1]) * x2 + np.conj(r3[j + 1]) * x3
        )
        p[j + 2] += s2 + r2[j] * x0 + r2[j + 1] * x1 + r2[j + 2] * x2 + np.conj(r3[j + 2]) * x3
        p[j + 3] += s3 + r3[j] * x0 + r3[j + 1] * x1 + r3[j + 2] * x2 + r3[j + 3] * x3
        j += 4
    while j < i:
        r = a[j, : j + 1]
        y, s = x[j], zero
        for k in range(j):
            s += r[k] * x[k]
            p[k] += np.conj(r[k]) * y
        p[j] += s + r[j] * y
        j += 1


@reassociating_subkernel
def update(a, i, v, w):
    """Subtract V W* + W V* of a full panel from the lower triangle of the leading i x i block."""
    v0, v1, v2, v3 = v[0], v[1], v[2], v[3]
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for j in range(i):
        r = a[j, : j + 1]
        x0, x1, x2, x3 = -v0[j], -v1[j], -v2[j], -v3[j]
        y0, y1, y2, y3 = -w0[j], -w1[j], -w2[j], -w3[j]
        for k in range(j + 1):
            t = multiply_add(x0, np.conj(w0[k]), r[k])
            t = multiply_add(y0, np.conj(v0[k]), t)
            t = multiply_add(x1, np.conj(w1[k]), t)
            t = multiply_add(y1, np.conj(v1[k]), t)
            t = multiply_add(x2, np.conj(w2[k]), t)
            t = multiply_add(y2, np.conj(v2[k]), t)
            t = multiply_add(x3, np.conj(w3[k]), t)
            r[k] = multiply_add(y3, np.conj(v3[k]), t)


@reassociating_subkernel
def tridiagonalize(n, a, d, e, tau, panel, p):
    """Reduce the Hermitian matrix a to T = Q* A Q with diagonal d and real subdiagonal e.

    Row i of ``a`` then holds the vector v of the reflection H_i = I - tau_i v v*, and Q = H_{n-1}
    ... H_1. As in LAPACK's ``?hetrd``, up to PANEL updates of the matrix are delayed, and products
    with it are corrected for them.
    """
    v, w = panel[:PANEL], panel[PANEL:]
    n_delayed = 0
    for i in range(n - 1, 0, -1):
        row = a[i, : i + 1]
        for q in range(n_delayed):
            vq, wq = v[q], w[q]
            x, y = vq[i], wq[i]
            for k in range(i + 1):
                row[k] -= x * np.conj(wq[k]) + y * np.conj(vq[k])
        d[i] = row[i].real
        rest = 0.0
        for k in range(i - 1):
            rest += row[k].real * row[k].real + row[k].imag * row[k].imag
        alpha = np.conj(row[i - 1])
        # entries below EPS^2 norm(A) count as zero, since their squares might underflow
        if rest + alpha.imag * alpha.imag <= EPS**4:
            e[i - 1] = alpha.real
            tau[i] = 0
            continue
        norm = math.sqrt(rest + alpha.real * alpha.real + alpha.imag * alpha.imag)
        beta = -norm if alpha.real > 0 else norm
        e[i - 1] = beta
        t = (beta - alpha) / beta
        scale = 1 / (alpha - beta)
        for k in range(i - 1):
            row[k] = np.conj(row[k]) * scale
        row[i - 1] = 1
        tau[i] = t
        multiply(a, i, row, p)
        for q in range(n_delayed):
            vq, wq = v[q], w[q]
            x, y = row[0] * 0, row[0] * 0
            for k in range(i):
                x += np.conj(wq[k]) * row[k]
                y += np.conj(vq[k]) * row[k]
            for k in range(i):
                p[k] -= x * vq[k] + y * wq[k]
        inner = row[0] * 0
        for k in range(i):
            inner += np.conj(p[k]) * row[k]
        h = np.conj(t) * t * inner / 2
        vq, wq = v[n_delayed], w[n_delayed]
        for k in range(i):
            wq[k] = t * p[k] - h * row[k]
            vq[k] = row[k]
        n_delayed += 1
        if n_delayed == PANEL:
            update(a, i, v, w)
            n_delayed = 0
    top = a[0, 0].real
    for q in range(n_delayed):
        top -= 2 * (v[q, 0] * np.conj(w[q, 0])).real
    d[0] = top


@reassociating_subkernel
def reflect(n, a, tau, z, count):
    """Replace the first ``count`` rows z_j^T by (Q z_j)^T, with Q from ``tridiagonalize``."""
    zero = z[0, 0] * 0
    for i in range(1, n):
        t = tau[i]
        if t == 0:
            continue
        v = a[i, :i]
        for j in range(count):
            x, s = z[j, :i], zero
            for k in range(i):
                s += np.conj(v[k]) * x[k]
            s *= t
            for k in range(i):
                x[k] = multiply_add(-s, v[k], x[k])


@subkernel
def eigh_lowest(n, wanted, s, reduction):
    """Compute the lowest eigenpairs of the Hermitian n x n matrix in s.a.

    s.a is row-major with the lower triangle filled and entries of absolute value at most about 1;
    it is overwritten. The ``wanted`` lowest eigenvalues are written to s.w in ascending order,
    their orthonormal eigenvectors to the first rows of s.z. ``reduction`` is s.reduction, as an
    argument of its own so that numba omits the branch if it is None. Returns 0, or LAPACK's info
    if LAPACK failed.
    """
    if n == 1:
        s.w[0] = s.a[0].real
        s.z[0] = 1
        return 0
    if reduction is not None and DENSE_SHARE * wanted <= n and not JIT_IS_OFF:
        # without LAPACK, which is called on the restored s.a if residuals are too large
        t, a, z = reduction, s.a[: n * n].reshape(n, n), s.z[: wanted * n].reshape(wanted, n)
        for i in range(n * n):
            s.spare[i] = s.a[i]
        tridiagonalize(n, a, t.d, t.e, t.tau, t.panel, t.p)
        if lowest_of_tridiagonal(t, n, wanted):
            for j in range(wanted):
                s.w[j] = t.w[j]
                for i in range(n):
                    z[j, i] = t.z[j, i]
            reflect(n, a, t.tau, z, wanted)
            return 0
        for i in range(n * n):
            s.a[i] = s.spare[i]
    info = heevd(s.a, n, True, s)
    for i in range(wanted * n):
        s.z[i] = np.conj(s.a[i])
    return info


@subkernel
def eigvalsh(n, s, reduction):
    """Write all eigenvalues of the matrix in s.a to s.w, ascending; see ``eigh_lowest``."""
    if reduction is None or JIT_IS_OFF:
        return heevd(s.a, n, False, s)
    t = reduction
    tridiagonalize(n, s.a[: n * n].reshape(n, n), t.d, t.e, t.tau, t.panel, t.p)
    info = sterf(n, t.d, t.e, s)
    for i in range(n):
        s.w[i] = t.d[i]
    return info
