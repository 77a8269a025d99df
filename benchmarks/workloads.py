"""Sheaves for timing, with any number of vertices, the same on every run.

W1: a 3-D nearest-neighbour graph, general 3 x 3 maps near the identity. W2: a 3-D grid, plane
rotations. W3: a 2-D nearest-neighbour graph, stalks of dimension 1 .. 6 on vertices and edges.

The vertices of W1 and W2 are ordered so that neighbours are near each other, those of W3 randomly;
``W1 shuffled`` has a random order, and ``W3 ordered`` an order with neighbours near each other.
"""

import numpy as np
from scipy.spatial import cKDTree

import sheafcoarsen as sc


def morton_order(points):
    """Return the order of points along a Z-order (Morton) curve."""
    cells = np.minimum((points * 1024).astype(np.int64), 1023)
    code = np.zeros(len(points), np.int64)
    for bit in range(10):
        for axis in range(points.shape[1]):
            code |= ((cells[:, axis] >> bit) & 1) << (points.shape[1] * bit + axis)
    return np.argsort(code, kind="stable")


def neighbours(n, k, dim, rng, ordered):
    """Return the edges (u < v, sorted) of the k-nearest-neighbour graph of random points."""
    points = rng.random((n, dim))
    if ordered:
        points = points[morton_order(points)]
    _, nearest = cKDTree(points).query(points, k=k + 1, workers=-1)
    pairs = np.sort(np.stack([np.repeat(np.arange(n), k), nearest[:, 1:].ravel()], axis=1), axis=1)
    keys = np.unique(pairs[:, 0] * n + pairs[:, 1])
    return np.stack([keys // n, keys % n], axis=1)


def w1(n, rng, ordered=True):
    edges = neighbours(n, 6, 3, rng, ordered)
    tail, head = (np.eye(3) + 0.3 * rng.standard_normal((len(edges), 3, 3)) for _ in range(2))
    return sc.CellularSheaf(edges, tail, head, vertex_dims=np.full(n, 3))


def grid(*sides):
    """Return the edges of a grid, sorted."""
    index = np.arange(int(np.prod(sides))).reshape(sides)
    ends = [
        (np.delete(index, -1, axis).ravel(), np.delete(index, 0, axis).ravel())
        for axis in range(len(sides))
    ]
    edges = np.concatenate([np.stack(pair, axis=1) for pair in ends])
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]


def w2(n, rng):
    side = round(n ** (1 / 3))
    edges = grid(side, side, side)
    gauge = 2 * np.pi * rng.random(side**3)
    angle = gauge[edges[:, 1]] - gauge[edges[:, 0]] + 0.3 * rng.standard_normal(len(edges))
    c, s = np.cos(angle), np.sin(angle)
    return sc.CellularSheaf.connection(edges, np.stack([c, -s, s, c], axis=1).reshape(-1, 2, 2))


def w3(n, rng, ordered=False):
    edges = neighbours(n, 5, 2, rng, ordered)
    vertex_dims, edge_dims = rng.integers(1, 7, n), rng.integers(1, 7, len(edges))
    tail, head = (
        rng.standard_normal(int((edge_dims * vertex_dims[edges[:, end]]).sum())) for end in (0, 1)
    )
    return sc.CellularSheaf.from_flat(edges, tail, head, vertex_dims, edge_dims)


WORKLOADS = {
    "W1": w1,
    "W1 shuffled": lambda n, rng: w1(n, rng, ordered=False),
    "W2": w2,
    "W3": w3,
    "W3 ordered": lambda n, rng: w3(n, rng, ordered=True),
}
ORDERED = ("W1", "W2", "W3 ordered")


def build(name, n):
    """Return the workload with a given name and about n vertices."""
    return WORKLOADS[name](n, np.random.default_rng(7))


def other_maps(F):
    """Return a sheaf on the same graph with perturbed maps, as after a training step."""
    rng = np.random.default_rng(8)
    tail, head = (
        data * (1 + 0.1 * rng.standard_normal(len(data))) for data in (F.tail_data, F.head_data)
    )
    return F.with_maps(tail, head)
