"""Stored coarsenings: lift, pool, energy ledger, verification, loading."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import range_of_blocks, read_only
from sheafcoarsen.coarsening import Coarsening, EnergyLedger
from sheafcoarsen.distributed._open_store import SheafStore, stored_partition
from sheafcoarsen.distributed.header import header_of
from sheafcoarsen.distributed.location import Place, StoreError, place_of
from sheafcoarsen.distributed.streaming_checks import ledger_of, verified
from sheafcoarsen.distributed.streaming_operators import (
    blocks_of,
    cluster_values,
    labels_of,
    lifted,
    pooled,
)
from sheafcoarsen.io import read_level, reading
from sheafcoarsen.modes import block_layout
from sheafcoarsen.partition import Partition, clusters_of
from sheafcoarsen.verification import Verification


class StoredCoarsening:
    """A coarsened sheaf in a store, and how it came about; :func:`coarsen` makes it.

    ``sheaf`` is a :class:`SheafStore` again, so that levels follow levels. Vectors are in memory,
    maps and R are read a piece at a time.

    Attributes
    ----------
    sheaf : SheafStore
        The coarse sheaf, edges numbered as in memory: crossing ones by (a, b), then loops.
    fine : SheafStore
    report : dict
        What it took: seconds and plan_seconds of the run that finished it, tasks that it did and
        found done, seconds of all tasks, bytes.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> F = sc.CellularSheaf.random(nx.grid_2d_graph(8, 8), 2, 3, seed=3)
    >>> src, P = dist.to_store("memory://below", F), sc.select(F, 6)
    >>> C = dist.coarsen(src, "memory://above", P, 2, n_shards=2)
    >>> z = np.ones(C.sheaf.dim_c0)
    >>> bool(abs(C.pool(C.lift(z)) - z).max() < 1e-14)  # R* R = I
    True
    >>> C.load().sheaf
    CellularSheaf(n_vertices=6, n_edges=16, dim_c0=12, dim_c1=52, dtype=float64)
    """

    def __init__(self, sheaf: SheafStore, fine: SheafStore) -> None:
        header = sheaf.header
        if header.kind != "coarsening":
            raise StoreError(f"{sheaf.url}: holds a {header.kind}, not a coarsening")
        if header.source["id"] != fine.header.id:
            raise StoreError(
                f"{fine.url} is not the store that {sheaf.url} was made of, "
                f"{header.source['url']}, or has been written again"
            )
        self.sheaf, self.fine = sheaf, fine
        self.report: dict[str, Any] = header.report

    @cached_property
    def partition(self) -> Partition:
        """The partition of the fine vertices."""
        labels = labels_of(self.sheaf, self.fine.n_vertices)
        return stored_partition(self.sheaf.url, labels, self.sheaf.n_vertices)

    @cached_property
    def ranks(self) -> np.ndarray:
        """Dimension r_a of each coarse stalk, shape (K,)."""
        return read_only(self.sheaf.vertex_dims().astype(np.int64))

    def lift(self, z: npt.ArrayLike) -> np.ndarray:
        """Return R z, a fine cochain, for a coarse one (``eq:local_lift``).

        Parameters
        ----------
        z : array_like, shape (sum r_a,) or (sum r_a, h)

        Returns
        -------
        ndarray, shape (dim_c0,) or (dim_c0, h)

        Raises
        ------
        StoreError
            For a chunk that is missing or damaged.
        """
        return lifted(self.sheaf, self.fine, z)

    def pool(self, x: npt.ArrayLike) -> np.ndarray:
        """Return R* x (``eq:local_pooling_adjoint``), a coarse cochain, for a fine one.

        Parameters
        ----------
        x : array_like, shape (dim_c0,) or (dim_c0, h)

        Returns
        -------
        ndarray, shape (sum r_a,) or (sum r_a, h)

        Raises
        ------
        StoreError
            For a chunk that is missing or damaged.
        """
        return pooled(self.sheaf, self.fine, x)

    def ledger(self, x: npt.ArrayLike) -> EnergyLedger:
        """Account for the energy norm(delta x)^2 of a fine cochain as a sum of six lines.

        See :func:`sheafcoarsen.energy_ledger`; the fine store is read once.

        Parameters
        ----------
        x : array_like, shape (dim_c0,) or (dim_c0, h)

        Returns
        -------
        EnergyLedger

        Raises
        ------
        StoreError
            For a chunk that is missing or damaged.
        """
        return ledger_of(self.sheaf, self.fine, x)

    def verify(self, probes: int = 3, seed: int = 0) -> Verification:
        """Check on random cochains that the coarse Laplacian is R* L R, and what goes with it.

        Parameters
        ----------
        probes : int
            How many random cochains.
        seed : int

        Returns
        -------
        Verification
            ``passed``, ``checks``, and a table as ``str``.

        Raises
        ------
        StoreError
            For a chunk that is missing or damaged.
        """
        return verified(self.sheaf, self.fine, probes, seed)

    def load(self) -> Coarsening:
        """Return the coarsening in memory, with both sheaves, as ``sc.coarsen`` returns it.

        Returns
        -------
        Coarsening

        Raises
        ------
        StoreError
            For a chunk that is missing or damaged.
        """
        with reading(self.sheaf.url, StoreError):
            return self._loaded()

    def _loaded(self) -> Coarsening:
        header, sheaf = self.sheaf.header, self.sheaf
        fine, coarse = self.fine.load(), sheaf.load()
        P, ranks = self.partition, self.ranks
        clusters = clusters_of(fine, P)
        indptr, indices = block_layout(fine, clusters, ranks)
        data = np.empty(len(indices), coarse.dtype)
        for part in blocks_of(sheaf, fine.vertex_dims):
            data[range_of_blocks(indptr.astype(np.int64), part.rows)] = part.R.data
        arrays = {
            "partition.labels": P.labels,
            "R.data": data,
            "R.indices": indices,
            "R.indptr": indptr,
            "loops": np.array(header.loops),
            "compress": np.array(header.compress),
        }
        if not header.compress:
            arrays["crossing_rows"] = range_of_blocks(fine.edge_offsets, clusters.crossing_edges)
        if header.oversampled is not None:
            arrays["restored_loops"] = sheaf.array("restored_loops")
        if header.local_operator is not None:
            real = np.zeros(0, fine.dtype).real.dtype
            modes: dict[str, npt.ArrayLike] = {
                "local_operator": header.local_operator,
                "singular": header.singular,
                **(header.oversampled or {}),
                "ranks": ranks,
                "scores": cluster_values(sheaf, "scores", real, ranks),
                "next_eigenvalues": cluster_values(sheaf, "next_eigenvalues", real),
                "operator_norms": cluster_values(sheaf, "operator_norms", real),
                "tied": cluster_values(sheaf, "tied", np.int8).astype(np.bool_),
            }
            arrays |= {f"modes.{name}": np.asarray(values) for name, values in modes.items()}
        return read_level(arrays, fine, coarse)

    def __repr__(self) -> str:
        operator = self.sheaf.header.local_operator
        what = "own basis" if operator is None else f"{operator} modes"
        return (
            f"StoredCoarsening({self.sheaf.url!r}: {what}, "
            f"{self.fine.n_vertices} -> {self.sheaf.n_vertices} vertices, "
            f"dim C^0 {self.fine.dim_c0} -> {self.sheaf.dim_c0})"
        )


def open_coarsening(
    url: object, *, source: object = None, **storage_options: Any
) -> StoredCoarsening:
    """Open a stored coarsening, and the store that it was made of.

    Parameters
    ----------
    url : path or address
        What :func:`coarsen` was given as ``out``.
    source : path, address or SheafStore, optional
        Where the store that it was made of is. By default the address that the coarsening names,
        which is not followed to another file system, host or bucket than that of ``url``.
    **storage_options
        What the file system must be told; see fsspec.

    Returns
    -------
    StoredCoarsening

    Raises
    ------
    StoreError
        Where there is none, or its source is gone, somewhere else, or has been written again.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> src = dist.to_store("memory://four", sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]]))
    >>> _ = dist.coarsen(src, "memory://two", sc.Partition([0, 0, 1, 1]), 1)
    >>> dist.open_coarsening("memory://two").fine.n_edges
    3
    """
    place = place_of(url, storage_options)
    header = header_of(place)
    if header.kind != "coarsening":
        raise StoreError(
            f"{place.url}: holds a {header.kind}, not a coarsening: open_store opens it"
        )
    sheaf = SheafStore(place)
    if isinstance(source, SheafStore):
        return StoredCoarsening(sheaf, source)
    if source is not None:
        here = place_of(source, None, "source")
    elif header.source["url"] == "fine":  # in the same folder, wherever that is now
        here = place / "fine"
    else:
        here = stored_place(place, header.source["url"])
    if here.local_path is None:
        here = replace(here, options=place.options)
    return StoredCoarsening(sheaf, SheafStore(here))


def stored_place(place: Place, url: str) -> Place:
    """Return the place of an address that a store names, if it is where that store is."""
    try:
        found = place_of(url)
    except ValueError:
        found = None
    if found is None or found.origin != place.origin:
        raise StoreError(
            f"{place.url} names {url!r} as its source, which is not in {place.origin}: if you "
            f"trust it, give that address, or the store opened, as `source`"
        )
    return found
