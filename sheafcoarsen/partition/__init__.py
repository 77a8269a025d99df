"""Partitions of the vertices into clusters.

A :class:`Partition` holds a label for each vertex; no cluster is empty. :func:`select` computes one
with connected, densely linked clusters of about equal weight:

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> P = sc.select(nx.ladder_graph(8), 4)
>>> P
Partition(n_vertices=16, n_clusters=4, sizes 4 .. 4)
>>> P.cluster(0)
array([ 4,  5, 12, 13])

The weight of a vertex is the dimension of its stalk, and ``weights="sheaf"`` computes the weights
of edges from the maps:

>>> import numpy as np
>>> F = sc.CellularSheaf.random(nx.path_graph(40), np.repeat([3, 1], 20), 1, seed=1)
>>> P = sc.select(F, 4)
>>> P.sizes, np.bincount(P.labels, F.vertex_dims)
(array([ 6,  5,  8, 21]), array([18., 15., 24., 23.]))

The modules:

``_partition``
    The class and its constructors.
``links``
    The weighted graph to partition, as adjacency lists.
``methods``
    Balls, matching, spectral clustering, METIS, each with about the requested number of clusters;
    repair of their labels, to exactly the requested number of connected clusters; packing of
    small components.
``_select``
    The public function ``select``.
``clusters``
    Index structure for loops over clusters: internal edges of each cluster and crossing edges
    of each pair, computed once for a graph and a partition.
"""

from sheafcoarsen.partition._partition import Partition
from sheafcoarsen.partition._select import METHODS, Method, Weights, find_clusters, select
from sheafcoarsen.partition.clusters import Clusters, check_partition, clusters_of
from sheafcoarsen.partition.links import edge_strengths, links_of
from sheafcoarsen.partition.methods import warn_if_starved

__all__ = [
    "METHODS",
    "Clusters",
    "Method",
    "Partition",
    "Weights",
    "check_partition",
    "clusters_of",
    "edge_strengths",
    "find_clusters",
    "links_of",
    "select",
    "warn_if_starved",
]
