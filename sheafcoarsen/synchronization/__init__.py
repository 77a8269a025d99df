r"""Pose synchronization: rotations from the lowest modes, translations by least squares.

A robot measures relative poses, from each pose to the next and, in loop closures, to earlier ones.
The relative rotations form a connection sheaf whose global sections are the absolute rotations that
agree with all measurements. Noisy measurements have no section; the lowest modes approximate one.

Each connected component has its own frame, which no measurement determines. ``connection`` holds
the measurements, checked in ``_pose_graph``, as a sheaf whose energy is the cost; ``fits`` finds
poses by modes, extensions and robust fits, ``refinement`` by Gauss-Newton steps on the sheaf of
linearized residuals, and bounds the minimum cost from below.
"""

from sheafcoarsen.synchronization._pose_graph import PoseGraph, Sightings, order_of
from sheafcoarsen.synchronization._synchronize import synchronize
from sheafcoarsen.synchronization.connection import concentrations, harmonic_means
from sheafcoarsen.synchronization.refinement import PoseCertificate
from sheafcoarsen.synchronization.result import Synchronization

__all__ = [
    "PoseCertificate",
    "PoseGraph",
    "Sightings",
    "Synchronization",
    "concentrations",
    "harmonic_means",
    "order_of",
    "synchronize",
]
