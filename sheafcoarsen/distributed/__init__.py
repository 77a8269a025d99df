"""Beyond one machine: a sheaf in a store, coarsened shard by shard.

What does not fit in memory, or takes too long on one machine, goes through the same mathematics on
an engine that people already run: Dask, with threads here or on any cluster behind a ``Client``.
Data lies in Zarr groups, on a disk or behind any address that fsspec knows. The result is the same
to the last bit as that of ``sc.coarsen``.

>>> import networkx as nx
>>> import numpy as np
>>> import sheafcoarsen as sc
>>> import sheafcoarsen.distributed as dist
>>> F = sc.CellularSheaf.random(nx.grid_2d_graph(20, 20), 2, 3, seed=3)
>>> src = dist.to_store("memory://sheaf", F)      # or write_store, for what never is in memory
>>> P = sc.select(src.topology()[0], 20)          # from the graph alone, or any labels
>>> C = dist.coarsen(src, "memory://coarse-sheaf", P, rank=4, n_shards=3)
>>> C.verify().passed
True
>>> C.sheaf.n_vertices, len(C.lift(np.ones(C.sheaf.dim_c0)))
(20, 800)

The files, in the order in which data flows:

``location``, ``arrays``
    An address with blobs and notes; arrays as Zarr has them, and as one blob.
``header``, ``_open_store``, ``_write_store``
    The attributes of a store; a stored sheaf, which is read a part at a time; how one is written.
    The schema is in docs/guides/distributed.md.
``plan``, ``_estimate``
    What topology decides, once: shards of whole clusters, where every map goes; what a caller
    requests, checked, and what it will take.
``tasks``, ``executors``, ``write_lock``, ``_coarsen``
    The kinds of task, each done once; where they run; one run at a time; the run as a whole.
``streaming_operators``, ``_open_coarsening``
    Operators applied part by part; the result, with its ledger and its checks.
``_to_store``, ``_coarsen_levels``
    Writing what is in memory; level after level, in memory once it fits.
"""

from sheafcoarsen.distributed._coarsen import coarsen
from sheafcoarsen.distributed._coarsen_levels import StoredHierarchy, coarsen_levels, open_levels
from sheafcoarsen.distributed._estimate import Estimate, estimate
from sheafcoarsen.distributed._open_coarsening import StoredCoarsening, open_coarsening
from sheafcoarsen.distributed._open_store import PartitionStore, SheafStore, open_store
from sheafcoarsen.distributed._to_store import to_store
from sheafcoarsen.distributed._write_store import write_store
from sheafcoarsen.distributed.executors import connect
from sheafcoarsen.distributed.location import StoreError
from sheafcoarsen.distributed.streaming_operators import laplacian_operator

__all__ = [
    "Estimate",
    "PartitionStore",
    "SheafStore",
    "StoreError",
    "StoredCoarsening",
    "StoredHierarchy",
    "coarsen",
    "coarsen_levels",
    "connect",
    "estimate",
    "laplacian_operator",
    "open_coarsening",
    "open_levels",
    "open_store",
    "to_store",
    "write_store",
]
