"""Kernels of :mod:`sheafcoarsen.partition`.

``links`` labels components and builds neighbour lists, on which ``balls`` and ``matching`` compute
clusters; ``repair`` merges and ``splitting`` splits clusters, with ``heap`` as priority queue.
"""

from sheafcoarsen._kernels.partition.balls import grow, refine
from sheafcoarsen._kernels.partition.heap import ITEM, descending_code, heap_pop, heap_push
from sheafcoarsen._kernels.partition.links import label_components, neighbours, strengths
from sheafcoarsen._kernels.partition.matching import match
from sheafcoarsen._kernels.partition.repair import merge
from sheafcoarsen._kernels.partition.splitting import split

__all__ = [
    "ITEM",
    "descending_code",
    "grow",
    "heap_pop",
    "heap_push",
    "label_components",
    "match",
    "merge",
    "neighbours",
    "refine",
    "split",
    "strengths",
]
