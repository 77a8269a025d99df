"""Methods of `select`: balls, matching, spectral clustering, METIS, and the repair of their labels.

Repaired clusters are connected, and their number is exact; small components are packed together.
"""

import bisect
import heapq
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from scipy.cluster.vq import kmeans2

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen._support import EPS, checks, linalg, threads, warned
from sheafcoarsen.exceptions import SmallComponentsWarning
from sheafcoarsen.operators import coboundary
from sheafcoarsen.partition.links import (
    HEAVIEST,
    LIGHTEST,
    TOO_HEAVY,
    Links,
    grouped_sums,
    neighbour_lists,
)
from sheafcoarsen.sheaf import CellularSheaf, unit_sheaf


def match_levels(links: Links, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels of about ``n_clusters`` groups found by matching, refined on each level."""
    levels, top = _matched(links, n_clusters, HEAVIEST * links.sizes.sum() / n_clusters, rng)
    return _refined(levels, top, np.arange(len(top.sizes), dtype=np.int32), n_clusters)


def _matched(
    links: Links, n_groups: int, high: float, rng: np.random.Generator
) -> tuple[list[tuple[Links, np.ndarray]], Links]:
    """Return the links and groups of all levels of matching, and the links of the last level.

    A level has at least half as many vertices as the one before, and the last about ``n_groups``.
    Groups are not heavier than ``high`` (Karypis and Kumar, A fast and high quality multilevel
    scheme for partitioning irregular graphs, 1998).
    """
    levels: list[tuple[Links, np.ndarray]] = []
    level = links
    while (n := len(level.sizes)) > n_groups:
        order = rng.permutation(n)
        order = order[np.argsort(level.sizes[order], kind="stable")]  # lightest vertices first
        levels_left = np.ceil(np.log2(n / n_groups))
        aim = int(np.ceil(n * (n_groups / n) ** (1 / levels_left)))  # all levels shrink equally
        groups = np.empty(n, dtype=np.int32)
        count = kernels.match(level, order, aim, high, groups)
        levels.append((level, groups))
        level = grouped(level, groups)
        if count > 0.95 * n:  # stalled, as on a star once the group of its centre is full
            break  # repair_labels merges the remaining groups
    return levels, level


def _refined(
    levels: list[tuple[Links, np.ndarray]], top: Links, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Repair labels of the coarsest level, and refine them on each level down to the finest."""
    labels = repair_labels(top, labels, n_clusters, balanced=True)
    refine(top, labels, n_clusters)
    for level, groups in reversed(levels):
        labels = labels[groups]
        refine(level, labels, n_clusters)
    return labels


def heavy_groups(links: Links, n_clusters: int) -> np.ndarray:
    """Return groups of vertices joined by heavy links, as a label for each vertex.

    A link is heavy if it outweighs all lighter links together, weights with the same binary
    exponent counting as equal. No group is heavier than the mean cluster. Refinement alone cannot
    repair a cut of such a link if moving either end would make a cluster too heavy or too light.
    """
    found = np.arange(len(links.sizes), dtype=np.int32)
    exponents = np.frexp(links.weights)[1]
    exponents[links.weights == 0] = exponents.min(initial=0) - 1  # frexp(0) is (0, 0)
    lowest = exponents.min(initial=0)
    sums = np.bincount(exponents - lowest, links.weights) / 2  # each link is stored twice
    lighter = np.cumsum(sums[:-1])
    bounds = np.ldexp(0.5, lowest + 1 + np.arange(len(lighter)))
    bounds = bounds[(sums[1:] > 0) & (lighter < bounds)]
    for bound in bounds[::-1]:
        groups = links.components(links.weights >= bound)
        weight = grouped_sums(groups, links.sizes)
        too_heavy = weight * n_clusters > links.sizes.sum()
        if len(weight) < n_clusters or (too_heavy & (np.bincount(groups) > 1)).any():
            break
        found = groups
    return found


def grouped(level: Links, groups: np.ndarray) -> Links:
    """Return the links between groups of vertices."""
    once = level.vertices() < level.ends  # each link is stored twice
    sizes, groups = grouped_sums(groups, level.sizes), groups.astype(np.int32)
    tails = np.repeat(groups, np.diff(level.starts))[once]
    return neighbour_lists(tails, groups[level.ends[once]], level.weights[once], sizes)


def find_balls(links: Links, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels of greedily grown balls of matched groups, refined on each level."""
    high = LIGHTEST * links.sizes.sum() / n_clusters
    # Number of matched groups per ball. Fraction of edges cut on a 3-D nearest-neighbour graph, and
    # on a 3-D grid: .191, .326 with balls of 40 vertices; .187, .320 with balls of 16 groups; .185,
    # .316 with 10 groups; .183, .318 with 6.
    ball_of = 8
    levels, top = _matched(links, ball_of * n_clusters, high, rng)
    n = len(top.sizes)
    labels = np.empty(n, dtype=np.int32)
    heap = np.empty(len(top.ends) + 1, dtype=np.int64)
    workspace = np.empty((3, n)), np.empty((6, n), np.int32), np.empty(n, np.int64)
    kernels.grow(top, n_clusters, int(rng.integers(n)), labels, heap, workspace)
    return _refined(levels, top, labels, n_clusters)


def refine(links: Links, labels: np.ndarray, n_clusters: int) -> None:
    """Move single vertices to the clusters with the strongest links to them, in place."""
    mean = links.sizes.sum() / n_clusters
    weight = grouped_sums(labels, links.sizes)
    K = len(weight)
    workspace = np.empty(K), np.empty(K, np.int32), np.empty(len(labels), np.uint8)
    sweeps = 4  # few vertices would move in later ones
    kernels.refine(links, labels, weight, (LIGHTEST * mean, HEAVIEST * mean), sweeps, workspace)


def part_by_metis(links: Links, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels from METIS's recursive bisection; parts may be empty or disconnected."""
    pymetis = checks.optional_module(
        "pymetis", 'method "metis" needs the package pymetis: pip install sheafcoarsen[metis]'
    )
    starts = links.starts.astype(np.int32)
    if hasattr(pymetis, "CSRAdjacency"):  # pymetis 2025.2 and later
        graph = {"adjacency": pymetis.CSRAdjacency(starts, links.ends)}
    else:
        graph = {"xadj": starts, "adjncy": links.ends}
    _, labels = pymetis.part_graph(
        n_clusters,
        **graph,
        vweights=None if (links.sizes == 1).all() else _small_integers(links.sizes),
        eweights=None if (links.weights == 1).all() else _small_integers(links.weights),
        options=pymetis.Options(seed=int(rng.integers(2**31))),
        # k-way partitioning takes 3 times as long; on a 12 x 13 grid it can cut 155 edges, where
        # bisection cuts 57, for all seeds
        recursive=True,
    )
    return np.asarray(labels, dtype=np.int32)


def _small_integers(values: np.ndarray) -> np.ndarray:
    """Scale floats to at most 1000, and values to positive integers of sum at most about 2^30."""
    if values.dtype.kind == "f":
        values = values * (1000 / max(values.max(initial=0), 1e-300))
    scale = 2**30 / max(float(values.sum()), 1.0)
    return np.maximum(np.rint(values * min(scale, 1.0)), 1).astype(np.int32)


def cluster_spectrally(
    links: Links, n_clusters: int, rng: np.random.Generator, sheaf: CellularSheaf | None = None
) -> np.ndarray:
    """Return cluster labels from spectral clustering, component by component.

    The eigenvectors are those of the graph, or of ``sheaf``, which has the same vertices; k-means
    divides their normalized rows (von Luxburg, A tutorial on spectral clustering, 2007, after Ng,
    Jordan and Weiss).
    """
    matrix = links.matrix(np.maximum(links.weights, EPS))  # links of weight 0 are links, too
    component = links.components()
    labels, limits = component.astype(np.int32), np.bincount(component)
    if len(limits) >= n_clusters:
        return labels
    parts = apportioned(grouped_sums(labels, links.sizes), limits, n_clusters)
    first = np.cumsum(parts) - parts
    for c in range(len(parts)):  # at most 500 iterations, see `find_clusters`
        members, k = np.flatnonzero(component == c), int(parts[c])
        if k in (1, len(members)):
            labels[members] = first[c] + np.arange(len(members)) * (k > 1)
            continue
        if sheaf is None:
            inner = matrix[members][:, members]
            roots = scipy.sparse.diags_array(1 / np.sqrt(inner.sum(axis=1)))
            rows = _leading_eigenvectors(scipy.sparse.csr_array(roots @ inner @ roots), k, rng)
        else:
            rows = _sheaf_rows(sheaf.subsheaf(members), k, rng)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(norms == 0, 1, norms)
        labels[members] = first[c] + _k_means(rows, k, rng)
    return labels


def _k_means(rows: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return k-means labels, the best of up to 8 starts, since one is often far from optimal."""
    best, labels = np.inf, np.zeros(len(rows), np.int32)
    # with fewer than k distinct rows, distances are 0; repair_labels handles empty clusters
    with threads.single_threaded_blas(), warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.filterwarnings("ignore", "One of the clusters is empty")
        for _ in range(int(np.clip(1e8 / (rows.size * k), 1, 8))):  # one start of large problems
            centers, found = kmeans2(rows, k, iter=30, minit="++", seed=rng)
            cost = float(((rows - centers[found]) ** 2).sum())
            if cost < best:
                best, labels = cost, found
    return labels


def _sheaf_rows(sheaf: CellularSheaf, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return features of each vertex for k clusters, computed from the low modes of a sheaf.

    On real stalks of dimension 1 these are the values of k modes, whose signs distinguish camps. On
    other stalks they are Gram matrices of the modes' rows at each vertex, which do not depend on
    the basis of the stalk; k clusters with consistent transports have k d low modes.
    """
    dims, n = sheaf.vertex_dims, sheaf.n_vertices
    signs = bool((dims == 1).all()) and sheaf.dtype.kind != "c"
    delta = coboundary(unit_sheaf(sheaf)[0])
    vertex = np.repeat(np.arange(n), dims)
    degree = np.bincount(vertex, (abs(delta) ** 2).sum(axis=0), n)
    roots = scipy.sparse.diags_array(np.where(degree > 0, degree, 1)[vertex] ** -0.5)
    delta = scipy.sparse.csr_array(delta @ roots)
    N = delta.shape[1]
    shifted = scipy.sparse.csr_array(scipy.sparse.eye_array(N) - delta.conj().T @ delta)
    count = min(k * (1 if signs else int(dims.max())), N - 1)
    if count < 1:
        return np.zeros((n, 1))
    V = _leading_eigenvectors(shifted, count, rng)
    if signs:
        return V
    most = 24  # modes; random combinations replace more, so that there are at most 576 features
    if count > most:
        V = V @ rng.standard_normal((count, most))
    grams = np.zeros((n, V.shape[1] ** 2), V.dtype)
    np.add.at(grams, vertex, (V.conj()[:, :, None] * V[:, None, :]).reshape(N, -1))
    return np.hstack([grams.real, grams.imag]) if V.dtype.kind == "c" else grams


def _leading_eigenvectors(
    matrix: scipy.sparse.csr_array, k: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the eigenvectors of the k largest eigenvalues, by a dense solver or by Lanczos."""
    n = matrix.shape[0]
    if n <= 1000:  # faster than Lanczos
        with threads.single_threaded_blas():
            return linalg.eigenvectors(matrix.toarray(), n - k, n - 1)
    v0 = rng.standard_normal(n)
    try:
        return scipy.sparse.linalg.eigsh(matrix, k, which="LA", v0=v0, tol=1e-6, maxiter=100)[1]
    except scipy.sparse.linalg.ArpackNoConvergence:  # eigenvalues are close, as of long paths
        return scipy.sparse.linalg.eigsh(matrix.tocsc(), k, sigma=1.001, v0=v0, tol=1e-6)[1]


def repair_labels(links: Links, labels: np.ndarray, n_clusters: int, balanced: bool) -> np.ndarray:
    """Convert arbitrary labels to labels of exactly ``n_clusters`` connected clusters.

    Light clusters, and light pieces of disconnected ones, are merged with a neighbour, and heavy
    clusters are split. Other pieces become clusters. Then the lightest clusters are merged or the
    heaviest split until the number is exact. Without ``balanced`` only connectedness and the number
    are enforced. If there are more components than clusters, the components are returned.
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
    """Return how many of ``total`` parts each item gets, at most ``limits``, by weight per part."""
    parts = np.ones(len(weight), dtype=np.int64)
    # in single precision, nearly equal weights per part count as equal: the first item gets a part
    keys = (-weight).astype(np.float32).tolist()
    heap = [(keys[a], a) for a in np.flatnonzero(limits > 1).tolist()]
    heapq.heapify(heap)
    for _ in range(total - len(weight)):
        _, a = heapq.heappop(heap)
        parts[a] += 1
        if parts[a] < limits[a]:
            heapq.heappush(heap, (float(np.float32(-weight[a] / parts[a])), a))
    return parts


def _pieces(links: Links, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels of the connected pieces of clusters, weights, and which are the heaviest."""
    pieces = links.components(np.repeat(labels, np.diff(links.starts)) == labels[links.ends])
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

    Clusters stay below the upper bound if possible. Returns labels and weights.
    """
    K = len(weight)
    if n_clusters >= K and (weight >= bounds[0]).all():
        return labels, weight
    following, (first, near) = np.empty(len(labels), np.int32), np.empty((2, K), np.int32)
    workspace = following, first, near, np.empty(K), *np.empty((2, K), np.int64)
    kernels.merge(links, labels, weight, main, n_clusters, bounds, workspace)
    remains = weight > 0
    number = np.cumsum(remains, dtype=np.int32) - 1
    return number[labels], weight[remains]


def _split(
    links: Links, labels: np.ndarray, weight: np.ndarray, parts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split every cluster a into ``parts[a]`` clusters; return labels and weights."""
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
    cluster: Callable[[Links, int, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return labels of exactly ``n_clusters`` clusters if there are more components than that.

    Components lighter than the mean cluster are packed, undivided and heaviest first, into bins,
    which become clusters. The number of bins is proportional to their weight, at least one, and
    large enough that the other vertices suffice for the remaining clusters, labelled by
    ``cluster`` from their links, the number of clusters and the vertices.
    """
    weight = grouped_sums(component, links.sizes)
    mean = weight.sum() / n_clusters
    small = np.flatnonzero(weight < mean)  # not empty: there are more components than clusters
    others = np.flatnonzero(~np.isin(component, small))
    n_bins = max(int(np.rint(weight[small].sum() / mean)), n_clusters - len(others), 1)
    bins = np.zeros(len(weight), dtype=np.int32)
    loads = [(0, b) for b in range(n_bins)]  # the lightest bin first, as in `apportioned`
    for a in small[np.argsort(-weight[small], kind="stable")].tolist():
        load, bins[a] = loads[0]
        heapq.heapreplace(loads, (load + int(weight[a]), loads[0][1]))
    labels = bins[component]
    if len(others):
        inner = links.matrix(links.weights)[others][:, others]
        index = inner.indptr.astype(np.int64), inner.indices.astype(np.int32)
        rest = Links(*index, inner.data, links.sizes[others])
        labels[others] = n_bins + cluster(rest, n_clusters - n_bins, others)
    return labels


def warn_if_starved(links: Links, labels: np.ndarray) -> None:
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
    warned.warn(
        f"`n_clusters` = {len(weight)} leaves too few clusters for large components: one cluster "
        f"has {np.bincount(labels)[weight.argmax()]} of {len(labels)} vertices, because "
        f"{(of_component < mean).sum()} of {count} components are smaller than the mean cluster "
        f"but need one each. Pass "
        f"n_clusters={clusters_needed(of_component, n_vertices, TOO_HEAVY)} to balance the others, "
        f"or fewer than {count} to let small components share clusters",
        SmallComponentsWarning,
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
