"""The lowest modes of every cluster, which become the stalks of the coarse sheaf.

``result``
    what comes out: :class:`LocalModes`, checked where it is made or altered;
``local_operators``
    whose modes are taken, as objects: ``Internal()`` is the paper's theory, ``Principal()`` its
    layer, ``Oversampled(rings, target)`` describes best what the coarse sheaf is to keep; a string
    names them, looked up once;
``_local_modes``
    :func:`local_modes`: a rule is shown the spectra, the modes it asks for are computed; the same
    again for new maps;
``problems``
    the dense eigenproblems of all clusters, range by range, in the kernels of
    ``_kernels/modes/``; a cluster too large for that is the business of ``sparse``;
``oversampled``
    what a cluster answers to sources in a patch around it. Of docs/conventions.md, section 5.7,
    the patches T are in ``patches``, the target s of a pilot is ``pilot_target``, and in
    ``_kernels/modes/`` ker L_T is ``patch_kernel``, and the border b, A, X, Y, G, the order of
    K_C before the rest, and the scores are ``oversampled``;
``prolongation``
    :class:`Prolongation`, R = blockdiag(R_a) as dense blocks, from modes or from a basis of the
    user's own.

A grid in four clusters; each keeps its three lowest modes, which R holds side by side:

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
from sheafcoarsen.modes.patches import ClusterPatches
from sheafcoarsen.modes.problems import MAX_DENSE, Whole, check_dense, is_large
from sheafcoarsen.modes.prolongation import Prolongation, block_layout, cluster_number
from sheafcoarsen.modes.result import (
    LocalModes,
    warn_if_empty,
    warn_if_empty_in,
    warn_if_tied,
    warn_if_tied_in,
)
from sheafcoarsen.modes.sparse import SPARSE_ABOVE, SPARSE_SHARE, lowest_sparse

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
    "cluster_number",
    "compute_modes",
    "is_large",
    "local_modes",
    "local_operator_of",
    "local_problems",
    "lowest_sparse",
    "refresh_modes",
    "warn_if_empty",
    "warn_if_empty_in",
    "warn_if_tied",
    "warn_if_tied_in",
]
