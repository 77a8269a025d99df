"""The lowest modes of every cluster, which become the stalks of the coarse sheaf.

``local_operators`` defines the operators: ``Internal()`` of the paper's theory, ``Principal()`` of
its layer, and ``Oversampled(rings, target)`` for the smallest errors. ``_local_modes`` holds
:func:`local_modes`, whose ``result`` is a :class:`LocalModes`. ``problems`` solves the dense
eigenproblems of all clusters, in ``_kernels/modes/``, and those of large clusters by LOBPCG;
``oversampled`` solves those of responses in a patch T around each cluster (docs/conventions.md,
section 10). :class:`Prolongation` stores R = blockdiag(R_a) as dense blocks, from modes or from a
basis that the user passes.

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
    SPARSE_ABOVE,
    SPARSE_SHARE,
    Whole,
    check_dense,
    is_large,
    kernel_workspace,
)
from sheafcoarsen.modes.prolongation import Prolongation, block_layout
from sheafcoarsen.modes.result import LocalModes, warn_if_empty, warn_if_sections_lost, warn_if_tied

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
