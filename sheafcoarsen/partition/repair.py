"""Repair of labels, so that clusters are connected, and packing of small components."""

import bisect
import warnings
from collections.abc import Callable

import numpy as np

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen._support import offsets, range_of_blocks
from sheafcoarsen.exceptions import SmallComponentsWarning
from sheafcoarsen.partition.links import HEAVIEST, LIGHTEST, TOO_HEAVY, Links, grouped_sums


def repair_labels(links: Links, labels: np.ndarray, n_clusters: int, balanced: bool) -> np.ndarray:
    """Convert arbitrary labels to labels of exactly ``n_clusters`` connected clusters.

    Disconnected pieces and light clusters are merged with a neighbour, heavy clusters are split;
    then the lightest are merged or the heaviest split until the number is exact. Without
    ``balanced`` only connectedness and the number are enforced. If there are more components than
    clusters, the components are returned.
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
    if len(weight) >= n_clusters:  # there are more only if they are whole components
        return labels
    return _split(links, labels, weight, apportioned(weight, np.bincount(labels), n_clusters))[0]


def apportioned(weight: np.ndarray, limits: np.ndarray, total: int) -> np.ndarray:
    """Return the numbers of parts, at most ``limits``, that make the weights per part even."""
    parts = np.empty(len(weight), dtype=np.int64)
    kernels.apportion(weight, limits, total, parts, np.empty_like(parts))
    return parts


def _pieces(links: Links, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Label the connected pieces of clusters, in the order of ``labels``.

    Returns labels, weights, and whether each piece is the heaviest one of its cluster.
    """
    pieces = links.components(labels[links.vertices()] == labels[links.ends])
    weight = grouped_sums(pieces, links.sizes)
    count = len(weight)
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
    """Merge clusters below the lower bound, and the lightest ones while there are too many.

    Returns labels and weights; clusters stay below the upper bound if possible.
    """
    K = len(weight)
    if n_clusters >= K and (weight >= bounds[0]).all():
        return labels, weight
    following, (first, near) = np.empty(len(labels), np.int32), np.empty((2, K), np.int32)
    workspace = following, first, near, np.empty(K), *np.empty((2, K), np.int64)
    kernels.merge(links, labels, weight, main, n_clusters, bounds, workspace)
    left = np.flatnonzero(weight)
    number = np.empty(len(weight), dtype=np.int32)
    number[left] = np.arange(len(left), dtype=np.int32)
    return number[labels], weight[left]


def _split(
    links: Links, labels: np.ndarray, weight: np.ndarray, parts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split cluster a into ``parts[a]`` clusters; return labels and weights."""
    if (parts == 1).all():
        return labels, weight
    first = np.empty(len(weight), dtype=np.int32)
    first[labels] = np.arange(len(labels), dtype=np.int32)
    kernels.split(links, labels, first, weight, parts)
    return labels, grouped_sums(labels, links.sizes)


def pack_small_components(
    links: Links,
    component: np.ndarray,
    n_clusters: int,
    cluster: Callable[[Links, int], np.ndarray],
) -> np.ndarray:
    """Return labels of exactly ``n_clusters`` clusters if there are more components than that.

    Components lighter than the mean cluster are packed, undivided and heaviest first, into bins,
    which become clusters. The number of bins is proportional to their weight, at least one, and
    large enough that the other vertices suffice for the remaining clusters, labelled by
    ``cluster``.
    """
    weight = grouped_sums(component, links.sizes)
    mean = weight.sum() / n_clusters
    small = np.flatnonzero(weight < mean)  # not empty: there are more components than clusters
    others = np.flatnonzero(~np.isin(component, small))
    n_bins = max(int(np.rint(weight[small].sum() / mean)), n_clusters - len(others), 1)
    bins = np.zeros(len(weight), dtype=np.int32)
    packed = np.empty(len(small), dtype=np.int32)
    kernels.pack(weight[small], np.argsort(-weight[small], kind="stable"), packed, n_bins)
    bins[small] = packed
    labels = bins[component]
    if len(others):
        number = np.empty(len(labels), dtype=np.int32)
        number[others] = np.arange(len(others), dtype=np.int32)
        kept = range_of_blocks(links.starts, others)  # all links of whole components
        starts = offsets(np.diff(links.starts)[others])
        ends, weights = number[links.ends[kept]], links.weights[kept]
        rest = Links(starts, ends, weights, links.sizes[others])
        labels[others] = n_bins + cluster(rest, n_clusters - n_bins)
    return labels


def warn_if_starved(links: Links, labels: np.ndarray, stacklevel: int) -> None:
    """Warn if small components leave too few clusters for a large one.

    There must be enough clusters for all components, so that none are joined, but not enough for
    all clusters to be at most ``starved`` times the mean.
    """
    weight = grouped_sums(labels, links.sizes)
    mean = weight.mean()
    # Weight of a cluster, relative to the mean, above which its component has too few clusters
    starved = 4.0
    if weight.max() <= starved * mean:
        return
    component = links.components()
    of_component, n_vertices = grouped_sums(component, links.sizes), np.bincount(component)
    count = len(n_vertices)
    if len(weight) < count or clusters_needed(of_component, n_vertices, starved) <= len(weight):
        return
    warnings.warn(
        f"`n_clusters` = {len(weight)} leaves too few clusters for large components: one cluster "
        f"has {np.bincount(labels)[weight.argmax()]} of {len(labels)} vertices, because "
        f"{(of_component < mean).sum()} of {count} components are smaller than the mean cluster "
        f"but need one each. Pass "
        f"n_clusters={clusters_needed(of_component, n_vertices, TOO_HEAVY)} to balance the others, "
        f"or fewer than {count} to let small components share clusters",
        SmallComponentsWarning,
        stacklevel=stacklevel,
    )


def clusters_needed(weight: np.ndarray, n_vertices: np.ndarray, most: float) -> int:
    """Return the minimum number of clusters that allows weights up to ``most`` times the mean.

    Component c, of ``n_vertices[c]`` vertices, gets a number of clusters proportional to its
    weight, at least one and at most one per vertex. ``most`` must be at least 2; then twice as many
    clusters as components are always enough.
    """
    share = weight / (most * weight.sum())
    low, high = len(weight), min(2 * len(weight), int(n_vertices.sum()))
    return low + bisect.bisect_left(
        range(low, high), True, key=lambda K: np.clip(share * K, 1, n_vertices).sum() <= K
    )
