"""A vertex with a number, on single edges of one row to neighbours with numbers: usual networks.

What ``steps`` does with stacks of rows is written out here in scalars, three times as fast: the
same reflection, the same decisions, the same bits.
"""

import math

import numpy as np

from sheafcoarsen._kernels.dense import EPS, power_of_two
from sheafcoarsen._kernels.elimination.gather import FREE_BLOCKS, FREE_ID, USED
from sheafcoarsen._kernels.elimination.links import (
    AFTER,
    FIRST,
    HEIGHT,
    LOOPS,
    RING,
    join,
    other_end,
    unlink,
)
from sheafcoarsen._kernels.elimination.record import BLOCKS, INVERSES, NEIGHBORS
from sheafcoarsen._kernels.elimination.rows import ZERO_FACTOR, size_of
from sheafcoarsen._kernels.jit import inlined, pasted

AS_GIVEN, NEW = 1, 2
"""Classes of blocks of three entries: one as given is no longer than that, a new one has four."""


@inlined
def is_plain(edges, dims, h):
    """Whether a half-edge leads to a number by one row and has no parallel edges."""
    e = h >> 1
    return edges[e, RING] == e and edges[e, HEIGHT] == 1 and dims[other_end(edges, h)] == 1


@inlined
def halves_at(edges, vertices, dims, v, count):
    """Return the half-edges at a vertex, -1 for a second one that is not there.

    -2 as the first: they are not plain, or not as many as there are neighbours.
    """
    first, last = np.int64(vertices[v, FIRST]), np.int64(-1)
    if dims[v] != 1 or vertices[v, LOOPS] >= 0 or not is_plain(edges, dims, first):
        return np.int64(-2), last
    last = np.int64(edges[first >> 1, AFTER + (first & 1)])
    if count == 1:
        return (first if last < 0 else np.int64(-2)), last
    if (
        last < 0
        or edges[last >> 1, AFTER + (last & 1)] >= 0
        or other_end(edges, first) == other_end(edges, last)
        or not is_plain(edges, dims, last)
    ):
        return np.int64(-2), last
    return first, last


@inlined
def row_of(pool, place, h):
    """Return what multiplies the values here and at the other end, and the noise of the row."""
    at, side = place[h >> 1], h & 1
    if at < 0:
        at = -1 - at
    return pool[at + side], pool[at + 1 - side], float(pool[at + 2].real)


@inlined
def give_back(edges, pool, place, counters, e):
    """Give the block and the id of an edge back."""
    at, k = place[e], NEW
    if at < 0:
        at, k = -1 - at, AS_GIVEN
    pool[at] = counters[FREE_BLOCKS + k]
    counters[FREE_BLOCKS + k] = at
    edges[e, RING] = counters[FREE_ID]
    counters[FREE_ID] = e


@inlined
def reflect_noise(levels, turn, y, q):
    """Return the noise of the second row of two after a reflection with v = (1, y).

    ``q`` is what the row has in its other column; see ``turn_noise`` in ``rows``.
    """
    level, other = levels
    size = float(abs(y))
    other += EPS * max(size_of(y), size_of(q))
    largest = max(level, size * other)
    if largest == 0:
        return other
    share = (size * other / largest) ** 2
    total = (level / largest) ** 2 + share
    others = largest * math.sqrt(max(total - share, 0.0))
    return math.hypot(
        float(abs(1 - turn * (size * size))) * other, float(abs(turn)) * size * others
    )


@pasted
def eliminate_leaf(links, maps, record, h):
    """Eliminate the number at the half-edge h, the only one there; return whether it was done."""
    edges, vertices, _ = links
    counters = record.counters
    m, a, noise = row_of(maps.pool, maps.place, h)
    if size_of(m) <= ZERO_FACTOR * noise:
        return False
    inverse = 1 / m
    record.blocks[counters[BLOCKS]] = -(inverse * a)
    record.inverses[counters[INVERSES]] = inverse / record.unit
    unlink(edges, vertices, h >> 1, 1 - (h & 1))
    give_back(edges, maps.pool, maps.place, maps.counters, h >> 1)
    return True


@pasted
def eliminate_link(links, maps, record, first, last):
    """Eliminate the number between two half-edges; return whether it was done."""
    edges, vertices, _ = links
    pool, place, counters = maps.pool, maps.place, record.counters
    m, p, level = row_of(pool, place, first)
    n, q, other = row_of(pool, place, last)
    factor = ZERO_FACTOR * 2
    if size_of(m) <= factor * level or size_of(n) <= factor * other:
        return False
    turned = size_of(n) > size_of(m)
    if turned:
        m, n, p, q, level, other = n, m, q, p, other, level
    scale = power_of_two(size_of(m))
    x, y = m / scale, n / scale
    size = float(x.real) ** 2 + float(x.imag) ** 2
    size += float(y.real) ** 2 + float(y.imag) ** 2
    beta = -math.copysign(math.sqrt(size), float(x.real))
    turn = np.conj((beta - x) / beta)
    y *= 1 / (x - beta)
    if size_of(y) == 0:
        return False
    noise = reflect_noise((level, other), turn, y, q)
    s, t = turn * p, turn * (np.conj(y) * q)
    left, right = -(y * s), q - y * t  # what is left of the energy, by the two neighbours
    largest = max(size_of(left), size_of(right))
    noise += EPS * largest
    if largest <= factor * noise:
        return False
    inverse = 1 / (beta * scale)
    G, H = -(inverse * (p - s)), inverse * t
    if turned:
        left, right, G, H = right, left, H, G
    at = counters[BLOCKS]
    record.blocks[at] = G
    record.blocks[at + 1] = H
    record.inverses[counters[INVERSES]] = inverse / record.unit
    u, w, e = other_end(edges, first), other_end(edges, last), last >> 1
    unlink(edges, vertices, first >> 1, 1 - (first & 1))
    unlink(edges, vertices, e, 1 - (last & 1))
    give_back(edges, pool, place, maps.counters, first >> 1)
    give_back(edges, pool, place, maps.counters, e)
    maps.counters[FREE_ID] = edges[e, RING]  # the new edge has the id of the last one
    at = maps.counters[FREE_BLOCKS + NEW]
    if at >= 0:
        maps.counters[FREE_BLOCKS + NEW] = np.int64(pool[at].real)
    else:
        at = maps.counters[USED]
        maps.counters[USED] += 1 << NEW
    place[e] = at
    pool[at] = left
    pool[at + 1] = right
    pool[at + 2] = noise
    join(edges, vertices, e, u, w)
    return True


@pasted
def eliminate_scalar(links, maps, record, v, count, around):
    """Eliminate v, which has ``count`` neighbours, 1 or 2, if it is such a vertex.

    Puts the neighbours in ``around`` and returns whether it was done. Nothing is changed where not:
    zeros among the maps, and room that runs out, are for ``eliminate_one``.
    """
    edges, vertices, _ = links
    counters = record.counters
    first, last = halves_at(edges, vertices, maps.dims, v, count)
    if (
        first < 0
        or maps.counters[USED] + (1 << NEW) > maps.pool.size
        or counters[NEIGHBORS] + count > record.neighbors.size
        or counters[BLOCKS] + count > record.blocks.size
        or counters[INVERSES] + 1 > record.inverses.size
    ):
        return False
    around[0] = other_end(edges, first)
    if count == 1:
        done = eliminate_leaf(links, maps, record, first)
    else:
        around[1] = other_end(edges, last)
        done = eliminate_link(links, maps, record, first, last)
    if done:
        vertices[v, FIRST] = -1
        counters[BLOCKS] += count
        counters[INVERSES] += 1
    return done
