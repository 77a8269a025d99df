"""Lowest eigenpairs of a tridiagonal T: bisection and inverse iteration, in eight lanes."""

import math

import numpy as np

from sheafcoarsen._kernels.dense.scatter import SEED, drawn, following
from sheafcoarsen._kernels.dense.workspaces import LANES
from sheafcoarsen._kernels.jit import subkernel, summing_subkernel

SOLVES = 6
"""Inverse iterations at most.

The shifts are eigenvalues to working accuracy, so that two do but for multiple ones.
"""


@subkernel
def count_below(n, d, e2, x, q, below):
    """below[l] = how many eigenvalues of T are less than x[l], by Sturm's sequence.

    e2 holds the squares of e, none of them zero.

    A pivot of zero becomes an infinity in the next step and vanishes in the one after.
    """
    for lane in range(LANES):
        q[lane] = d[0] - x[lane]
        below[lane] = 1.0 if q[lane] < 0 else 0.0
    for i in range(1, n):
        center, square = d[i], e2[i - 1]
        for lane in range(LANES):
            y = center - x[lane] - square / q[lane]
            q[lane] = y
            below[lane] += 1.0 if y < 0 else 0.0


@subkernel
def bisect(t, n, start, stop, bounds, tolerance):
    """Eigenvalues start .. stop of T, all in ``bounds``, into t.w, each to ``tolerance``.

    Eigenvalues whose intervals are still the same share them out among their lanes; every count
    serves every lane.
    """
    d, e2, out, lanes = t.d, t.e2, t.w, t.lanes
    x, q, below, lows, highs = lanes[0, 0], lanes[1, 0], lanes[2, 0], lanes[3, 0], lanes[4, 0]
    low, high = bounds
    count = stop - start
    for j in range(LANES):
        lows[j], highs[j], x[j] = low, high, high
    for _ in range(200):  # 60 halve an interval to working accuracy; NaN would go on forever
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
    for j in range(start, stop):  # counts are monotonic but for rounding
        out[j] = (lows[j - start] + highs[j - start]) / 2
        if j > 0:
            out[j] = max(out[j], out[j - 1])


@subkernel
def factor_shifted(n, d, e, x, tiny, lanes):
    """LU factors, rows swapped for the larger pivot, of T - x[l] I in every lane.

    lanes : (5, n, LANES) inverse pivots, first and second superdiagonal, multipliers, and 1 where
    row i was swapped with i + 1.
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
    """Y <- (T - x[l] I)^{-1} y in every lane; y (n + 2, LANES) has two rows of zeros at the end."""
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


@summing_subkernel
def orthonormalize(z, n, first, last):
    """Make rows first .. last of z orthonormal, also to those before, by Gram-Schmidt, twice."""
    for j in range(first, last):
        x = z[j, :n]
        for _ in range(2):
            largest = 0.0
            for k in range(n):
                largest = max(largest, abs(x[k]))
            for k in range(n):
                x[k] /= largest
            for i in range(j):
                y = z[i, :n]
                s = 0.0
                for k in range(n):
                    s += y[k] * x[k]
                for k in range(n):
                    x[k] -= s * y[k]
            size = 0.0
            for k in range(n):
                size += x[k] * x[k]
            size = 1 / math.sqrt(size)
            for k in range(n):
                x[k] *= size


@subkernel
def worst_residual(n, d, e, w, z, first, last):
    """Largest entry of T z - w z over rows first .. last of z; NaN counts as infinite."""
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
def lowest_of_tridiagonal(t, n, wanted, eps):
    """The ``wanted`` lowest eigenpairs of T, to eps norm(T): values in t.w, vectors as rows of t.z.

    ``t`` is a ``ReductionWorkspace`` with T in d and e. Returns whether the vectors hold what they
    promise.
    """
    d, e, e2, w, z, lanes = t.d, t.e, t.e2, t.w, t.z, t.lanes
    low, high = d[0], d[0]
    for i in range(n):
        radius = (abs(e[i - 1]) if i > 0 else 0.0) + (abs(e[i]) if i + 1 < n else 0.0)
        low = min(low, d[i] - radius)
        high = max(high, d[i] + radius)
    size = max(abs(low), abs(high))
    for i in range(n - 1):
        e2[i] = max(e[i] * e[i], 1e-290)
    slack = 2 * n * eps * size
    y = lanes[6]
    for start in range(0, wanted, LANES):
        stop = min(start + LANES, wanted)
        bisect(t, n, start, stop, (low - slack, high + slack), 2 * eps * size)
        x = lanes[5, 2]
        for lane in range(LANES):
            x[lane] = w[min(start + lane, stop - 1)]
        factor_shifted(n, d, e, x, eps * size, lanes)
        state = np.uint64(SEED + start)
        for i in range(n):
            for lane in range(LANES):
                state = following(state)
                y[i, lane] = drawn(state)
        for step in range(SOLVES):
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
            orthonormalize(z, n, start, stop)
            if step > 0 and worst_residual(n, d, e, w, z, start, stop) <= 2 * n * eps * size:
                break
        else:
            return False
    return True
