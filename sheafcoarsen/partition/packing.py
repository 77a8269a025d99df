"""Many small components: packed together, or each a cluster that a large one cannot have."""

import warnings
from collections.abc import Callable

import numpy as np

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen.exceptions import SmallComponentsWarning
from sheafcoarsen.partition.links import TOO_HEAVY, Links, grouped_sums

STARVED = 4.0
"""A component is starved where its clusters must be heavier than so many times the mean."""


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


def warn_if_starved(links: Links, labels: np.ndarray, stacklevel: int) -> None:
    """Warn where small components hold so many clusters that a large one is hardly cut.

    That is where there are enough clusters for all components, so that none are joined, and more
    are needed for none to be heavier than ``STARVED`` times the mean.
    """
    weight = grouped_sums(labels, links.sizes)
    mean = weight.mean()
    if weight.max() <= STARVED * mean:
        return
    component = np.empty(len(labels), dtype=np.int32)
    queue = np.empty_like(component)
    count = kernels.fragments(links, np.zeros(len(labels), np.int32), component, queue)
    of_component, n_vertices = grouped_sums(component, links.sizes), np.bincount(component)
    if len(weight) < count or clusters_needed(of_component, n_vertices, STARVED) <= len(weight):
        return
    warnings.warn(
        f"`n_clusters` = {len(weight)} starves large components: one cluster has "
        f"{np.bincount(labels)[weight.argmax()]} of {len(labels)} vertices, because "
        f"{(of_component < mean).sum()} of {count} components are smaller than the mean cluster "
        f"and hold at least one each; "
        f"n_clusters={clusters_needed(of_component, n_vertices, TOO_HEAVY)} leaves a balanced "
        f"number for the others, and below {count} small components share clusters",
        SmallComponentsWarning,
        stacklevel=stacklevel,
    )


def clusters_needed(weight: np.ndarray, n_vertices: np.ndarray, most: float) -> int:
    """Return the least number of clusters none of which need be heavier than ``most`` times mean.

    Component c, of ``n_vertices[c]`` vertices, holds as many as its weight asks for at that size,
    at least one and at most one for each vertex. ``most`` is at least 2, which twice as many
    clusters as components always reach.
    """
    share = weight / (most * weight.sum())
    low, high = len(weight), min(2 * len(weight), int(n_vertices.sum()))
    while low < high:
        middle = (low + high) // 2
        if np.clip(share * middle, 1, n_vertices).sum() <= middle:
            high = middle
        else:
            low = middle + 1
    return low
