"""Checked arguments of `coarsen`, and an estimate of its memory and input/output."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import checks
from sheafcoarsen.distributed._open_store import PartitionStore, SheafStore, amount, check_store
from sheafcoarsen.distributed.plan import Plan
from sheafcoarsen.modes import (
    LocalOperator,
    LocalOperatorLike,
    Oversampled,
    Principal,
    is_large,
    local_operator_of,
)
from sheafcoarsen.partition import Partition
from sheafcoarsen.ranks import Budget, Fixed, Gap, RankLike, Rule, WholeMultiplets, as_rule

BASE = 2.6e8
"""Memory in bytes of a process that has imported the library."""

NEED = 2.0
"""Ratio of a task's memory to the size of its arrays (its maps, and the rows of R and the coarse
maps that it makes): reading and writing need as much memory again."""

USABLE = 0.8
"""Fraction of a worker's memory at which Dask pauses the worker."""


class Request:
    """Validated arguments of `coarsen`; ``run`` is a fingerprint of the decisive ones."""

    def __init__(
        self,
        src: Any,
        P: Any,
        rank: RankLike,
        local_operator: LocalOperatorLike = "internal",
        n_shards: int | None = None,
        *,
        loops: bool = True,
        compress: bool = True,
    ) -> None:
        self.source = check_store(src, "src")
        if isinstance(P, PartitionStore):
            P = P.load()
        self.P = P if isinstance(P, Partition) else Partition(P)
        if self.P.n_vertices != self.source.n_vertices:
            raise ValueError(
                f"`P` must label the {self.source.n_vertices} vertices of {self.source.url}, "
                f"got a partition of {self.P.n_vertices}"
            )
        self.operator = checked_operator(local_operator)
        if n_shards is not None:
            n_shards = checks.whole_number("n_shards", n_shards, at_least=1)
        self.n_shards = n_shards
        self.loops, self.compress = checks.flag("loops", loops), checks.flag("compress", compress)
        self.rule = as_rule(rank, self.P.n_clusters)
        names = self.source.header.id, repr(self.rule), self.operator.name
        digest = hashlib.sha256(repr((*names, self.loops, self.compress)).encode())
        digest.update(self.P.labels.astype(np.int64, copy=False).tobytes())
        self.run = digest.hexdigest()[:16]


def checked_operator(local_operator: LocalOperatorLike) -> LocalOperator:
    """Return the local operator; raise an error for oversampling, which needs other shards."""
    operator = local_operator_of(local_operator)
    if isinstance(operator, Oversampled):
        raise ValueError(
            '`local_operator` = "oversampled" needs patches that extend into other shards, '
            'which tasks cannot read: use "internal" or "principal", or coarsen src.load()'
        )
    return operator


@dataclass(frozen=True)
class Estimate:
    """Estimated cost of coarsening a stored sheaf, returned by :func:`estimate`.

    Attributes
    ----------
    n_shards, n_parts : int
        Number of shards, and of parts of the source.
    source_bytes : int
        Bytes of all maps.
    largest_shard, largest_part : int
        Bytes of maps of the largest shard or border (for principal modes, of a shard together with
        its border), and of the largest part.
    largest_cluster : int
        Bytes of the maps at the vertices of the largest cluster, including those of its crossing
        edges. For principal modes, no number of shards makes shards smaller than this.
    dense_bytes : int
        Workspace for the largest cluster whose modes are computed with dense matrices.
    border_share : float
        Fraction of the maps that belong to edges between two shards.
    task_bytes : int
        Memory of the largest task, including that of a process with the library.
    driver_bytes : int
        Memory of the planning process: its arrays of edges and vertices, and the grouping of
        clusters into shards, without the names of vertices.
    bytes_moved : int
        Bytes read and written in total.
    scratch_bytes : int
        Bytes of temporary files during the run, in addition to the result.
    out_bytes : int
        Bytes of the result without compression.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> F = sc.CellularSheaf.random(nx.grid_2d_graph(12, 12), 2, 3, seed=3)
    >>> src = dist.to_store("memory://estimate", F)
    >>> E = dist.estimate(src, sc.select(F, 9), 3, n_shards=3)
    >>> E.n_shards, E.source_bytes == src.n_bytes
    (3, True)
    """

    n_shards: int
    n_parts: int
    source_bytes: int
    largest_shard: int
    largest_part: int
    largest_cluster: int
    dense_bytes: int
    border_share: float
    task_bytes: int
    driver_bytes: int
    bytes_moved: int
    scratch_bytes: int
    out_bytes: int

    def __str__(self) -> str:
        rows = [
            ("source", f"{amount(self.source_bytes)} of maps in {self.n_parts} parts"),
            (
                "shards",
                f"{self.n_shards}, up to {amount(self.largest_shard)}; {self.border_share:.1%} of "
                f"the maps between two",
            ),
            ("memory", f"{amount(self.task_bytes)} a task, {amount(self.driver_bytes)} to plan"),
            ("moved", amount(self.bytes_moved)),
            ("scratch", amount(self.scratch_bytes)),
            ("result", f"at most {amount(self.out_bytes)}"),
        ]
        return "\n".join(f"{name:<8} {value}" for name, value in rows)


def planned(
    asked: Request, memory: float, at_once: int = 1, n_shards: int | None = None
) -> tuple[Plan, Estimate]:
    """Return the plan of a run, and the estimated cost for the ranks of `bound_of_ranks`."""
    n_shards = n_shards or asked.n_shards
    n_shards = n_shards or default_shards(asked.source.n_bytes, memory, at_once)
    copies = isinstance(asked.operator, Principal)
    plan = Plan(asked.source, asked.P, n_shards, copies=copies)
    S, size = plan.n_shards, plan.itemsize
    ranks = bound_of_ranks(asked.rule, plan.dims)
    inner, border = plan.bytes[:S], plan.bytes[S : 2 * S]
    # bytes that shards, and then borders, read and make: R with the maps of loops, and coarse edges
    read = np.concatenate([inner + border + plan.bytes[2 * S :] if copies else inner, border])
    made = np.zeros(2 * S)
    made[:S] = np.bincount(plan.shard_of, (plan.dims + 2 * ranks) * ranks, S)
    between = ranks[plan.labels[plan.edges[plan.crossing]]].sum(axis=1)
    between *= plan.edge_dims[plan.crossing]
    made += np.bincount(plan.dest[plan.crossing], between, 2 * S)
    del between
    made = (size * made).astype(np.int64)
    parts = plan.starts[:, -1] * size
    part, moved, out = int(parts.max(initial=0)), int(parts.sum()), int(made.sum())
    source = int(inner.sum() + border.sum())
    halo = min(int((plan.dims * ranks).sum()) * size, 2 * int(border.sum()))
    by_dense = plan.dims
    if not (asked.rule.needs_scores or asked.rule.needs_kernels):
        by_dense = np.where(is_large(plan.dims, np.minimum(ranks + 1, plan.dims)), 0, plan.dims)
    double = np.result_type(asked.source.dtype, np.float64)
    dense = 5 * int(by_dense.max(initial=0)) ** 2 * double.itemsize
    shard = NEED * (read + made).max(initial=0) + dense
    arrays = [plan.edges, plan.vertex_dims, plan.edge_dims, plan.labels]
    grouping = sum(array.nbytes for array in arrays)
    if S > 1:  # `select` takes up to 50 bytes for a crossing edge, 240 for a pair of clusters
        K = len(plan.dims)
        crossing = len(plan.crossing)
        grouping += 50 * crossing + 240 * min(crossing, K * (K - 1) // 2)
    arrays += [plan.dest, plan.order, plan.by_shard, plan.place_of, plan.starts]
    tasks = 2 * sum(array.nbytes for array in arrays)  # with temporaries
    plan_bytes = 24 * len(plan.order) + 16 * len(plan.labels)
    found = Estimate(
        n_shards=S,
        n_parts=len(parts),
        source_bytes=source,
        largest_shard=int(read.max(initial=0)),
        largest_part=part,
        largest_cluster=int(plan.weights.max(initial=0)) * size,
        border_share=float(border.sum() / max(source, 1)),
        dense_bytes=dense,
        task_bytes=int(BASE + max(NEED * part, shard)),
        driver_bytes=int(max(grouping, tasks)),
        bytes_moved=source + 2 * moved + out + 2 * halo + 2 * plan_bytes,
        scratch_bytes=moved + halo + plan_bytes,
        out_bytes=out,
    )
    return plan, found


def estimate(
    src: SheafStore,
    P: Partition | PartitionStore | npt.ArrayLike,
    rank: RankLike,
    n_shards: int | None = None,
    local_operator: LocalOperatorLike = "internal",
) -> Estimate:
    """Estimate the shards, memory, bytes moved and disk space of :func:`coarsen`.

    Only the topology is read. :func:`coarsen` checks its own estimate before it starts, in which
    the default of ``n_shards`` also depends on the memory and the number of the workers.

    Parameters
    ----------
    src : SheafStore
    P : Partition, PartitionStore, or labels of shape (n,)
    rank : int, array_like of int of shape (K,), or rule from ``sc.ranks``
        For a rule that depends on spectra, ranks are replaced by upper bounds, or for a budget by
        their mean over all clusters. Modes that complete a multiplet are not counted.
    n_shards : int, optional
        Number of shards; by default shards have about 64 MB of maps.
    local_operator : {"internal", "principal"}

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError, TypeError
        As :func:`coarsen`.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> F = sc.CellularSheaf.random(nx.grid_2d_graph(12, 12), 2, 3, seed=3)
    >>> src = dist.to_store("memory://asked", F)
    >>> print(str(dist.estimate(src, sc.select(F, 9), 3, n_shards=3)).splitlines()[0])
    source   25.3 kB of maps in 1 parts
    """
    return planned(Request(src, P, rank, local_operator, n_shards), float("inf"))[1]


def bound_of_ranks(rule: Rule, dims: np.ndarray) -> np.ndarray:
    """Return upper bounds on the ranks, or the mean of a budget; multiplets are not completed."""
    inner = rule.rule if isinstance(rule, WholeMultiplets) else rule
    if isinstance(inner, Fixed):
        return np.minimum(np.asarray(inner.r, np.int64), dims)
    if isinstance(inner, Gap):
        return np.minimum(inner.max_rank, dims)
    if isinstance(inner, Budget):
        return np.minimum(math.ceil(inner.total / max(len(dims), 1)), dims)
    return dims


def default_shards(n_bytes: int, memory: float, at_once: int = 1) -> int:
    """Return the default number of shards for maps of ``n_bytes`` and ``memory`` bytes per task.

    It keeps ``at_once`` tasks busy until the end, if shards of 4 MB or more allow it.
    """
    # bytes of maps in a shard: at most a sixth of what would fit, because shards differ in size and
    # results need memory
    shard = min(64e6, max((USABLE * memory - BASE) / (6 * NEED), 1e6))
    count = max(1, math.ceil(n_bytes / shard))
    even = math.ceil(count / at_once) * at_once
    return even if n_bytes >= even * 4e6 else count


def check_memory(found: Estimate, memory: float, where: str, n_clusters: int) -> None:
    """Raise an error if shards, parts or clusters are too large, and suggest sizes that fit."""
    if found.task_bytes <= USABLE * memory:
        return
    free = max(USABLE * memory - BASE, 0)
    available = max(free - found.dense_bytes, 0) / NEED
    have = f"{where} {amount(memory)}, of which {USABLE:.0%} can be used"
    larger = "use more clusters, or workers with more memory"
    if found.largest_cluster >= available:
        needed = BASE + found.dense_bytes + NEED * found.largest_cluster
        raise MemoryError(
            f"`P`: the maps of its largest cluster take {amount(found.largest_cluster)}, and need "
            f"about {amount(needed)} with the dense matrices of its modes, but {have}: {larger}"
        )
    if found.largest_part > free / NEED:
        raise MemoryError(
            f"`src`: the maps of its largest part take {amount(found.largest_part)}, and need "
            f"about {amount(BASE + NEED * found.largest_part)}, but {have}: write it with parts of "
            f"at most {amount(free / NEED)} (`part_bytes`), or use workers with more memory"
        )
    per_shard = (found.task_bytes - BASE - found.dense_bytes) / NEED
    wanted = math.ceil(1.2 * found.n_shards * per_shard / available)
    fewer = found.n_shards < n_clusters
    remedy = f"use {min(wanted, n_clusters)} shards" if fewer else larger
    raise MemoryError(
        f"`n_shards` = {found.n_shards}: the maps of the largest shard take "
        f"{amount(found.largest_shard)}, and its task needs about {amount(found.task_bytes)}, "
        f"but {have}: {remedy}"
    )
