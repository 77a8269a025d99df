"""Triangular factor of a QR decomposition by Householder reflections."""

import math

import numpy as np

from sheafcoarsen._kernels.dense.scaling import power_of_two
from sheafcoarsen._kernels.jit import subkernel


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
