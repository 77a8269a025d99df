r"""Pose synchronization: rotations from the lowest modes, translations by least squares.

A robot measures relative poses, from each pose to the next and, in loop closures, to earlier ones.
The relative rotations form a connection sheaf whose global sections are the absolute rotations that
agree with all measurements. Noisy measurements have no section; the lowest modes approximate one:

>>> import numpy as np
>>> import sheafcoarsen as sc
>>> rotation = [[0.0, -1.0], [1.0, 0.0]]
>>> ahead = [[1.2, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
>>> G = sc.PoseGraph([[0, 1], [1, 2], [2, 3], [3, 0]], [rotation] * 4, ahead)
>>> S = sc.synchronize(G, refine=True)
>>> S.translations.round(2) + 0.0
array([[0.  , 0.  ],
       [1.16, 0.  ],
       [1.1 , 1.  ],
       [0.06, 1.  ]])
>>> S.distances.round(2)  # the error 0.2 of the first side is distributed
array([0.04, 0.04, 0.04, 0.04])

Each connected component has its own frame, which no measurement determines. The modules, in the
order of the computation:

``information``
    Information matrices and their means kappa and tau.
``connection``
    Transports and displacements as a sheaf whose energy is the cost; residuals of its edges.
``_pose_graph``
    The measurements, with checks.
``frames``
    Frames from the lowest modes or extended from a fixed vertex, rounded to the nearest rotations;
    positions for given rotations.
``refinement``
    The sheaf of the linearized residuals; Gauss-Newton steps on it until the cost stagnates.
``reweighting``
    Robust fits: minimum sums of residuals, instead of squares, to rank outliers; truncated least
    squares.
``_certificate``
    A lower bound on the minimum cost.
``result``, ``_synchronize``
    The result, and `synchronize`.
"""

from sheafcoarsen.synchronization._certificate import PoseCertificate
from sheafcoarsen.synchronization._pose_graph import PoseGraph, Sightings
from sheafcoarsen.synchronization._synchronize import synchronize
from sheafcoarsen.synchronization.information import (
    Concentrations,
    concentrations,
    harmonic_means,
    isotropic_information,
)
from sheafcoarsen.synchronization.result import Synchronization

__all__ = [
    "Concentrations",
    "PoseCertificate",
    "PoseGraph",
    "Sightings",
    "Synchronization",
    "concentrations",
    "harmonic_means",
    "isotropic_information",
    "synchronize",
]
