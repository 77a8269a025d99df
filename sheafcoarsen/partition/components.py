"""More components than clusters: small ones are packed together, so that large ones are split."""

from collections.abc import Callable

import numpy as np

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen.partition.links import Links, grouped_sums


def pack_small_components(
    links: Links,
    component: np.ndarray,
    n_clusters: int,
    cluster: Callable[[Links, int], np.ndarray],
) -> np.ndarray:
    """Return labels of exactly ``n_clusters`` clusters, fewer than there are components.

    Components lighter than the mean cluster are packed, each whole, heaviest first, into bins that
    are clusters: as many as their weight asks for, at least one, and what clusters the vertices of
    the other components cannot fill. ``cluster`` makes the rest, of the links among the others and
    at least as many clusters as they have components.
    """
    weight = grouped_sums(component, links.sizes)
    mean = weight.sum() / n_clusters
    small = np.flatnonzero(weight < mean)  # some are: all together would weigh too much
    others = np.flatnonzero(~np.isin(component, small))
    n_bins = max(int(np.rint(weight[small].sum() / mean)), n_clusters - len(others), 1)
    bins = np.zeros(len(weight), dtype=np.int32)
    packed = np.empty(len(small), dtype=np.int32)
    kernels.pack(weight[small], np.argsort(-weight[small], kind="stable"), packed, n_bins)
    bins[small] = packed
    labels = bins[component]
    if len(others):
        labels[others] = n_bins + cluster(_induced(links, others), n_clusters - n_bins)
    return labels


def _induced(links: Links, vertices: np.ndarray) -> Links:
    """Return the links among vertices that make up whole components."""
    number = np.full(len(links.sizes), -1, dtype=np.int32)
    number[vertices] = np.arange(len(vertices), dtype=np.int32)
    lengths = np.diff(links.starts)
    starts = np.concatenate([[0], np.cumsum(lengths[vertices])])
    kept = np.repeat(number >= 0, lengths)
    return Links(starts, number[links.ends[kept]], links.weights[kept], links.sizes[vertices])
