"""Select: partitions of the vertices into connected clusters of about equal weight, an exact number of them."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
from scipy.cluster.vq import kmeans2

from sheafcoarsen._checks import choice, flag, whole_number
from sheafcoarsen._kernels import selection as kernels
from sheafcoarsen._progress import bar
from sheafcoarsen._ragged import read_only
from sheafcoarsen.graphs import edge_weights, graph_arrays
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf

LIGHTEST, HEAVIEST = 1 / 3, 1.5
"""Cluster weights that refinement and merging keep to where they can, relative to the mean."""
TOO_HEAVY = 2.0
"""Clusters heavier than this, relative to the mean, are split where that helps."""
SWEEPS = 4
"""Refinement sweeps; on a 3-D nearest-neighbour graph .226, .201, .197, .196 of the edges are cut after 0, 1, 2, 4."""
MOST_SPECTRAL = 500
"""Clusters that spectral clustering takes on: it needs as many eigenvectors."""
DENSE_SPECTRAL = 1000
"""Vertices of a component up to which all of its eigenvectors are cheaper than a few."""


class Links(NamedTuple):
    """A weighted graph as neighbour lists: those of v are ``ends[starts[v]:starts[v + 1]]``, each once, without v.

    starts : (n + 1,) int64
    ends : (2m,) int32
    weights : (2m,) float64, >= 0, the largest edge weight being 1
    sizes : (n,) int64, >= 1, what a vertex weighs in the balance
    """

    starts: np.ndarray
    ends: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray


def select(F_or_graph, n_clusters, method="auto", weights="graph", seed=0, progress=False) -> Partition:
    """Partition the vertices into clusters that are strongly linked inside (the Select phase of a pooling layer).

    For every method, in this order of priority: there are exactly ``n_clusters`` clusters, none empty; no cluster joins
    two components of the graph, unless there are more components than clusters (then whole components are packed
    together); clusters are connected; and they weigh about the same, a vertex weighing its stalk's dimension (at least
    1; 1 for a plain graph). The same arguments give the same partition.

    Parameters
    ----------
    F_or_graph : CellularSheaf, networkx Graph or MultiGraph, symmetric scipy sparse adjacency, or (m, 2) integer array
        Loops are ignored, parallel edges summed.
    n_clusters : int
        1 .. n.
    method : {"auto", "balls", "matching", "spectral", "metis"}
        "balls"
            Breadth-first balls, each taking next the vertex with the heaviest links into it, then refinement by
            moves of single vertices. Linear time but for the logarithm of a heap: a million vertices in a second.
        "matching"
            Level upon level of matching along heavy links, as Graclus does, then the same refinement. Linear time
            too; slower than balls, and often with the smaller cut.
        "spectral"
            Spectral clustering on the adjacency, as in the paper: k-means on the rows, normalized, of the lowest
            eigenvectors of the normalized graph Laplacian, component by component, then disconnected clusters are
            repaired. At most 500 clusters; balance is left to the eigenvectors.
        "metis"
            METIS, through the optional package pymetis; its empty and disconnected parts are repaired.
        "auto"
            "balls".
    weights : {"graph", "sheaf"}
        "graph": the graph's weights (a networkx edge's "weight", an adjacency's entries, missing = 1); a sheaf stores
        none, not even the ones it was made with: 1 per edge. "sheaf": norm(F_{u->e}* F_{v->e})_F, so that strong maps keep vertices together.
    seed : int
        Chooses the starting vertex, or whatever is random in the method.
    progress : bool
        Show a bar over the stages.

    Returns
    -------
    Partition

    Raises
    ------
    ValueError
        ``n_clusters`` not in 1 .. n, or too many of them for "spectral"; negative weights; ``weights="sheaf"``
        without a sheaf.
    ImportError
        "metis" without pymetis.

    Examples
    --------
    Two cliques joined by an edge:

    >>> import networkx as nx
    >>> from sheafcoarsen.selection import select
    >>> select(nx.barbell_graph(4, 0), 2).labels
    array([1, 1, 1, 1, 0, 0, 0, 0])
    """
    choice("method", method, METHODS)
    choice("weights", weights, ("graph", "sheaf"))
    flag("progress", progress)
    n_clusters = whole_number("n_clusters", n_clusters)
    rng = np.random.default_rng(whole_number("seed", seed, at_least=0))
    find = _FIND["balls" if method == "auto" else method]
    with bar(3, "select", progress) as shown:
        links = _links(F_or_graph, weights)
        n = len(links.sizes)
        if n == 0:
            raise ValueError(f"`n_clusters` = {n_clusters} clusters need vertices, but the graph has no vertices")
        if not 1 <= n_clusters <= n:
            raise ValueError(f"`n_clusters` must be between 1 and the number of vertices, {n}, got {n_clusters}")
        if method == "spectral" and n_clusters > MOST_SPECTRAL:
            raise ValueError(
                f'`n_clusters` must be at most {MOST_SPECTRAL} for method "spectral", which needs as many '
                f'eigenvectors, got {n_clusters}; use "balls"'
            )
        shown.update()
        if n_clusters == n:
            labels = np.arange(n, dtype=np.int32)
        elif n_clusters == 1:
            labels = np.zeros(n, dtype=np.int32)
        else:
            labels = find(links, n_clusters, rng)
            shown.update()
            labels = _repair(links, labels, n_clusters, balanced=method != "spectral")
        shown.update(3 - shown.n)
    return Partition(labels)


# ---------------------------------------------------------------- the graph and its weights


def _links(F_or_graph, weights: str) -> Links:
    """Read a sheaf or a graph as neighbour lists."""
    if isinstance(F_or_graph, CellularSheaf):
        edges = F_or_graph.edges
        sizes = np.maximum(F_or_graph.vertex_dims, 1)
        if weights == "sheaf":
            values = np.empty(len(edges))
            largest = max(F_or_graph.largest_entry, np.finfo(float).tiny)
            kernels.strengths(F_or_graph._arrays, 1 / largest, values)
        else:
            values = np.ones(len(edges))
    else:
        if weights == "sheaf":
            raise ValueError(
                f'`weights` = "sheaf" takes the weights from a sheaf\'s maps, but `F_or_graph` is a '
                f'{type(F_or_graph).__name__}: pass a CellularSheaf, or use weights="graph"'
            )
        arrays = graph_arrays(F_or_graph)
        edges = read_only(arrays.edges)
        sizes = np.ones(arrays.n_vertices, dtype=np.int64)
        values = edge_weights(arrays, "weight").astype(np.float64)
    return _neighbour_lists(edges, values, sizes)


def _neighbour_lists(edges, values, sizes) -> Links:
    """Sum parallel edges and leave loops out; scale the weights so that sums of them neither overflow nor vanish."""
    starts = np.empty(len(sizes) + 1, dtype=np.int64)
    ends = np.empty(2 * len(edges), dtype=np.int32)
    weights = np.empty(2 * len(edges))
    largest = values.max(initial=0)
    if largest not in (0, 1):
        values = values / largest
    count = kernels.neighbours(edges, values, starts, ends, weights)
    return Links(starts, ends[:count], weights[:count], sizes)


# ---------------------------------------------------------------- methods: labels 0 .. about n_clusters


def _balls(links: Links, n_clusters: int, rng) -> np.ndarray:
    n = len(links.sizes)
    labels = np.empty(n, dtype=np.int32)
    heap = np.empty(len(links.ends) + 1, dtype=np.int64)
    kernels.grow(links, n_clusters, int(rng.integers(n)), labels, heap)
    _refine(links, labels, n_clusters)
    return labels


def _refine(links: Links, labels, n_clusters: int) -> None:
    mean = links.sizes.sum() / n_clusters
    weight = _sums(labels, links.sizes)
    kernels.refine(links, labels, weight, LIGHTEST * mean, HEAVIEST * mean, SWEEPS)


def _matching(links: Links, n_clusters: int, rng) -> np.ndarray:
    labels = np.arange(len(links.sizes), dtype=np.int32)
    high = HEAVIEST * links.sizes.sum() / n_clusters
    level = links
    while len(level.sizes) > n_clusters:
        n = len(level.sizes)
        order = rng.permutation(n)
        order = order[np.argsort(level.sizes[order], kind="stable")]  # the lightest first
        levels_left = np.ceil(np.log2(n / n_clusters))
        aim = int(np.ceil(n * (n_clusters / n) ** (1 / levels_left)))  # levels alike, so that sizes stay alike
        groups = np.empty(n, dtype=np.int32)
        count = kernels.match(level, order, aim, high, groups)
        labels = groups[labels]
        if count > 0.95 * n:  # stars of full clusters: the repair merges them
            break
        rows = np.repeat(np.arange(n), np.diff(level.starts))
        upper = rows < level.ends
        edges = np.stack([groups[rows[upper]], groups[level.ends[upper]]], axis=1).astype(np.int64)
        level = _neighbour_lists(read_only(edges), level.weights[upper], _sums(groups, level.sizes))
    _refine(links, labels, n_clusters)
    return labels


def _spectral(links: Links, n_clusters: int, rng) -> np.ndarray:
    n = len(links.sizes)
    weights = np.maximum(links.weights, np.finfo(float).eps)  # keeps what is linked by zeros together
    matrix = scipy.sparse.csr_array((weights, links.ends, links.starts), shape=(n, n))
    n_components, component = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    labels = component.astype(np.int32)
    if n_components >= n_clusters:
        return labels
    parts = np.empty(n_components, dtype=np.int64)
    kernels.apportion(_sums(labels, links.sizes), np.bincount(component), n_clusters, parts)
    first = np.cumsum(parts) - parts
    for c in range(n_components):  # fewer than MOST_SPECTRAL
        members = np.flatnonzero(component == c)
        labels[members] = first[c] + _spectral_clusters(matrix[members][:, members], int(parts[c]), rng)
    return labels


def _spectral_clusters(matrix, k: int, rng) -> np.ndarray:
    """Cluster a connected graph by its k lowest eigenvectors (von Luxburg 2007, after Ng, Jordan and Weiss)."""
    n = matrix.shape[0]
    if k in (1, n):
        return np.arange(n) * (k > 1)
    roots = scipy.sparse.diags_array(1 / np.sqrt(matrix.sum(axis=1)))
    normalized = scipy.sparse.csr_array(roots @ matrix @ roots)  # I - the normalized Laplacian
    if n <= DENSE_SPECTRAL or 3 * k > n:
        vectors = scipy.linalg.eigh(normalized.toarray(), subset_by_index=[n - k, n - 1])[1]
    else:
        vectors = _largest_eigenvectors(normalized, k, rng)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = vectors / np.where(norms == 0, 1, norms)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "One of the clusters is empty")  # the repair makes up for it
        return kmeans2(rows, k, iter=30, minit="++", seed=rng)[1]


def _largest_eigenvectors(matrix, k: int, rng) -> np.ndarray:
    """Lanczos; where the eigenvalues are too close for it, as on long paths, with the matrix shifted and inverted."""
    v0 = rng.standard_normal(matrix.shape[0])
    try:
        return scipy.sparse.linalg.eigsh(matrix, k, which="LA", v0=v0, tol=1e-6, maxiter=100)[1]
    except scipy.sparse.linalg.ArpackNoConvergence:
        return scipy.sparse.linalg.eigsh(matrix.tocsc(), k, sigma=1.001, v0=v0, tol=1e-6)[1]


def _metis(links: Links, n_clusters: int, rng) -> np.ndarray:
    try:
        import pymetis
    except ImportError:
        raise ImportError('method "metis" needs the package pymetis: pip install sheafcoarsen[metis]') from None
    same = (links.weights == 1).all()
    starts = links.starts.astype(np.int32)
    if hasattr(pymetis, "CSRAdjacency"):  # 2025.2 and later, which deprecate the other form
        graph = {"adjacency": pymetis.CSRAdjacency(starts, links.ends)}
    else:
        graph = {"xadj": starts, "adjncy": links.ends}
    _, labels = pymetis.part_graph(
        n_clusters,
        **graph,
        vweights=None if (links.sizes == 1).all() else _small_integers(links.sizes),
        eweights=None if same else _small_integers(links.weights),
        options=pymetis.Options(seed=int(rng.integers(2**31))),
        # k-way takes 3 times as long, and may cut 155 edges of a 12 x 13 grid where this cuts 57, whatever the seed
        recursive=True,
    )
    return np.asarray(labels, dtype=np.int32)


def _small_integers(values) -> np.ndarray:
    """Scale to integers from 1 whose sum stays in METIS's 31 bits; integers that fit are kept."""
    if values.dtype.kind == "f":
        values = values * (1000 / max(values.max(initial=0), 1e-300))
    room = 2**30 / max(float(values.sum()), 1.0)
    return np.maximum(np.rint(values * min(room, 1.0)), 1).astype(np.int32)


_FIND: dict[str, Callable[[Links, int, np.random.Generator], np.ndarray]] = {
    "balls": _balls,
    "matching": _matching,
    "spectral": _spectral,
    "metis": _metis,
}
METHODS = ("auto", *_FIND)
"""The names that ``method`` may take."""

# ---------------------------------------------------------------- repair


def _repair(links: Links, labels, n_clusters: int, balanced: bool) -> np.ndarray:
    """Turn any labels into exactly ``n_clusters`` clusters, connected unless there are more components.

    Pieces cut off from their cluster and light clusters join a neighbour, heavy clusters are split; then the lightest
    are merged, whole components packed or the heaviest split until the count is exact. Without ``balanced`` only what
    connectedness and the count ask for is done.
    """
    labels, weight, main = _pieces(links, labels)
    mean = links.sizes.sum() / n_clusters
    if balanced:
        labels, weight = _merge(links, labels, weight, main, len(labels), LIGHTEST * mean, HEAVIEST * mean)
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
    weight = _sums(pieces, links.sizes)
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
    return labels, _sums(labels, links.sizes)


def _sums(labels, sizes) -> np.ndarray:
    """Return the total size of each cluster."""
    return np.bincount(labels, weights=sizes).astype(np.int64)
