"""Which vertex belongs to which cluster."""

from sheafcoarsen.partition.clusters import (
    Clusters,
    check_partition,
    clusters_of,
    crossing_half_edges,
    edge_clusters,
)
from sheafcoarsen.partition.container import Partition
from sheafcoarsen.partition.selection import METHODS, select

__all__ = [
    "METHODS",
    "Clusters",
    "Partition",
    "check_partition",
    "clusters_of",
    "crossing_half_edges",
    "edge_clusters",
    "select",
]
