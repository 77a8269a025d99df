"""Lowest eigenpairs of small dense Hermitian matrices; faster than LAPACK.

The matrix is reduced to a real tridiagonal T by Householder reflections (``tridiagonalize``),
eigenvalues of T are computed by bisection and their vectors by inverse iteration, eight at a time
(EISPACK's BISECT and TINVIT, ``lowest_of_tridiagonal``), and the reflections are applied to these
vectors (``reflect``). If the residuals are too large, LAPACK repeats the computation.

Loops run over slices of rows: numba then knows that no index is negative, and LLVM vectorizes.
"""

import math

import numpy as np

from sheafcoarsen._kernels.dense import (
    DENSE_SHARE,
    EPS,
    INFO,
    LANES,
    PANEL,
    SIZE,
    dsterf,
    heevd,
)
from sheafcoarsen._kernels.jit import JIT_IS_OFF, reassociating_subkernel, subkernel
from sheafcoarsen._kernels.simd import multiply_add


@subkernel
def fill_random(out, count, seed):
    """Fill out[:count] with numbers between -1/2 and 1/2, by Marsaglia's xorshift generator.

    J. Stat. Softw. 8(14), 2003. ``seed`` is added to the initial state.
    """
    state = np.uint64(88172645463325252 + seed)
    for i in range(count):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        out[i] = (state >> np.uint64(11)) * 2.0**-53 - 0.5


@subkernel
def count_below(n, d, e2, x, q, below):
    """Write the number of eigenvalues of T below x[l] to below[l], by Sturm sequences.

    e2 holds the squares of e, none of them zero. A zero pivot becomes an infinity in the next step
    and vanishes in the one after.
    """
    for lane in range(LANES):
        q[lane] = d[0] - x[lane]
        below[lane] = 1.0 if q[lane] < 0 else 0.0
    for i in range(1, n):
        center, e2_i = d[i], e2[i - 1]
        for lane in range(LANES):
            y = center - x[lane] - e2_i / q[lane]
            q[lane] = y
            below[lane] += 1.0 if y < 0 else 0.0


@subkernel
def bisect(t, n, start, stop, bounds, tolerance):
    """Write eigenvalues start .. stop of T, which lie in ``bounds``, to t.w within ``tolerance``.

    Eigenvalues with the same interval divide it evenly among their lanes, and every count refines
    the intervals of all lanes.
    """
    d, e2, out, lanes = t.d, t.e2, t.w, t.lanes
    x, q, below, lows, highs = lanes[0, 0], lanes[1, 0], lanes[2, 0], lanes[3, 0], lanes[4, 0]
    low, high = bounds
    count = stop - start
    for j in range(LANES):
        lows[j], highs[j], x[j] = low, high, high
    for _ in range(200):  # 60 passes reach working accuracy; the limit ends the loop for NaN
        widest = 0.0
        j = 0
        while j < count:
            k = j + 1
            while k < count and lows[k] == lows[j] and highs[k] == highs[j]:
                k += 1
            width = highs[j] - lows[j]
            widest = max(widest, width)
            for i in range(j, k):
                x[i] = lows[j] + width * ((i - j + 1) / (k - j + 1))
            j = k
        if widest <= tolerance:
            break
        count_below(n, d, e2, x, q, below)
        for i in range(count):
            for j in range(count):
                if below[i] <= start + j:
                    lows[j] = max(lows[j], x[i])
                else:
                    highs[j] = min(highs[j], x[i])
    for j in range(start, stop):  # keep ascending order: rounding may make counts decrease
        out[j] = (lows[j - start] + highs[j - start]) / 2
        if j > 0:
            out[j] = max(out[j], out[j - 1])


@subkernel
def factor_shifted(n, d, e, x, tiny, lanes):
    """Factor T - x[l] I = L U with partial pivoting in every lane l.

    lanes[:5] are inverse pivots, first and second superdiagonal, multipliers, and 1 where rows i
    and i + 1 are swapped; lanes[5, :2] are workspace. ``tiny`` replaces smaller pivots.
    """
    inverse, first, second, multiplier, swapped = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]
    a, b = lanes[5, 0], lanes[5, 1]
    for lane in range(LANES):
        a[lane] = d[0] - x[lane]
        b[lane] = e[0] if n > 1 else 0.0
    for i in range(n - 1):
        below, center, beyond = e[i], d[i + 1], e[i + 1] if i + 2 < n else 0.0
        p, q, t, m, s = inverse[i], first[i], second[i], multiplier[i], swapped[i]
        for lane in range(LANES):
            swap = abs(a[lane]) < abs(below)
            diagonal = center - x[lane]
            pivot = below if swap else a[lane]
            pivot = tiny if abs(pivot) < tiny else pivot
            m[lane] = (a[lane] if swap else below) / pivot
            q[lane] = diagonal if swap else b[lane]
            t[lane] = beyond if swap else 0.0
            a[lane] = (b[lane] if swap else diagonal) - m[lane] * q[lane]
            b[lane] = (0.0 if swap else beyond) - m[lane] * t[lane]
            p[lane] = 1 / pivot
            s[lane] = 1.0 if swap else 0.0
    p, q, t = inverse[n - 1], first[n - 1], second[n - 1]
    for lane in range(LANES):
        p[lane] = 1 / (tiny if abs(a[lane]) < tiny else a[lane])
        q[lane] = 0.0
        t[lane] = 0.0


@subkernel
def solve_shifted(n, lanes, y):
    """Overwrite y with (T - x[l] I)^{-1} y in every lane l.

    y has shape (n + 2, LANES) and zeros in its last two rows.
    """
    inverse, first, second, multiplier, swapped = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4]
    for i in range(n - 1):
        m, s, here, after = multiplier[i], swapped[i], y[i], y[i + 1]
        for lane in range(LANES):
            top = after[lane] if s[lane] > 0 else here[lane]
            other = here[lane] if s[lane] > 0 else after[lane]
            here[lane] = top
            after[lane] = other - m[lane] * top
    for i in range(n - 1, -1, -1):
        p, q, t, here, after, last = inverse[i], first[i], second[i], y[i], y[i + 1], y[i + 2]
        for lane in range(LANES):
            here[lane] = (here[lane] - q[lane] * after[lane] - t[lane] * last[lane]) * p[lane]


@reassociating_subkernel
def orthonormalize(z, n, first, last):
    """Orthonormalize vectors first .. last of z, also against earlier ones, by Gram-Schmidt twice.

    z holds vectors of length n, one after the other. Returns whether none became zero; those that
    do stay zero.
    """
    independent = True
    for j in range(first, last):
        x = z[j * n : (j + 1) * n]
        for _ in range(2):
            largest = 0.0
            for k in range(n):
                largest = max(largest, abs(x[k]))
            if largest == 0:
                independent = False
                break
            for k in range(n):
                x[k] /= largest
            for i in range(j):
                y = z[i * n : (i + 1) * n]
                inner = x[0] * 0
                for k in range(n):
                    inner += np.conj(y[k]) * x[k]
                for k in range(n):
                    x[k] -= inner * y[k]
            square = 0.0
            for k in range(n):
                square += x[k].real ** 2 + x[k].imag ** 2
            if square == 0:
                independent = False
                break
            size = 1 / math.sqrt(square)
            for k in range(n):
                x[k] *= size
    return independent


@subkernel
def worst_residual(n, d, e, w, z, first, last):
    """Return the largest entry of T z - w z for vectors first .. last of z, or infinity for NaN."""
    worst = 0.0
    for j in range(first, last):
        x = z[j * n : (j + 1) * n]
        for i in range(n):
            y = (d[i] - w[j]) * x[i]
            if i > 0:
                y += e[i - 1] * x[i - 1]
            if i + 1 < n:
                y += e[i] * x[i + 1]
            if not abs(y) <= worst:
                worst = abs(y) if abs(y) > worst else np.inf
    return worst


@subkernel
def lowest_of_tridiagonal(t, n, wanted):
    """Compute the ``wanted`` lowest eigenpairs of T with residuals up to 2 n EPS norm(T).

    ``t`` is a ``ReductionWorkspace`` with T in d and e. Eigenvalues are written to t.w, vectors to
    t.z, one after the other. Returns whether the residuals are small enough.
    """
    d, e, e2, w, z, lanes = t.d, t.e, t.e2, t.w, t.z, t.lanes
    low, high = d[0], d[0]
    for i in range(n):
        radius = (abs(e[i - 1]) if i > 0 else 0.0) + (abs(e[i]) if i + 1 < n else 0.0)
        low = min(low, d[i] - radius)
        high = max(high, d[i] + radius)
    norm = max(abs(low), abs(high))
    for i in range(n - 1):
        e2[i] = max(e[i] * e[i], 1e-290)
    slack = 2 * n * EPS * norm
    y = lanes[6]
    for start in range(0, wanted, LANES):
        stop = min(start + LANES, wanted)
        bisect(t, n, start, stop, (low - slack, high + slack), 2 * EPS * norm)
        x = lanes[5, 2]
        for lane in range(LANES):
            x[lane] = w[min(start + lane, stop - 1)]
        factor_shifted(n, d, e, x, EPS * norm, lanes)
        fill_random(y.reshape(y.size), n * LANES, start)
        # shifts are eigenvalues to working accuracy: two solves suffice but for multiple ones
        for step in range(6):
            if step > 0:
                for lane in range(stop - start):
                    for i in range(n):
                        y[i, lane] = z[(start + lane) * n + i]
            for lane in range(LANES):
                y[n, lane] = 0
                y[n + 1, lane] = 0
            solve_shifted(n, lanes, y)
            for lane in range(stop - start):
                for i in range(n):
                    z[(start + lane) * n + i] = y[i, lane]
            full = orthonormalize(z, n, start, stop)
            if step > 0 and full and worst_residual(n, d, e, w, z, start, stop) <= slack:
                break
        else:
            return False
    return True


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
        for j in range(0, count - 1, 2):  # two at a time, to read v once for both
            x, y, p, q = z[j, :i], z[j + 1, :i], zero, zero
            for k in range(i):
                p += np.conj(v[k]) * x[k]
                q += np.conj(v[k]) * y[k]
            p *= t
            q *= t
            for k in range(i):
                x[k] = multiply_add(-p, v[k], x[k])
                y[k] = multiply_add(-q, v[k], y[k])
        if count % 2:
            x, p = z[count - 1, :i], zero
            for k in range(i):
                p += np.conj(v[k]) * x[k]
            p *= t
            for k in range(i):
                x[k] = multiply_add(-p, v[k], x[k])


@subkernel
def eigh_lowest(n, wanted, s, reduction):
    """Write the ``wanted`` lowest eigenpairs of the Hermitian n x n matrix in s.a to s.w and s.z.

    Entries are at most about 1; s.a is overwritten. Eigenvalues are ascending, eigenvectors are the
    first rows of s.z. ``reduction`` is s.reduction, as an argument of its own so that numba omits
    the branch if it is None. Returns 0, or LAPACK's info.
    """
    if n == 1:
        s.w[0] = s.a[0].real
        s.z[0] = 1
        return 0
    if reduction is not None and DENSE_SHARE * wanted <= n and not JIT_IS_OFF:
        # without LAPACK, which is called on the restored s.a if residuals are too large
        t, a = reduction, s.a[: n * n].reshape(n, n)
        for i in range(n * n):
            s.spare[i] = s.a[i]
        tridiagonalize(n, a, t.d, t.e, t.tau, t.panel, t.p)
        if lowest_of_tridiagonal(t, n, wanted):
            for j in range(wanted):
                s.w[j] = t.w[j]
            for i in range(wanted * n):
                s.z[i] = t.z[i]
            reflect(n, a, t.tau, s.z[: wanted * n].reshape(wanted, n), wanted)
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
    t, ints = reduction, s.ints
    tridiagonalize(n, s.a[: n * n].reshape(n, n), t.d, t.e, t.tau, t.panel, t.p)
    ints[SIZE], ints[INFO] = n, 0
    dsterf(ints.ctypes, t.d.ctypes, t.e.ctypes, ints[INFO:].ctypes)
    for i in range(n):
        s.w[i] = t.d[i]
    return np.int64(ints[INFO])
