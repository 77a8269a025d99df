"""Frames carried from vertex to vertex along a tree."""

import math

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._kernels.jit import kernel


@kernel
def carry_frames(order, parents, transports, frames, exponents):
    """frames[v] = transports[v] frames[parents[v]] for each v in ``order``, parents first.

    transports and frames have shape (n, d, d); what has no parent (negative) is left alone. A frame
    is frames[v] 2^exponents[v], so that none over- or underflows on its way.
    """
    d = frames.shape[1]
    for k in range(order.size):
        v = order[k]
        u = parents[v]
        if u < 0:
            continue
        largest = 0.0
        for i in range(d):
            for j in range(d):
                total = frames[v, i, j] * 0
                for m in range(d):
                    total += transports[v, i, m] * frames[u, m, j]
                frames[v, i, j] = total
                largest = max(largest, float(abs(total)))
        scale = power_of_two(largest)
        exponents[v] = exponents[u] + math.frexp(scale)[1] - 1
        for i in range(d):
            for j in range(d):
                frames[v, i, j] /= scale
