"""Selection of a partition into a given number of connected clusters of about equal weight."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np

from sheafcoarsen._support import checks, threads
from sheafcoarsen.partition._partition import Partition
from sheafcoarsen.partition.links import HEAVIEST, Links, grouped_sums, is_plain, links_of
from sheafcoarsen.partition.methods import (
    cluster_spectrally,
    find_balls,
    grouped,
    heavy_groups,
    match_levels,
    pack_small_components,
    part_by_metis,
    refine,
    repair_labels,
    warn_if_starved,
)
from sheafcoarsen.sheaf import CellularSheaf, GraphLike

Method: TypeAlias = Literal["auto", "balls", "matching", "spectral", "metis"]
"""Method of selecting clusters."""


Weights: TypeAlias = Literal["graph", "sheaf"]
"""Source of the edge weights."""


METHODS = get_args(Method)
"""Allowed values of ``method``."""


def select(
    F_or_graph: CellularSheaf | GraphLike,
    n_clusters: int,
    method: Method = "auto",
    weights: Weights = "graph",
    seed: int = 0,
    progress: bool = False,
) -> Partition:
    """Partition the vertices into clusters with strong internal links.

    This is the Select phase of a pooling layer. For every method, in this order of priority: there
    are exactly ``n_clusters`` clusters, none empty; no cluster joins two components of the graph,
    unless there are more components than clusters; clusters are connected; and their weights are
    about equal, the weight of a vertex being its stalk's dimension (at least 1; 1 for a plain
    graph). The same arguments give the same partition.

    If there are more components than clusters, those lighter than the mean cluster are packed,
    undivided, into a number of clusters proportional to their weight; the others are partitioned
    separately, so that a large component is divided. If there are as many clusters as components or
    a few more, hundreds of small components can leave too few clusters for a large one: a warning
    then states a sufficient number.

    Parameters
    ----------
    F_or_graph : CellularSheaf, networkx Graph or MultiGraph, symmetric scipy sparse adjacency, or
        (m, 2) integer array
        Loops are ignored, parallel edges summed.
    n_clusters : int
        Number of clusters, 1 .. n.
    method : {"auto", "balls", "matching", "spectral", "metis"}
        "balls"
            Vertices are matched along heavy links, level by level, until there are eight groups per
            cluster. Balls of groups grow greedily, by the group with the heaviest links to them
            relative to the root of all its links, and moves of single groups and vertices refine
            them on each level. The time is linear except for the logarithm of a heap: two seconds
            for a million vertices.
        "matching"
            Matching only, until there are as many groups as clusters, as in Graclus, with the same
            refinement. It also takes linear time; clusters often have a smaller cut and are less
            balanced.
        "spectral"
            Spectral clustering of the adjacency, as in the paper: k-means on the normalized rows
            of the lowest eigenvectors of the normalized graph Laplacian, component by component;
            then disconnected clusters are repaired. There may be at most 500 clusters, which are
            not balanced. Unless both maps of every edge of a sheaf are the same multiple of the
            identity, the rows are those of its own low modes, which may reveal clusters of
            consistent transports, and the camps of a signed graph if nothing else divides it.
        "metis"
            METIS, with the optional package pymetis; its empty and disconnected parts are
            repaired.
        "auto"
            "balls".
    weights : {"graph", "sheaf"}
        "graph": the graph's weights (a networkx edge's "weight", an adjacency's entries, default
        1); edges of a sheaf have weight 1, since a sheaf does not store its graph's weights.
        "sheaf": norm(F_{u->e}* F_{v->e})_F, so that strong maps keep vertices together, whatever
        their signs. With either, links that outweigh all lighter ones together, such as switches in
        a power network, are not cut if the vertices that they join fit into a mean cluster
        ("spectral" may cut them).
    seed : int
        Seed of the starting vertex, or of the method's random numbers.
    progress : bool
        Show a progress bar over the stages.

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
        Small components, one cluster each, leave too few clusters for a large one: one of its
        clusters must be heavier than four times the mean.

    Examples
    --------
    Two cliques joined by an edge:

    >>> import networkx as nx
    >>> from sheafcoarsen import select
    >>> select(nx.barbell_graph(4, 0), 2).labels
    array([1, 1, 1, 1, 0, 0, 0, 0])
    """
    links, labels = find_clusters(F_or_graph, n_clusters, method, weights, seed, progress)
    warn_if_starved(links, labels)
    return Partition(labels)


def find_clusters(
    F_or_graph: CellularSheaf | GraphLike,
    n_clusters: int,
    method: Method = "auto",
    weights: Weights = "graph",
    seed: int = 0,
    progress: bool = False,
) -> tuple[Links, np.ndarray]:
    """Return the links and the labels that `select` computes, without its warning."""
    checks.choice("method", method, METHODS)
    checks.choice("weights", weights, get_args(Weights))
    checks.flag("progress", progress)
    n_clusters = checks.whole_number("n_clusters", n_clusters)
    rng = np.random.default_rng(checks.whole_number("seed", seed, at_least=0))
    with threads.bar(3, "select", progress) as shown:
        links = links_of(F_or_graph, weights)
        n = len(links.sizes)
        if not 1 <= n_clusters <= n:
            raise ValueError(
                f"`n_clusters` must be between 1 and the number of vertices, {n}, got {n_clusters}"
            )
        most = 500  # clusters, because spectral clustering needs as many eigenvectors
        if method == "spectral" and n_clusters > most:
            raise ValueError(
                f'`n_clusters` must be at most {most} for method "spectral", which needs '
                f'as many eigenvectors, got {n_clusters}; use "balls"'
            )
        shown.update()
        finders: dict[str, Callable] = {
            "auto": find_balls,
            "balls": find_balls,
            "matching": match_levels,
            "spectral": cluster_spectrally,
            "metis": part_by_metis,
        }
        find, spectral = finders[method], method == "spectral"
        sheaf = F_or_graph if spectral and isinstance(F_or_graph, CellularSheaf) else None

        def cluster(links: Links, count: int, vertices: np.ndarray | None = None) -> np.ndarray:
            part = find
            if sheaf is not None and not is_plain(sheaf):
                inner = sheaf if vertices is None else sheaf.subsheaf(vertices)
                part = functools.partial(cluster_spectrally, sheaf=inner)
            return _cluster(part, rng, not spectral, links, count)

        labels = cluster(links, n_clusters)
        if labels.max() >= n_clusters:  # more components than clusters
            labels = pack_small_components(links, labels, n_clusters, cluster)
        shown.update(2)
    return links, labels


def _cluster(
    find: Callable, rng: np.random.Generator, balanced: bool, links: Links, n_clusters: int
) -> np.ndarray:
    """Return labels of ``n_clusters`` clusters, or of the components if there are more."""
    n = len(links.sizes)
    if n_clusters == n:
        return np.arange(n, dtype=np.int32)
    if n_clusters == 1:
        return np.zeros(n, dtype=np.int32)
    if balanced:
        groups = heavy_groups(links, n_clusters)
        if groups.max() < n - 1:
            return _cluster(find, rng, balanced, grouped(links, groups), n_clusters)[groups]
    labels = repair_labels(links, find(links, n_clusters, rng), n_clusters, balanced)
    weight = grouped_sums(labels, links.sizes)
    if balanced and weight.max() > HEAVIEST * weight.mean():  # merging made a cluster heavy
        refine(links, labels, n_clusters)
        labels = repair_labels(links, labels, n_clusters, balanced)
    return labels
