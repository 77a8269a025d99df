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

``factorization`` eliminates vertex by vertex and returns the sheaf on the retained ones;
``substitution`` extends and reduces cochains, with minimum norm.
"""

from sheafcoarsen.elimination._eliminate import Elimination, dim_of_few_edges, eliminate
from sheafcoarsen.elimination.factorization import as_steps

__all__ = ["Elimination", "as_steps", "dim_of_few_edges", "eliminate"]
