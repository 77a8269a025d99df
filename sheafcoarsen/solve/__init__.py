"""Answers: lowest eigenpairs, linear systems and least squares, by the sheaf's own coarsening.

A coarse sheaf is not an end in itself: it is what makes questions about the fine one cheap. The
smallest disagreement that a field of unit length must have, and the fields that have it:

>>> import networkx as nx
>>> import numpy as np
>>> import sheafcoarsen as sc
>>> F = sc.gallery.bundle(nx.grid_2d_graph(40, 40), dim=2, noise=0.2, seed=0)
>>> E = sc.eigenmodes(F, 4)
>>> bool((E.residuals < 1e-8).all()), E.completeness
(True, 'inertia')

Potentials for currents, with a vertex grounded; the nearest potentials for measured differences:

>>> solve = sc.Solver(F, fixed=[0], method="multigrid")
>>> x = solve(np.ones(F.dim_c0))
>>> solve.levels
(3198, 320)
>>> R = sc.least_squares(F, sc.coboundary(F) @ x)
>>> bool(R.edge_residuals.max() < 1e-12)
True

How it is done, file by file, from the bottom:

``block_scaling``
    matrices by stalks: inverse square roots of diagonal blocks, matrices in blocks.
``block_matrix``
    a matrix in blocks times several columns, and what is added, in one pass over it.
``multigrid``
    levels from the sheaf's own coarsening, and the V-cycle: about the inverse of L + shift I.
``conjugate_gradients``, ``_solver``
    right sides, made as exact as asked for; grounded vertices (``grounding``), kernels, ranges.
``_least_squares``
    data on edges, by the normal equations.
``normal_equations``, ``_harmonic_extension``, ``_nearest_section``
    values at some vertices extended to the others, and the nearest section, both to rounding.
``_transported_frames``
    frames carried along a tree, for those who stay with another solver.
``deflation``, ``lobpcg``, ``pencil``, ``eigensolver``, ``complex_structure``, ``_eigenmodes``
    eigenpairs: deflation and LOBPCG; L and M; a problem and the three methods that solve it;
    rotations of the plane as complex numbers; the public function.
``_diffuse``
    the flow exp(-t L).
"""

from sheafcoarsen.solve._diffuse import diffuse
from sheafcoarsen.solve._eigenmodes import Eigenmodes, eigenmodes
from sheafcoarsen.solve._harmonic_extension import harmonic_extension
from sheafcoarsen.solve._least_squares import LeastSquares, least_squares
from sheafcoarsen.solve._nearest_section import nearest_section
from sheafcoarsen.solve._solver import Solver
from sheafcoarsen.solve._transported_frames import transported_frames
from sheafcoarsen.solve.complex_structure import complex_line
from sheafcoarsen.solve.deflation import independent
from sheafcoarsen.solve.dirichlet import grounded
from sheafcoarsen.solve.eigensolver import Eigenpairs, EigenProblem, lowest_eigenpairs
from sheafcoarsen.solve.pencil import Pencil

__all__ = [
    "EigenProblem",
    "Eigenmodes",
    "Eigenpairs",
    "LeastSquares",
    "Pencil",
    "Solver",
    "complex_line",
    "diffuse",
    "eigenmodes",
    "grounded",
    "harmonic_extension",
    "independent",
    "least_squares",
    "lowest_eigenpairs",
    "nearest_section",
    "transported_frames",
]
