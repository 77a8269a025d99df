"""Kernels of :mod:`sheafcoarsen.sections`.

``equilibration`` and ``reduction`` compute one level of exact coarsening, ``lifting`` lifts
sections to the finer level. ``forests`` computes the sections of forests.
"""

from sheafcoarsen._kernels.sections.equilibration import (
    StalkBases,
    find_vertex_bases,
    scale_edges,
)
from sheafcoarsen._kernels.sections.forests import join_subtrees, split_subtrees
from sheafcoarsen._kernels.sections.lifting import orthonormalize_columns, write_stalk_metrics
from sheafcoarsen._kernels.sections.reduction import (
    STACKED_ROWS,
    ZERO_ROUNDING,
    ClusterWorkspace,
    Kept,
    Ragged,
    count_kept,
    reduce_clusters,
)

__all__ = [
    "STACKED_ROWS",
    "ZERO_ROUNDING",
    "ClusterWorkspace",
    "Kept",
    "Ragged",
    "StalkBases",
    "count_kept",
    "find_vertex_bases",
    "join_subtrees",
    "orthonormalize_columns",
    "reduce_clusters",
    "scale_edges",
    "split_subtrees",
    "write_stalk_metrics",
]
