"""Checks of the arguments of coarsen and of the parts of a coarsening."""

from dataclasses import replace
from typing import Any

import numpy as np

from sheafcoarsen._support import flag, offsets, range_of_blocks
from sheafcoarsen.modes import Internal, LocalModes, LocalOperator
from sheafcoarsen.partition import Partition, check_partition
from sheafcoarsen.sheaf import CellularSheaf, check_same_topology, check_sheaf


def check_given(rank: Any, basis: Any, operator: LocalOperator, settings: dict) -> None:
    """Raise if arguments exclude each other; ``settings`` are `rings` and `target`."""
    given = None
    if basis is not None:
        given = "`basis`"
        if not isinstance(operator, Internal):
            raise ValueError(
                f"`local_operator` = {operator.name!r} selects modes, "
                "but `basis` replaces them: omit one of the two"
            )
    elif isinstance(rank, LocalModes):
        given = "LocalModes in `rank`"
    for name, value in settings.items():
        if value is not None and given is not None:
            raise ValueError(
                f"`{name}` applies only to modes computed by this call: omit it or {given}"
            )
    if (rank is None) == (basis is None):
        raise ValueError(
            "exactly one of `rank` and `basis` must be passed, got "
            + ("neither" if rank is None else "both")
        )


def matching_modes(
    modes: LocalModes, sheaf: CellularSheaf, P: Partition, operator: LocalOperator
) -> LocalModes:
    """Check that modes belong to the sheaf, partition and operator, and return them."""
    if modes.sheaf is not sheaf:
        raise ValueError(
            "`rank` holds LocalModes of another sheaf: "
            "compute them with local_modes(sheaf, P, ...) for this one"
        )
    if not np.array_equal(modes.partition.labels, P.labels):
        raise ValueError(
            "`rank` holds LocalModes of another partition: "
            "compute them with local_modes(sheaf, P, ...)"
        )
    if operator not in (Internal(), type(modes.operator)(), modes.operator):
        raise ValueError(
            f"`local_operator` = {operator.name!r} contradicts the LocalModes in `rank`, "
            f"which are {modes.local_operator!r}: omit `local_operator`"
        )
    if not modes.R.is_held_by(modes.prolongation):
        modes = replace(modes)  # validate the matrix again: its arrays were replaced
    return modes


def check_parts(
    fine: CellularSheaf,
    partition: Partition,
    modes: LocalModes | None,
    sheaf: CellularSheaf,
    loops: bool,
) -> None:
    """Raise if the parts of a coarsening are inconsistent."""
    check_sheaf(fine, "fine")
    check_sheaf(sheaf, "sheaf")
    check_partition(fine, partition)
    K = partition.n_clusters
    if sheaf.n_vertices != K:
        raise ValueError(
            f"the coarsening is inconsistent: the partition has {K} clusters, "
            f"but the coarse sheaf has {sheaf.n_vertices} vertices"
        )
    if modes is not None:
        if not isinstance(modes, LocalModes):
            raise TypeError(f"`modes` must be LocalModes or None, got {type(modes).__name__}")
        if not np.array_equal(modes.partition.labels, partition.labels):
            raise ValueError(
                "the coarsening is inconsistent: its modes belong to another partition"
            )
        if not np.array_equal(modes.ranks, sheaf.vertex_dims):
            raise ValueError(
                "the coarsening is inconsistent: "
                "the ranks of its modes do not match the dimensions of its coarse stalks"
            )
    flag("loops", loops)


def check_topology(fine: CellularSheaf, sheaf: CellularSheaf, maker: str) -> None:
    """Raise if the graph or the stalks of a sheaf differ from those of ``fine``."""
    wanted = "the graph and the stalks of the sheaf that was coarsened"
    check_same_topology(fine, sheaf, wanted, f"use {maker} for another graph")


def check_pattern(C: Any) -> None:
    """Raise if a stored coarse sheaf does not match the fine graph and the partition."""
    fine, coarse, clusters, restored = C.fine, C.sheaf, C.clusters, C.restored_loops
    if (restored[1:] <= restored[:-1]).any() or (
        restored.size and not 0 <= restored[0] <= restored[-1] < coarse.n_vertices
    ):
        raise ValueError(
            f"`restored_loops` must be strictly increasing in 0 .. {coarse.n_vertices - 1}"
        )
    crossing = range_of_blocks(fine.edge_offsets, clusters.crossing_edges)
    dims = np.diff(offsets(fine.edge_dims[clusters.crossing_edges])[clusters.pair_ptr])
    if C.crossing_rows is None:
        dims = np.minimum(dims, coarse.vertex_dims[clusters.pairs].sum(axis=1))
    elif not np.array_equal(C.crossing_rows, crossing):
        raise ValueError(
            "`crossing_rows` must hold the rows of crossing fine edges, sorted by pair of clusters"
        )
    n_pairs = len(clusters.pairs)
    if not np.array_equal(coarse.edges[:n_pairs], clusters.pairs) or not np.array_equal(
        coarse.edge_dims[:n_pairs], dims
    ):
        raise ValueError(
            "the crossing edges of the coarse sheaf do not match the fine sheaf and partition"
        )
    loops = coarse.edges[n_pairs:]
    ascend = (loops[:, 0] == loops[:, 1]).all() and (loops[1:, 0] > loops[:-1, 0]).all()
    if (
        not ascend
        or (coarse.edge_dims[n_pairs:] > coarse.vertex_dims[loops[:, 0]]).any()
        or (len(loops) and not C.loops)
    ):
        raise ValueError(
            "the loops of the coarse sheaf must be sorted by cluster, and a loop can have at most "
            "as many rows as its cluster has modes"
        )
