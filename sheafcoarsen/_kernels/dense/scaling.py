"""Exact scaling of small matrices by powers of two; norms and phases."""

import math

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel, reassociating_subkernel, subkernel

EPS = 2.0**-52
"""Distance from 1 to the next larger number in double precision."""


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
def fix_phase(z, at, n, sqrt_eps):
    """Multiply a vector by the phase that makes its first entry of nearly maximum modulus positive.

    This makes eigenvectors reproducible.
    """
    largest = largest_entry(z, at, at + n, 0.0)
    for i in range(n):
        size = float(abs(z[at + i]))
        if size >= (1 - sqrt_eps) * largest and size > 0:
            phase = np.conj(z[at + i]) / size
            for k in range(n):
                z[at + k] *= phase
            z[at + i] = size
            return
