"""Breadth-first balls, refined."""

import numpy as np

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen.partition.links import HEAVIEST, LIGHTEST, Links, grouped_sums

SWEEPS = 4
"""Refinement sweeps.

On a 3-D nearest-neighbour graph .226, .201, .197, .196 of the edges are cut after 0, 1, 2, 4.
"""


def find_balls(links: Links, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels of breadth-first balls, about ``n_clusters`` of them, refined."""
    n = len(links.sizes)
    labels = np.empty(n, dtype=np.int32)
    heap = np.empty(len(links.ends) + 1, dtype=np.int64)
    room = np.empty((3, n)), np.empty((6, n), np.int32), np.empty(n, np.int64)
    kernels.grow(links, n_clusters, int(rng.integers(n)), labels, heap, room)
    refine(links, labels, n_clusters)
    return labels


def refine(links: Links, labels: np.ndarray, n_clusters: int) -> None:
    """Move single vertices to the clusters they are linked to best, in place."""
    mean = links.sizes.sum() / n_clusters
    weight = grouped_sums(labels, links.sizes)
    K = len(weight)
    room = np.empty(K), np.empty(K, np.int32), np.empty(len(labels), np.uint8)
    kernels.refine(links, labels, weight, (LIGHTEST * mean, HEAVIEST * mean), SWEEPS, room)
