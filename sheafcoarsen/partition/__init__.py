"""Which vertex belongs to which cluster."""

from sheafcoarsen.partition.clusters import (
    Clusters,
    check_partition,
    clusters_of,
    edge_clusters,
)
from sheafcoarsen.partition.container import Partition
from sheafcoarsen.partition.selection import METHODS, Method, Weights, select

__all__ = [
    "METHODS",
    "Clusters",
    "Method",
    "Partition",
    "Weights",
    "check_partition",
    "clusters_of",
    "edge_clusters",
    "select",
]
