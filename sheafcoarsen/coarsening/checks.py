"""Checks of arguments and of the parts of a coarsening."""

from dataclasses import replace
from typing import Any

import numpy as np

from sheafcoarsen._support import flag, offsets, range_of_blocks
from sheafcoarsen.modes import Internal, LocalModes, LocalOperator
from sheafcoarsen.partition import Partition, check_partition
from sheafcoarsen.sheaf import CellularSheaf, check_same_topology, check_sheaf


def check_given(rank: Any, basis: Any, operator: LocalOperator, settings: dict) -> None:
    """Raise if arguments exclude each other; ``settings`` are those of oversampled modes."""
    given = None
    if basis is not None:
        given = "`basis`"
        if not isinstance(operator, Internal):
            raise ValueError(
                f"`local_operator` = {operator.name!r} chooses modes, "
                "but `basis` replaces modes: leave it out"
            )
    elif isinstance(rank, LocalModes):
        given = "the LocalModes in `rank`"
    for name, value in settings.items():
        if value is not None and given is not None:
            raise ValueError(
                f"`{name}` is for modes that are computed here, but {given} are given: leave it out"
            )
    if (rank is None) == (basis is None):
        raise ValueError(
            "exactly one of `rank` and `basis` must be given, got "
            + ("neither" if rank is None else "both")
        )


def matching_modes(
    modes: LocalModes, sheaf: CellularSheaf, P: Partition, operator: LocalOperator
) -> LocalModes:
    """Return a caller's modes; raise if they are of another sheaf, partition or operator."""
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
            f"which are {modes.local_operator!r}: leave it out"
        )
    if not modes.R.is_held_by(modes.prolongation):
        modes = replace(modes)  # checks the matrix, whose arrays were replaced
    return modes


def check_parts(
    fine: CellularSheaf,
    partition: Partition,
    modes: LocalModes | None,
    sheaf: CellularSheaf,
    loops: bool,
) -> None:
    """Raise if parts of a coarsening do not conform."""
    check_sheaf(fine, "fine")
    check_sheaf(sheaf, "sheaf")
    check_partition(fine, partition)
    K = partition.n_clusters
    if sheaf.n_vertices != K:
        raise ValueError(
            f"the coarsening does not fit together: a partition into {K} clusters, "
            f"a coarse sheaf of {sheaf.n_vertices} vertices"
        )
    if modes is not None:
        if not isinstance(modes, LocalModes):
            raise TypeError(f"`modes` must be LocalModes or None, got {type(modes).__name__}")
        if not np.array_equal(modes.partition.labels, partition.labels):
            raise ValueError(
                "the coarsening does not fit together: its modes belong to another partition"
            )
        if not np.array_equal(modes.ranks, sheaf.vertex_dims):
            raise ValueError(
                "the coarsening does not fit together: "
                "the ranks of its modes are not the dimensions of its coarse stalks"
            )
    flag("loops", loops)


def check_topology(fine: CellularSheaf, sheaf: CellularSheaf, maker: str) -> None:
    """Raise if the graph or the stalks differ from those of the sheaf that was coarsened."""
    wanted = "the graph and the stalks of the sheaf that was coarsened"
    check_same_topology(fine, sheaf, wanted, f"use {maker} for another graph")


def check_pattern(C: Any) -> None:
    """Raise if a stored coarse sheaf does not match the fine graph and the partition."""
    fine, coarse, clusters, restored = C.fine, C.sheaf, C.clusters, C.restored_loops
    if (restored[1:] <= restored[:-1]).any() or (
        restored.size and not 0 <= restored[0] <= restored[-1] < coarse.n_vertices
    ):
        raise ValueError(f"`restored_loops` must lie in 0 .. {coarse.n_vertices - 1} and ascend")
    crossing = range_of_blocks(fine.edge_offsets, clusters.crossing_edges)
    dims = np.diff(offsets(fine.edge_dims[clusters.crossing_edges])[clusters.pair_ptr])
    if C.crossing_rows is None:
        dims = np.minimum(dims, coarse.vertex_dims[clusters.pairs].sum(axis=1))
    elif not np.array_equal(C.crossing_rows, crossing):
        raise ValueError(
            "`crossing_rows` must be the rows of the fine edges that cross, by pair of clusters"
        )
    n_pairs = len(clusters.pairs)
    if not np.array_equal(coarse.edges[:n_pairs], clusters.pairs) or not np.array_equal(
        coarse.edge_dims[:n_pairs], dims
    ):
        raise ValueError(
            "its coarse sheaf does not have the crossing edges of its fine sheaf and partition"
        )
    loops = coarse.edges[n_pairs:]
    ascend = (loops[:, 0] == loops[:, 1]).all() and (loops[1:, 0] > loops[:-1, 0]).all()
    if (
        not ascend
        or (coarse.edge_dims[n_pairs:] > coarse.vertex_dims[loops[:, 0]]).any()
        or (len(loops) and not C.loops)
    ):
        raise ValueError(
            "the loops of its coarse sheaf must ascend and have at most as many rows as their "
            "clusters have modes"
        )
