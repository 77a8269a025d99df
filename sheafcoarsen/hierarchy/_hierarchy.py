"""Hierarchies of coarsenings, with transfer between levels and an energy ledger."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, SupportsIndex, overload

import numpy as np
import scipy.sparse

from sheafcoarsen._support import CochainLike, checks, tables
from sheafcoarsen.coarsening import (
    Coarsening,
    Ledger,
    check_topology,
    energy_ledger,
    growth_of,
    refresh_coarsening,
)
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.modes import warn_if_tied
from sheafcoarsen.operators import count_nonzeros, energy
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, same_topology
from sheafcoarsen.solve import Sparsification, sparsify


@dataclass(frozen=True, eq=False, repr=False)
class EdgeLedger(Ledger):
    """Energies of a cochain in a sheaf and in its sparsification."""

    fine_energy: float | np.ndarray
    retained: float | np.ndarray

    @property
    def lines(self) -> dict[str, float | np.ndarray]:
        """Difference of the two energies ("edges left out"), and the energy retained."""
        return {"edges left out": self.fine_energy - self.retained, "retained": self.retained}


@dataclass(frozen=True, eq=False, repr=False)
class HierarchyLedger(Ledger):
    """Energy of a fine cochain x, split into the losses of all levels and the coarsest energy.

    It is returned by :meth:`Hierarchy.ledger`. The cochain of level i is x_i = R_{i-1}* ... R_0* x.
    With loops, its retained energy is the fine energy of level i + 1, so only discarded and
    coupling energy is lost; without loops, the retained internal energy is lost too (realization
    loss). A sparsification leaves x_i unchanged, but its energy increases or decreases by "edges
    left out".

    Attributes
    ----------
    levels : tuple of EnergyLedger
        Ledger of each level for its cochain x_i; the ledger of a sparsification has two lines.
    loops : tuple of bool
        Whether each level has loop-cells.
    coarsest_energy : float or ndarray, shape (h,)
        Energy of the pooled cochain, computed in the coarsest sheaf.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(64))
    >>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=3)
    >>> E = H.ledger([0.0, 1.0] * 32)
    >>> len(E.levels), E.loops, bool(E.coarsest_energy <= E.fine_energy)
    (2, (True, True), True)
    """

    levels: tuple[Any, ...]
    loops: tuple[bool, ...]
    coarsest_energy: float | np.ndarray

    @property
    def fine_energy(self) -> float | np.ndarray:
        """norm(delta x)^2, computed independently; the lines add up to it."""
        return self.levels[0].fine_energy if self.levels else self.coarsest_energy

    @property
    def lines(self) -> dict[str, float | np.ndarray]:
        """Energies lost at each level and the coarsest energy, which add up to the fine energy."""
        lines = {}
        for i, (E, loops) in enumerate(zip(self.levels, self.loops, strict=True)):
            kept = ("retained", "retained crossing", "retained internal")[: 3 if loops else 2]
            lines.update(
                {f"level {i}: {name}": value for name, value in E.lines.items() if name not in kept}
            )
        return {**lines, "coarsest energy": self.coarsest_energy}


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """Levels of coarsening of a sheaf, returned by :func:`coarsen_levels`.

    ``H[i]`` is the coarsening from ``H.sheaves[i]`` to ``H.sheaves[i + 1]``; ``len(H)`` is the
    number of levels, and iterating over H yields the levels. With loops and without sparsifications
    the Laplacian of the last sheaf is exactly (R_0 R_1 ...)* L (R_0 R_1 ...), because at every
    level the coarse sheaf's Laplacian is the Galerkin operator (``thm:Galerkin_realization``).

    Attributes
    ----------
    fine : CellularSheaf
    levels : tuple of Coarsening
        The ``fine`` of each level is the ``sheaf`` of the previous one. The first level may be an
        :class:`Elimination`, and later ones a :class:`Sparsification`, which also have a
        ``prolongation``. The tuple is empty if nothing was coarsened.
    stopped_because : str
        The reason why there is no further level.
    seconds : tuple of float
        Time of each level, or NaN if it is unknown, for example after loading.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(64))
    >>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=3)
    >>> [G.n_vertices for G in H.sheaves], H[1].fine is H.sheaves[1]
    ([64, 16, 4], True)
    """

    fine: CellularSheaf
    levels: tuple[Any, ...]  # Coarsenings; an Elimination may be first, Sparsifications later
    stopped_because: str = ""
    seconds: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        levels = checks.items("levels", self.levels, "coarsenings")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "seconds", (math.nan,) * len(self.levels))
        above = check_sheaf(self.fine, "fine")
        for i, C in enumerate(self.levels):
            if not isinstance(C, Coarsening | (Sparsification if i else Elimination)):
                raise TypeError(f"`levels[{i}]` must be a Coarsening, got {type(C).__name__}")
            if C.fine is not above:
                before = f"`levels[{i - 1}].sheaf`" if i else "`fine`"
                raise ValueError(
                    f"`levels[{i}]` must be a coarsening of {before}, "
                    "but its `fine` is another sheaf"
                )
            above = C.sheaf

    def __len__(self) -> int:
        return len(self.levels)

    @overload
    def __getitem__(self, i: SupportsIndex) -> Coarsening: ...

    @overload
    def __getitem__(self, i: slice) -> tuple[Coarsening, ...]: ...

    def __getitem__(self, i: SupportsIndex | slice) -> Coarsening | tuple[Coarsening, ...]:
        return self.levels[i]

    def __iter__(self) -> Iterator[Coarsening]:
        return iter(self.levels)

    @property
    def sheaves(self) -> tuple[CellularSheaf, ...]:
        """All sheaves from the fine to the coarsest one; there is one more sheaf than levels."""
        return (self.fine, *(C.sheaf for C in self.levels))

    @property
    def rebuilt_levels(self) -> tuple[int, ...]:
        """Levels that :meth:`recoarsen` rebuilt, because the previous level restored loop rows."""
        return tuple(
            i
            for i in range(1, len(self))
            if isinstance(self[i - 1], Coarsening) and self[i - 1].restored_loops.size
        )

    def prolongation(self, level: int | None = None) -> scipy.sparse.csr_array:
        """Return R_0 R_1 ... R_{level-1}, which maps C^0 of ``sheaves[level]`` to the fine C^0.

        It is an isometry if every R_i is an isometry.

        Parameters
        ----------
        level : int, optional
            Level in 0 .. len(H), where 0 gives the identity; by default the coarsest level.

        Returns
        -------
        csr_array, shape (dim_c0 of the fine sheaf, dim_c0 of ``sheaves[level]``)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.path_graph(64))
        >>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=3)
        >>> R = H.prolongation()
        >>> bool(abs(R.T @ sc.laplacian(F) @ R - sc.laplacian(H.sheaves[-1])).max() < 1e-14)
        True
        """
        level = self._level(level)
        if level == 0:
            return scipy.sparse.eye_array(self.fine.dim_c0, dtype=self.fine.dtype, format="csr")
        R = self[level - 1].prolongation.copy()
        for C in reversed(self.levels[: level - 1]):  # multiply the small coarse matrices first
            R = C.prolongation @ R
        R.sort_indices()
        return R

    def pool(self, x: CochainLike, level: int | None = None) -> np.ndarray:
        """Return R_{level-1}* ... R_0* x, the fine cochain x pooled to ``sheaves[level]``.

        Parameters
        ----------
        x : array_like, shape (dim_c0,) or (dim_c0, h)
        level : int, optional
            Level in 0 .. len(H); by default the coarsest level.

        Returns
        -------
        ndarray, shape (dim,) or (dim, h)
            Here dim is the dimension of C^0 of ``sheaves[level]``.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.path_graph(64))
        >>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=3)
        >>> H.pool([1.0] * 64).shape, H.pool([1.0] * 64, level=1).shape
        ((12,), (48,))
        """
        level = self._level(level)
        z = np.array(checks.cochain(self.fine, x, "x", " of the fine sheaf"))
        for C in self.levels[:level]:
            z = C.prolongation.conj().T @ z
        return z

    def lift(self, z: CochainLike, level: int | None = None) -> np.ndarray:
        """Return R_0 ... R_{level-1} z, a cochain of ``sheaves[level]`` lifted to the fine sheaf.

        Parameters
        ----------
        z : array_like, shape (dim,) or (dim, h)
            Here dim is the dimension of C^0 of ``sheaves[level]``.
        level : int, optional
            Level in 0 .. len(H); by default the coarsest level.

        Returns
        -------
        ndarray, shape (dim_c0,) or (dim_c0, h)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.path_graph(64))
        >>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=3)
        >>> bool(abs(H.lift(H.pool([1.0] * 64)) - 1).max() < 1e-13)  # constants are kept
        True
        """
        level = self._level(level)
        x = np.array(checks.cochain(self.sheaves[level], z, "z", f" of level {level}'s sheaf"))
        for C in reversed(self.levels[:level]):
            x = C.prolongation @ x
        return x

    def _level(self, level: int | None) -> int:
        """Check the index of a sheaf and return it; None means the coarsest sheaf."""
        if level is None:
            return len(self)
        level = checks.whole_number("level", level, at_least=0)
        if level > len(self):
            raise ValueError(
                f"`level` must be an index of `sheaves`, from 0 for the fine sheaf to {len(self)} "
                f"for the coarsest one, got {level}"
            )
        return level

    def ledger(self, x: CochainLike) -> HierarchyLedger:
        """Decompose the energy of a fine cochain over all levels.

        Parameters
        ----------
        x : array_like, shape (dim_c0,) or (dim_c0, h)

        Returns
        -------
        HierarchyLedger

        Raises
        ------
        ValueError
            If the basis of a level is not orthonormal.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.path_graph(64))
        >>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=3)
        >>> E = H.ledger([0.0, 1.0] * 32)
        >>> E.fine_energy, bool(abs(E.closure) < 1e-14)
        (63.0, True)
        >>> E.coarsest_energy < 1e-3 * E.fine_energy  # oscillations are hardly retained
        True
        """
        if self.levels and isinstance(self[0], Elimination):
            raise ValueError(
                "an energy ledger requires isometric prolongations, but level 0 is an elimination, "
                "whose prolongation is not isometric: use energy_ledger(H[i], x) for later levels"
            )
        z = checks.cochain(self.fine, x, "x", " of the fine sheaf")
        ledgers: list[Ledger] = []
        for i, C in enumerate(self.levels):
            if isinstance(C, Sparsification):
                ledgers.append(EdgeLedger(energy(C.fine, z), energy(C.sheaf, z)))
                continue
            with at_level(i):
                ledgers.append(energy_ledger(C, z))
            z = C.prolongation.conj().T @ z
        loops = tuple(getattr(C, "loops", True) for C in self.levels)
        return HierarchyLedger(tuple(ledgers), loops, energy(self.sheaves[-1], z))

    def recoarsen(self, sheaf: CellularSheaf) -> Hierarchy:
        """Coarsen another sheaf on the same graph with the same partitions and ranks.

        Every level is recomputed by :meth:`Coarsening.recoarsen`, which reuses its index arrays. If
        a level must restore loop rows, its coarse sheaf has other loops than before; the next level
        is then rebuilt with the same partition and ranks, and ``rebuilt_levels`` contains it. A
        sparsification is repeated with the same ``eps`` and with seed 0, because it does not store
        its seed, and the next level is rebuilt.

        Parameters
        ----------
        sheaf : CellularSheaf
            A sheaf on the graph of ``fine`` with stalks of the same dimensions; its scalar type
            may differ.

        Returns
        -------
        Hierarchy

        Raises
        ------
        ValueError
            If the graph or the stalks differ, a sparsification has no ``eps``, or an elimination
            that precedes a coarsening keeps more vertices for the new maps.

        Warns
        -----
        TiedModesWarning
            As in :func:`coarsen_levels`.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.complete_graph(64))
        >>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=1)
        >>> H.recoarsen(F.with_maps(2 * F.tail_data, 2 * F.head_data)).rebuilt_levels
        ()
        >>> other = F.with_maps(F.tail_data, 2 * F.head_data)  # constants have energy now
        >>> H.recoarsen(other).rebuilt_levels
        (1,)
        """
        check_topology(self.fine, check_sheaf(sheaf), "coarsen_levels")
        levels: list[Any] = []
        seconds = []
        for i, old in enumerate(self.levels):
            start, above = time.perf_counter(), levels[-1].sheaf if levels else sheaf
            if isinstance(old, Elimination):
                levels.append(old.refresh(above))
            elif isinstance(old, Sparsification):
                if old.eps is None:
                    raise ValueError(
                        f"level {i}: the sparsification has no `eps`, so it cannot be repeated: "
                        f"pass it, as in dataclasses.replace(Z, eps=0.5)"
                    )
                levels.append(sparsify(above, old.eps))
            else:
                new_loops = i > 0 and not same_topology(old.fine, above)
                finest = next((C for C in levels if isinstance(C, Coarsening)), None)
                found = None
                if finest is not None and finest.modes and finest.modes.pilot:
                    found = finest.modes.target
                with at_level(i):
                    C = refresh_coarsening(old, above, new_loops=new_loops, found=found)
                if C.modes is not None:
                    warn_if_tied(C.modes.tied, C.modes._discards_zero, f"level {i}: ")
                levels.append(C)
            seconds.append(time.perf_counter() - start)
        return timed_hierarchy(sheaf, levels, self.stopped_because, seconds)

    def _described(self) -> tuple[str, list[tuple[str, ...]], list[str]]:
        """Return a caption, the table of all sheaves with its header, and remarks on levels."""
        why = f"; stopped because {self.stopped_because}" if self.stopped_because else ""
        caption = f"Hierarchy: {tables.counted(len(self), 'level')}{why}"
        total = sum(self.seconds)
        known = not math.isnan(total)
        times = [f"{s / (total or 1.0):.0%}" if known else "-" for s in self.seconds]
        rows: list[tuple[str, ...]] = [
            ("sheaf", "vertices", "edges", "dim C^0", "dim C^1", "nonzeros", "time")
        ]
        for i, (F, took) in enumerate(zip(self.sheaves, ["", *times], strict=True)):
            counts = (i, F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1, count_nonzeros(F))
            rows.append((*map(str, counts), took))
        remarks = []
        for i, C in enumerate(self.levels):
            if isinstance(C, Coarsening):
                note = growth_of(C)
            else:
                note = C.sizes.remark if isinstance(C, Elimination) else C.remark
            if note:
                remarks.append(f"level {i}: {note}")
        remarks += [
            f"level {i} rebuilt: loop rows put back in {self[i - 1].restored_loops.size} "
            f"clusters of level {i - 1}"
            for i in self.rebuilt_levels
        ]
        return caption, rows, remarks

    def _repr_html_(self) -> str:
        caption, (head, *rows), remarks = self._described()
        paragraphs = "".join(f"<p>{tables.text(remark)}</p>" for remark in remarks)
        return tables.table(rows, head=head, caption=caption) + paragraphs

    def __repr__(self) -> str:
        caption, rows, remarks = self._described()
        lines = [*tables.aligned(rows, str.rjust), *remarks]
        return "\n".join([caption, *(f"  {line}" for line in lines)])


def timed_hierarchy(
    fine: CellularSheaf, levels: list, stopped_because: str, seconds: list[float]
) -> Hierarchy:
    """Return a hierarchy with the time of each level."""
    H = Hierarchy(fine, tuple(levels), stopped_because)
    object.__setattr__(H, "seconds", tuple(seconds))
    return H


@contextlib.contextmanager
def at_level(level: int) -> Iterator[None]:
    """Prefix error messages with the level at which the errors occur."""
    try:
        yield
    except (ValueError, TypeError) as error:  # includes LinAlgError, a ValueError
        raise type(error)(f"level {level}: {error}") from error
