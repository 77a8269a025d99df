"""Rank rules: the number of modes that each cluster retains.

A rule is a small frozen object; ``rule.whole_multiplets()`` returns a rule that does not split
multiple eigenvalues. The *score* of a mode is its eigenvalue, or its energy if it is oversampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeAlias

import numpy as np

from sheafcoarsen._support import EPS, checks, tables

__all__ = ["below", "budget", "fixed", "gap", "kernel"]


def __dir__() -> list[str]:
    """Return the names of the rules only."""
    return __all__


class Spectra(NamedTuple):
    """Spectral data of all clusters, the input of a rule."""

    dims: np.ndarray  # (K,) N_a
    starts: np.ndarray  # (K + 1,) offsets of each cluster's scores
    scores: np.ndarray  # (sum N_a,) ascending in each cluster; empty unless the rule needs them
    kernels: np.ndarray
    """(K,) dimension of each local kernel, decided by singular values.

    Zeros unless the rule needs them or modes are oversampled.
    """
    ties: np.ndarray
    """(sum N_a,) maximum gap between a score and the next one in the same multiplet.

    May be empty unless the rule needs scores.
    """


@dataclass(frozen=True)
class Rule:
    """Base class of all rules."""

    needs_scores = True
    needs_kernels = False

    def ranks(self, spectra: Spectra) -> np.ndarray:
        """Return the number of modes that each cluster retains, shape (K,), at most N_a."""
        raise TypeError(
            f"{type(self).__name__} is not a rank rule: use one of those in sheafcoarsen.ranks"
        )

    def whole_multiplets(self) -> Rule:
        """Return a rule that keeps whole multiplets where this rule would split them.

        Two adjacent scores belong to one multiplet if their gap is at most sqrt(eps) times the norm
        of the local operator, or for oversampled modes, times their own value.

        Returns
        -------
        Rule

        Examples
        --------
        A square of four vertices has the eigenvalues 0, 2, 2, 4:

        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F, P = sc.CellularSheaf.constant(nx.cycle_graph(4)), sc.Partition([0, 0, 0, 0])
        >>> sc.local_modes(F, P, sc.ranks.fixed(2).whole_multiplets()).ranks
        array([3])
        """
        return self if isinstance(self, WholeMultiplets) else WholeMultiplets(self)

    def _repr_html_(self) -> str:
        rows = [(item.name, str(getattr(self, item.name))) for item in fields(self)]
        return tables.table(rows, caption=f"{type(self).__name__}, a rank rule")


@dataclass(frozen=True)
class Fixed(Rule):
    """Rule that :func:`fixed` returns."""

    r: int | tuple[int, ...]
    needs_scores = False

    def ranks(self, spectra: Spectra) -> np.ndarray:
        """Return r, clipped to each cluster's dimension."""
        return np.minimum(np.asarray(self.r, dtype=np.int64), spectra.dims)


@dataclass(frozen=True)
class Kernel(Rule):
    """Rule that :func:`kernel` returns."""

    needs_scores = False
    needs_kernels = True

    def ranks(self, spectra: Spectra) -> np.ndarray:
        """Return the dimension of each local kernel."""
        return spectra.kernels.copy()


@dataclass(frozen=True)
class Below(Rule):
    """Rule that :func:`below` returns."""

    tau: float

    def ranks(self, spectra: Spectra) -> np.ndarray:
        """Return the number of scores that are at most tau."""
        return _count(spectra, spectra.scores <= self.tau)


@dataclass(frozen=True)
class Budget(Rule):
    """Rule that :func:`budget` returns."""

    total: int

    def ranks(self, spectra: Spectra) -> np.ndarray:
        """Return how many of the ``total`` lowest modes each cluster has, at least its kernel."""
        chosen = np.zeros(len(spectra.scores), dtype=bool)
        # stable sort: ties are broken by cluster index
        chosen[np.argsort(spectra.scores, kind="stable")[: self.total]] = True
        # kernels are nonzero only for oversampled modes, which always retain them
        return np.maximum(_count(spectra, chosen), spectra.kernels)


@dataclass(frozen=True)
class Gap(Rule):
    """Rule that :func:`gap` returns."""

    max_rank: int

    def ranks(self, spectra: Spectra) -> np.ndarray:
        """Return the position of the widest gap among the first max_rank + 1 scores."""
        ranks, starts = spectra.dims.copy(), spectra.starts[:-1]
        cluster = np.repeat(np.arange(len(ranks)), ranks)
        position = np.arange(len(cluster)) - starts[cluster]
        candidate = position < np.minimum(self.max_rank, ranks - 1)[cluster]
        jump, widest = np.diff(spectra.scores, append=0.0), np.full(len(ranks), -1.0)
        np.maximum.at(widest, cluster[candidate], jump[candidate])
        best = np.flatnonzero(candidate & (jump >= (1 - EPS**0.5) * widest[cluster]))[::-1]
        ranks[cluster[best]] = position[best] + 1  # the first of equal gaps is written last
        return ranks


@dataclass(frozen=True)
class WholeMultiplets(Rule):
    """Rule that extends the ranks of another rule to the ends of multiplets."""

    rule: Rule

    @property
    def needs_kernels(self) -> bool:  # type: ignore[override]
        """Whether the wrapped rule needs kernels."""
        return self.rule.needs_kernels

    def ranks(self, spectra: Spectra) -> np.ndarray:
        """Return the ranks of the wrapped rule, extended to the ends of multiplets."""
        ranks = self.rule.ranks(spectra)
        n = len(spectra.scores)
        jump = np.diff(spectra.scores, append=np.inf)
        last = np.zeros(n, dtype=bool)
        last[spectra.starts[1:][spectra.dims > 0] - 1] = True
        ends = np.where(last | (jump > spectra.ties), np.arange(n), n)
        end = np.minimum.accumulate(ends[::-1])[::-1]  # where the multiplet of each score ends
        kept = np.flatnonzero(ranks > 0)
        ranks[kept] = (
            end[spectra.starts[:-1][kept] + ranks[kept] - 1] - spectra.starts[:-1][kept] + 1
        )
        return ranks


def _count(spectra: Spectra, chosen: np.ndarray) -> np.ndarray:
    cluster = np.repeat(np.arange(len(spectra.dims)), spectra.dims)
    return np.bincount(cluster[chosen], minlength=len(spectra.dims)).astype(np.int64)


def fixed(r: int) -> Fixed:
    """Keep ``r`` modes in every cluster; an integer ``rank`` means this rule.

    Parameters
    ----------
    r : int
        At least 0; clipped to N_a in clusters with fewer modes.

    Returns
    -------
    Rule

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F, P = sc.CellularSheaf.constant(nx.path_graph(5)), sc.Partition([0, 0, 0, 0, 1])
    >>> sc.local_modes(F, P, sc.ranks.fixed(3)).ranks
    array([3, 1])
    """
    return Fixed(min(checks.whole_number("r", r, at_least=0), checks.MAX_DIMENSION))


def kernel() -> Kernel:
    """Keep all modes of zero energy: the local sections.

    Singular values of the local coboundary, with maps scaled to entries of about 1, count as zero
    up to ``max(rows, N_a) eps`` times the largest one or the norms of loops, and the basis consists
    of right singular vectors; eigenvalues of L_a could not distinguish maps that differ by less
    than about sqrt(eps). The coarse sheaf then needs no loops (``eq:loopless_condition``).

    Returns
    -------
    Rule

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.gallery.bundle(nx.path_graph(6), 2, seed=5)
    >>> sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), sc.ranks.kernel())
    Coarsening(internal modes: 6 -> 2 vertices, dim C^0 12 -> 4, 5 -> 1 edges + 0 loops)
    """
    return Kernel()


def below(tau: float) -> Below:
    """Keep the modes whose score is at most ``tau``.

    Parameters
    ----------
    tau : float
        At least 0; in units of the local operator's eigenvalues.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError, TypeError
        For a negative number, NaN, or anything but a number.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F, P = sc.CellularSheaf.constant(nx.path_graph(5)), sc.Partition([0, 0, 0, 1, 1])
    >>> sc.local_modes(F, P, sc.ranks.below(1.5)).ranks  # eigenvalues 0, 1, 3 and 0, 2
    array([2, 1])
    """
    number = checks.real_number("tau", tau)
    if not number >= 0:
        raise ValueError(f"`tau` must be at least 0, got {tau!r}")
    return Below(number)


def budget(total: int) -> Budget:
    """Keep the ``total`` modes of lowest score over all clusters; break ties by cluster index.

    The ranks sum to ``min(total, dim_c0)``. If this is less than the number of modes of eigenvalue
    zero, which is the sum of the ranks of :func:`kernel`, a ``SingularProblemWarning`` says so,
    because the coarse sheaf may lose global sections. Kernels of oversampled modes are always
    retained; if they alone exceed the budget, ``LocalModes.over_budget`` is the excess. A global
    order usually gives better results than equal ranks, because hard clusters get more modes; it
    may not if weights vary strongly between regions.

    Parameters
    ----------
    total : int
        At least 0.

    Returns
    -------
    Rule

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F, P = sc.CellularSheaf.constant(nx.path_graph(7)), sc.Partition([0, 0, 0, 0, 0, 1, 1])
    >>> sc.local_modes(F, P, sc.ranks.budget(4)).ranks
    array([3, 1])
    """
    return Budget(min(checks.whole_number("total", total, at_least=0), checks.MAX_DIMENSION))


def gap(max_rank: int) -> Gap:
    """Cut each spectrum at its widest gap.

    A cluster keeps the r in 1 .. min(max_rank, N_a - 1) with the largest score_{r+1} - score_r, the
    smallest such r; N_a if N_a is at most 1.

    Parameters
    ----------
    max_rank : int
        At least 1.

    Returns
    -------
    Rule

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F, P = sc.CellularSheaf.constant(nx.barbell_graph(4, 0)), sc.Partition([0] * 8)
    >>> sc.local_modes(F, P, sc.ranks.gap(4)).ranks  # two cliques: two low modes
    array([2])
    """
    return Gap(min(checks.whole_number("max_rank", max_rank, at_least=1), checks.MAX_DIMENSION))


RankLike: TypeAlias = int | Sequence[int] | np.ndarray | Rule
"""Type of ``rank=``: an integer, one integer per cluster, or a rule."""


def as_rule(rank: RankLike, n_clusters: int) -> Rule:
    """Convert ``rank`` to a rank rule; a rule is returned unchanged.

    Parameters
    ----------
    rank : int, array_like of int, shape (K,), or Rule
    n_clusters : int
        Number of clusters K.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError, TypeError
        For any other value.

    Examples
    --------
    >>> from sheafcoarsen.ranks import as_rule
    >>> as_rule([1, 2], n_clusters=2)
    Fixed(r=(1, 2))
    """
    if isinstance(rank, Rule):
        return rank
    if isinstance(rank, list | tuple):  # clip first: conversion to int64 could overflow
        rank = [min(r, checks.MAX_DIMENSION) if type(r) is int else r for r in rank]
    if checks.is_scalar("rank", rank):
        one = np.asarray(rank)[()]  # also of other libraries' arrays
        if isinstance(one, bool | np.bool_) or not isinstance(one, int | np.integer):
            hint = ""
            if getattr(rank, "__module__", None) == __name__:
                hint = f": call it, sc.ranks.{getattr(rank, '__name__', 'rule')}(...)"
            raise TypeError(
                "`rank` must be an integer, one integer per cluster, or a rule from sc.ranks such "
                f"as sc.ranks.kernel(), got {rank!r}{hint}"
            )
        return Fixed(min(checks.whole_number("rank", one, at_least=0), checks.MAX_DIMENSION))
    array = np.asarray(rank)
    if array.dtype.kind == "f" and array.size:
        raise TypeError(f"`rank` must hold integers, got dtype {array.dtype}")
    ranks = checks.integer_array("rank", array)
    if len(ranks) != n_clusters:
        raise ValueError(
            f"`rank` must hold one integer per cluster, {n_clusters} in all, got {len(ranks)}"
        )
    if (a := checks.first_true(ranks < 0)) is not None:
        raise ValueError(f"`rank` must not be negative, got {ranks[a]} for cluster {a}")
    return Fixed(tuple(ranks.tolist()))
