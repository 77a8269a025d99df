"""Level after level: each coarse sheaf coarsened again, and the way from the finest to the coarsest and back."""

import contextlib
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from sheafcoarsen import _html
from sheafcoarsen._checks import choice, cochain, flag, real_number, whole_number
from sheafcoarsen.coarsening import Coarsening, check_topology, coarsen, refresh_coarsening
from sheafcoarsen.ledger import EnergyLedger, closure_of, energy_ledger, show_lines
from sheafcoarsen.modes import check_oversampling, compute_modes, warn_if_tied
from sheafcoarsen.operators import count_nonzeros, energy
from sheafcoarsen.partition import Partition
from sheafcoarsen.ranks import Rule, as_rule
from sheafcoarsen.selection import METHODS, select
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy:
    """A sheaf coarsened level after level; :func:`coarsen_levels` makes it.

    ``H[i]`` is the coarsening that leads from ``H.sheaves[i]`` to ``H.sheaves[i + 1]``; ``len(H)`` counts them, and iteration goes
    through them. With loops the last sheaf's Laplacian is exactly (R_0 R_1 ...)* L (R_0 R_1 ...), because at every level the
    coarse sheaf's Laplacian is the Galerkin operator (``thm:Galerkin_realization``).

    Attributes
    ----------
    fine : CellularSheaf
    levels : tuple of Coarsening
        Each ``fine`` is the ``sheaf`` of the one before; none where nothing was to be coarsened.
    stopped_because : str
        Why there is no further level.
    seconds : tuple of float
        How long each level took; NaN where that is not known, as after loading.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> H = sc.coarsen_levels(sc.CellularSheaf.constant(nx.path_graph(64)), factor=4, n_levels=2, rank=3)
    >>> [F.n_vertices for F in H.sheaves], H[1].fine is H.sheaves[1]
    ([64, 16, 4], True)
    """

    fine: CellularSheaf
    levels: tuple[Coarsening, ...]
    stopped_because: str = ""
    seconds: tuple[float, ...] | None = None  # None: not known

    def __post_init__(self):
        object.__setattr__(self, "levels", tuple(self.levels))
        seconds = (math.nan,) * len(self.levels) if self.seconds is None else tuple(self.seconds)
        object.__setattr__(self, "seconds", seconds)
        if len(seconds) != len(self.levels):
            raise ValueError(f"`seconds` must hold one number per level, {len(self.levels)} in all, got {len(seconds)}")
        above = check_sheaf(self.fine, "fine")
        for i, C in enumerate(self.levels):
            if not isinstance(C, Coarsening):
                raise TypeError(f"`levels[{i}]` must be a Coarsening, got {type(C).__name__}")
            if C.fine is not above:
                before = f"`levels[{i - 1}].sheaf`" if i else "`fine`"
                raise ValueError(f"`levels[{i}]` must be a coarsening of {before}, but its `fine` is another sheaf")
            above = C.sheaf

    def __len__(self) -> int:
        return len(self.levels)

    def __getitem__(self, i):
        return self.levels[i]

    def __iter__(self) -> Iterator[Coarsening]:
        return iter(self.levels)

    @property
    def sheaves(self) -> tuple[CellularSheaf, ...]:
        """The sheaves, the fine one first: one more than there are levels."""
        return (self.fine, *(C.sheaf for C in self.levels))

    @property
    def rebuilt_levels(self) -> tuple[int, ...]:
        """After :meth:`recoarsen`: levels whose index work was repeated, because the level before had to put loop rows back."""
        return tuple(i for i in range(1, len(self)) if self[i - 1].restored_loops.size)

    def prolongation(self, level: int | None = None) -> scipy.sparse.csr_array:
        """Return R_0 R_1 ... R_{level-1}, an isometry as they are, from C^0 of ``sheaves[level]`` to the fine C^0.

        Parameters
        ----------
        level : int, optional
            0 .. len(H), where 0 gives the identity; the coarsest by default.

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
        R = self[level - 1].prolongation
        for C in reversed(self.levels[: level - 1]):  # from the coarse end, where products are small
            R = C.prolongation @ R
        if level == 1:
            return R.copy()
        R.sort_indices()
        return R

    def pool(self, x, level: int | None = None) -> np.ndarray:
        """Return R* x on ``sheaves[level]``, the coarsest by default, R = R_0 R_1 ..., for a fine cochain x.

        Parameters
        ----------
        x : array_like, shape (dim_c0,) or (dim_c0, h)
        level : int, optional
            0 .. len(H).

        Returns
        -------
        ndarray, shape (dim,) or (dim, h), dim that of C^0 there

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> H = sc.coarsen_levels(sc.CellularSheaf.constant(nx.path_graph(64)), factor=4, n_levels=2, rank=3)
        >>> H.pool([1.0] * 64).shape, H.pool([1.0] * 64, level=1).shape
        ((12,), (48,))
        """
        level = self._level(level)
        x = np.array(cochain(self.fine, x, "x", " of the fine sheaf"))
        for C in self.levels[:level]:
            x = C.prolongation.conj().T @ x
        return x

    def lift(self, z, level: int | None = None) -> np.ndarray:
        """Return the fine cochain R z, R = R_0 R_1 ..., for a cochain z of ``sheaves[level]``, the coarsest by default.

        Parameters
        ----------
        z : array_like, shape (dim,) or (dim, h), dim that of C^0 there
        level : int, optional
            0 .. len(H).

        Returns
        -------
        ndarray, shape (dim_c0,) or (dim_c0, h)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> H = sc.coarsen_levels(sc.CellularSheaf.constant(nx.path_graph(64)), factor=4, n_levels=2, rank=3)
        >>> bool(abs(H.lift(H.pool([1.0] * 64)) - 1).max() < 1e-13)  # constants are kept
        True
        """
        level = self._level(level)
        z = np.array(cochain(self.sheaves[level], z, "z", f" of level {level}'s sheaf"))
        for C in reversed(self.levels[:level]):
            z = C.prolongation @ z
        return z

    def _level(self, level) -> int:
        """Return a valid number of a sheaf."""
        if level is None:
            return len(self)
        level = whole_number("level", level, at_least=0)
        if level > len(self):
            raise ValueError(
                f"`level` must be between 0, the fine sheaf, and {len(self)}, the coarsest, got {level}: `sheaves[level]` is meant"
            )
        return level

    def ledger(self, x) -> "HierarchyLedger":
        """Account for the energy of a fine cochain on its whole way down.

        Parameters
        ----------
        x : array_like, shape (dim_c0,) or (dim_c0, h)

        Returns
        -------
        HierarchyLedger

        Raises
        ------
        ValueError
            For a level whose basis is not orthonormal.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> H = sc.coarsen_levels(sc.CellularSheaf.constant(nx.path_graph(64)), factor=4, n_levels=2, rank=3)
        >>> E = H.ledger([0.0, 1.0] * 32)
        >>> E.fine_energy, bool(abs(E.closure) < 1e-14)
        (63.0, True)
        >>> E.coarsest_energy < 1e-3 * E.fine_energy  # a cochain that swings from vertex to vertex is hardly kept
        True
        """
        z = cochain(self.fine, x, "x", " of the fine sheaf")
        ledgers = []
        for i, C in enumerate(self.levels):
            with _at_level(i):
                ledgers.append(energy_ledger(C, z))
            z = C.prolongation.conj().T @ z
        return HierarchyLedger(tuple(ledgers), tuple(C.loops for C in self.levels), energy(self.sheaves[-1], z))

    def recoarsen(self, sheaf: CellularSheaf) -> "Hierarchy":
        """Coarsen another sheaf on the same graph in the same way: same partitions and ranks at every level, new maps.

        Every level is refreshed as :meth:`Coarsening.recoarsen` does it, without index work. Where a level must put loop rows
        back, its coarse sheaf has other loops than before: the next level is then rebuilt with the same partition and ranks, and
        ``rebuilt_levels`` names it.

        Parameters
        ----------
        sheaf : CellularSheaf
            On the graph of ``fine``, with stalks of the same dimensions; its scalar type may be another.

        Returns
        -------
        Hierarchy

        Raises
        ------
        ValueError
            For a sheaf on another graph or with other stalks.

        Warns
        -----
        TiedModesWarning
            As :func:`coarsen_levels` does.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.complete_graph(64))
        >>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=1)
        >>> H.recoarsen(F.with_maps(2 * F.tail_data, 2 * F.head_data)).rebuilt_levels
        ()
        >>> H.recoarsen(F.with_maps(F.tail_data, 2 * F.head_data)).rebuilt_levels  # constants have energy now
        (1,)
        """
        check_topology(self.fine, check_sheaf(sheaf), "coarsen_levels")
        levels: list[Coarsening] = []
        seconds = []
        for i, old in enumerate(self.levels):
            start = time.perf_counter()
            new_loops = i > 0 and levels[-1].restored_loops.size > 0
            with _at_level(i):
                target = levels[0].modes.target if i and levels[0].modes is not None else None
                C = refresh_coarsening(old, levels[-1].sheaf if i else sheaf, new_loops=new_loops, target=target)
            if C.modes is not None:
                warn_if_tied(C.modes, stacklevel=3, where=f"level {i}: ")
            levels.append(C)
            seconds.append(time.perf_counter() - start)
        return Hierarchy(sheaf, tuple(levels), self.stopped_because, tuple(seconds))

    def _rows(self) -> list[tuple[str, ...]]:
        """The table of all sheaves, its head first."""
        assert self.seconds is not None
        total = sum(self.seconds)
        shares = ["", *("-" if math.isnan(total) else f"{s / (total or 1.0):.0%}" for s in self.seconds)]
        head = ("vertices", "edges", "dim C^0", "dim C^1", "nonzeros", "time")
        rows: list[tuple[str, ...]] = [head]
        for F, share in zip(self.sheaves, shares, strict=True):
            counts = (F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1, count_nonzeros(F))
            rows.append((*(str(count) for count in counts), share))
        return rows

    def _head(self) -> str:
        why = f"; stopped because {self.stopped_because}" if self.stopped_because else ""
        return f"Hierarchy: {len(self)} level{'' if len(self) == 1 else 's'}{why}"

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        shown = [(i, *row) for i, row in enumerate(rows)]
        return _html.table(shown, head=("sheaf", *head), caption=self._head())

    def __repr__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        table = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
        numbers = ["", *map(str, range(len(rows) - 1))]
        lines = [self._head()]
        lines += [f"  {number:>2}  {line}".rstrip() for number, line in zip(numbers, table, strict=True)]
        lines += [
            f"  level {i} rebuilt: loop rows put back in {self[i - 1].restored_loops.size} clusters of level {i - 1}"
            for i in self.rebuilt_levels
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class HierarchyLedger:
    """The energy of a fine cochain x on its way to the coarsest sheaf; :meth:`Hierarchy.ledger` makes it.

    Level i has the cochain x_i = R_{i-1}* ... R_0* x. With loops the energy that it keeps is the fine energy of level i + 1, so that all that
    leaves is discarded or coupling energy; without loops the retained internal energy leaves too (realization loss).

    Attributes
    ----------
    levels : tuple of EnergyLedger
        That of each level for its own cochain.
    loops : tuple of bool
        Whether each level has loop-cells.
    coarsest_energy : float or ndarray, shape (h,)
        Energy of the pooled cochain in the coarsest sheaf, computed there.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> H = sc.coarsen_levels(sc.CellularSheaf.constant(nx.path_graph(64)), factor=4, n_levels=2, rank=3)
    >>> E = H.ledger([0.0, 1.0] * 32)
    >>> len(E.levels), E.loops, bool(E.coarsest_energy <= E.fine_energy)
    (2, (True, True), True)
    """

    levels: tuple[EnergyLedger, ...]
    loops: tuple[bool, ...]
    coarsest_energy: float | np.ndarray

    @property
    def fine_energy(self) -> float | np.ndarray:
        """norm(delta x)^2, computed on its own: the lines add up to it."""
        return self.levels[0].fine_energy if self.levels else self.coarsest_energy

    @property
    def lines(self) -> dict[str, float | np.ndarray]:
        """What leaves at each level, and the energy of the coarsest sheaf; they add up to the fine energy."""
        lines = {}
        for i, (E, loops) in enumerate(zip(self.levels, self.loops, strict=True)):
            kept = ("retained internal", "retained crossing") if loops else ("retained crossing",)
            lines.update({f"level {i}: {name}": value for name, value in E.lines.items() if name not in kept})
        return {**lines, "coarsest energy": self.coarsest_energy}

    @property
    def closure(self) -> float | np.ndarray:
        """(sum of lines - fine energy) / (sum of their moduli), 0 where all vanish.

        Near a global section every line is rounding and it says nothing, as in :class:`EnergyLedger`; ``verify`` judges each level.
        """
        return closure_of(self.lines, self.fine_energy)

    def _shown(self) -> dict[str, float | np.ndarray]:
        """The lines and what they add up to."""
        return {**self.lines, "fine energy": self.fine_energy, "closure": self.closure}

    def __repr__(self) -> str:
        return "HierarchyLedger\n" + show_lines(self._shown())

    def _repr_html_(self) -> str:
        return _html.table(_html.number_rows(self._shown()), caption="HierarchyLedger")


# ---------------------------------------------------------------- making the levels


class _Given(NamedTuple):
    """The caller's own partitions, one per level."""

    partitions: list[Partition]

    def next(self, sheaf: CellularSheaf, level: int) -> Partition | str:
        """Return the partition of a level, or why there is none."""
        if level < len(self.partitions):
            return self.partitions[level]
        return f"`partitions` holds {len(self.partitions)}"


class _Selected(NamedTuple):
    """Partitions by ``select``, until there are levels enough or vertices few enough."""

    factor: float
    n_levels: int | None
    min_vertices: int
    method: str
    seed: int
    progress: bool

    def next(self, sheaf: CellularSheaf, level: int) -> Partition | str:
        """Return the partition of a level, or why there is none."""
        n = sheaf.n_vertices
        if self.n_levels is not None and level >= self.n_levels:
            return f"`n_levels` = {self.n_levels}"
        if self.n_levels is None and n <= self.min_vertices:
            there = "1 vertex is" if n == 1 else f"{n} vertices are"
            return f"{there} at most `min_vertices` = {self.min_vertices}"
        if n <= 1:
            return f"level {level} cannot shrink: it starts from {n} vertices"
        wanted = math.ceil(n / self.factor)
        if wanted >= n:
            return f"level {level} cannot shrink: `factor` = {self.factor:g} makes {wanted} clusters of {n} vertices"
        components = _n_components(sheaf)
        if components >= n:
            return f"level {level} cannot shrink: none of its {n} vertices is linked to another"
        return select(sheaf, max(wanted, components), method=self.method, seed=self.seed, progress=self.progress)


def _n_components(sheaf: CellularSheaf) -> int:
    """Return the number of connected components of a sheaf's graph."""
    n, tails, heads = sheaf.n_vertices, sheaf.edges[:, 0], sheaf.edges[:, 1]
    graph = scipy.sparse.coo_array((np.ones(len(tails), np.int8), (tails, heads)), shape=(n, n)).tocsr()
    return int(connected_components(graph, directed=False, return_labels=False))


@contextlib.contextmanager
def _at_level(level: int):
    """Let errors begin with the level at which they arise."""
    try:
        yield
    except (ValueError, TypeError) as error:  # LinAlgError among them
        raise type(error)(f"level {level}: {error}") from error


def coarsen_levels(
    sheaf: CellularSheaf,
    factor: float = 10,
    n_levels: int | None = None,
    min_vertices: int = 100,
    *,
    rank,
    partitions=None,
    method: str = "auto",
    local_operator: str = "internal",
    rings: int | None = None,
    target: float | None = None,
    loops: bool = True,
    compress: bool = True,
    seed: int = 0,
    progress: bool = False,
) -> Hierarchy:
    """Coarsen a sheaf, then its coarse sheaf, and so on.

    A level is made while the sheaf has more than ``min_vertices`` vertices or, with ``n_levels``, until there are so many; or for each
    of ``partitions``. It ends early where a level cannot shrink: no two vertices are linked any more, ``factor`` leaves every vertex a cluster of
    its own, or the ranks keep no mode at all. ``stopped_because`` of the result says which.

    Parameters
    ----------
    sheaf : CellularSheaf
    factor : float
        Vertices per cluster, above 1: of n vertices, ceil(n / factor) clusters are made, and at least one per connected component.
    n_levels : int, optional
        Exactly so many levels, instead of ``min_vertices``.
    min_vertices : int
        A sheaf of so many vertices or fewer is not coarsened further.
    rank : int, rule from ``sc.ranks``, or list or tuple of one entry per level
        An entry is an integer, a rule, or an array of one integer per cluster of its level. Where neither ``n_levels`` nor
        ``partitions`` says how many levels there are, there are at most as many as entries.
    partitions : sequence of Partition, optional
        Your own, one per level: ``partitions[i + 1]`` labels the clusters of ``partitions[i]``. Instead of ``factor``,
        ``n_levels``, ``min_vertices``, ``method`` and ``seed``.
    method : {"auto", "balls", "matching", "spectral", "metis"}
        See :func:`select`.
    local_operator : {"internal", "principal", "oversampled"}
        See :func:`local_modes`.
    rings, target : int and float, optional
        For "oversampled" alone; see :func:`local_modes`. All levels have one target, by default that of the finest level's pilot.
    loops : bool
        False leaves the loop-cells out: every level then lacks the internal energy that the level before it retained.
    compress : bool
        See :func:`coarsen`. Without it the coarse edge stalks hold every fine edge that crosses, level after level.
    seed : int
        For :func:`select`.
    progress : bool
        Show progress bars.

    Returns
    -------
    Hierarchy

    Raises
    ------
    ValueError, TypeError
        Partitions that do not fit one another, arguments that exclude each other, and whatever :func:`select` and :func:`coarsen`
        refuse; from "level 0:" on where it arises at a level.

    Warns
    -----
    TiedModesWarning
        Where the cut splits a multiple eigenvalue, once per level.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.grid_2d_graph(40, 40))
    >>> H = sc.coarsen_levels(F, factor=10, rank=sc.ranks.fixed(4).whole_multiplets(), min_vertices=20)
    >>> len(H), H.stopped_because
    (2, '16 vertices are at most `min_vertices` = 20')
    >>> [G.n_vertices for G in H.sheaves]
    [1600, 160, 16]
    >>> H[1].fine is H[0].sheaf
    True
    """
    check_sheaf(sheaf)
    check_oversampling(local_operator, rings, target)
    loops, compress, progress = flag("loops", loops), flag("compress", compress), flag("progress", progress)
    plan: _Given | _Selected
    if partitions is None:
        plan = _selected(factor, n_levels, min_vertices, method, seed, progress)
        count = plan.n_levels
    else:
        defaults = {"factor": 10, "n_levels": None, "min_vertices": 100, "method": "auto", "seed": 0}
        given = {"factor": factor, "n_levels": n_levels, "min_vertices": min_vertices, "method": method, "seed": seed}
        plan = _given(sheaf, partitions, [name for name in given if not _is(given[name], defaults[name])])
        count = len(plan.partitions)
    ranks = _level_ranks(rank, count)
    found = None  # the target of a pilot on the finest level
    levels: list[Coarsening] = []
    seconds = []
    while True:
        i, start, current = len(levels), time.perf_counter(), levels[-1].sheaf if levels else sheaf
        if isinstance(ranks, list) and i == len(ranks) and count is None:
            why = f"`rank` has entries for {i} levels"
            break
        with _at_level(i):
            P = plan.next(current, i)
            if isinstance(P, str):
                why = P
                break
            of_level = ranks[i] if isinstance(ranks, list) else ranks
            modes = compute_modes(
                current, P, of_level, local_operator, rings=rings, target=target, found=found, progress=progress
            )
            found = modes.target if modes.pilot else None
            if partitions is None and not modes.ranks.any():
                why = f"level {i} would keep no mode of any cluster"
                break
            C = coarsen(current, P, modes, loops=loops, compress=compress)
        warn_if_tied(modes, stacklevel=3, where=f"level {i}: ")
        levels.append(C)
        seconds.append(time.perf_counter() - start)
    return Hierarchy(sheaf, tuple(levels), why, tuple(seconds))


def _selected(factor, n_levels, min_vertices, method, seed, progress) -> _Selected:
    """Check the arguments that say which levels are made."""
    factor = real_number("factor", factor)
    if not 1 < factor < math.inf:
        raise ValueError(
            f"`factor` must be above 1 and finite, got {factor:g}: it is the number of vertices per cluster"
        )
    least = whole_number("min_vertices", min_vertices, at_least=1)
    if n_levels is not None:
        n_levels = whole_number("n_levels", n_levels, at_least=0)
        if least != 100:
            raise ValueError(
                f"`n_levels` = {n_levels} and `min_vertices` = {least} both say when to stop: leave one of them out"
            )
    choice("method", method, METHODS)
    return _Selected(factor, n_levels, least, method, whole_number("seed", seed, at_least=0), progress)


def _is(value, default) -> bool:
    return type(value) is type(default) and value == default


def _given(sheaf: CellularSheaf, partitions, others: list[str]) -> _Given:
    """Check the caller's own partitions against the sheaf and one another, before any work is done."""
    if others:
        raise ValueError(f"`partitions` says what the levels are: leave `{others[0]}` out")
    if isinstance(partitions, Partition):
        raise TypeError(
            "`partitions` must be a sequence of Partitions, one per level, got a single one: [P] makes one level"
        )
    try:
        partitions = list(partitions)
    except TypeError:
        raise TypeError(
            f"`partitions` must be a sequence of Partitions, one per level, got {type(partitions).__name__}"
        ) from None
    n, what = sheaf.n_vertices, "the sheaf's {} vertices"
    for i, P in enumerate(partitions):
        if not isinstance(P, Partition):
            raise TypeError(
                f"`partitions[{i}]` must be a Partition, got {type(P).__name__}: Partition(labels) makes one"
            )
        if P.n_vertices != n:
            raise ValueError(f"`partitions[{i}]` must label {what.format(n)}, got a partition of {P.n_vertices}")
        n, what = P.n_clusters, f"the {{}} clusters of `partitions[{i}]`"
    return _Given(partitions)


def _level_ranks(rank, count: int | None):
    """Return one rule for all levels, or a list of one entry per level: a rule, or ranks per cluster that its level will check."""
    if isinstance(rank, list | tuple):
        if count is not None and len(rank) != count:
            raise ValueError(
                f"`rank` must have one entry per level, {count} in all, got {len(rank)}: an entry may itself be a list, "
                f"the ranks of its level's clusters"
            )
        return [entry if _has_items(entry) else _rule(f"rank[{i}]", entry) for i, entry in enumerate(rank)]
    if _has_items(rank):
        raise TypeError(
            f"`rank` must be an integer, a rule, or a list of one entry per level, got an array of shape {rank.shape}: "
            f"list(rank) is one rank per level, [rank] the ranks of one level's clusters"
        )
    return _rule("rank", rank)


def _has_items(rank) -> bool:
    return isinstance(rank, list | tuple) or (isinstance(rank, np.ndarray) and rank.ndim > 0)


def _rule(name: str, rank) -> Rule:
    """Return the rule that an integer or a rule stands for."""
    try:
        return as_rule(rank, 0)
    except (ValueError, TypeError) as error:
        raise type(error)(str(error).replace("`rank`", f"`{name}`")) from None
