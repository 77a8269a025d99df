"""Coarsens a store level after level, into stores first and in memory from where it fits."""

import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen import hierarchy
from sheafcoarsen._support import physical_memory, real_number
from sheafcoarsen.distributed.place import place_of
from sheafcoarsen.distributed.result import StoredCoarsening
from sheafcoarsen.distributed.run import coarsen
from sheafcoarsen.distributed.store import SheafStore
from sheafcoarsen.exceptions import SingularProblemWarning, TiedModesWarning
from sheafcoarsen.hierarchy import Hierarchy, LevelPlan, RankPerLevel, SelectedPartitions
from sheafcoarsen.modes import LocalOperatorLike
from sheafcoarsen.partition import Method
from sheafcoarsen.sheaf import trusted_sheaf

SHARE = 1 / 8
"""Of this machine's memory, what the maps of a sheaf may take that is coarsened in memory."""


@dataclass(frozen=True)
class StoredHierarchy:
    """A stored sheaf coarsened level after level; :func:`coarsen_levels` makes it.

    ``H[i]`` is level i, a :class:`StoredCoarsening` or, from where it fits in memory, a
    :class:`~sheafcoarsen.Coarsening`; ``len(H)`` counts both, and iteration goes through them.

    Attributes
    ----------
    stored : tuple of StoredCoarsening
        The levels in stores, each made of the one before.
    rest : Hierarchy, optional
        What follows in memory, beginning with the sheaf of the last store; None where that does not
        fit and there is no further level.
    stopped_because : str
        Why there is no further level.

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

    def __len__(self) -> int:
        return len(self.stored) + (len(self.rest) if self.rest is not None else 0)

    def __getitem__(self, i: int) -> Any:
        levels = self.stored if self.rest is None else (*self.stored, *self.rest)
        return levels[i]

    def lift(self, z: npt.ArrayLike) -> np.ndarray:
        """Return R_0 R_1 ... z, a cochain of the finest sheaf, for one of the coarsest.

        Parameters
        ----------
        z : array_like, shape (dim_c0 of the coarsest sheaf,) or (that, h)

        Returns
        -------
        ndarray, shape (dim_c0 of the finest sheaf,) or (that, h)
        """
        x = np.asarray(z) if self.rest is None else self.rest.lift(z)
        for C in reversed(self.stored):
            x = C.lift(x)
        return x

    def pool(self, x: npt.ArrayLike) -> np.ndarray:
        """Return ... R_1* R_0* x, a cochain of the coarsest sheaf, for one of the finest.

        Parameters
        ----------
        x : array_like, shape (dim_c0 of the finest sheaf,) or (that, h)

        Returns
        -------
        ndarray, shape (dim_c0 of the coarsest sheaf,) or (that, h)
        """
        z = np.asarray(x)
        for C in self.stored:
            z = C.pool(z)
        return z if self.rest is None else self.rest.pool(z)


def coarsen_levels(  # noqa: PLR0913 (public, options by keyword)
    src: SheafStore,
    out: object,
    factor: float = 10,
    n_levels: int | None = None,
    min_vertices: int = 100,
    *,
    rank: RankPerLevel,
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
    """Coarsen a stored sheaf, then its coarse sheaf, and so on: the bits of ``sc.coarsen_levels``.

    Level i goes into the store ``out``/level-i while the maps of the sheaf before it are too large
    for memory; what follows is made in memory. The same call goes on with what it left unfinished.

    Parameters
    ----------
    src : SheafStore
    out : path or address
        A folder for the stores.
    factor, n_levels, min_vertices, rank, method, local_operator, loops, compress, seed
        See :func:`sheafcoarsen.coarsen_levels`.
    memory_bytes : float, optional
        Bytes of maps up to which a sheaf is coarsened in memory, by default an eighth of this
        machine's memory; 0 keeps all levels in stores.
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
    """
    if not isinstance(src, SheafStore):
        raise TypeError(
            f"`src` must be a SheafStore, got {type(src).__name__}: open_store(url) opens one"
        )
    if memory_bytes is None:
        memory_bytes = SHARE * physical_memory()
    memory_bytes = real_number("memory_bytes", memory_bytes)
    place = place_of(out, storage_options)
    selected = SelectedPartitions(factor, n_levels, min_vertices, method, seed, progress)
    plan = LevelPlan(selected, rank)
    options: dict[str, Any] = {
        "local_operator": local_operator,
        "loops": loops,
        "compress": compress,
        "progress": progress,
    }
    with warnings_at_the_caller():
        stored: list[StoredCoarsening] = []
        for i in itertools.count():
            above = stored[-1].sheaf if stored else src
            if above.n_bytes <= memory_bytes:
                break
            edges, vertex_dims, edge_dims = above.topology()
            nothing = np.zeros(0, above.dtype)
            skeleton = trusted_sheaf(
                edges,
                vertex_dims.astype(np.int64),
                0 * edge_dims.astype(np.int64),
                nothing,
                nothing,
            )
            step = plan.next(skeleton, i)
            if isinstance(step, str):
                return StoredHierarchy(tuple(stored), None, step)
            P, ranks = step
            C = coarsen(
                above,
                f"{place.url}/level-{i}",
                P,
                ranks,  # type: ignore[arg-type]
                client=client,
                storage_options=storage_options,
                **options,
            )
            stored.append(C)
            if not C.sheaf.dim_c0:
                return StoredHierarchy(
                    tuple(stored), None, f"level {i} keeps no mode of any cluster"
                )
        done = len(stored)
        rest = hierarchy.coarsen_levels(
            above.load(),
            factor,
            None if n_levels is None else max(n_levels - done, 0),
            min_vertices,
            rank=list(rank)[done:] if isinstance(rank, list | tuple) else rank,
            method=method,
            seed=seed,
            **options,
        )
    why, count = rest.stopped_because, done + len(rest)
    if n_levels == count:
        why = f"`n_levels` = {count}"
    elif n_levels is None and isinstance(rank, list | tuple) and len(rank) == count:
        why = f"`rank` has entries for {count} levels"
    return StoredHierarchy(tuple(stored), rest, why)


@contextmanager
def warnings_at_the_caller() -> Iterator[None]:
    """Let what levels warn of point to the line that asked for them all."""
    with warnings.catch_warnings(record=True) as said:
        for kind in (TiedModesWarning, SingularProblemWarning):
            warnings.simplefilter("always", kind)
        yield
    for warning in said:
        warnings.warn(warning.message, stacklevel=4)
