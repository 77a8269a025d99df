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

``extras``, ``place``, ``arrays``, ``packing``
    Packages that only stores need; an address with groups, blobs and notes; arrays as Zarr has
    them; arrays as one blob.
``header``, ``store``, ``writing``
    The attributes of a store; a stored sheaf, which is read a part at a time; how one is written.
    The schema is in docs/guides/distributed.md.
``plan``, ``sizes``, ``request``
    What topology decides, once: shards of whole clusters, where every map goes; what it will take;
    what a caller asks for, checked.
``tasks``, ``engines``, ``lock``, ``run``
    The kinds of task, each done once; where they run; one run at a time; the run as a whole.
``streams``, ``account``, ``result``, ``objects``, ``levels``
    What is done with a store a piece at a time; what is kept and lost; the result; what is in
    memory, written; level after level, in memory from where it fits.
"""

from sheafcoarsen.distributed.engines import connect
from sheafcoarsen.distributed.levels import StoredHierarchy, coarsen_levels, open_levels
from sheafcoarsen.distributed.objects import to_store
from sheafcoarsen.distributed.place import StoreError
from sheafcoarsen.distributed.request import estimate
from sheafcoarsen.distributed.result import StoredCoarsening, open_coarsening
from sheafcoarsen.distributed.run import coarsen
from sheafcoarsen.distributed.sizes import Estimate
from sheafcoarsen.distributed.store import PartitionStore, SheafStore, open_store
from sheafcoarsen.distributed.streams import laplacian_operator
from sheafcoarsen.distributed.writing import write_store

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
