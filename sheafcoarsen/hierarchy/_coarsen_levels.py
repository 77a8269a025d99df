"""Repeated coarsening: partition and ranks of every level, and the loop over levels."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sheafcoarsen import elimination, solve
from sheafcoarsen._support import checks
from sheafcoarsen.coarsening import growth_of, realized
from sheafcoarsen.hierarchy._hierarchy import Hierarchy, at_level, timed_hierarchy
from sheafcoarsen.modes import (
    LocalOperatorLike,
    compute_modes,
    local_operator_of,
    warn_if_empty,
    warn_if_sections_lost,
    warn_if_tied,
)
from sheafcoarsen.partition import METHODS, Method, Partition, find_clusters
from sheafcoarsen.ranks import Rule, as_rule
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, component_labels

RankPerLevel = int | Rule | Sequence  # one rank or rule for all levels, or one entry per level

SELECTION = {"factor": 10, "n_levels": None, "min_vertices": 100, "method": "auto", "seed": 0}
"""Default options of the selection of clusters, which user-supplied partitions replace."""


class LevelPlan:
    """Partition and ranks of every level; ``ranks`` is a rule, or a list of one entry per level.

    ``given`` are user-supplied partitions, or None if clusters are selected with the options
    ``selection``, for ``n_levels`` levels or down to ``min_vertices``.
    """

    def __init__(
        self,
        fine: CellularSheaf,
        rank: RankPerLevel,
        partitions: Iterable | None,
        selection: dict[str, Any],
        progress: bool,
    ) -> None:
        self.given: tuple[Partition, ...] | None = None
        self.progress = progress
        if partitions is None:
            self.selection = _checked_selection(selection)
            self.n_levels = self.selection["n_levels"]
        else:
            for name, value in selection.items():
                if type(value) is not type(SELECTION[name]) or value != SELECTION[name]:
                    raise ValueError(f"`partitions` determines the levels: omit `{name}`")
            self.given = checks.items("partitions", partitions, "Partitions, one per level")
            self.n_levels = len(self.given)
            n, labelled = fine.n_vertices, f"the sheaf's {fine.n_vertices} vertices"
            for i, P in enumerate(self.given):
                if not isinstance(P, Partition):
                    raise TypeError(
                        f"`partitions[{i}]` must be a Partition, got {type(P).__name__}: "
                        "use Partition(labels) to make one"
                    )
                if P.n_vertices != n:
                    raise ValueError(
                        f"`partitions[{i}]` must label {labelled}, "
                        f"got a partition of {P.n_vertices}"
                    )
                n, labelled = P.n_clusters, f"the {P.n_clusters} clusters of `partitions[{i}]`"
        self.ranks: Any = _checked_ranks(rank, self.n_levels)

    def next(self, sheaf: CellularSheaf, level: int) -> tuple[Partition, object] | str:
        """Return the partition and the ranks of a level, or why there is no such level."""
        several = isinstance(self.ranks, list)
        if several and self.n_levels is None and level == len(self.ranks):
            return f"`rank` has entries for {level} levels"
        if level == self.n_levels:
            return f"`n_levels` = {level}" if self.given is None else f"`partitions` holds {level}"
        ranks = self.ranks[level] if several else self.ranks
        if self.given is not None:
            return self.given[level], ranks
        n, least = sheaf.n_vertices, self.selection["min_vertices"]
        if self.n_levels is None and n <= least:
            there = "1 vertex is" if n == 1 else f"{n} vertices are"
            return f"{there} at most `min_vertices` = {least}"
        stuck = f"level {level} cannot shrink"
        if n <= 1:
            return f"{stuck}: it starts from {n} vertices"
        components = np.bincount(component_labels(n, sheaf.edges))
        if len(components) >= n:
            return f"{stuck}: none of its {n} vertices is linked to another"
        factor = self.selection["factor"]
        rest = components[components > factor]  # each other component is one cluster
        count = len(components) - len(rest) + math.ceil(rest.sum() / factor)
        if count >= n:
            return f"{stuck}: `factor` = {factor:g} makes {count} clusters of {n} vertices"
        method, seed = self.selection["method"], self.selection["seed"]
        labels = find_clusters(sheaf, count, method, seed=seed, progress=self.progress)[1]
        return Partition(labels), ranks


def _checked_selection(selection: dict[str, Any]) -> dict[str, Any]:
    """Check the options of the selection of clusters, and return them."""
    checked = {**selection, "factor": checks.real_number("factor", selection["factor"])}
    if not 1 < checked["factor"] < math.inf:
        raise ValueError(
            f"`factor` must be above 1 and finite, got {checked['factor']:g}: "
            "it is the number of vertices per cluster"
        )
    for name, least in (("min_vertices", 1), ("n_levels", 0), ("seed", 0)):
        if checked[name] is not None:
            checked[name] = checks.whole_number(name, checked[name], at_least=least)
    n_levels, min_vertices = checked["n_levels"], checked["min_vertices"]
    if n_levels is not None and min_vertices != SELECTION["min_vertices"]:
        raise ValueError(
            f"`n_levels` = {n_levels} and `min_vertices` = {min_vertices} "
            "exclude each other: omit one of them"
        )
    checks.choice("method", checked["method"], METHODS)
    return checked


def _checked_ranks(rank: Any, count: int | None) -> Rule | list:
    """Return ``rank`` as a rule or a list of entries, one for each of ``count`` levels if given."""
    several = isinstance(rank, list | tuple)
    if several and count not in (None, len(rank)):
        raise ValueError(
            f"`rank` must have one entry per level, {count} in all, got {len(rank)}: "
            "to set the rank of every cluster of a level, use a list as its entry"
        )
    if isinstance(rank, np.ndarray) and rank.ndim:
        raise TypeError(
            "`rank` must be an integer, a rule, or a list of one entry per level, "
            f"got an array of shape {rank.shape}: pass list(rank) for one rank per level, or "
            "[rank] for the ranks of the clusters of a single level"
        )
    checked: list[Any] = []
    for i, entry in enumerate(rank if several else [rank]):
        if isinstance(entry, list | tuple) or (isinstance(entry, np.ndarray) and entry.ndim):
            checked.append(entry)  # one rank per cluster
            continue
        try:
            checked.append(as_rule(entry, 0))
        except (ValueError, TypeError) as error:
            name = f"`rank[{i}]`" if several else "`rank`"
            raise type(error)(str(error).replace("`rank`", name)) from None
    return checked if several else checked[0]


def coarsen_levels(  # noqa: PLR0913 (public, options by keyword)
    sheaf: CellularSheaf,
    factor: float = 10,
    n_levels: int | None = None,
    min_vertices: int = 100,
    *,
    rank: RankPerLevel,
    partitions: Iterable[Partition] | None = None,
    method: Method = "auto",
    local_operator: LocalOperatorLike = "internal",
    rings: int | None = None,
    target: float | None = None,
    loops: bool = True,
    compress: bool = True,
    eliminate: bool = False,
    sparsify: float | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Hierarchy:
    """Coarsen a sheaf repeatedly: first the sheaf, then its coarse sheaf, and so on.

    Levels are added as long as the sheaf has more than ``min_vertices`` vertices, or until there
    are ``n_levels`` levels or one per partition in ``partitions``. There are fewer levels if a
    level cannot shrink, because no two vertices are linked, every vertex would be a cluster, or all
    ranks are zero. ``stopped_because`` of the result gives the reason.

    Parameters
    ----------
    sheaf : CellularSheaf
    factor : float
        Mean number of vertices per cluster, above 1: n vertices give ceil(n / factor) clusters.
        Every connected component of at most ``factor`` vertices is one cluster and not counted in
        n; every other component has at least one cluster.
    n_levels : int, optional
        Number of coarsenings, as an alternative to ``min_vertices``; an elimination and
        sparsifications are not counted.
    min_vertices : int
        A sheaf with at most this number of vertices is not coarsened further; a finest sheaf that
        is as small has no levels.
    rank : int, rule from ``sc.ranks``, or list or tuple of one entry per level
        Number of modes per cluster. An entry is an integer, a rule, or an array of one integer per
        cluster of its level. Without ``n_levels`` and ``partitions`` there are at most as many
        levels as entries.
    partitions : sequence of Partition, optional
        User-supplied partitions, one per level: ``partitions[i + 1]`` labels the clusters of
        ``partitions[i]``. They replace ``factor``, ``n_levels``, ``min_vertices``, ``method`` and
        ``seed``.
    method : {"auto", "balls", "matching", "spectral", "metis"}
        See :func:`select`.
    local_operator : {"internal", "principal", "oversampled"}
        See :func:`local_modes`.
    rings, target : int and float, optional
        For "oversampled" only; see :func:`local_modes`. All levels have the same target, by
        default that of the finest level's pilot.
    loops : bool
        If False, omit the loop-cells; every level then lacks the internal energy that the previous
        level retained.
    compress : bool
        See :func:`coarsen`. If False, the coarse edge stalks contain every fine crossing edge at
        all levels.
    eliminate : bool
        Make the first level an :class:`Elimination`: ``H[0]`` eliminates leaves and chains, and
        ``n_levels``, ``rank`` and ``partitions`` begin with the next level. Its prolongation is
        harmonic and not an isometry, so eigenvalues do not interlace with the fine ones.
    sparsify : float, optional
        The ``eps`` of :func:`sparsify`. After each level whose Laplacian has more entries than
        that of the previous level, a :class:`Sparsification` of its sheaf is added as the next
        level, unless it keeps all edges. The bounds of these levels multiply.
    seed : int
        Random seed for :func:`select` and :func:`sparsify`.
    progress : bool
        Show progress bars.

    Returns
    -------
    Hierarchy

    Raises
    ------
    ValueError, TypeError
        If partitions are inconsistent, arguments exclude each other, or :func:`select` or
        :func:`coarsen` raise an error; the message then begins with the level, as in "level 0:".

    Warns
    -----
    TiedModesWarning
        If the cut splits a multiple eigenvalue; at most once per level.
    SingularProblemWarning
        If ``ranks.kernel()`` retains no mode: the level is then omitted, or has dimension 0 for a
        user-supplied partition. If ``ranks.budget(total)`` discards modes of eigenvalue zero.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.grid_2d_graph(40, 40))
    >>> rank = sc.ranks.fixed(4).whole_multiplets()
    >>> H = sc.coarsen_levels(F, factor=10, rank=rank, min_vertices=20)
    >>> len(H), H.stopped_because
    (2, '16 vertices are at most `min_vertices` = 20')
    >>> [G.n_vertices for G in H.sheaves]
    [1600, 160, 16]
    >>> H[1].fine is H[0].sheaf
    True
    """
    check_sheaf(sheaf)
    operator = local_operator_of(local_operator, rings, target)
    loops, compress = checks.flag("loops", loops), checks.flag("compress", compress)
    progress = checks.flag("progress", progress)
    eps = None if sparsify is None else checks.fraction("sparsify", sparsify)
    start = time.perf_counter()
    levels: list[Any] = []
    if checks.flag("eliminate", eliminate):
        levels.append(elimination.eliminate(sheaf))
    seconds = [time.perf_counter() - start] * len(levels)
    options = factor, n_levels, min_vertices, method, seed
    selection = dict(zip(SELECTION, options, strict=True))
    above = levels[-1].sheaf if levels else sheaf
    plan = LevelPlan(above, rank, partitions, selection, progress)
    found: float | None = None
    for i in itertools.count():
        start, number = time.perf_counter(), len(levels)
        where = f"level {number}: "
        with at_level(number):
            step = plan.next(above, i)
            if isinstance(step, str):
                stopped_because = step
                break
            P, ranks = step
            modes = compute_modes(above, P, ranks, operator, found=found, progress=progress)
            found = modes.target  # the finest level's pilot determines the target of all levels
        seeks_sections = isinstance(ranks, Rule) and ranks.needs_kernels
        if seeks_sections and (i == 0 or plan.given):
            warn_if_empty(above.dim_c0, modes.ranks, modes.next_eigenvalues, where)
        if plan.given is None and not modes.ranks.any():
            stopped_because = f"level {number} would keep no mode of any cluster"
            break
        with at_level(number):
            C = realized(modes.R, P, modes, loops=loops, compress=compress)
        zero = modes._discards_zero
        warn_if_tied(modes.tied, zero, where)
        warn_if_sections_lost(zero.sum(), len(modes.ranks), ranks, where)
        levels.append(C)
        seconds.append(time.perf_counter() - start)
        if eps is not None and growth_of(C):
            start = time.perf_counter()
            Z = solve.sparsify(C.sheaf, eps, seed=seed)
            if Z.sheaf.n_edges < C.sheaf.n_edges:
                levels.append(Z)
                seconds.append(time.perf_counter() - start)
        above = levels[-1].sheaf
    return timed_hierarchy(sheaf, levels, stopped_because, seconds)
