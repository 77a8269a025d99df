"""Which partition and which ranks the next level takes."""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import choice, real_number, whole_number
from sheafcoarsen.partition import METHODS, Partition, select
from sheafcoarsen.ranks import Rule, as_rule
from sheafcoarsen.sheaf import CellularSheaf, component_count


class GivenPartitions(NamedTuple):
    """The caller's own partitions, one per level."""

    partitions: list[Partition]

    def next(self, sheaf: CellularSheaf, level: int) -> Partition | str:
        """Return the partition of a level, or why there is none."""
        if level < len(self.partitions):
            return self.partitions[level]
        return f"`partitions` holds {len(self.partitions)}"


class SelectedPartitions(NamedTuple):
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
        components = component_count(sheaf)
        if components >= n:
            return f"level {level} cannot shrink: none of its {n} vertices is linked to another"
        return select(
            sheaf,
            max(wanted, components),
            method=self.method,
            seed=self.seed,
            progress=self.progress,
        )


def selected_partitions(
    factor, n_levels, min_vertices, method, seed, progress
) -> SelectedPartitions:
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
    return SelectedPartitions(
        factor, n_levels, least, method, whole_number("seed", seed, at_least=0), progress
    )


def is_a(value, default) -> bool:
    return type(value) is type(default) and value == default


def given_partitions(sheaf: CellularSheaf, partitions, others: list[str]) -> GivenPartitions:
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
            raise ValueError(
                f"`partitions[{i}]` must label {what.format(n)}, got a partition of {P.n_vertices}"
            )
        n, what = P.n_clusters, f"the {{}} clusters of `partitions[{i}]`"
    return GivenPartitions(partitions)


def level_ranks(rank, count: int | None):
    """Return one rule for all levels, or a list of one entry per level: a rule, or ranks per cluster that its level will check."""
    if isinstance(rank, list | tuple):
        if count is not None and len(rank) != count:
            raise ValueError(
                f"`rank` must have one entry per level, {count} in all, got {len(rank)}: an entry may itself be a list, "
                f"the ranks of its level's clusters"
            )
        return [
            entry if _has_items(entry) else _rule(f"rank[{i}]", entry)
            for i, entry in enumerate(rank)
        ]
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
