"""Translations of poses and landmarks for given rotations: linear least squares."""

import numpy as np

from sheafcoarsen.sheaf import CellularSheaf, component_labels
from sheafcoarsen.synchronization._pose_graph import PoseGraph
from sheafcoarsen.synchronization.lowest_frames import least_energy


def places(
    graph: PoseGraph, rotations: np.ndarray, roots: np.ndarray, trust: np.ndarray | None = None
) -> np.ndarray:
    """Return the translations of poses, then landmarks, for given rotations; 0 at the roots.

    They minimize the sum of tau norm(t_j - t_i - R_i t_ij)^2: for each of the d coordinates a
    least-squares problem on the weighted graph. ``trust`` multiplies tau.
    """
    ends, points, tau = measured_points(graph)
    tau = tau if trust is None else tau * trust
    steps = np.einsum("eij,ej->ei", rotations[ends[:, 0]], points)
    n = vertex_count(graph)
    origin = np.zeros((len(roots), 1, graph.dim))
    sheaf = CellularSheaf.constant(ends, weight=tau, n_vertices=n)
    data = -np.sqrt(tau)[:, None] * steps
    return least_energy(sheaf, data, roots, origin)


def measured_points(graph: PoseGraph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return edges, points and tau of measurements, then sightings; landmarks follow poses."""
    if graph.sightings is None:
        return graph.edges, graph.translations, np.asarray(graph.tau)
    sighted = graph.sightings.edges + np.array([0, graph.n_vertices])
    return (
        np.concatenate([graph.edges, sighted]),
        np.concatenate([graph.translations, graph.sightings.points]),
        np.concatenate([np.asarray(graph.tau), graph.sightings.tau]),
    )


def vertex_count(graph: PoseGraph) -> int:
    """Return the number of poses and landmarks."""
    marks = 0 if graph.sightings is None else graph.sightings.n_landmarks
    return int(graph.n_vertices or 0) + marks


def place_roots(graph: PoseGraph) -> np.ndarray:
    """Return the first vertex of every component, connected by measurements and sightings."""
    component = component_labels(vertex_count(graph), measured_points(graph)[0])
    return np.unique(component, return_index=True)[1]
