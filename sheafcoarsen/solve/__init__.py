"""Solvers for eigenpairs, linear systems and least squares, preconditioned by coarsening.

The coarse sheaf preconditions solves with the fine one. The four lowest eigenpairs of the sheaf
Laplacian:

>>> import networkx as nx
>>> import numpy as np
>>> import sheafcoarsen as sc
>>> F = sc.gallery.bundle(nx.grid_2d_graph(40, 40), dim=2, noise=0.2, seed=0)
>>> E = sc.eigenmodes(F, 4)
>>> bool((E.residuals < 1e-8).all()), E.completeness
(True, 'inertia')

Potentials for given currents with one vertex grounded, and potentials for given differences:

>>> solve = sc.Solver(F, fixed=[0], method="multigrid")
>>> x = solve(np.ones(F.dim_c0))
>>> solve.levels
(3198, 320)
>>> R = sc.least_squares(F, sc.coboundary(F) @ x)
>>> bool(R.edge_residuals.max() < 1e-12)
True

Modules, lowest layer first:

``block_matrix``
    products with several columns in one pass; inverse square roots of diagonal blocks.
``multigrid``, ``conjugate_gradients``, ``_solver``
    levels from the sheaf's own coarsening, and the V-cycle, an approximation of L^{-1}; the
    iteration, and projections; linear systems to a requested residual, with fixed vertices and
    kernels.
``_least_squares``, ``normal_equations``, ``_harmonic_extension``, ``_nearest_section``
    least squares for data on edges; extension and projection, both accurate to rounding.
``complex_structure``, ``eigensolver``, ``_eigenmodes``
    eigenpairs: plane rotations as complex numbers; the pair (L, M) and the three methods; the
    public function.
``_transport``, ``_diffuse``, ``_leverages``, ``_sparsify``
    the heat method, and frames along a spanning tree; the flow exp(-t L); leverages of edges;
    sheaves on fewer edges with nearly the same Laplacian.
"""

from sheafcoarsen.solve._diffuse import diffuse
from sheafcoarsen.solve._eigenmodes import Eigenmodes, eigenmodes
from sheafcoarsen.solve._harmonic_extension import harmonic_extension
from sheafcoarsen.solve._least_squares import LeastSquares, least_squares
from sheafcoarsen.solve._leverages import leverages
from sheafcoarsen.solve._nearest_section import nearest_section
from sheafcoarsen.solve._solver import Solver, grounded, solve_in_range, tolerance
from sheafcoarsen.solve._sparsify import Sparsification, sparsify
from sheafcoarsen.solve._transport import transport, transported_frames
from sheafcoarsen.solve.eigensolver import EigenProblem, Pencil, lowest_eigenpairs

__all__ = [
    "EigenProblem",
    "Eigenmodes",
    "LeastSquares",
    "Pencil",
    "Solver",
    "Sparsification",
    "diffuse",
    "eigenmodes",
    "grounded",
    "harmonic_extension",
    "least_squares",
    "leverages",
    "lowest_eigenpairs",
    "nearest_section",
    "solve_in_range",
    "sparsify",
    "tolerance",
    "transport",
    "transported_frames",
]
