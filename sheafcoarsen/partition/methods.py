"""Methods of `select`: breadth-first balls, matching, spectral clustering, METIS."""

import warnings

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
from scipy.cluster.vq import kmeans2

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen._support import EPS, read_only, single_threaded_blas
from sheafcoarsen.operators import coboundary
from sheafcoarsen.partition.links import (
    HEAVIEST,
    LIGHTEST,
    Links,
    grouped_sums,
    neighbour_lists,
)
from sheafcoarsen.partition.repair import repair_labels
from sheafcoarsen.sheaf import CellularSheaf, unit_sheaf

STALLED = 0.95
"""Fraction of its vertices above which a new level is the last: stars of full clusters stall."""


def match_levels(links: Links, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels of about ``n_clusters`` matched groups, refined on each level."""
    levels, top = _matched(links, n_clusters, HEAVIEST * links.sizes.sum() / n_clusters, rng)
    return _refined(levels, top, np.arange(len(top.sizes), dtype=np.int32), n_clusters)


def _matched(
    links: Links, n_groups: int, high: float, rng: np.random.Generator
) -> tuple[list[tuple[Links, np.ndarray]], Links]:
    """Return levels of about half the vertices each, with their groups, and the last level's links.

    Groups are not heavier than ``high``; the last level has about ``n_groups`` (Karypis and Kumar,
    A fast and high quality multilevel scheme for partitioning irregular graphs, 1998).
    """
    levels: list[tuple[Links, np.ndarray]] = []
    level = links
    while (n := len(level.sizes)) > n_groups:
        order = rng.permutation(n)
        order = order[np.argsort(level.sizes[order], kind="stable")]  # the lightest first
        levels_left = np.ceil(np.log2(n / n_groups))
        aim = int(np.ceil(n * (n_groups / n) ** (1 / levels_left)))  # alike, so that sizes are
        groups = np.empty(n, dtype=np.int32)
        count = kernels.match(level, order, aim, high, groups)
        levels.append((level, groups))
        level = _grouped(level, groups)
        if count > STALLED * n:  # repair_labels merges them
            break
    return levels, level


def _refined(
    levels: list[tuple[Links, np.ndarray]], top: Links, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Repair labels of the last level; return those of the first, refined on each level."""
    labels = repair_labels(top, labels, n_clusters, balanced=True)
    refine(top, labels, n_clusters)
    for level, groups in reversed(levels):
        labels = labels[groups]
        refine(level, labels, n_clusters)
    return labels


def _grouped(level: Links, groups: np.ndarray) -> Links:
    """Return the links between groups of vertices."""
    rows = np.repeat(np.arange(len(level.sizes)), np.diff(level.starts))
    upper = rows < level.ends
    ends = [groups[rows[upper]], groups[level.ends[upper]]]
    edges = read_only(np.stack(ends, axis=1).astype(np.int64))
    return neighbour_lists(edges, level.weights[upper], grouped_sums(groups, level.sizes))


SWEEPS = 4
"""Number of refinement sweeps on a level, after which few vertices move."""


BALL_OF = 8
"""Number of matched groups per ball.

On a 3-D nearest-neighbour graph balls of 40 vertices cut .191 of the edges, of 16 groups .187, of
10 .185, of 6 .183; a 3-D grid .326, .320, .316, .318.
"""


def find_balls(links: Links, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels of breadth-first balls of matched groups, refined on each level."""
    high = LIGHTEST * links.sizes.sum() / n_clusters
    levels, top = _matched(links, BALL_OF * n_clusters, high, rng)
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
    kernels.refine(links, labels, weight, (LIGHTEST * mean, HEAVIEST * mean), SWEEPS, workspace)


def part_by_metis(links: Links, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return METIS's labels by recursive bisection; parts may be empty or disconnected."""
    try:
        import pymetis
    except ImportError:
        raise ImportError(
            'method "metis" needs the package pymetis: pip install sheafcoarsen[metis]'
        ) from None
    same = (links.weights == 1).all()
    starts = links.starts.astype(np.int32)
    if hasattr(pymetis, "CSRAdjacency"):  # 2025.2 and later, where the other form is deprecated
        graph = {"adjacency": pymetis.CSRAdjacency(starts, links.ends)}
    else:
        graph = {"xadj": starts, "adjncy": links.ends}
    _, labels = pymetis.part_graph(
        n_clusters,
        **graph,
        vweights=None if (links.sizes == 1).all() else _small_integers(links.sizes),
        eweights=None if same else _small_integers(links.weights),
        options=pymetis.Options(seed=int(rng.integers(2**31))),
        # k-way takes 3 times as long, and can cut 155 edges of a 12 x 13 grid where this cuts 57,
        # for all seeds
        recursive=True,
    )
    return np.asarray(labels, dtype=np.int32)


def _small_integers(values: np.ndarray) -> np.ndarray:
    """Scale to integers from 1 whose sum fits METIS's 31 bits; integers that fit are unchanged."""
    if values.dtype.kind == "f":
        values = values * (1000 / max(values.max(initial=0), 1e-300))
    room = 2**30 / max(float(values.sum()), 1.0)
    return np.maximum(np.rint(values * min(room, 1.0)), 1).astype(np.int32)


MOST_SPECTRAL = 500
"""Largest number of clusters for spectral clustering, which needs as many eigenvectors."""


DENSE_SPECTRAL = 1000
"""Largest number of vertices for which a dense eigensolver is faster than Lanczos."""


MOST_FACTORS = 24
"""Columns to which the modes at a vertex are projected before their Gram matrix is a feature."""


def cluster_spectrally(
    links: Links, n_clusters: int, rng: np.random.Generator, sheaf: CellularSheaf | None = None
) -> np.ndarray:
    """Return labels of spectral clustering, component by component.

    Rows of eigenvectors are those of the graph, or of the sheaf on the same vertices.
    """
    n = len(links.sizes)
    weights = np.maximum(links.weights, EPS)  # zero weights also link vertices
    matrix = scipy.sparse.csr_array((weights, links.ends, links.starts), shape=(n, n))
    n_components, component = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    labels = component.astype(np.int32)
    if n_components >= n_clusters:
        return labels
    parts = np.empty(n_components, dtype=np.int64)
    weight, limits = grouped_sums(labels, links.sizes), np.bincount(component)
    kernels.apportion(weight, limits, n_clusters, parts, np.empty_like(parts))
    first = np.cumsum(parts) - parts
    for c in range(n_components):  # fewer than MOST_SPECTRAL
        members, k = np.flatnonzero(component == c), int(parts[c])
        if k in (1, len(members)):
            labels[members] = first[c] + np.arange(len(members)) * (k > 1)
            continue
        if sheaf is None or len(sheaf.vertex_dims) != n:  # small components were left out
            rows = _graph_rows(matrix[members][:, members], k, rng)
        else:
            rows = _sheaf_rows(sheaf.subsheaf(members), k, rng)
        labels[members] = first[c] + _clustered(rows, k, rng)
    return labels


@single_threaded_blas()
def _clustered(rows: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return k-means labels of the normalized rows.

    (von Luxburg, A tutorial on spectral clustering, 2007, after Ng, Jordan and Weiss.)
    """
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.where(norms == 0, 1, norms)
    with warnings.catch_warnings():
        # repair_labels handles empty clusters
        warnings.filterwarnings("ignore", "One of the clusters is empty")
        return kmeans2(rows, k, iter=30, minit="++", seed=rng)[1]


def _graph_rows(matrix: scipy.sparse.csr_array, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return the k lowest eigenvectors of a connected graph's normalized Laplacian."""
    roots = scipy.sparse.diags_array(1 / np.sqrt(matrix.sum(axis=1)))
    return _leading_eigenvectors(scipy.sparse.csr_array(roots @ matrix @ roots), k, rng)


def _sheaf_rows(sheaf: CellularSheaf, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return what the low modes of a sheaf are at each vertex, for its k clusters.

    On real stalks of dimension 1 these are their values: the signs tell camps apart. On others the
    Gram matrix of the modes at a vertex, which no change of the vertex's basis alters: k clusters
    with consistent transports have k d low modes.
    """
    dims, n = sheaf.vertex_dims, sheaf.n_vertices
    signs = bool((dims == 1).all()) and sheaf.dtype.kind != "c"
    delta = coboundary(unit_sheaf(sheaf)[0])
    vertex = np.repeat(np.arange(n), dims)
    squares = np.bincount(vertex, (abs(delta) ** 2).sum(axis=0), n)
    degree = squares / np.maximum(dims, 1)
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
    if count > MOST_FACTORS:
        V = V @ rng.standard_normal((count, MOST_FACTORS))
    grams = np.zeros((n, V.shape[1] ** 2), V.dtype)
    np.add.at(grams, vertex, (V.conj()[:, :, None] * V[:, None, :]).reshape(N, -1))
    return np.hstack([grams.real, grams.imag]) if V.dtype.kind == "c" else grams


def _leading_eigenvectors(
    matrix: scipy.sparse.csr_array, k: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the k leading eigenvectors of I - L, L normalized, by all or by a few of them."""
    n = matrix.shape[0]
    if n > DENSE_SPECTRAL:
        return _largest_eigenvectors(matrix, k, rng)
    with single_threaded_blas():
        return scipy.linalg.eigh(matrix.toarray(), subset_by_index=[n - k, n - 1])[1]


def _largest_eigenvectors(
    matrix: scipy.sparse.csr_array, k: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the k leading eigenvectors by Lanczos iteration.

    If the eigenvalues are too close for it, as for long paths, shift-and-invert mode is used.
    """
    v0 = rng.standard_normal(matrix.shape[0])
    try:
        return scipy.sparse.linalg.eigsh(matrix, k, which="LA", v0=v0, tol=1e-6, maxiter=100)[1]
    except scipy.sparse.linalg.ArpackNoConvergence:
        return scipy.sparse.linalg.eigsh(matrix.tocsc(), k, sigma=1.001, v0=v0, tol=1e-6)[1]
