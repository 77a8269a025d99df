"""What a caller asks for, checked, laid out, and what it will take."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import flag, whole_number
from sheafcoarsen.distributed._open_store import PartitionStore, SheafStore, check_store
from sheafcoarsen.distributed.memory_estimate import Estimate, default_shards, estimate_of
from sheafcoarsen.distributed.plan import Layout, Plan, find_destinations, lay_out
from sheafcoarsen.modes import (
    MAX_DENSE,
    LocalOperator,
    LocalOperatorLike,
    Oversampled,
    Principal,
    local_operator_of,
)
from sheafcoarsen.partition import Partition
from sheafcoarsen.ranks import RankLike, Rule, as_rule


@dataclass(frozen=True)
class Request:
    """What a caller asks for, checked."""

    source: SheafStore
    P: Partition
    rule: Rule
    operator: LocalOperator
    loops: bool
    compress: bool
    n_shards: int | None

    @property
    def run(self) -> str:
        """What distinguishes it from any other one; the number of shards changes no result."""
        options = (
            self.source.header.id,
            repr(self.rule),
            self.operator.name,
            self.loops,
            self.compress,
        )
        digest = hashlib.sha256(repr(options).encode())
        digest.update(self.P.labels.astype(np.int64, copy=False).tobytes())
        return digest.hexdigest()[:16]


def checked(
    src: Any,
    P: Any,
    rank: RankLike,
    local_operator: LocalOperatorLike = "internal",
    n_shards: int | None = None,
    *,
    loops: bool = True,
    compress: bool = True,
) -> Request:
    """Return what a caller asks for, or say what does not fit.

    Raises
    ------
    ValueError, TypeError
    """
    src = check_store(src, "src")
    if isinstance(P, PartitionStore):
        P = P.load()
    if not isinstance(P, Partition):
        P = Partition(P)
    if P.n_vertices != src.n_vertices:
        raise ValueError(
            f"`P` must label the {src.n_vertices} vertices of {src.url}, "
            f"got a partition of {P.n_vertices}"
        )
    operator = checked_operator(local_operator)
    if n_shards is not None:
        n_shards = whole_number("n_shards", n_shards, at_least=1)
    loops, compress = flag("loops", loops), flag("compress", compress)
    return Request(src, P, as_rule(rank, P.n_clusters), operator, loops, compress, n_shards)


def checked_operator(local_operator: LocalOperatorLike) -> LocalOperator:
    """Return the local operator, or refuse one that needs what shards do not have.

    Raises
    ------
    ValueError, TypeError
    """
    operator = local_operator_of(local_operator)
    if isinstance(operator, Oversampled):
        raise ValueError(
            '`local_operator` = "oversampled" looks at patches that reach into other shards, '
            'which stores do not offer: use "internal" or "principal", or coarsen src.load()'
        )
    return operator


def planned(asked: Request, memory: float, at_once: int = 1) -> tuple[Layout, Plan, Estimate]:
    """Lay out the whole work and say what it takes."""
    n_shards = asked.n_shards or default_shards(asked.source.n_bytes, memory, at_once)
    layout = lay_out(asked.source, asked.P, n_shards)
    copies = isinstance(asked.operator, Principal)
    plan = Plan(layout, find_destinations(layout, with_copies=copies))
    return layout, plan, estimate_of(layout, plan, asked.rule)


def estimate(
    src: SheafStore,
    P: Partition | PartitionStore | npt.ArrayLike,
    rank: RankLike,
    n_shards: int | None = None,
    local_operator: LocalOperatorLike = "internal",
) -> Estimate:
    """Return what :func:`coarsen` would take: shards, memory, bytes moved, room on disks.

    Only the topology is read. :func:`coarsen` checks the same before it starts.

    Parameters
    ----------
    src : SheafStore
    P : Partition, PartitionStore, or labels of shape (n,)
    rank : int, array_like of int of shape (K,), or rule from ``sc.ranks``
        Where a rule must see spectra first, what depends on ranks is a bound.
    n_shards : int, optional
        By default shards of about 64 MB of maps.
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
    asked = checked(src, P, rank, local_operator, n_shards)
    return planned(asked, float("inf"))[2]


def check_dense(dims: np.ndarray) -> None:
    """Refuse, before any work, a cluster too large for a rule that looks at whole spectra.

    Raises
    ------
    ValueError
    """
    if dims.max(initial=0) > MAX_DENSE:
        a = int(dims.argmax())
        raise ValueError(
            f"cluster {a} has dimension {dims[a]}; a rule that looks at whole spectra needs dense "
            f"matrices, which are limited to dimension {MAX_DENSE}: use more clusters, or keep few "
            f"modes by an integer `rank`"
        )
