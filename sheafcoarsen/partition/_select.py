"""Select: partitions into an exact number of connected clusters of about equal weight."""

import functools
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np

from sheafcoarsen._support import Seed, bar, choice, flag, whole_number
from sheafcoarsen.partition._partition import Partition
from sheafcoarsen.partition.links import HEAVIEST, Links, grouped_sums, is_plain, links_of
from sheafcoarsen.partition.methods import (
    MOST_SPECTRAL,
    cluster_spectrally,
    find_balls,
    match_levels,
    part_by_metis,
    refine,
)
from sheafcoarsen.partition.repair import pack_small_components, repair_labels, warn_if_starved
from sheafcoarsen.sheaf import CellularSheaf, GraphLike

Finder = Callable[[Links, int, np.random.Generator], np.ndarray]


FINDERS: dict[str, Finder] = {
    "balls": find_balls,
    "matching": match_levels,
    "spectral": cluster_spectrally,
    "metis": part_by_metis,
}
"""Each returns labels of about as many clusters as asked for; ``repair_labels`` does the rest."""


Method: TypeAlias = Literal["auto", "balls", "matching", "spectral", "metis"]
"""How clusters are found."""


Weights: TypeAlias = Literal["graph", "sheaf"]
"""What the weights of edges are taken from."""


METHODS = get_args(Method)
"""The names that ``method`` may take."""


AUTO = "balls"
"""What "auto" stands for."""


def select(
    F_or_graph: CellularSheaf | GraphLike,
    n_clusters: int,
    method: Method = "auto",
    weights: Weights = "graph",
    seed: Seed = 0,
    progress: bool = False,
) -> Partition:
    """Partition the vertices into clusters that are strongly linked inside.

    That is the Select phase of a pooling layer. For every method, in this order of priority: there
    are exactly ``n_clusters`` clusters, none empty; no cluster joins two components of the graph,
    unless there are more components than clusters; clusters are connected; and they weigh about
    the same, a vertex weighing its stalk's dimension (at least 1; 1 for a plain graph). The same
    arguments give the same partition.

    With more components than clusters the small ones, lighter than a cluster in the mean, are
    packed together, each whole, into as many clusters as their weight asks for. The others are
    partitioned as if they were alone, so that a large component is not left in one piece. With as
    many clusters as components or a few more, hundreds of small ones can leave a large one next to
    none: a warning then says how many clusters are enough.

    Parameters
    ----------
    F_or_graph : CellularSheaf, networkx Graph or MultiGraph, symmetric scipy sparse adjacency, or
        (m, 2) integer array
        Loops are ignored, parallel edges summed.
    n_clusters : int
        1 .. n.
    method : {"auto", "balls", "matching", "spectral", "metis"}
        "balls"
            Vertices are matched along heavy links, level upon level, until there are eight groups a
            cluster. Breadth-first balls of groups each take next the group with the heaviest links
            into it, and moves of single groups and vertices refine them on each level. Linear time
            but for the logarithm of a heap: a million vertices in two seconds.
        "matching"
            Matching alone, until there are as many groups as clusters, as Graclus does, and the
            same refinement. Linear time too; often the smaller cut, and less even clusters.
        "spectral"
            Spectral clustering on the adjacency, as in the paper: k-means on the rows, normalized,
            of the lowest eigenvectors of the normalized graph Laplacian, component by component,
            then disconnected clusters are repaired. At most 500 clusters; balance is left to the
            eigenvectors. Of a sheaf whose maps are more than weights, the sheaf's own low modes are
            taken: camps of a signed graph, and clusters of consistent transports, are found.
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

    Warns
    -----
    SmallComponentsWarning
        Small components hold so many clusters, one each, that those of a large one must be heavier
        than four times the mean.

    Examples
    --------
    Two cliques joined by an edge:

    >>> import networkx as nx
    >>> from sheafcoarsen import select
    >>> select(nx.barbell_graph(4, 0), 2).labels
    array([1, 1, 1, 1, 0, 0, 0, 0])
    """
    links, labels = find_clusters(F_or_graph, n_clusters, method, weights, seed, progress)
    warn_if_starved(links, labels, stacklevel=3)
    return Partition(labels)


def find_clusters(
    F_or_graph: CellularSheaf | GraphLike,
    n_clusters: int,
    method: Method = "auto",
    weights: Weights = "graph",
    seed: Seed = 0,
    progress: bool = False,
) -> tuple[Links, np.ndarray]:
    """Return the links and the clusters that `select` finds, silent about starved components."""
    choice("method", method, METHODS)
    choice("weights", weights, get_args(Weights))
    flag("progress", progress)
    n_clusters = whole_number("n_clusters", n_clusters)
    rng = np.random.default_rng(whole_number("seed", seed, at_least=0))
    finder = AUTO if method == "auto" else str(method)
    with bar(3, "select", progress) as shown:
        links = links_of(F_or_graph, weights)
        _check_count(n_clusters, len(links.sizes), finder)
        shown.update()

        find = FINDERS[finder]
        own = F_or_graph if isinstance(F_or_graph, CellularSheaf) else None
        if finder == "spectral" and own is not None and not is_plain(own):
            find = functools.partial(cluster_spectrally, sheaf=own)
        cluster = functools.partial(_cluster, find, rng, finder != "spectral")
        labels = cluster(links, n_clusters)
        if labels.max() >= n_clusters:  # whole components, and too many of them
            labels = pack_small_components(links, labels, n_clusters, cluster)
        shown.update(2)
    return links, labels


def _cluster(
    find: Finder, rng: np.random.Generator, balanced: bool, links: Links, n_clusters: int
) -> np.ndarray:
    """Return labels of ``n_clusters`` clusters, or of the components where there are more."""
    n = len(links.sizes)
    if n_clusters == n:
        return np.arange(n, dtype=np.int32)
    if n_clusters == 1:
        return np.zeros(n, dtype=np.int32)
    labels = repair_labels(links, find(links, n_clusters, rng), n_clusters, balanced)
    weight = grouped_sums(labels, links.sizes)
    if balanced and weight.max() > HEAVIEST * weight.mean():  # by a piece that joined it
        refine(links, labels, n_clusters)
        labels = repair_labels(links, labels, n_clusters, balanced)
    return labels


def _check_count(n_clusters: int, n: int, method: str) -> None:
    """Refuse a number of clusters that n vertices, or the method, cannot have."""
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
            f'`n_clusters` must be at most {MOST_SPECTRAL} for method "spectral", which needs as '
            f'many eigenvectors, got {n_clusters}; use "balls"'
        )
