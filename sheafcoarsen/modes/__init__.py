"""The lowest modes of every cluster, which become the stalks of the coarse sheaf.

``result``
    the result, :class:`LocalModes`, which is validated on construction;
``local_operators``
    the operators, which can also be selected by name: ``Internal()`` of the paper's theory,
    ``Principal()`` of its layer, and ``Oversampled(rings, target)`` for the smallest errors;
``_local_modes``
    :func:`local_modes`, which computes the modes that a rule selects from the spectra, and
    :func:`refresh_modes`, which recomputes them for new maps;
``problems``
    the dense eigenproblems of all clusters, solved in ``_kernels/modes/``; large clusters are
    solved by ``sparse``;
``oversampled``
    responses of a cluster to sources in a patch T around it (docs/conventions.md, section 10). The
    target s of a pilot is computed in ``pilot_target``, ker L_T in ``_kernels/modes/patches``,
    and the border b, A, X, Y, G, K_C and the scores in ``_kernels/modes/oversampled``;
``prolongation``
    :class:`Prolongation`, R = blockdiag(R_a) stored as dense blocks, from modes or from a basis
    that the user passes.

Partition a grid into four clusters; each retains its three lowest modes, which are columns of R:

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> from sheafcoarsen.modes import Oversampled
>>> F = sc.CellularSheaf.random(nx.grid_2d_graph(6, 6), 2, 3, seed=3)
>>> P = sc.select(F, 4)
>>> M = sc.local_modes(F, P, 3)
>>> M
LocalModes('internal', n_clusters=4, ranks 3 .. 3, dim 12 of 72, tied=0)
>>> M.R.block(0).shape, M.R.matrix is M.prolongation
((18, 3), True)
>>> sc.local_modes(F, P, 3, Oversampled(rings=2, target=0.5))
LocalModes('oversampled', n_clusters=4, ranks 3 .. 3, dim 12 of 72, tied=0, rings=2, target=0.5)
"""

from sheafcoarsen.modes._local_modes import (
    compute_modes,
    local_modes,
    local_problems,
    refresh_modes,
)
from sheafcoarsen.modes.local_operators import (
    OPERATORS,
    Internal,
    LocalOperator,
    LocalOperatorLike,
    Oversampled,
    Principal,
    local_operator_of,
)
from sheafcoarsen.modes.oversampled import ClusterPatches
from sheafcoarsen.modes.problems import (
    MAX_DENSE,
    Whole,
    check_dense,
    is_large,
    kernel_workspace,
)
from sheafcoarsen.modes.prolongation import Prolongation, block_layout
from sheafcoarsen.modes.result import LocalModes, warn_if_empty, warn_if_sections_lost, warn_if_tied
from sheafcoarsen.modes.sparse import SPARSE_ABOVE, SPARSE_SHARE

__all__ = [
    "MAX_DENSE",
    "OPERATORS",
    "SPARSE_ABOVE",
    "SPARSE_SHARE",
    "ClusterPatches",
    "Internal",
    "LocalModes",
    "LocalOperator",
    "LocalOperatorLike",
    "Oversampled",
    "Principal",
    "Prolongation",
    "Whole",
    "block_layout",
    "check_dense",
    "compute_modes",
    "is_large",
    "kernel_workspace",
    "local_modes",
    "local_operator_of",
    "local_problems",
    "refresh_modes",
    "warn_if_empty",
    "warn_if_sections_lost",
    "warn_if_tied",
]
