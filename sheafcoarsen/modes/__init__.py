"""The lowest modes of every cluster.

(door text to come)
"""

from sheafcoarsen.modes.local_operators import (
    OPERATORS,
    Internal,
    LocalOperator,
    LocalOperatorLike,
    Oversampled,
    Principal,
    local_operator_of,
)
from sheafcoarsen.modes.modes import compute_modes, local_modes, refresh_modes
from sheafcoarsen.modes.problems import MAX_DENSE
from sheafcoarsen.modes.prolongation import Prolongation, block_layout, cluster_number
from sheafcoarsen.modes.result import LocalModes, warn_if_empty, warn_if_tied
from sheafcoarsen.modes.sparse import SPARSE_ABOVE, SPARSE_SHARE, lowest_sparse

__all__ = [
    "MAX_DENSE",
    "OPERATORS",
    "SPARSE_ABOVE",
    "SPARSE_SHARE",
    "Internal",
    "LocalModes",
    "LocalOperator",
    "LocalOperatorLike",
    "Oversampled",
    "Principal",
    "Prolongation",
    "block_layout",
    "cluster_number",
    "compute_modes",
    "local_modes",
    "local_operator_of",
    "lowest_sparse",
    "refresh_modes",
    "warn_if_empty",
    "warn_if_tied",
]
