"""Stored coarsenings: lifting, pooling, energy ledger, verification and loading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from sheafcoarsen import operators
from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import CochainLike, checks, linalg, ragged
from sheafcoarsen.coarsening import (
    Coarsening,
    EnergyLedger,
    check_errors,
    isometry_errors,
    ledger_over,
)
from sheafcoarsen.distributed._open_store import (
    SheafStore,
    amount,
    check_entries,
    laplacian_operator,
    parts_of,
)
from sheafcoarsen.distributed.location import StoreError, place_of
from sheafcoarsen.distributed.schema import header_of
from sheafcoarsen.io import read_level, reading
from sheafcoarsen.modes import block_layout
from sheafcoarsen.operators import as_columns, canonical_csr
from sheafcoarsen.partition import Partition, clusters_of
from sheafcoarsen.sheaf import both_ends
from sheafcoarsen.verification import Verification, check_of, relative_residual


class StoredCoarsening:
    """Stored coarsening, returned by :func:`coarsen`.

    ``sheaf`` is a :class:`SheafStore`, so it can be coarsened again. Cochains are in memory; maps
    and R are read part by part, and a missing or damaged chunk raises a `StoreError`.

    Attributes
    ----------
    sheaf : SheafStore
        The coarse sheaf; edges are numbered as in memory: crossing edges by (a, b), then loops.
    fine : SheafStore
    report : dict
        Costs: seconds and plan_seconds of the run that completed the coarsening, the numbers of
        tasks that this run did and that had been done before, seconds of all shard and border
        tasks, and bytes. It is empty if the coarsening was made in memory.

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
    CellularSheaf(n_vertices=6, n_edges=16, dim_c0=12, dim_c1=49, dtype=float64)
    """

    def __init__(self, sheaf: SheafStore, fine: SheafStore) -> None:
        header = sheaf.header
        if header.kind != "coarsening":
            raise StoreError(f"{sheaf.url}: holds a {header.kind}, not a coarsening")
        if header.source["id"] != fine.header.id:
            raise StoreError(
                f"{fine.url} is not the store that {sheaf.url} was made from, "
                f"{header.source['url']}, or has been written again"
            )
        self.sheaf, self.fine = sheaf, fine
        self.report: dict[str, Any] = header.report

    @cached_property
    def partition(self) -> Partition:
        """The partition of the fine vertices."""
        return self.sheaf.read_partition(self.fine.n_vertices, self.sheaf.n_vertices)

    @cached_property
    def fine_dims(self) -> np.ndarray:
        """Dimension of each fine stalk, shape (n,)."""
        return ragged.read_only(self.fine.vertex_dims().astype(np.int64))

    @cached_property
    def ranks(self) -> np.ndarray:
        """Dimension r_a of each coarse stalk, shape (K,)."""
        return ragged.read_only(self.sheaf.vertex_dims().astype(np.int64))

    @cached_property
    def _shards(self) -> dict[str, np.ndarray]:
        """The clusters of each shard, ascending, by the folder of the shard in the store."""
        sheaf, count = self.sheaf, np.zeros(self.sheaf.n_vertices, np.int64)
        folders = [f"basis/{name}" for name in sheaf.header.basis]
        shards = {name: sheaf.numbers(f"{name}/clusters", len(count)) for name in folders}
        for clusters in shards.values():
            count[clusters] += (np.diff(clusters, prepend=-1) > 0).all()
        if (count != 1).any():
            raise StoreError(
                f"{sheaf.url}: its shards must hold each cluster once, in ascending order"
            )
        return shards

    def _blocks(self) -> Iterator[tuple[csr_array, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the block of R of each shard, the indices of its rows and columns, its clusters."""
        sheaf, dims, ranks, P = self.sheaf, self.fine_dims, self.ranks, self.partition
        row_starts, column_starts = ragged.offsets(dims), ragged.offsets(ranks)
        for folder, clusters in self._shards.items():
            vertices = np.sort(ragged.blocks(P.members, P.cluster_offsets, clusters))
            labels, starts = P.labels[vertices], ragged.offsets(ranks[clusters])
            widths = np.repeat(ranks[labels], dims[vertices])
            data = sheaf.array(f"{folder}/data", sheaf.dtype, (int(widths.sum()),))
            check_entries(f"{sheaf.url}: the entries of R in {folder}", data)
            column = np.repeat(starts[np.searchsorted(clusters, labels)], dims[vertices])
            indptr, indices = ragged.offsets(widths), ragged.ranges(column, widths)
            R = canonical_csr(data, indices, indptr, (len(widths), int(starts[-1])))
            rows = ragged.range_of_blocks(row_starts, vertices)
            yield R, rows, ragged.range_of_blocks(column_starts, clusters), clusters

    def spectral(
        self, name: str, dtype: npt.DTypeLike | None = None, counts: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the array ``name`` of all clusters, ``counts`` entries (default: 1) for each."""
        counts = np.ones(self.sheaf.n_vertices, np.int64) if counts is None else counts
        starts = ragged.offsets(counts)
        real = np.zeros(0, self.sheaf.dtype).real.dtype
        out: np.ndarray = np.empty(int(starts[-1]), dtype or real)
        for folder, clusters in self._shards.items():
            entries = ragged.range_of_blocks(starts, clusters)
            out[entries] = self.sheaf.array(f"{folder}/{name}", out.dtype, (len(entries),))
        if np.isnan(out).any():
            raise StoreError(f"{self.sheaf.url}: the arrays basis/.../{name} hold NaN")
        return out

    @cached_property
    def _cluster_dims(self) -> np.ndarray:
        """Dimension of C^0 on each cluster, shape (K,)."""
        return np.bincount(self.partition.labels, self.fine_dims, self.sheaf.n_vertices)

    def _isometry_errors(self) -> np.ndarray:
        """Return norm(R_a* R_a - I)_F for every cluster, shape (K,)."""
        errors = np.zeros(self.sheaf.n_vertices)
        for R, _, _, clusters in self._blocks():
            errors[clusters] = isometry_errors(R, self.ranks[clusters])
        return errors

    def lift(self, z: CochainLike) -> np.ndarray:
        """Return R z, a cochain of the fine sheaf, for a coarse cochain z (``eq:local_lift``).

        Parameters
        ----------
        z : array_like, shape (sum r_a,) or (sum r_a, h)

        Returns
        -------
        ndarray, shape (dim_c0,) or (dim_c0, h)
        """
        z = checks.cochain(self.sheaf, z, "z", " of the coarse sheaf")
        x = np.empty((self.fine.dim_c0, *z.shape[1:]), np.result_type(z, self.sheaf.dtype))
        for R, rows, columns, _ in self._blocks():
            x[rows] = R @ z[columns]
        return x

    def pool(self, x: CochainLike) -> np.ndarray:
        """Return R* x, a coarse cochain, for a fine cochain x (``eq:local_pooling_adjoint``).

        Parameters
        ----------
        x : array_like, shape (dim_c0,) or (dim_c0, h)

        Returns
        -------
        ndarray, shape (sum r_a,) or (sum r_a, h)
        """
        x = checks.cochain(self.fine, x, "x", " of the fine sheaf")
        z = np.empty((self.sheaf.dim_c0, *x.shape[1:]), np.result_type(x, self.sheaf.dtype))
        for R, rows, columns, _ in self._blocks():
            z[columns] = R.conj().T @ x[rows]
        return z

    def ledger(self, x: CochainLike) -> EnergyLedger:
        """Decompose the energy norm(delta x)^2 of a fine cochain into a sum of six terms.

        See :func:`sheafcoarsen.energy_ledger`. The fine store is read once.

        Parameters
        ----------
        x : array_like, shape (dim_c0,) or (dim_c0, h)

        Returns
        -------
        EnergyLedger

        Raises
        ------
        ValueError
            If the basis is not orthonormal.
        """
        x = checks.cochain(self.fine, x, "x", " of the fine sheaf")
        ranks, dtype = self.ranks, self.sheaf.dtype
        check_errors(self._isometry_errors(), self._cluster_dims, ranks, dtype, "the ledger")
        return self._ledger(x)

    def _ledger(self, x: np.ndarray) -> EnergyLedger:
        """Return the ledger of a checked cochain; R is not checked."""
        gaps = None
        if self.sheaf.header.local_operator == "internal":
            sizes = self.spectral("operator_norms")
            gaps = self.spectral("next_eigenvalues"), sizes, self.fine.dtype
        return ledger_over(
            parts_of(self.fine),
            self.partition.labels,
            self.fine_dims,
            x,
            self.lift(self.pool(as_columns(x))),
            gaps,
        )

    def verify(self, probes: int = 3, seed: int = 0) -> Verification:
        """Verify that R is an isometry, and statements about R* L R on random cochains.

        Parameters
        ----------
        probes : int
            Number of random cochains.
        seed : int

        Returns
        -------
        Verification
            ``passed``, ``checks``, and a table as ``str``.
        """
        probes = checks.whole_number("probes", probes, at_least=1)
        seed = checks.whole_number("seed", seed, at_least=0)
        unit = power_of_two(self.fine.largest_entry)
        sheaf, fine = (SheafStore(store.place, unit) for store in (self.sheaf, self.fine))
        # twelve fine cochains per probe are in memory at the same time
        column = 12 * fine.dim_c0 * np.result_type(fine.dtype, np.float64).itemsize
        if probes * column > (have := checks.physical_memory()):
            raise ValueError(
                f"`probes` = {probes} random cochains exceed this machine's memory of "
                f"{amount(have)}: use at most {int(have / column)}"
            )
        return _verified(StoredCoarsening(sheaf, fine), np.random.default_rng(seed), probes)

    def load(self) -> Coarsening:
        """Load the coarsening with both sheaves into memory, as ``sc.coarsen`` returns it.

        Returns
        -------
        Coarsening
        """
        header, sheaf = self.sheaf.header, self.sheaf
        fine, coarse = self.fine.load(), sheaf.load()
        clusters = clusters_of(fine, self.partition)
        indptr, indices = block_layout(fine, clusters, self.ranks)
        data = np.empty(len(indices), coarse.dtype)
        for R, rows, _, _ in self._blocks():
            data[ragged.range_of_blocks(indptr.astype(np.int64), rows)] = R.data
        arrays = {
            "partition.labels": self.partition.labels,
            "R.data": data,
            "R.indices": indices,
            "R.indptr": indptr,
            "loops": np.array(header.loops),
            "compress": np.array(header.compress),
        }
        if not header.compress:
            arrays["crossing_rows"] = ragged.range_of_blocks(
                fine.edge_offsets, clusters.crossing_edges
            )
        if header.oversampled is not None:
            arrays["restored_loops"] = sheaf.array("restored_loops")
        if header.local_operator is not None:
            modes: dict[str, npt.ArrayLike] = {
                "local_operator": header.local_operator,
                "singular": header.singular,
                **(header.oversampled or {}),
                "ranks": self.ranks,
                "scores": self.spectral("scores", counts=self.ranks),
                "next_eigenvalues": self.spectral("next_eigenvalues"),
                "operator_norms": self.spectral("operator_norms"),
                "tied": self.spectral("tied", np.int8).astype(np.bool_),
            }
            arrays |= {f"modes.{name}": np.asarray(values) for name, values in modes.items()}
        with reading(self.sheaf.url, StoreError):
            return read_level(arrays, fine, coarse)

    def __repr__(self) -> str:
        operator = self.sheaf.header.local_operator
        what = "own basis" if operator is None else f"{operator} modes"
        return (
            f"StoredCoarsening({self.sheaf.url!r}: {what}, "
            f"{self.fine.n_vertices} -> {self.sheaf.n_vertices} vertices, "
            f"dim C^0 {self.fine.dim_c0} -> {self.sheaf.dim_c0})"
        )


def _verified(C: StoredCoarsening, rng: np.random.Generator, probes: int) -> Verification:
    """Verify that R is an isometry, and the other statements on random cochains, part by part."""
    sheaf, fine, eps = C.sheaf, C.fine, linalg.eps_of(C.fine.dtype)
    # double precision: terms of long sums in single precision would be rounded to the sum
    double = np.result_type(fine.dtype, np.float64)
    Z, X = (linalg.normal(rng, (store.dim_c0, probes), double) for store in (sheaf, fine))
    n = int(C._cluster_dims.max(initial=1))
    isometry: Any = "a basis of your own need not be orthonormal"
    if sheaf.header.local_operator is not None:
        errors, ranks = C._isometry_errors(), np.maximum(C.ranks, 1)
        found = relative_residual(errors, C._cluster_dims, eps, ranks, blocks=("cluster",))
        isometry = found, "exact"
    lift = C.lift(Z)
    image, energies, bound = _applied(fine, lift)
    galerkin, coarse = C.pool(image), laplacian_operator(sheaf) @ Z
    sizes, lengths, starts, error = (
        np.linalg.norm(x, axis=0) for x in (lift, X, Z, coarse - galerkin)
    )
    stretch = sizes / np.maximum(starts, np.finfo(float).tiny)
    pairing = np.abs((X.conj() * lift).sum(axis=0) - (C.pool(X).conj() * Z).sum(axis=0))
    missed = np.abs((Z.conj() * galerkin).sum(axis=0).real - energies)
    realized: Any = "loops=False leaves out the retained internal energy"
    if sheaf.header.loops:
        realized = relative_residual(error, n, eps, bound, sizes, stretch), "probe"
    E = C._ledger(X)
    lines = np.array(list(E.lines.values()))
    factors = bound**0.5, lengths, np.maximum(stretch, 1) ** 2, np.sqrt(np.abs(lines).sum(axis=0))
    gap = relative_residual(np.abs(lines.sum(axis=0) - E.fine_energy), n, eps, *factors)
    adjoint = relative_residual(pairing, n, eps, lengths, sizes)
    identity = relative_residual(missed, n, eps, bound, sizes, sizes)
    outcomes: list[tuple[str, str, Any]] = [
        ("columns of R are orthonormal", "section-2", isometry),
        ("pool is the adjoint of lift", "eq:local_pooling_adjoint", (adjoint, "probe")),
        ("energy identity", "eq:galerkin_energy_identity", (identity, "probe")),
        ("loop-cell realization", "thm:Galerkin_realization", realized),
        ("the energy ledger closes", "section-4", (gap, "probe")),
    ]
    return Verification(tuple(check_of(*outcome) for outcome in outcomes))


def _applied(store: SheafStore, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return L x, norm(delta x)^2 of each column of x, and an upper bound on norm(L).

    The bound is twice the largest sum of squared entries at a vertex.
    """
    image, energies = np.zeros_like(x), np.zeros(x.shape[1])
    squares = np.zeros(store.n_vertices)
    for F, vertices, rows in parts_of(store):
        image[rows] += operators.laplacian_operator(F) @ x[rows]
        energies += operators.energy(F, x[rows])
        for ends, data, starts in both_ends(F):
            norms2 = linalg.ragged_norms(data, starts) ** 2
            squares += np.bincount(vertices[ends], norms2, len(squares))
    return image, energies, 2 * float(squares.max(initial=0.0))


def open_coarsening(
    url: object, *, source: object = None, **storage_options: Any
) -> StoredCoarsening:
    """Open a stored coarsening, and the store that it was made from.

    Parameters
    ----------
    url : path or URL
        The ``out`` of :func:`coarsen`.
    source : path, URL or SheafStore, optional
        Location of the fine store. By default the URL stored in the coarsening, which must be on
        the same file system, host or bucket as ``url``.
    **storage_options
        Options of the file system; see fsspec.

    Returns
    -------
    StoredCoarsening

    Raises
    ------
    StoreError
        If there is no coarsening, or its source does not exist, is elsewhere, or was rewritten.

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
            f"{place.url}: holds a {header.kind}, not a coarsening: open it with open_store"
        )
    sheaf = SheafStore(place)
    if isinstance(source, SheafStore):
        return StoredCoarsening(sheaf, source)
    if source is not None:
        here = place_of(source, None, "source")
    elif header.source["url"] == "fine":  # a subfolder of this store, which may have moved
        here = place / "fine"
    else:
        named = header.source["url"]
        outside = StoreError(
            f"{place.url} names {named!r} as its source, which is outside {place.origin}: if you "
            f"trust it, pass that URL, or the opened store, as `source`"
        )
        try:
            here = place_of(named)
        except ValueError:
            raise outside from None
        if here.origin != place.origin:
            raise outside
    if here.local_path is None:
        here = replace(here, options=place.options)
    return StoredCoarsening(sheaf, SheafStore(here))
