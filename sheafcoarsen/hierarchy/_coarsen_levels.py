"""Repeated coarsening, level by level."""

import itertools
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from sheafcoarsen import elimination, solve
from sheafcoarsen._support import flag, fraction
from sheafcoarsen.coarsening import Coarsening, growth_of, realized
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.hierarchy._hierarchy import Hierarchy, at_level
from sheafcoarsen.hierarchy.level_plan import LevelPlan, RankPerLevel
from sheafcoarsen.modes import (
    LocalModes,
    LocalOperatorLike,
    compute_modes,
    local_operator_of,
    warn_if_empty,
    warn_if_sections_lost,
    warn_if_tied,
)
from sheafcoarsen.partition import Method, Partition
from sheafcoarsen.ranks import Rule
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf
from sheafcoarsen.solve import Sparsification


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
        A sheaf with at most this number of vertices is not coarsened further.
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
        level. The bounds of these levels multiply.
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
    loops, compress = flag("loops", loops), flag("compress", compress)
    progress = flag("progress", progress)
    eps = None if sparsify is None else fraction("sparsify", sparsify)
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
    plan = LevelPlan(finest, rank, partitions, options, progress)
    make_modes = partial(compute_modes, operator=operator, progress=progress)
    realize = partial(realized, loops=loops, compress=compress)
    thin = None if eps is None else partial(solve.sparsify, eps=eps, seed=seed)
    levels, why, more = further_levels(
        finest, plan, make_modes, realize, before=len(first), thin=thin
    )
    H = Hierarchy(sheaf, (*first, *levels), why)
    object.__setattr__(H, "seconds", (*seconds, *more))
    return H


def further_levels(
    finest: CellularSheaf,
    plan: LevelPlan,
    make_modes: Callable[..., LocalModes],
    realize: Callable[..., Coarsening],
    *,
    begin: int = 0,
    before: int = 0,
    thin: Callable[[CellularSheaf], Sparsification] | None = None,
) -> tuple[list[Any], str, list[float]]:
    """Return the levels of a plan from ``begin`` on, the reason why they end, and their times.

    After each level whose Laplacian grew, ``thin`` adds a sparsified level unless it keeps all
    edges.
    """
    levels: list[Any] = []
    seconds: list[float] = []
    target: float | None = None
    for i in itertools.count(begin):
        start, number = time.perf_counter(), begin + before + len(levels)
        above = levels[-1].sheaf if levels else finest
        with at_level(number):
            step = plan.next(above, i)
            if isinstance(step, str):
                return levels, step, seconds
            P, ranks = step
            modes = make_modes(above, P, ranks, found=target)
            target = modes.target  # the finest level's pilot determines the target of all levels
        where = f"level {number}: "
        seeks_sections = isinstance(ranks, Rule) and ranks.needs_kernels
        if seeks_sections and (i == 0 or plan.given):
            warn_if_empty(above.dim_c0, modes.ranks, modes.next_eigenvalues, 4, where)
        if plan.given is None and not modes.ranks.any():
            return levels, f"level {number} would keep no mode of any cluster", seconds
        with at_level(number):
            C = realize(modes.R, P, modes)
        warn_if_tied(modes.tied.sum(), stacklevel=4, where=where)
        warn_if_sections_lost(modes._discards_zero.sum(), len(modes.ranks), ranks, 4, where)
        levels.append(C)
        seconds.append(time.perf_counter() - start)
        if thin is not None and growth_of(C):
            start = time.perf_counter()
            Z = thin(C.sheaf)
            if Z.sheaf.n_edges < C.sheaf.n_edges:
                levels.append(Z)
                seconds.append(time.perf_counter() - start)
    raise AssertionError
