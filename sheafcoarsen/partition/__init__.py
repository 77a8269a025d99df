"""Which vertex belongs to which cluster.

A :class:`Partition` is labels, one for each vertex, of clusters that are never empty;
:func:`select` finds one whose clusters are connected, strongly linked inside and of about the same
weight:

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> P = sc.select(nx.ladder_graph(8), 4)
>>> P
Partition(n_vertices=16, n_clusters=4, sizes 4 .. 4)
>>> P.cluster(0)
array([ 4,  5, 12, 13])

Vertices weigh as much as their stalks have dimensions, and ``weights="sheaf"`` lets the maps say
what is strong:

>>> import numpy as np
>>> F = sc.CellularSheaf.random(nx.path_graph(40), np.repeat([3, 1], 20), 1, seed=1)
>>> P = sc.select(F, 4)
>>> P.sizes, np.bincount(P.labels, F.vertex_dims)
(array([20,  7,  7,  6]), array([20., 21., 21., 18.]))

The modules:

``_partition``
    The class, and what it can be made from.
``links``
    What is partitioned: a weighted graph as neighbour lists, from a graph or from the maps.
``methods``
    Balls, matching, spectral clustering, METIS. Each returns labels of about as many clusters as
    requested.
``repair``
    Exactly as many clusters, connected ones; many small components packed together.
``_select``
    ``select`` itself.
``clusters``
    The index structure of every loop over clusters: which edges are internal to which cluster and
    which cross between which pair, computed once for a graph and a partition.
"""

from sheafcoarsen.partition._partition import Partition
from sheafcoarsen.partition._select import METHODS, Method, Weights, find_clusters, select
from sheafcoarsen.partition.clusters import (
    Clusters,
    check_partition,
    clusters_of,
    edge_clusters,
)
from sheafcoarsen.partition.links import edge_strengths
from sheafcoarsen.partition.repair import warn_if_starved

__all__ = [
    "METHODS",
    "Clusters",
    "Method",
    "Partition",
    "Weights",
    "check_partition",
    "clusters_of",
    "edge_clusters",
    "edge_strengths",
    "find_clusters",
    "select",
    "warn_if_starved",
]
