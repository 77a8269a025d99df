"""Select: partitions of the vertices into connected clusters of about equal weight, an exact number of them."""

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen._support import Seed, bar, choice, flag, read_only, whole_number
from sheafcoarsen.partition.container import Partition
from sheafcoarsen.partition.links import (
    HEAVIEST,
    LIGHTEST,
    Links,
    grouped_sums,
    links_of,
    neighbour_lists,
)
from sheafcoarsen.partition.metis import metis
from sheafcoarsen.partition.repair import repair_labels
from sheafcoarsen.partition.spectral import MOST_SPECTRAL, spectral
from sheafcoarsen.sheaf import CellularSheaf, GraphLike

SWEEPS = 4
"""Refinement sweeps; on a 3-D nearest-neighbour graph .226, .201, .197, .196 of the edges are cut after 0, 1, 2, 4."""


Method: TypeAlias = Literal["auto", "balls", "matching", "spectral", "metis"]
"""How clusters are found."""

Weights: TypeAlias = Literal["graph", "sheaf"]
"""What the weights of edges are taken from."""


def select(
    F_or_graph: CellularSheaf | GraphLike,
    n_clusters: int,
    method: Method = "auto",
    weights: Weights = "graph",
    seed: Seed = 0,
    progress: bool = False,
) -> Partition:
    """Partition the vertices into clusters that are strongly linked inside (the Select phase of a pooling layer).

    For every method, in this order of priority: there are exactly ``n_clusters`` clusters, none
    empty; no cluster joins two components of the graph, unless there are more components than
    clusters (then whole components are packed together); clusters are connected; and they weigh
    about the same, a vertex weighing its stalk's dimension (at least 1; 1 for a plain graph). The
    same arguments give the same partition.

    Parameters
    ----------
    F_or_graph : CellularSheaf, networkx Graph or MultiGraph, symmetric scipy sparse adjacency, or
        (m, 2) integer array
        Loops are ignored, parallel edges summed.
    n_clusters : int
        1 .. n.
    method : {"auto", "balls", "matching", "spectral", "metis"}
        "balls"
            Breadth-first balls, each taking next the vertex with the heaviest links into it, then
            refinement by moves of single vertices. Linear time but for the logarithm of a heap: a
            million vertices in a second.
        "matching"
            Level upon level of matching along heavy links, as Graclus does, then the same
            refinement. Linear time too; slower than balls, and often with the smaller cut.
        "spectral"
            Spectral clustering on the adjacency, as in the paper: k-means on the rows, normalized,
            of the lowest eigenvectors of the normalized graph Laplacian, component by component,
            then disconnected clusters are repaired. At most 500 clusters; balance is left to the
            eigenvectors.
        "metis"
            METIS, through the optional package pymetis; its empty and disconnected parts are
            repaired.
        "auto"
            "balls".
    weights : {"graph", "sheaf"}
        "graph": the graph's weights (a networkx edge's "weight", an adjacency's entries, missing =
        1); a sheaf stores none, not even the ones it was made with: 1 per edge. "sheaf":
        norm(F_{u->e}* F_{v->e})_F, so that strong maps keep vertices together.
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
        ``n_clusters`` not in 1 .. n, or too many of them for "spectral"; negative weights;
        ``weights="sheaf"`` without a sheaf.
    ImportError
        "metis" without pymetis.

    Examples
    --------
    Two cliques joined by an edge:

    >>> import networkx as nx
    >>> from sheafcoarsen import select
    >>> select(nx.barbell_graph(4, 0), 2).labels
    array([1, 1, 1, 1, 0, 0, 0, 0])
    """
    choice("method", method, METHODS)
    choice("weights", weights, get_args(Weights))
    flag("progress", progress)
    n_clusters = whole_number("n_clusters", n_clusters)
    rng = np.random.default_rng(whole_number("seed", seed, at_least=0))
    find = _FIND["balls" if method == "auto" else method]
    with bar(3, "select", progress) as shown:
        links = links_of(F_or_graph, weights)
        n = len(links.sizes)
        if n == 0:
            raise ValueError(
                f"`n_clusters` = {n_clusters} clusters need vertices, but the graph has no vertices"
            )
        if not 1 <= n_clusters <= n:
            raise ValueError(
                f"`n_clusters` must be between 1 and the number of vertices, {n}, got {n_clusters}"
            )
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
            labels = repair_labels(links, labels, n_clusters, balanced=method != "spectral")
        shown.update(3 - shown.n)
    return Partition(labels)


def _balls(links: Links, n_clusters: int, rng) -> np.ndarray:
    n = len(links.sizes)
    labels = np.empty(n, dtype=np.int32)
    heap = np.empty(len(links.ends) + 1, dtype=np.int64)
    kernels.grow(links, n_clusters, int(rng.integers(n)), labels, heap)
    _refine(links, labels, n_clusters)
    return labels


def _refine(links: Links, labels, n_clusters: int) -> None:
    mean = links.sizes.sum() / n_clusters
    weight = grouped_sums(labels, links.sizes)
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
        aim = int(
            np.ceil(n * (n_clusters / n) ** (1 / levels_left))
        )  # levels alike, so that sizes stay alike
        groups = np.empty(n, dtype=np.int32)
        count = kernels.match(level, order, aim, high, groups)
        labels = groups[labels]
        if count > 0.95 * n:  # stars of full clusters: the repair merges them
            break
        rows = np.repeat(np.arange(n), np.diff(level.starts))
        upper = rows < level.ends
        edges = np.stack([groups[rows[upper]], groups[level.ends[upper]]], axis=1).astype(np.int64)
        level = neighbour_lists(
            read_only(edges), level.weights[upper], grouped_sums(groups, level.sizes)
        )
    _refine(links, labels, n_clusters)
    return labels


_FIND: dict[str, Callable[[Links, int, np.random.Generator], np.ndarray]] = {
    "balls": _balls,
    "matching": _matching,
    "spectral": spectral,
    "metis": metis,
}


METHODS = get_args(Method)
"""The names that ``method`` may take."""
