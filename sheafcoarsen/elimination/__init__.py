"""Exact elimination of vertices (Schur complement), with back substitution.

In real networks, a third of the vertices are leaves or in chains. If a vertex has at most two
neighbours, its elimination adds an edge between them, or a loop, so the Schur complement is again
the Laplacian of a sheaf. Galerkin coarsening approximates low modes; elimination is exact for
everything that the retained vertices determine:

>>> import networkx as nx
>>> import numpy as np
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
>>> K = sc.eliminate(F)
>>> K
Elimination(34 -> 22 vertices: 1 leaf, 11 in chains; dim C^0 34 -> 22, 78 -> 56 edges + 0 loops)

Solve a linear system on the retained vertices and extend the solution exactly to the others:

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
    elimination vertex by vertex, and the sheaf on the retained vertices;
``substitution``
    forward and back substitution of cochains, the prolongation, and the kernel of the eliminated
    block, to which extensions of minimum norm are orthogonal;
``checks``, ``summary``
    checks of maps for star-mesh and of the parts of an elimination; counts before and after.
"""

from sheafcoarsen.elimination._eliminate import Elimination, eliminate
from sheafcoarsen.elimination.factorization import as_steps
from sheafcoarsen.elimination.summary import dim_of_few_edges

__all__ = ["Elimination", "as_steps", "dim_of_few_edges", "eliminate"]
