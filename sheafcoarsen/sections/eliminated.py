"""Sections of networks with many leaves and chains: those of what is left, and back.

Where the kept vertices fix all others, H^0 is mapped isomorphically: docs/conventions.md, section
12.
"""

import numpy as np

from sheafcoarsen._support import RESIDUAL_LIMIT, eps_of
from sheafcoarsen.elimination import Elimination, dim_of_few_edges, eliminate
from sheafcoarsen.sections import sizes
from sheafcoarsen.sections.lifting import section_residual
from sheafcoarsen.sheaf import CellularSheaf, component_labels

LARGE, SHARE = 2000, 0.25
"""Leaves and chains are eliminated first above this dimension, if that removes this share of it."""

MOST_GROWTH = 1e3
"""Of what passes along chains, and of rounding in what comes back."""


def without_chains(F: CellularSheaf) -> Elimination | None:
    """Return an elimination if it pays: much is removed, and the rest not decomposed densely.

    A vertex of each component stays, one with most neighbours, so that trees leave their root.
    """
    if F.dim_c0 <= LARGE or dim_of_few_edges(F) < SHARE * F.dim_c0:
        return None
    n = F.n_vertices
    labels = component_labels(n, F.edges)
    order = np.lexsort((-np.bincount(F.edges.reshape(-1), minlength=n), labels))
    K = eliminate(F, keep=order[np.diff(labels[order], prepend=-1) > 0])
    pays = sizes.LAST < K.sheaf.dim_c0 <= (1 - SHARE) * F.dim_c0 and K.is_determined
    return K if pays and K.growth < MOST_GROWTH else None


def put_back(K: Elimination, basis: np.ndarray) -> np.ndarray | None:
    """Return an orthonormal basis of the sections of the network, None where rounding has grown."""
    whole = np.linalg.qr(K.extend(basis))[0]
    good = section_residual(K.fine, whole) <= RESIDUAL_LIMIT * eps_of(K.fine.dtype)
    return whole if good else None
