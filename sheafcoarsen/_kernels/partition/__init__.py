"""Loops of :mod:`sheafcoarsen.partition`.

``links`` makes neighbour lists; ``balls`` and ``matching`` find clusters on them; ``repair`` merges
and ``splitting`` splits them, with ``adjacent`` for the clusters next to one and ``heap`` for the
order in which they wait; ``clusters`` sorts edges once a partition is there, and
``connectivity`` labels what is connected.
"""

from sheafcoarsen._kernels.partition.balls import grow, refine
from sheafcoarsen._kernels.partition.clusters import sort_edges
from sheafcoarsen._kernels.partition.connectivity import label_components
from sheafcoarsen._kernels.partition.links import neighbours, strengths
from sheafcoarsen._kernels.partition.matching import match
from sheafcoarsen._kernels.partition.repair import apportion, fragments, merge, pack
from sheafcoarsen._kernels.partition.splitting import split

__all__ = [
    "apportion",
    "fragments",
    "grow",
    "label_components",
    "match",
    "merge",
    "neighbours",
    "pack",
    "refine",
    "sort_edges",
    "split",
    "strengths",
]
