"""Lowest eigenpairs of a symmetric tridiagonal matrix T, eight at a time.

Eigenvalues by bisection, eigenvectors by inverse iteration (EISPACK's BISECT and TINVIT).
"""

import math

import numpy as np

from sheafcoarsen._kernels.dense.lapack import LANES
from sheafcoarsen._kernels.dense.scaling import EPS
from sheafcoarsen._kernels.jit import reassociating_subkernel, subkernel


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
    """Orthonormalize rows first .. last of z, also against earlier rows, by Gram-Schmidt twice.

    Returns whether no row became zero; those that do stay zero.
    """
    independent = True
    for j in range(first, last):
        x = z[j, :n]
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
                y = z[i, :n]
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
    """Return the largest entry of T z - w z over rows first .. last of z, or infinity for NaN."""
    worst = 0.0
    for j in range(first, last):
        x = z[j]
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
    the rows of t.z. Returns whether the residuals are small enough.
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
    # Maximum number of inverse iterations. Shifts are eigenvalues to working accuracy, so two
    # suffice except for multiple eigenvalues.
    solves = 6
    for start in range(0, wanted, LANES):
        stop = min(start + LANES, wanted)
        bisect(t, n, start, stop, (low - slack, high + slack), 2 * EPS * norm)
        x = lanes[5, 2]
        for lane in range(LANES):
            x[lane] = w[min(start + lane, stop - 1)]
        factor_shifted(n, d, e, x, EPS * norm, lanes)
        fill_random(y.reshape(y.size), n * LANES, start)
        for step in range(solves):
            if step > 0:
                for lane in range(stop - start):
                    for i in range(n):
                        y[i, lane] = z[start + lane, i]
            for lane in range(LANES):
                y[n, lane] = 0
                y[n + 1, lane] = 0
            solve_shifted(n, lanes, y)
            for lane in range(stop - start):
                for i in range(n):
                    z[start + lane, i] = y[i, lane]
            full = orthonormalize(z, n, start, stop)
            if step > 0 and full and worst_residual(n, d, e, w, z, start, stop) <= slack:
                break
        else:
            return False
    return True
