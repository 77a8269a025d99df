"""Solvers for eigenpairs, linear systems and least squares, preconditioned by coarsening.

The coarse sheaf preconditions solves with the fine one. Modules, lowest layer first:

``block_matrix``
    products with several columns in one pass; inverse square roots of diagonal blocks.
``multigrid``, ``conjugate_gradients``, ``_solver``
    levels from the sheaf's own coarsening, and the V-cycle, an approximation of L^{-1}; the
    iteration, and projections; linear systems to a requested residual, with fixed vertices and
    kernels.
``_least_squares``, ``_harmonic_extension``, ``_nearest_section``
    least squares accurate to rounding, for data on edges and for values at vertices.
``eigensolver``, ``_eigenmodes``
    eigenpairs of (L, M) by three methods.
``_transport``, ``_diffuse``, ``_leverages``, ``_sparsify``
    the heat method, and frames along a spanning tree; the flow exp(-t L); leverages of edges, and
    sheaves on fewer edges.
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
