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

``_partition`` holds the class, ``clusters`` the index structure of a partitioned graph, and
``links`` the weighted graph to partition, as adjacency lists. ``methods`` holds balls, matching,
spectral clustering and METIS, each with about the requested number of clusters, and the repair of
their labels to exactly that number of connected clusters.
"""

from sheafcoarsen.partition._partition import Partition
from sheafcoarsen.partition._select import METHODS, Method, Weights, find_clusters, select
from sheafcoarsen.partition.clusters import Clusters, check_partition, clusters_of
from sheafcoarsen.partition.links import links_of, relative_strengths
from sheafcoarsen.partition.methods import warn_if_starved

__all__ = [
    "METHODS",
    "Clusters",
    "Method",
    "Partition",
    "Weights",
    "check_partition",
    "clusters_of",
    "find_clusters",
    "links_of",
    "relative_strengths",
    "select",
    "warn_if_starved",
]
