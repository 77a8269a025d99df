"""Kernels of :mod:`sheafcoarsen.sections`.

``reduction`` computes one level of exact coarsening, ``forests`` the sections of forests.
"""

from sheafcoarsen._kernels.sections.forests import join_subtrees, split_subtrees
from sheafcoarsen._kernels.sections.reduction import (
    ZERO_ROUNDING,
    Kept,
    Ragged,
    count_kept,
    reduce_clusters,
)

__all__ = [
    "ZERO_ROUNDING",
    "Kept",
    "Ragged",
    "count_kept",
    "join_subtrees",
    "reduce_clusters",
    "split_subtrees",
]
