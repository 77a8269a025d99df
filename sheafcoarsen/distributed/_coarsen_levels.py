"""Coarsen a store into several levels: from store to store until a level fits in memory."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sheafcoarsen._support import CochainLike, checks, tables
from sheafcoarsen.distributed._coarsen import coarsen, finished, made_once, place_beside
from sheafcoarsen.distributed._estimate import checked, checked_operator, loaded
from sheafcoarsen.distributed._open_coarsening import StoredCoarsening, open_coarsening
from sheafcoarsen.distributed._open_store import PartitionStore, SheafStore, amount, check_store
from sheafcoarsen.distributed._to_store import write_coarsening
from sheafcoarsen.distributed._write_store import PART_BYTES, mark, new_group
from sheafcoarsen.distributed.location import Place, StoreError, place_of
from sheafcoarsen.distributed.plan import without_maps
from sheafcoarsen.distributed.schema import Root, find_header, header_of
from sheafcoarsen.hierarchy import Hierarchy, LevelPlan, RankPerLevel, further_levels
from sheafcoarsen.modes import LocalOperatorLike
from sheafcoarsen.partition import Method, Partition


@dataclass(frozen=True, eq=False, repr=False)
class StoredHierarchy:
    """Levels of a stored sheaf, returned by :func:`coarsen_levels`.

    ``H[i]`` is level i, a :class:`StoredCoarsening` or, if it was made in memory, a
    :class:`~sheafcoarsen.Coarsening`; ``len(H)`` and iteration include both.

    Attributes
    ----------
    stored : tuple of StoredCoarsening
        The levels that were made from store to store, or all levels if the result was opened
        with :func:`open_levels`.
    rest : Hierarchy, optional
        The levels made in memory, beginning with the sheaf of the last store; None if that sheaf
        does not fit in memory and there is no further level. These levels were stored too.
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
    >>> len(H), len(H.stored), H.lift(np.ones(H.rest.sheaves[-1].dim_c0)).shape
    (2, 0, (64,))
    """

    stored: tuple[StoredCoarsening, ...]
    rest: Hierarchy | None
    stopped_because: str

    @property
    def _levels(self) -> tuple[Any, ...]:
        return self.stored if self.rest is None else (*self.stored, *self.rest)

    def __len__(self) -> int:
        return len(self._levels)

    def __getitem__(self, i: int) -> Any:
        return self._levels[i]

    def __repr__(self) -> str:
        levels = self._levels
        sizes = [C.fine.n_vertices for C in levels[:1]] + [C.sheaf.n_vertices for C in levels]
        where = f", {len(self.stored):,} from store to store" if self.rest is not None else ""
        return (
            f"StoredHierarchy({tables.counted(len(self), 'level')}{where}: "
            f"{' -> '.join(map(str, sizes)) or 'none'} vertices; stopped because "
            f"{self.stopped_because})"
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
        for C in reversed(self._levels):
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
        for C in self._levels:
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

    Level i is written to the store ``out``/level-i. It is made shard by shard until the maps of a
    fine sheaf have at most ``memory_bytes``; that level and all further ones are made in memory.
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
        machine's memory; with 0, no level with maps is made in memory.
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
    >>> [C.sheaf.n_vertices for C in H], len(H.stored)
    ([40, 4], 1)
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
    plan = LevelPlan(src, rank, partitions, selection, progress, loaded)  # type: ignore[arg-type]
    if partitions is None and method == "spectral" and src.n_bytes > memory_bytes:
        raise ValueError(
            f'`method` = "spectral" needs all maps in memory, but those of {src.url} take '
            f"{amount(src.n_bytes)} and `memory_bytes` is {memory_bytes:.3g}: pass `partitions`, "
            f"another method, or `memory_bytes` of at least {src.n_bytes}"
        )
    options: dict[str, Any] = {"local_operator": operator, "loops": loops, "compress": compress}
    stored: list[StoredCoarsening] = []
    rest: Hierarchy | None = None
    header = find_header(place)
    another = (
        f"{place.url} exists and is the result of another call: remove it, or use another path"
    )
    for i in itertools.count():
        above = stored[-1].sheaf if stored else src
        if above.n_bytes <= memory_bytes:
            rest = in_memory(above, place, plan, i, options)
            why = rest.stopped_because
            break
        edges, dims, _ = above.topology()
        step = plan.next(without_maps(edges, dims.astype(np.int64), above.dtype), i)
        if isinstance(step, str):
            why = step
            break
        if header is not None and find_header(place / f"level-{i}") is None:
            raise FileExistsError(another)
        P, ranks = step
        level = place / f"level-{i}"
        C = coarsen(
            above,
            level.url,
            P,
            ranks,  # type: ignore[arg-type]
            client=client,
            progress=progress,
            storage_options=place.options,
            **options,
        )
        if partitions is None and not C.sheaf.dim_c0:
            why = f"level {i} would keep no mode of any cluster"
            break
        stored.append(C)
    H = StoredHierarchy(tuple(stored), rest, why)
    names = [f"level-{i}" for i in range(len(H))]
    if header is not None:
        if (header.levels, header.stopped_because) != (names, why):
            raise FileExistsError(another)
        return H
    new_group(place)
    mark(Root(place), kind="hierarchy", levels=names, stopped_because=why)
    return H


def in_memory(
    above: SheafStore, place: Place, plan: LevelPlan, begin: int, options: dict[str, Any]
) -> Hierarchy:
    """Make the levels ``begin``, ``begin + 1``, ... of a plan in memory, and store them."""
    H = further_levels(Hierarchy(above.load(), ()), plan, **options, begin=begin)
    for i, C in enumerate(H, begin):
        rank = plan.rank(i)
        asked = checked(above, C.partition, rank, **options)  # type: ignore[arg-type]
        level = place / f"level-{i}"
        write = partial(write_coarsening, C=C, part_bytes=PART_BYTES, fine=above, run=asked.run)
        above = (finished(level, asked) or made_once(level, asked, write)).sheaf
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
    return StoredHierarchy(tuple(levels), None, header.stopped_because)
