"""Out-of-core coarsening of a stored sheaf, shard by shard.

With Dask, sheaves can be coarsened that do not fit in memory or take too long on one machine: task
by task in this process, or on any cluster with a ``Client``. Data are stored as Zarr groups, on a
disk or at any fsspec URL. The result is bitwise identical to that of ``sc.coarsen`` with the same
options.

>>> import networkx as nx
>>> import numpy as np
>>> import sheafcoarsen as sc
>>> import sheafcoarsen.distributed as dist
>>> F = sc.CellularSheaf.random(nx.grid_2d_graph(20, 20), 2, 3, seed=3)
>>> src = dist.to_store("memory://sheaf", F)      # or write_store, if F does not fit in memory
>>> P = sc.select(src.topology()[0], 20)          # from the graph only, or any labels
>>> C = dist.coarsen(src, "memory://coarse-sheaf", P, rank=4, n_shards=3)
>>> C.verify().passed
True
>>> C.sheaf.n_vertices, len(C.lift(np.ones(C.sheaf.dim_c0)))
(20, 800)

Data flows from ``location`` and ``schema`` (blobs, attributes and arrays in Zarr format, see
docs/guides/distributed.md) through ``_open_store`` and ``_write_store`` to ``_estimate`` (arguments
and cost), ``plan`` (shards and destinations of maps), ``tasks``, ``write_lock`` and ``_coarsen``
(the run). ``_open_coarsening`` and ``_coarsen_levels`` hold the results of one and several levels.
"""

from sheafcoarsen.distributed._coarsen import coarsen
from sheafcoarsen.distributed._coarsen_levels import StoredHierarchy, coarsen_levels, open_levels
from sheafcoarsen.distributed._estimate import Estimate, estimate
from sheafcoarsen.distributed._open_coarsening import StoredCoarsening, open_coarsening
from sheafcoarsen.distributed._open_store import (
    PartitionStore,
    SheafStore,
    laplacian_operator,
    open_store,
)
from sheafcoarsen.distributed._write_store import to_store, write_store
from sheafcoarsen.distributed.location import StoreError
from sheafcoarsen.distributed.tasks import connect

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
