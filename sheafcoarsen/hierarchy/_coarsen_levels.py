"""Coarsens a sheaf, then the coarse sheaf, and so on."""

import itertools
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from sheafcoarsen import elimination
from sheafcoarsen._support import flag
from sheafcoarsen.coarsening import Coarsening, realized
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.hierarchy._hierarchy import Hierarchy, at_level, timed
from sheafcoarsen.hierarchy.level_plan import (
    GivenPartitions,
    LevelPlan,
    RankPerLevel,
    partitions_of,
)
from sheafcoarsen.modes import (
    LocalModes,
    LocalOperatorLike,
    compute_modes,
    local_operator_of,
    warn_if_empty,
    warn_if_tied,
)
from sheafcoarsen.partition import Method, Partition
from sheafcoarsen.ranks import Rule
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf


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
    seed: int = 0,
    progress: bool = False,
) -> Hierarchy:
    """Coarsen a sheaf, then its coarse sheaf, and so on.

    A level is made while the sheaf has more than ``min_vertices`` vertices or, with ``n_levels``,
    until there are so many; or for each of ``partitions``. It ends early where a level cannot
    shrink: no two vertices are linked any more, ``factor`` leaves every vertex a cluster of its
    own, or the ranks keep no mode at all. ``stopped_because`` of the result says which.

    Parameters
    ----------
    sheaf : CellularSheaf
    factor : float
        Vertices per cluster, above 1: of n vertices, ceil(n / factor) clusters are made. Connected
        components of at most ``factor`` vertices are a cluster each, and do not count in n then;
        there is at least one cluster for each of the others.
    n_levels : int, optional
        Exactly so many levels, instead of ``min_vertices``.
    min_vertices : int
        A sheaf of so many vertices or fewer is not coarsened further.
    rank : int, rule from ``sc.ranks``, or list or tuple of one entry per level
        An entry is an integer, a rule, or an array of one integer per cluster of its level. Where
        neither ``n_levels`` nor ``partitions`` says how many levels there are, there are at most as
        many as entries.
    partitions : sequence of Partition, optional
        Your own, one per level: ``partitions[i + 1]`` labels the clusters of ``partitions[i]``.
        Instead of ``factor``, ``n_levels``, ``min_vertices``, ``method`` and ``seed``.
    method : {"auto", "balls", "matching", "spectral", "metis"}
        See :func:`select`.
    local_operator : {"internal", "principal", "oversampled"}
        See :func:`local_modes`.
    rings, target : int and float, optional
        For "oversampled" alone; see :func:`local_modes`. All levels have one target, by default
        that of the finest level's pilot.
    loops : bool
        False leaves the loop-cells out: every level then lacks the internal energy that the level
        before it retained.
    compress : bool
        See :func:`coarsen`. Without it the coarse edge stalks hold every fine edge that crosses,
        level after level.
    eliminate : bool
        Let the first level be an :class:`Elimination`: ``H[0]`` has no leaves and chains left, and
        ``n_levels``, ``rank`` and ``partitions`` begin with the level after it. Its prolongation
        is harmonic and no isometry, so that eigenvalues do not interlace with the fine ones.
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
        Partitions that do not fit one another, arguments that exclude each other, and whatever
        :func:`select` and :func:`coarsen` refuse; from "level 0:" on where it arises at a level.

    Warns
    -----
    TiedModesWarning
        Where the cut splits a multiple eigenvalue, once per level.
    SingularProblemWarning
        Where ``ranks.kernel()`` finds no local section: there is then no level, or one of dimension
        0 for a partition of your own.

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
    loops, compress = flag("loops", loops), flag("compress", compress)
    progress = flag("progress", progress)
    options: dict[str, Any] = {
        "factor": factor,
        "n_levels": n_levels,
        "min_vertices": min_vertices,
        "method": method,
        "seed": seed,
    }
    first: list[Elimination] = []
    seconds, start, finest = [], time.perf_counter(), sheaf
    if flag("eliminate", eliminate):
        first = [elimination.eliminate(sheaf)]
        seconds, finest = [time.perf_counter() - start], first[0].sheaf
    source = partitions_of(finest, partitions, options, progress)
    make_modes = partial(compute_modes, operator=operator, progress=progress)
    realize = partial(realized, loops=loops, compress=compress)
    levels, why, more = further_levels(
        finest, LevelPlan(source, rank), make_modes, realize, before=len(first)
    )
    return timed(Hierarchy(sheaf, (*first, *levels), why), [*seconds, *more])


def further_levels(
    finest: CellularSheaf,
    plan: LevelPlan,
    make_modes: Callable[..., LocalModes],
    realize: Callable[..., Coarsening],
    *,
    begin: int = 0,
    before: int = 0,
) -> tuple[list[Coarsening], str, list[float]]:
    """Make the levels of a plan from ``begin`` on; return them, why they end, and their seconds."""
    given = isinstance(plan.partitions, GivenPartitions)
    levels: list[Coarsening] = []
    seconds: list[float] = []
    target: float | None = None
    for i in itertools.count(begin):
        start, number = time.perf_counter(), i + before
        above = levels[-1].sheaf if levels else finest
        with at_level(number):
            step = plan.next(above, i)
            if isinstance(step, str):
                return levels, step, seconds
            P, ranks = step
            modes = make_modes(above, P, ranks, found=target)
            target = modes.target  # of all levels, as the finest one's pilot found it
        where = f"level {number}: "
        seeks_sections = isinstance(ranks, Rule) and ranks.needs_kernels
        if seeks_sections and (i == 0 or given):
            warn_if_empty(modes, stacklevel=4, where=where)
        if not given and not modes.ranks.any():
            return levels, f"level {number} would keep no mode of any cluster", seconds
        with at_level(number):
            C = realize(modes.R, P, modes)
        warn_if_tied(modes, stacklevel=4, where=where)
        levels.append(C)
        seconds.append(time.perf_counter() - start)
    raise AssertionError
