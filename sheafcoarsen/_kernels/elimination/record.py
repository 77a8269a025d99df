"""What is written down of every step, and the vertex taken out of the graph."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.elimination.gather import release
from sheafcoarsen._kernels.elimination.half_edges import FIRST, LOOPS, RING, unlink
from sheafcoarsen._kernels.jit import subkernel

STEPS, NEIGHBORS, BLOCKS, INVERSES, FREE = range(5)
"""What ``Record.counters`` count; FREE: dimensions of stalks that nothing fixed when they went."""


class Record(NamedTuple):
    """What was eliminated, in order, and how it follows from its neighbours at that time.

    x_v = G x_neighbors + W W* b_v
    """

    vertices: np.ndarray  # (steps,)
    starts: np.ndarray  # (steps + 1,) of each one's neighbours
    neighbors: np.ndarray
    blocks: np.ndarray  # G, d_v rows each, one after the other
    inverses: np.ndarray  # W, d_v x d_v
    counters: np.ndarray  # (5,) how much of each is in use
    unit: float  # the maps as given are so many times those that the kernel sees


@subkernel
def detach(edges, vertices, maps, v, seen):
    """Take all edges and loops at v out of the graph."""
    for i in range(seen.size):
        e, side = np.int64(seen[i] >> 1), seen[i] & 1
        unlink(edges, vertices, e, 1 - side)
        g = np.int64(edges[e, RING])
        while g != e:
            following = np.int64(edges[g, RING])
            release(edges, maps, g)
            g = following
        release(edges, maps, e)
    e = np.int64(vertices[v, LOOPS])
    while e >= 0:
        following = np.int64(edges[e, RING])
        release(edges, maps, e)
        e = following
    vertices[v, LOOPS], vertices[v, FIRST] = -1, -1
