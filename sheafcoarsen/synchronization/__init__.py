r"""Poses from what was measured between them: rotations by modes, places by least squares.

A robot measures how it turned and moved from one pose to the next, and sometimes that it is back
where it was. The rotations form a connection sheaf whose sections are the poses that agree with all
measurements; noisy ones have no section, but the lowest modes are about one:

>>> import numpy as np
>>> import sheafcoarsen as sc
>>> turn = [[0.0, -1.0], [1.0, 0.0]]
>>> ahead = [[1.2, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
>>> G = sc.PoseGraph([[0, 1], [1, 2], [2, 3], [3, 0]], [turn] * 4, ahead)
>>> S = sc.synchronize(G, refine=True)
>>> S.translations.round(2) + 0.0
array([[0.  , 0.  ],
       [1.16, 0.  ],
       [1.1 , 1.  ],
       [0.06, 1.  ]])
>>> S.distances.round(2)  # the first side said 0.2 too much; all four share the error, and turn
array([0.04, 0.04, 0.04, 0.04])

Every connected component is in a frame of its own, which nothing measures. The files, in the order
of the computation:

``information``, ``_pose_graph``
    Information matrices and their means kappa and tau; the measurements, checked.
``connection``
    A sheaf read as a connection, or an error that names the edge which is none.
``lowest_frames``
    The connection's Laplacian factored once for all blocks, and Lanczos with it, as far as
    rotations need it.
``frames``
    Frames by the lowest modes or from an anchor, and the nearest rotations to them.
``translations``
    Places for given rotations, by least squares on the weighted graph.
``residuals``
    How far every edge is off: angles, offsets, costs.
``linearization``, ``refinement``
    The sheaf of small turns and moves; Gauss-Newton steps on it until the cost falls no more.
``reweighting``
    A fit by sums of residuals instead of squares, which tells outliers.
``result``, ``_synchronize``
    What is returned; `synchronize`, which takes these steps one after the other.
"""

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
    "PoseGraph",
    "Sightings",
    "Synchronization",
    "concentrations",
    "harmonic_means",
    "isotropic_information",
    "synchronize",
]
