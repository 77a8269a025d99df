"""Triangular factors and their inverses."""

import math

import numpy as np

from sheafcoarsen._kernels.dense.scaling import power_of_two
from sheafcoarsen._kernels.jit import subkernel


@subkernel
def triangular_factor(m, rows, w, v, s):
    """Overwrite the rows x w matrix in m by the triangular factor of its QR (Householder).

    Only norms are squares, and they are taken of columns divided by a power of two, so that nothing
    over- or underflows. Rows are skipped where a reflection does not touch them: those of an
    earlier factor. The diagonal is left real, of either sign. ``v`` and ``s`` have room for a
    column and a row.
    """
    for k in range(min(rows, w)):
        largest = 0.0
        for i in range(k, rows):
            largest = max(largest, float(abs(m[i * w + k].real)), float(abs(m[i * w + k].imag)))
        if largest == 0:
            continue
        scale = power_of_two(largest)
        size = 0.0
        for i in range(k, rows):
            v[i] = m[i * w + k] / scale
            size += float(v[i].real) ** 2 + float(v[i].imag) ** 2
        beta = -math.copysign(math.sqrt(size), float(v[k].real))
        tau = (beta - v[k]) / beta
        turn = 1 / (v[k] - beta)
        for j in range(k + 1, w):
            s[j] = m[k * w + j]
        for i in range(k + 1, rows):
            if v[i] == 0:
                continue
            v[i] *= turn
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


@subkernel
def inverse_of_triangular(r, d, out):
    """Out = R^{-1}, d x d; returns norm(R) norm(R^{-1}), infinite where R is singular."""
    size, inverse_size = 0.0, 0.0
    for i in range(d):
        if r[i * d + i] == 0:
            return np.inf
        for j in range(d):
            out[i * d + j] = 0
    for j in range(d):
        out[j * d + j] = 1 / r[j * d + j]
        for i in range(j - 1, -1, -1):
            x = r[i * d + j] * out[j * d + j]
            for q in range(i + 1, j):
                x += r[i * d + q] * out[q * d + j]
            out[i * d + j] = -x / r[i * d + i]
        for i in range(j + 1):
            size += float(abs(r[i * d + j])) ** 2
            inverse_size += float(abs(out[i * d + j])) ** 2
    return math.sqrt(size) * math.sqrt(inverse_size)
