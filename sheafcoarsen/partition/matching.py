"""Level upon level of matching along heavy links, as Graclus does."""

import numpy as np

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen._support import read_only
from sheafcoarsen.partition.balls import refine
from sheafcoarsen.partition.links import HEAVIEST, Links, grouped_sums, neighbour_lists

STALLED = 0.95
"""A level that keeps more than this of its groups is the last: stars of full clusters."""


def match_levels(links: Links, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels of groups matched until about ``n_clusters`` are left, refined."""
    labels = np.arange(len(links.sizes), dtype=np.int32)
    high = HEAVIEST * links.sizes.sum() / n_clusters
    level = links
    while len(level.sizes) > n_clusters:
        n = len(level.sizes)
        order = rng.permutation(n)
        order = order[np.argsort(level.sizes[order], kind="stable")]  # the lightest first
        levels_left = np.ceil(np.log2(n / n_clusters))
        aim = int(np.ceil(n * (n_clusters / n) ** (1 / levels_left)))  # alike, so that sizes are
        groups = np.empty(n, dtype=np.int32)
        count = kernels.match(level, order, aim, high, groups)
        labels = groups[labels]
        if count > STALLED * n:  # the repair merges them
            break
        level = _grouped(level, groups)
    refine(links, labels, n_clusters)
    return labels


def _grouped(level: Links, groups: np.ndarray) -> Links:
    """Return the links between groups of vertices."""
    rows = np.repeat(np.arange(len(level.sizes)), np.diff(level.starts))
    upper = rows < level.ends
    ends = [groups[rows[upper]], groups[level.ends[upper]]]
    edges = read_only(np.stack(ends, axis=1).astype(np.int64))
    return neighbour_lists(edges, level.weights[upper], grouped_sums(groups, level.sizes))
