"""QR decomposition of stacked rows with an error bound, called noise, for each row.

Rows of a stack may have very different norms. Householder reflections with the largest column and
the largest row first are stable row by row (Powell and Reid 1969, Cox and Higham 1998). The noise
of a row bounds the rounding errors of its entries: eps times the input maps at first, then changed
by the same reflections as the row, plus one rounding for each of them. Rows without an entry above
a multiple of their noise (``ZERO_FACTOR``) are zero; compared with the row itself, the remainder of
a cancellation would count as rank.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import EPS, power_of_two
from sheafcoarsen._kernels.jit import llvm_inlined, subkernel

ZERO_FACTOR = 4.0
"""Threshold of a zero row, relative to its noise times max(number of rows, number of columns)."""


class Rows(NamedTuple):
    """A stack of rows of equal length, in a flat array, and the noise of each row."""

    data: np.ndarray
    noise: np.ndarray


@llvm_inlined
def magnitude(x):
    """Return the larger of the absolute values of the real and the imaginary part."""
    return max(float(abs(x.real)), float(abs(x.imag)))


@subkernel
def without_zero_rows(rows, height, stride, factor):
    """Move rows with an entry above ``factor`` times their noise to the front; return the count."""
    data, noise = rows
    count = 0
    for i in range(height):
        largest = 0.0
        for j in range(i * stride, (i + 1) * stride):
            largest = max(largest, magnitude(data[j]))
        if largest > factor * noise[i]:
            if i != count:
                for j in range(stride):
                    data[count * stride + j] = data[i * stride + j]
                noise[count] = noise[i]
            count += 1
    return count


@llvm_inlined
def reflect(rows, top, height, stride, column):
    """Reflect rows top .. height so that ``column`` is zero below row ``top``.

    Row ``top`` has the largest entry of the column. The rows are multiplied by I - tau v v*, and
    the noise by its absolute value, with terms added in quadrature; the column stores v in the
    meantime.
    """
    data, noise = rows
    first = top * stride + column
    for i in range(top, height):
        if data[i * stride + column] != 0:  # one more rounding of the row
            largest = 0.0
            for j in range(i * stride, (i + 1) * stride):
                largest = max(largest, magnitude(data[j]))
            noise[i] += 4 * EPS * largest
    scale, square, rest = power_of_two(magnitude(data[first])), 0.0, 0.0
    for i in range(top, height):
        x = data[i * stride + column] / scale
        data[i * stride + column] = x
        square += float(x.real) ** 2 + float(x.imag) ** 2
        if i > top:
            rest = max(rest, magnitude(x))
    x = data[first]
    if rest == 0:
        data[first] = x * scale
        return
    beta = -math.copysign(math.sqrt(square), float(x.real))
    tau, unit = np.conj((beta - x) / beta), 1 / (x - beta)
    data[first] = 1
    for i in range(top + 1, height):
        data[i * stride + column] *= unit
    largest, total = 0.0, 0.0
    for i in range(top, height):
        largest = max(largest, float(abs(data[i * stride + column])) * noise[i])
    if largest > 0:
        for i in range(top, height):
            total += (float(abs(data[i * stride + column])) * noise[i] / largest) ** 2
        for i in range(top, height):
            v = float(abs(data[i * stride + column]))
            if v > 0:
                others = largest * math.sqrt(max(total - (v * noise[i] / largest) ** 2, 0.0))
                own = float(abs(1 - tau * (v * v))) * noise[i]
                noise[i] = math.hypot(own, float(abs(tau)) * v * others)
    for j in range(stride):
        if j == column:
            continue
        s = data[top * stride + j]
        for i in range(top + 1, height):
            s += np.conj(data[i * stride + column]) * data[i * stride + j]
        s *= tau
        data[top * stride + j] -= s
        for i in range(top + 1, height):
            data[i * stride + j] -= data[i * stride + column] * s
    for i in range(top + 1, height):
        data[i * stride + column] = 0
    data[first] = beta * scale


@subkernel
def reduce_rows(rows, height, stride, columns, order):
    """Reduce the first columns of the stack to triangular form; return their rank.

    Column ``order[k]`` is zero below row k, and these columns are zero in all rows from ``rank``
    on, which are the stack multiplied by an orthonormal basis of the complement of their range.
    Applied to all columns, this replaces the stack by ``rank`` rows with the same Gram matrix.
    """
    data, noise = rows
    for k in range(columns):
        order[k] = k
    rank, factor = 0, ZERO_FACTOR * max(height, columns)
    while rank < min(height, columns):
        most = 0.0
        for i in range(rank, height):
            largest = 0.0
            for k in range(rank, columns):
                largest = max(largest, magnitude(data[i * stride + order[k]]))
            if largest <= factor * noise[i]:
                for k in range(rank, columns):
                    data[i * stride + order[k]] = 0
            else:
                most = max(most, largest)
        if most == 0:
            break
        scale, best, at = power_of_two(most), -1.0, rank
        for k in range(rank, columns):  # the column of largest norm
            square = 0.0
            for i in range(rank, height):
                x = data[i * stride + order[k]] / scale
                square += float(x.real) ** 2 + float(x.imag) ** 2
            if square > best:
                best, at = square, k
        order[rank], order[at] = order[at], order[rank]
        column, at, largest = order[rank], rank, 0.0
        for i in range(rank, height):
            if magnitude(data[i * stride + column]) > largest:
                largest, at = magnitude(data[i * stride + column]), i
        if at != rank:
            noise[rank], noise[at] = noise[at], noise[rank]
            for j in range(stride):
                x = data[rank * stride + j]
                data[rank * stride + j] = data[at * stride + j]
                data[at * stride + j] = x
        reflect(rows, rank, height, stride, column)
        rank += 1
    return rank


@subkernel
def put_inverse(rows, stride, rank, d, order, out, spare):
    """Write W = R^+, d x d with ``rank`` nonzero columns, so that (M* M)^+ = W W*.

    R is the triangular form of M in the first d columns of ``rows``. ``spare`` is workspace for
    2 d^2 entries.
    """
    data = rows.data
    out[:] = 0
    if rank == d:
        for j in range(d):
            out[order[j] * d + j] = 1 / data[j * stride + order[j]]
            for i in range(j - 1, -1, -1):
                x = data[i * stride + order[j]] * out[order[j] * d + j]
                for k in range(i + 1, j):
                    x += data[i * stride + order[k]] * out[order[k] * d + j]
                out[order[i] * d + j] = -x / data[i * stride + order[i]]
        return
    # R = T Q with orthonormal rows of Q and lower triangular T, by Gram-Schmidt, which is stable
    # since pivoting makes the rows of R well conditioned. Then R^+ = Q* T^{-1}.
    q, low = spare[: rank * d], spare[rank * d : rank * (d + rank)]
    for i in range(rank):
        largest = 0.0
        for j in range(d):
            largest = max(largest, magnitude(data[i * stride + j]))
        scale = power_of_two(largest)
        for j in range(d):
            q[i * d + j] = data[i * stride + j] / scale
        for k in range(i):
            x = q[i * d] * np.conj(q[k * d])
            for j in range(1, d):
                x += q[i * d + j] * np.conj(q[k * d + j])
            low[i * rank + k] = x * scale
            for j in range(d):
                q[i * d + j] -= x * q[k * d + j]
        norm = 0.0
        for j in range(d):
            norm += float(q[i * d + j].real) ** 2 + float(q[i * d + j].imag) ** 2
        norm = math.sqrt(norm)
        low[i * rank + i] = norm * scale
        for j in range(d):
            q[i * d + j] /= norm
    for j in range(rank - 1, -1, -1):
        for a in range(d):
            x = np.conj(q[j * d + a])
            for i in range(j + 1, rank):
                x -= out[a * d + i] * low[i * rank + j]
            out[a * d + j] = x / low[j * rank + j]
