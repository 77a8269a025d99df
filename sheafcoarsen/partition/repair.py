"""Labels repaired until there are exactly as many connected clusters as were asked for."""

import numpy as np

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen.partition.links import HEAVIEST, LIGHTEST, TOO_HEAVY, Links, grouped_sums


def repair_labels(links: Links, labels: np.ndarray, n_clusters: int, balanced: bool) -> np.ndarray:
    """Turn any labels into exactly ``n_clusters`` connected clusters.

    Pieces cut off from their cluster and light clusters join a neighbour, heavy clusters are split;
    then the lightest are merged or the heaviest split until the count is exact. Without
    ``balanced`` only what connectedness and the count ask for is done. Where there are more
    components than clusters, the components are returned.
    """
    labels, weight, main = _pieces(links, labels)
    mean = links.sizes.sum() / n_clusters
    high = HEAVIEST * mean
    if balanced:
        labels, weight = _merge(links, labels, weight, main, len(labels), (LIGHTEST * mean, high))
        wanted = np.where(weight > TOO_HEAVY * mean, np.rint(weight / mean), 1).astype(np.int64)
        labels, weight = _split(links, labels, weight, np.minimum(wanted, np.bincount(labels)))
        main = np.ones(len(weight), dtype=np.uint8)
    labels, weight = _merge(links, labels, weight, main, n_clusters, (0.0, high))
    if len(weight) >= n_clusters:  # more where they are whole components
        return labels
    parts = np.empty(len(weight), dtype=np.int64)
    heap = np.empty_like(parts)
    kernels.apportion(weight, np.bincount(labels), n_clusters, parts, heap)
    return _split(links, labels, weight, parts)[0]


def _pieces(links: Links, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Label the connected pieces in the order of ``labels``.

    Returns labels, weights, and which pieces are the main ones of their clusters.
    """
    pieces = np.empty(len(labels), dtype=np.int32)
    count = kernels.fragments(links, labels, pieces, np.empty_like(pieces))
    weight = grouped_sums(pieces, links.sizes)
    home = np.empty(count, dtype=np.int64)
    home[pieces] = labels
    order = np.lexsort((-weight, home))
    number = np.empty(count, dtype=np.int32)
    number[order] = np.arange(count, dtype=np.int32)
    main = np.diff(home[order], prepend=-1) > 0
    return number[pieces], weight[order], main.astype(np.uint8)


def _merge(
    links: Links,
    labels: np.ndarray,
    weight: np.ndarray,
    main: np.ndarray,
    n_clusters: int,
    bounds: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray]:
    """Merge clusters below the lower bound, and the lightest while there are too many.

    Returns labels and weights; clusters stay below the upper bound where they can.
    """
    K = len(weight)
    if n_clusters >= K and (weight >= bounds[0]).all():
        return labels, weight
    following, (first, near) = np.empty(len(labels), np.int32), np.empty((2, K), np.int32)
    room = following, first, near, np.empty(K), *np.empty((2, K), np.int64)
    kernels.merge(links, labels, weight, main, n_clusters, bounds, room)
    left = np.flatnonzero(weight)
    number = np.empty(len(weight), dtype=np.int32)
    number[left] = np.arange(len(left), dtype=np.int32)
    return number[labels], weight[left]


def _split(
    links: Links, labels: np.ndarray, weight: np.ndarray, parts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split cluster a in ``parts[a]``; return labels and weights."""
    if (parts == 1).all():
        return labels, weight
    first = np.empty(len(weight), dtype=np.int32)
    first[labels] = np.arange(len(labels), dtype=np.int32)
    kernels.split(links, labels, first, weight, parts)
    return labels, grouped_sums(labels, links.sizes)
