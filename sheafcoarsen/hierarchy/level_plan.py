"""Partition and ranks of the next level, or the reason why there is no further level."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sheafcoarsen._support import choice, items, real_number, whole_number
from sheafcoarsen.partition import METHODS, Method, Partition, find_clusters
from sheafcoarsen.ranks import Rule, as_rule
from sheafcoarsen.sheaf import CellularSheaf, component_labels


@dataclass(frozen=True)
class SelectedPartitions:
    """Partitions by ``find_clusters``, for a number of levels or down to a number of vertices."""

    factor: float = 10
    n_levels: int | None = None
    min_vertices: int = 100
    method: Method = "auto"
    seed: int = 0
    progress: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", real_number("factor", self.factor))
        if not 1 < self.factor < math.inf:
            raise ValueError(
                f"`factor` must be above 1 and finite, got {self.factor:g}: "
                "it is the number of vertices per cluster"
            )
        for name, least in (("min_vertices", 1), ("n_levels", 0), ("seed", 0)):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole_number(name, value, at_least=least))
        if self.n_levels is not None and self.min_vertices != 100:
            raise ValueError(
                f"`n_levels` = {self.n_levels} and `min_vertices` = {self.min_vertices} "
                "exclude each other: omit one of them"
            )
        choice("method", self.method, METHODS)

    def next(self, sheaf: CellularSheaf, level: int) -> Partition | str:
        """Return the partition of a level, or the reason why there is none."""
        n = sheaf.n_vertices
        if self.n_levels is not None and level >= self.n_levels:
            return f"`n_levels` = {self.n_levels}"
        if self.n_levels is None and n <= self.min_vertices:
            there = "1 vertex is" if n == 1 else f"{n} vertices are"
            return f"{there} at most `min_vertices` = {self.min_vertices}"
        stuck = f"level {level} cannot shrink"
        if n <= 1:
            return f"{stuck}: it starts from {n} vertices"
        components = np.bincount(component_labels(n, sheaf.edges))
        if len(components) >= n:
            return f"{stuck}: none of its {n} vertices is linked to another"
        rest = components[components > self.factor]  # each smaller component is one cluster
        count = len(components) - len(rest) + math.ceil(rest.sum() / self.factor)
        if count >= n:
            return f"{stuck}: `factor` = {self.factor:g} makes {count} clusters of {n} vertices"
        _, labels = find_clusters(sheaf, count, self.method, seed=self.seed, progress=self.progress)
        return Partition(labels)


RankPerLevel = int | Rule | Sequence  # one rank or rule for all levels, or one entry per level


class LevelPlan:
    """Partition and ranks of every level; ``ranks`` is one rule, or a list with one per level.

    ``given`` are user-supplied partitions, converted by ``read``, or None if clusters are selected.
    """

    def __init__(
        self,
        fine: CellularSheaf,
        rank: RankPerLevel,
        partitions: Iterable | None,
        selection: dict[str, Any],
        progress: bool,
        read: Callable[[Any], Any] = lambda P: P,
    ) -> None:
        self.given: tuple[Partition, ...] | None = None
        if partitions is None:
            self.selected = SelectedPartitions(**selection, progress=progress)
            self.n_levels = self.selected.n_levels
            self.ranks = _checked_ranks(rank, self.n_levels)
            return
        defaults = {field.name: field.default for field in fields(SelectedPartitions)}
        for name, value in selection.items():
            if type(value) is not type(defaults[name]) or value != defaults[name]:
                raise ValueError(f"`partitions` determines the levels: omit `{name}`")
        what = "Partitions, one per level"
        if isinstance(partitions, Partition):
            raise TypeError(
                f"`partitions` must be a sequence of {what}, got a single one: pass [P] for one "
                "level"
            )
        self.given = tuple(read(P) for P in items("partitions", partitions, what))
        n, what = fine.n_vertices, "the sheaf's {} vertices"
        for i, P in enumerate(self.given):
            if not isinstance(P, Partition):
                raise TypeError(
                    f"`partitions[{i}]` must be a Partition, got {type(P).__name__}: "
                    "use Partition(labels) to make one"
                )
            if P.n_vertices != n:
                raise ValueError(
                    f"`partitions[{i}]` must label {what.format(n)}, got a partition of "
                    f"{P.n_vertices}"
                )
            n, what = P.n_clusters, f"the {{}} clusters of `partitions[{i}]`"
        self.n_levels = len(self.given)
        self.ranks = _checked_ranks(rank, self.n_levels)

    def next(self, sheaf: CellularSheaf, level: int) -> tuple[Partition, object] | str:
        """Return the partition and the ranks of a level, or why there is no such level."""
        if isinstance(self.ranks, list) and self.n_levels is None and level == len(self.ranks):
            return f"`rank` has entries for {level} levels"
        if self.given is None:
            P = self.selected.next(sheaf, level)
        elif level < len(self.given):
            P = self.given[level]
        else:
            P = f"`partitions` holds {level}"
        return P if isinstance(P, str) else (P, self.rank(level))

    def rank(self, level: int) -> object:
        """Return the ranks of a level."""
        if not isinstance(self.ranks, list):
            return self.ranks
        return self.ranks[level] if level < len(self.ranks) else None


def _checked_ranks(rank: Any, count: int | None) -> Rule | list:
    """Return ``rank`` as a rule, or as a list with one entry for each of ``count`` levels."""
    if isinstance(rank, list | tuple):
        if count is not None and len(rank) != count:
            raise ValueError(
                f"`rank` must have one entry per level, {count} in all, got {len(rank)}: "
                "to set the rank of every cluster of a level, use a list as its entry"
            )
        return [
            entry if _has_items(entry) else _rule(f"rank[{i}]", entry)
            for i, entry in enumerate(rank)
        ]
    if _has_items(rank):
        raise TypeError(
            "`rank` must be an integer, a rule, or a list of one entry per level, "
            f"got an array of shape {rank.shape}: pass list(rank) for one rank per level, or "
            "[rank] for the ranks of the clusters of a single level"
        )
    return _rule("rank", rank)


def _has_items(rank: Any) -> bool:
    return isinstance(rank, list | tuple) or (isinstance(rank, np.ndarray) and rank.ndim > 0)


def _rule(name: str, rank: Any) -> Rule:
    """Return the rank rule for an argument that is a rule or an integer."""
    try:
        return as_rule(rank, 0)
    except (ValueError, TypeError) as error:
        raise type(error)(str(error).replace("`rank`", f"`{name}`")) from None
