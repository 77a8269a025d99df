"""Labels repaired until there are just so many connected, non-empty clusters."""

import numpy as np

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen.partition.links import HEAVIEST, LIGHTEST, TOO_HEAVY, Links, grouped_sums


def repair_labels(links: Links, labels, n_clusters: int, balanced: bool) -> np.ndarray:
    """Turn any labels into exactly ``n_clusters`` clusters, connected unless there are more components.

    Pieces cut off from their cluster and light clusters join a neighbour, heavy clusters are split;
    then the lightest are merged, whole components packed or the heaviest split until the count is
    exact. Without ``balanced`` only what connectedness and the count ask for is done.
    """
    labels, weight, main = _pieces(links, labels)
    mean = links.sizes.sum() / n_clusters
    if balanced:
        labels, weight = _merge(
            links, labels, weight, main, len(labels), LIGHTEST * mean, HEAVIEST * mean
        )
        wanted = np.where(weight > TOO_HEAVY * mean, np.rint(weight / mean), 1).astype(np.int64)
        labels, weight = _split(links, labels, weight, np.minimum(wanted, np.bincount(labels)))
        main = np.ones(len(weight), dtype=np.uint8)
    labels, weight = _merge(links, labels, weight, main, n_clusters, 0.0, HEAVIEST * mean)
    if len(weight) > n_clusters:  # nothing but whole components
        bins = np.empty(len(weight), dtype=np.int32)
        kernels.pack(weight, np.argsort(-weight, kind="stable"), bins, n_clusters)
        return bins[labels]
    parts = np.empty(len(weight), dtype=np.int64)
    kernels.apportion(weight, np.bincount(labels), n_clusters, parts)
    return _split(links, labels, weight, parts)[0]


def _pieces(links: Links, labels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Label the connected pieces in the order of ``labels``; return labels, weights and which are the main ones."""
    pieces = np.empty(len(labels), dtype=np.int32)
    count = kernels.fragments(links, labels, pieces)
    weight = grouped_sums(pieces, links.sizes)
    home = np.empty(count, dtype=np.int64)
    home[pieces] = labels
    order = np.lexsort((-weight, home))
    number = np.empty(count, dtype=np.int32)
    number[order] = np.arange(count, dtype=np.int32)
    main = np.diff(home[order], prepend=-1) > 0
    return number[pieces], weight[order], main.astype(np.uint8)


def _merge(links: Links, labels, weight, main, n_clusters: int, low: float, high: float):
    """Merge clusters below ``low``, and the lightest while there are too many; return labels and weights."""
    if len(weight) <= n_clusters and (weight >= low).all():
        return labels, weight
    kernels.merge(links, labels, weight, main, n_clusters, low, high)
    left = np.flatnonzero(weight)
    number = np.empty(len(weight), dtype=np.int32)
    number[left] = np.arange(len(left), dtype=np.int32)
    return number[labels], weight[left]


def _split(links: Links, labels, weight, parts):
    """Split cluster a in ``parts[a]``; return labels and weights."""
    if (parts == 1).all():
        return labels, weight
    first = np.empty(len(weight), dtype=np.int32)
    first[labels] = np.arange(len(labels), dtype=np.int32)
    kernels.split(links, labels, first, weight, parts)
    return labels, grouped_sums(labels, links.sizes)
