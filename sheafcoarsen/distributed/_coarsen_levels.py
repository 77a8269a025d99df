"""Coarsen a store into several levels, each in memory if the sheaf above fits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sheafcoarsen import coarsening
from sheafcoarsen._support import CochainLike, checks, tables, warned
from sheafcoarsen.distributed._coarsen import coarsen, finished, made_once, place_beside
from sheafcoarsen.distributed._estimate import Request, checked_operator
from sheafcoarsen.distributed._open_coarsening import StoredCoarsening, open_coarsening
from sheafcoarsen.distributed._open_store import PartitionStore, SheafStore, amount, check_store
from sheafcoarsen.distributed._write_store import write_coarsening
from sheafcoarsen.distributed.location import StoreError, place_of
from sheafcoarsen.distributed.plan import without_maps
from sheafcoarsen.distributed.schema import Root, find_header, header_of, mark
from sheafcoarsen.hierarchy import LevelPlan, RankPerLevel, at_level
from sheafcoarsen.modes import LocalOperatorLike
from sheafcoarsen.partition import Method, Partition


@dataclass(frozen=True, eq=False, repr=False)
class StoredHierarchy:
    """Levels of a stored sheaf, returned by :func:`coarsen_levels` and :func:`open_levels`.

    ``H[i]`` is level i; ``len(H)`` is the number of levels.

    Attributes
    ----------
    levels : tuple of StoredCoarsening
    stopped_because : str
        The reason why there is no further level.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> src = dist.to_store("memory://path-of-64", sc.CellularSheaf.constant(nx.path_graph(64)))
    >>> H = dist.coarsen_levels(src, "memory://levels", factor=4, n_levels=2, rank=3)
    >>> len(H), H.lift(np.ones(H[-1].sheaf.dim_c0)).shape
    (2, (64,))
    """

    levels: tuple[StoredCoarsening, ...]
    stopped_because: str

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, i: int) -> StoredCoarsening:
        return self.levels[i]

    def __repr__(self) -> str:
        stores = [*(C.fine for C in self.levels[:1]), *(C.sheaf for C in self.levels)]
        sizes = " -> ".join(str(store.n_vertices) for store in stores) or "none"
        return (
            f"StoredHierarchy({tables.counted(len(self), 'level')}: {sizes} vertices; stopped "
            f"because {self.stopped_because})"
        )

    def lift(self, z: CochainLike) -> np.ndarray:
        """Map a cochain z of the coarsest sheaf to the finest sheaf, as R_0 R_1 ... z.

        Parameters
        ----------
        z : array_like, shape (dim_c0 of the coarsest sheaf,) or (that, h)

        Returns
        -------
        ndarray, shape (dim_c0 of the finest sheaf,) or (that, h)
        """
        x = checks.scalar_array("z", z)
        for C in reversed(self.levels):
            x = C.lift(x)
        return x

    def pool(self, x: CochainLike) -> np.ndarray:
        """Map a cochain x of the finest sheaf to the coarsest sheaf: R_l* ... R_1* R_0* x.

        Parameters
        ----------
        x : array_like, shape (dim_c0 of the finest sheaf,) or (that, h)

        Returns
        -------
        ndarray, shape (dim_c0 of the coarsest sheaf,) or (that, h)
        """
        z = checks.scalar_array("x", x)
        for C in self.levels:
            z = C.pool(z)
        return z


def coarsen_levels(  # noqa: PLR0913 (public, options by keyword)
    src: SheafStore,
    out: object,
    factor: float = 10,
    n_levels: int | None = None,
    min_vertices: int = 100,
    *,
    rank: RankPerLevel,
    partitions: Iterable[Partition | PartitionStore] | None = None,
    method: Method = "auto",
    local_operator: LocalOperatorLike = "internal",
    loops: bool = True,
    compress: bool = True,
    seed: int = 0,
    memory_bytes: float | None = None,
    client: Any = None,
    progress: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> StoredHierarchy:
    """Coarsen a stored sheaf into several levels, bitwise identically to ``sc.coarsen_levels``.

    Level i is written to the store ``out``/level-i. It is made in memory if the maps of the sheaf
    above have at most ``memory_bytes``, or else shard by shard, as :func:`coarsen` does.
    Repeating an unfinished call resumes it; :func:`open_levels` opens the finished result.

    Parameters
    ----------
    src : SheafStore
    out : path or URL
        A folder for the stores.
    factor, n_levels, min_vertices, rank, partitions, method, local_operator, loops, compress, seed
        See :func:`sheafcoarsen.coarsen_levels`. The method "spectral" needs the maps, so those of
        ``src`` must have at most ``memory_bytes``.
    memory_bytes : float, optional
        Maximum number of bytes of maps to coarsen in memory, by default an eighth of this
        machine's memory. A level that was made in memory has an empty ``report``.
    client, progress, storage_options
        See :func:`coarsen`.

    Returns
    -------
    StoredHierarchy

    Raises
    ------
    FileExistsError, BlockingIOError, MemoryError, StoreError, RuntimeError, ValueError, TypeError
        As :func:`coarsen` and :func:`sheafcoarsen.coarsen_levels`.

    Warns
    -----
    TiedModesWarning, SingularProblemWarning
        As :func:`coarsen`.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> F = sc.CellularSheaf.random(nx.grid_2d_graph(20, 20), 2, 3, seed=3)
    >>> src = dist.to_store("memory://four-hundred", F)
    >>> H = dist.coarsen_levels(src, "memory://down", min_vertices=5, rank=2, memory_bytes=5e4)
    >>> [C.sheaf.n_vertices for C in H], [bool(C.report) for C in H]
    ([40, 4], [True, False])
    >>> [C.sheaf.n_vertices for C in dist.open_levels("memory://down")]
    [40, 4]
    """
    check_store(src, "src")
    if memory_bytes is None:
        memory_bytes = checks.physical_memory() / 8
    memory_bytes = checks.real_number("memory_bytes", memory_bytes)
    if not memory_bytes >= 0:
        raise ValueError(f"`memory_bytes` must be at least 0, got {memory_bytes:g}")
    operator = checked_operator(local_operator)
    loops, compress = checks.flag("loops", loops), checks.flag("compress", compress)
    progress = checks.flag("progress", progress)
    place = place_beside(src, out, storage_options)
    others = [name for name in place.names() if not re.fullmatch(r"level-\d+|zarr.json", name)]
    if others:
        raise FileExistsError(f"{place.url} exists and holds other files: pass another path")
    selection: dict[str, Any] = {
        "factor": factor,
        "n_levels": n_levels,
        "min_vertices": min_vertices,
        "method": method,
        "seed": seed,
    }
    given: Iterable | None = partitions
    if partitions is not None:
        listed = checks.items("partitions", partitions, "Partitions, one per level")
        given = (P.load() if isinstance(P, PartitionStore) else P for P in listed)
    plan = LevelPlan(src, rank, given, selection, progress)  # type: ignore[arg-type]
    if partitions is None and method == "spectral" and src.n_bytes > memory_bytes:
        raise ValueError(
            f'`method` = "spectral" needs all maps in memory, but those of {src.url} take '
            f"{amount(src.n_bytes)} and `memory_bytes` is {memory_bytes:.3g}: pass `partitions`, "
            f"another method, or `memory_bytes` of at least {src.n_bytes}"
        )
    options: dict[str, Any] = {"local_operator": operator, "loops": loops, "compress": compress}
    access: dict[str, Any] = {"client": client, "storage_options": place.options}
    levels: list[StoredCoarsening] = []
    header = find_header(place)
    another = (
        f"{place.url} exists and is the result of another call: remove it, or use another path"
    )
    for i in itertools.count():
        above, level = levels[-1].sheaf if levels else src, place / f"level-{i}"
        fits = above.n_bytes <= memory_bytes
        fine = above.load() if fits else without_maps(*above.topology()[:2], above.dtype)
        step: Any = plan.next(fine, i)
        if isinstance(step, str):
            why = step
            break
        if header is not None and find_header(level) is None:
            raise FileExistsError(another)
        P, ranks = step
        with at_level(i):
            asked = Request(above, P, ranks, **options)
        with warned.collected() as said:
            if fits:
                C = finished(level, asked)
                if C is None:
                    with at_level(i):
                        made = coarsening.coarsen(fine, P, ranks, progress=progress, **options)
                    write = partial(write_coarsening, C=made, fine=above, run=asked.run)
                    C = made_once(level, asked, write)
            else:
                C = coarsen(above, level.url, P, ranks, progress=progress, **options, **access)
        ends = partitions is None and not C.sheaf.dim_c0
        for warning in said if i == 0 or not ends else []:  # as `sc.coarsen_levels` does
            warned.warn(f"level {i}: {warning}", type(warning))
        if ends:
            why = f"level {i} would keep no mode of any cluster"
            break
        levels.append(C)
    H = StoredHierarchy(tuple(levels), why)
    names = [f"level-{i}" for i in range(len(H))]
    if header is not None:
        if (header.levels, header.stopped_because) != (names, why):
            raise FileExistsError(another)
        return H
    mark(Root(place), kind="hierarchy", levels=names, stopped_because=why)
    return H


def open_levels(url: object, *, source: object = None, **storage_options: Any) -> StoredHierarchy:
    """Open the levels that a call of :func:`coarsen_levels` stored.

    Parameters
    ----------
    url : path or URL
        The ``out`` of :func:`coarsen_levels`.
    source : path, URL or SheafStore, optional
        Location of the fine store; see :func:`open_coarsening`.
    **storage_options
        Options of the file system; see fsspec.

    Returns
    -------
    StoredHierarchy

    Raises
    ------
    StoreError
        If there are no stored levels, they are unfinished, or their source does not exist.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> F = sc.CellularSheaf.constant([[k, k + 1] for k in range(63)])
    >>> src = dist.to_store("memory://sixty-four", F)
    >>> H = dist.coarsen_levels(src, "memory://four-and-one", factor=16, n_levels=1, rank=3)
    >>> H = dist.open_levels("memory://four-and-one")
    >>> len(H), H.stopped_because
    (1, '`n_levels` = 1')
    """
    place = place_of(url, storage_options)
    header = header_of(place)
    if header.kind != "hierarchy":
        raise StoreError(f"{place.url}: holds a {header.kind}, not levels")
    levels: list[StoredCoarsening] = []
    for name in header.levels:
        levels.append(open_coarsening(f"{place.url}/{name}", source=source, **place.options))
        source = levels[-1].sheaf
    return StoredHierarchy(tuple(levels), header.stopped_because)
