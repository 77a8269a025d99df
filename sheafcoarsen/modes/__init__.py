"""The lowest modes of every cluster."""

from sheafcoarsen.modes.modes import compute_modes, local_modes, refresh_modes
from sheafcoarsen.modes.problems import MAX_DENSE
from sheafcoarsen.modes.prolongation import (
    as_matrix,
    block_layout,
    check_layout,
    cluster_number,
    coordinates,
    from_blocks,
    in_precision_of,
)
from sheafcoarsen.modes.result import (
    LOCAL_OPERATORS,
    LocalModes,
    check_modes,
    check_oversampling,
    warn_if_tied,
)
from sheafcoarsen.modes.sparse import SPARSE_ABOVE, SPARSE_SHARE, lowest_sparse

__all__ = [
    "LOCAL_OPERATORS",
    "MAX_DENSE",
    "SPARSE_ABOVE",
    "SPARSE_SHARE",
    "LocalModes",
    "as_matrix",
    "block_layout",
    "check_layout",
    "check_modes",
    "check_oversampling",
    "cluster_number",
    "compute_modes",
    "coordinates",
    "from_blocks",
    "in_precision_of",
    "local_modes",
    "lowest_sparse",
    "refresh_modes",
    "warn_if_tied",
]
