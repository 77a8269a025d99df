"""Orthogonal reduction of stacked rows, each judged against the maps that it came from.

Rows of very different size stand in one stack: Householder reflections with the largest column and
the largest row first are stable row by row (Powell and Reid 1969, Cox and Higham 1998). With each
row goes its noise, what rounding has left in its entries: eps times the maps as given at first,
then turned as the row is, and a rounding more for each reflection. What is not above the noise of
its own row is zero. Measured against itself the rest of a cancellation would count as rank.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import EPS, power_of_two
from sheafcoarsen._kernels.jit import inlined, subkernel

ZERO_FACTOR = 4.0
"""An entry is zero up to so many times the size of the problem times the noise of its row."""


class Rows(NamedTuple):
    """A stack of rows of one length, in a flat array, and the noise of each."""

    data: np.ndarray
    noise: np.ndarray


@inlined
def size_of(x):
    """About the modulus of a number: its larger part."""
    return max(float(abs(x.real)), float(abs(x.imag)))


@subkernel
def clear_noise(rows, lo, hi, stride, columns):
    """Set rows lo .. hi to zero, in the first columns, that are not above their noise."""
    data, noise = rows
    factor = ZERO_FACTOR * max(hi, columns)
    for i in range(lo, hi):
        largest = 0.0
        for j in range(i * stride, i * stride + columns):
            largest = max(largest, size_of(data[j]))
        if largest <= factor * noise[i]:
            for j in range(i * stride, i * stride + columns):
                data[j] = 0


@subkernel
def without_zero_rows(rows, lo, hi, stride, to):
    """Move rows lo .. hi that are not zero up, from row ``to`` on; return how many."""
    data, noise = rows
    count = 0
    for i in range(lo, hi):
        largest = 0.0
        for j in range(i * stride, (i + 1) * stride):
            largest = max(largest, size_of(data[j]))
        if largest > 0:
            if i != to + count:
                for j in range(stride):
                    data[(to + count) * stride + j] = data[i * stride + j]
                noise[to + count] = noise[i]
            count += 1
    return count


@inlined
def choose_pivot(data, top, height, shape, order):
    """Return the largest entry of the rest, after the column with the largest norm came first."""
    stride, columns = shape
    largest = 0.0
    for i in range(top, height):
        for k in range(top, columns):
            largest = max(largest, size_of(data[i * stride + order[k]]))
    if largest == 0 or columns == top + 1:
        return largest
    scale, best, at = power_of_two(largest), -1.0, top
    for k in range(top, columns):
        size = 0.0
        for i in range(top, height):
            x = data[i * stride + order[k]] / scale
            size += float(x.real) ** 2 + float(x.imag) ** 2
        if size > best:
            best, at = size, k
    order[top], order[at] = order[at], order[top]
    return largest


@inlined
def swap_rows(data, noise, i, k, stride):
    """Exchange two rows."""
    for j in range(stride):
        x = data[i * stride + j]
        data[i * stride + j] = data[k * stride + j]
        data[k * stride + j] = x
    level = noise[i]
    noise[i] = noise[k]
    noise[k] = level


@inlined
def add_rounding(data, noise, i, stride):
    """Count the roundings of one reflection of row i: of the sum, and of what it changes."""
    largest = 0.0
    for j in range(i * stride, (i + 1) * stride):
        largest = max(largest, size_of(data[j]))
    noise[i] += 4 * EPS * largest


@inlined
def turn_noise(data, noise, place, turn):
    """Turn the noise by |I - turn v v*|, in the sense of squares."""
    top, height, stride, column = place
    largest, total = 0.0, 0.0
    for i in range(top, height):
        largest = max(largest, float(abs(data[i * stride + column])) * noise[i])
    if largest == 0:
        return
    for i in range(top, height):
        total += (float(abs(data[i * stride + column])) * noise[i] / largest) ** 2
    for i in range(top, height):
        v = float(abs(data[i * stride + column]))
        if v > 0:
            others = largest * math.sqrt(max(total - (v * noise[i] / largest) ** 2, 0.0))
            own = float(abs(1 - turn * (v * v))) * noise[i]
            noise[i] = math.hypot(own, float(abs(turn)) * v * others)


@inlined
def reflect(rows, top, height, stride, column):
    """Reflect rows top .. height so that the column is zero below the first of them.

    That row has the column's largest entry. I - turn v v* goes over the rows, and noise with it in
    the sense of squares; v stands in the column meanwhile, but for its first entry, 1.
    """
    data, noise = rows
    first = top * stride + column
    for i in range(top, height):
        if data[i * stride + column] != 0:
            add_rounding(data, noise, i, stride)
    scale, size, rest = power_of_two(size_of(data[first])), 0.0, 0.0
    for i in range(top, height):
        x = data[i * stride + column] / scale
        data[i * stride + column] = x
        size += float(x.real) ** 2 + float(x.imag) ** 2
        if i > top:
            rest = max(rest, size_of(x))
    x = data[first]
    if rest == 0:
        data[first] = x * scale
        return
    beta = -math.copysign(math.sqrt(size), float(x.real))
    turn, unit = np.conj((beta - x) / beta), 1 / (x - beta)
    data[first] = 1
    for i in range(top + 1, height):
        data[i * stride + column] *= unit
    turn_noise(data, noise, (top, height, stride, column), turn)
    for j in range(stride):
        if j == column:
            continue
        s = data[top * stride + j]
        for i in range(top + 1, height):
            s += np.conj(data[i * stride + column]) * data[i * stride + j]
        s *= turn
        data[top * stride + j] -= s
        for i in range(top + 1, height):
            data[i * stride + j] -= data[i * stride + column] * s
    for i in range(top + 1, height):
        data[i * stride + column] = 0
    data[first] = beta * scale


@subkernel
def reduce_rows(rows, height, stride, columns, order):
    """Bring the first columns of the stack to triangular form; return their rank.

    Below the first ``rank`` rows these columns are then zero, and the rows there are an orthonormal
    basis of the complement of their range, times the stack. Column ``order[k]`` is zero below row
    k. Over all columns that replaces the stack by as few rows with the same Gram matrix.
    """
    data, noise = rows
    for k in range(columns):
        order[k] = k
    rank, factor = 0, ZERO_FACTOR * max(height, columns)
    while rank < min(height, columns):
        for i in range(rank, height):
            largest = 0.0
            for k in range(rank, columns):
                largest = max(largest, size_of(data[i * stride + order[k]]))
            if largest <= factor * noise[i]:
                for k in range(rank, columns):
                    data[i * stride + order[k]] = 0
        if choose_pivot(data, rank, height, (stride, columns), order) == 0:
            break
        column, at, largest = order[rank], rank, 0.0
        for i in range(rank, height):
            if size_of(data[i * stride + column]) > largest:
                largest, at = size_of(data[i * stride + column]), i
        if at != rank:
            swap_rows(data, noise, rank, at, stride)
        reflect(rows, rank, height, stride, column)
        rank += 1
    return rank


@subkernel
def put_inverse(rows, stride, rank, d, order, out, spare):
    """Out = W, d x d with ``rank`` columns that are not zero, such that (M* M)^+ = W W*.

    M was brought to the triangular form R in the first d columns of ``rows``; W = R^+. ``spare``
    has 2 d^2 entries or more.
    """
    data = rows.data
    for i in range(d * d):
        out[i] = 0
    if rank < d:
        put_deficient_inverse(data, stride, rank, d, out, spare)
        return
    for j in range(d):
        out[order[j] * d + j] = 1 / data[j * stride + order[j]]
        for i in range(j - 1, -1, -1):
            x = data[i * stride + order[j]] * out[order[j] * d + j]
            for k in range(i + 1, j):
                x += data[i * stride + order[k]] * out[order[k] * d + j]
            out[order[i] * d + j] = -x / data[i * stride + order[i]]


@subkernel
def put_deficient_inverse(data, stride, rank, d, out, spare):
    """Do what ``put_inverse`` does where R has fewer rows than columns.

    R = T Q with orthonormal rows in Q and a lower triangular T, by Gram and Schmidt: pivots keep
    the rows of R well apart. Then R^+ = Q* T^{-1}.
    """
    q, low = spare[: rank * d], spare[rank * d : rank * (d + rank)]
    for i in range(rank):
        largest = 0.0
        for j in range(d):
            largest = max(largest, size_of(data[i * stride + j]))
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
        size = 0.0
        for j in range(d):
            size += float(q[i * d + j].real) ** 2 + float(q[i * d + j].imag) ** 2
        size = math.sqrt(size)
        low[i * rank + i] = size * scale
        for j in range(d):
            q[i * d + j] /= size
    for j in range(rank - 1, -1, -1):
        for a in range(d):
            x = np.conj(q[j * d + a])
            for i in range(j + 1, rank):
                x -= out[a * d + i] * low[i * rank + j]
            out[a * d + j] = x / low[j * rank + j]
