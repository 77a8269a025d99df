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

Each connected component has its own frame, which no measurement determines. ``connection`` holds
the measurements, checked in ``_pose_graph``, as a sheaf whose energy is the cost; ``fits`` finds
poses by modes, extensions and robust fits, ``refinement`` by Gauss-Newton steps on the sheaf of
linearized residuals, and bounds the minimum cost from below.
"""

from sheafcoarsen.synchronization._pose_graph import PoseGraph, Sightings, order_of
from sheafcoarsen.synchronization._synchronize import synchronize
from sheafcoarsen.synchronization.connection import (
    concentrations,
    harmonic_means,
    isotropic_information,
)
from sheafcoarsen.synchronization.refinement import PoseCertificate
from sheafcoarsen.synchronization.result import Synchronization

__all__ = [
    "PoseCertificate",
    "PoseGraph",
    "Sightings",
    "Synchronization",
    "concentrations",
    "harmonic_means",
    "isotropic_information",
    "order_of",
    "synchronize",
]
