"""Equilibration: edges scaled to norm 1, and stalk bases that make stacked maps isometries."""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import (
    inverse_of_triangular,
    largest_entry,
    power_of_two,
    singular_rows,
)
from sheafcoarsen._kernels.jit import borrowing_kernel, kernel


class StalkBases(NamedTuple):
    """Bases of the stalks, blocks d_v x d_v at ``starts``; see ``find_vertex_bases``."""

    starts: np.ndarray
    ranks: np.ndarray  # number of nonzero columns of W
    W: np.ndarray
    V: np.ndarray
    sizes: np.ndarray  # squared norms of the maps at vertices; of loops, also before subtraction


@kernel
def scale_edges(lo, hi, f, s, tail, head):
    """Write the maps of edges lo .. hi divided by the Frobenius norm of [A s_u | -B s_v].

    For a loop, A - B takes the place of A, and 0 that of B, after the division.
    """
    edges, tail_data, tail_offsets = f.edges, f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    for e in range(lo, hi):
        a, a_end = tail_offsets[e], tail_offsets[e + 1]
        b, b_end = head_offsets[e], head_offsets[e + 1]
        largest = largest_entry(tail_data, a, a_end, 0.0)
        scale = power_of_two(largest_entry(head_data, b, b_end, largest))
        square = 0.0
        for i in range(a, a_end):
            tail[i] = tail_data[i] / scale
            square += (float(abs(tail[i])) * s[edges[e, 0]]) ** 2
        for i in range(b, b_end):
            head[i] = head_data[i] / scale
            square += (float(abs(head[i])) * s[edges[e, 1]]) ** 2
        if square == 0:
            continue
        square = math.sqrt(square)
        for i in range(a, a_end):
            tail[i] /= square
        for i in range(b, b_end):
            head[i] /= square
        if edges[e, 0] == edges[e, 1]:
            for i in range(a_end - a):
                tail[a + i] -= head[b + i]
                head[b + i] = 0


@borrowing_kernel
def find_vertex_bases(lo, hi, dims, factors, eps, lapack, bases):
    """Compute bases W_v in which the stacked maps at v are an isometry, for vertices lo .. hi.

    ``factors`` are triangular factors of the stacked maps. W_v W_v* = D_v^+, and W_v are the first
    ranks[v] columns of the d_v x d_v matrix W[starts[v]:]. The first ranks[v] columns of the
    unitary V_v span im W_v, the others the common kernel of all maps at v. On entry W and V are
    zero, and ``sizes`` the squared norms of the maps of loops. Returns -1, or the first vertex for
    which LAPACK failed.
    """
    starts, ranks, W, V, sizes = bases.starts, bases.ranks, bases.W, bases.V, bases.sizes
    # Maximum condition number at which a vertex's triangular factor is inverted directly
    regular = 1e4
    for v in range(lo, hi):
        d, at, square = dims[v], starts[v], 0.0
        for i in range(d * d):
            lapack.a[i] = factors[at + i]
            square += float(abs(factors[at + i])) ** 2
        ranks[v], sizes[v] = d, square + sizes[v]
        for i in range(d):
            V[at + i * d + i] = 1
        zero = 10 * d * eps * math.sqrt(sizes[v])
        # otherwise all maps may be rounding errors of loops
        large = math.sqrt(square) > regular * zero
        if large and inverse_of_triangular(lapack.a, d, W[at:]) < regular:
            continue
        if singular_rows(d, d, True, lapack) != 0:
            return v
        for j in range(d):
            sigma = float(lapack.w[j])
            if sigma <= zero:
                ranks[v] = min(ranks[v], j)
            for i in range(d):
                V[at + i * d + j] = lapack.z[j * d + i]
                W[at + i * d + j] = 0 if sigma <= zero else lapack.z[j * d + i] / sigma
    return -1
