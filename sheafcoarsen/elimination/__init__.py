"""Exact elimination of vertices (Schur complement), with back substitution.

A third of the vertices of real networks are leaves and chains. Where a vertex has at most two
neighbours, what it does to them is an edge between them, or a loop, so that a sheaf without it is
a sheaf again, whose Laplacian is the Schur complement. Galerkin coarsening keeps what low modes
need; elimination keeps everything that follows from the kept vertices:

>>> import networkx as nx
>>> import numpy as np
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
>>> K = sc.eliminate(F)
>>> K
Elimination(34 -> 22 vertices: 1 leaf, 11 in chains; dim C^0 34 -> 22, 78 -> 56 edges + 0 loops)

A linear system is solved on what is left, and the rest comes back exactly:

>>> b = np.zeros(34)
>>> b[0], b[33] = 1.0, -1.0
>>> z = np.linalg.lstsq(sc.laplacian(K.sheaf).toarray(), K.reduce(b))[0]
>>> x = K.extend(z, b)
>>> bool(abs(sc.laplacian(F) @ x - b).max() < 1e-13)
True

The files:

``_eliminate``
    :func:`eliminate` and its result, :class:`Elimination`;
``factorization``
    vertices taken out one by one; the sheaf on those that are left;
``substitution``
    cochains through the steps, forward and backward, and the prolongation;
``interior_kernel``
    the kernel of the eliminated block, to which extensions of least norm are orthogonal;
``checks``, ``summary``
    whether star-mesh is exact and parts fit; what was saved.
"""

from sheafcoarsen.elimination._eliminate import Elimination, eliminate
from sheafcoarsen.elimination.factorization import as_steps
from sheafcoarsen.elimination.summary import dim_of_few_edges

__all__ = ["Elimination", "as_steps", "dim_of_few_edges", "eliminate"]
