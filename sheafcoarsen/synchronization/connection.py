"""Connections: the transport and the weight of every edge of a sheaf."""

import os
from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import eps_of
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, component_labels
from sheafcoarsen.synchronization._pose_graph import PoseGraph
from sheafcoarsen.synchronization.joint_sheaf import Displacements


class Connection(NamedTuple):
    """Transports between stalks of dimension d, the components, and displacements."""

    n_vertices: int
    edges: np.ndarray  # (m, 2)
    transports: np.ndarray  # (m, d, d), x_u = U x_v for e = (u, v)
    weights: np.ndarray  # (m,)
    component: np.ndarray  # (n,), numbered in the order of their first vertices
    roots: np.ndarray  # (c,), the first vertex of every component
    turns_only: np.ndarray  # (c,) bool: no transport of the component reflects
    displacements: Displacements | None = None  # None if only rotations are measured

    @property
    def group(self) -> str:
        """Name of the group that frames are rounded to."""
        if self.transports.dtype.kind == "c":
            return f"U({self.dim})"
        return f"{'SO' if self.turns_only.all() else 'O'}({self.dim})"

    @property
    def fixed(self) -> np.ndarray:
        """The first vertex of every component that measurements and sightings connect."""
        return self.roots if self.displacements is None else self.displacements.roots

    @property
    def dim(self) -> int:
        """Dimension of the stalks."""
        return self.transports.shape[1]


def read_connection(sheaf: CellularSheaf) -> Connection:
    """Return the transports of a sheaf whose maps are multiples of orthogonal matrices.

    Both maps of an edge must be the same multiple sqrt(w), to sqrt(eps). Then U = A* B / w for the
    maps A at the tail and B at the head; edges of weight 0 are ignored.
    """
    d = _stalk_dimension(sheaf)
    tail = sheaf.tail_data.reshape(-1, d, d)
    head = sheaf.head_data.reshape(-1, d, d)
    unit = sheaf.largest_entry or 1.0
    tail, head = tail / unit, head / unit
    at_tail, at_head = (
        np.einsum("eij,eij->e", maps.conj(), maps).real / d for maps in (tail, head)
    )
    weights = np.maximum(at_tail, at_head)
    safe = np.where(weights > 0, weights, 1)[:, None, None]
    eye = np.eye(d)
    worst = np.zeros(len(weights))
    for maps in (tail, head):
        gram = maps.conj().swapaxes(1, 2) @ maps / safe
        worst = np.maximum(worst, np.abs(gram - eye).max(axis=(1, 2), initial=0))
    allowed = np.sqrt(eps_of(sheaf.dtype))
    bad = np.flatnonzero(~(worst <= allowed) & (weights > 0))
    if bad.size:
        e = int(bad[0])
        u, v = sheaf.edges[e].tolist()
        raise ValueError(
            f"`F` must be a connection, but edge {e} ({u} -> {v}) is not one: its maps must be "
            f"one multiple of orthogonal or unitary matrices, and an entry of A* A / w - I is "
            f"{worst[e]:.3g}, allowed is {allowed:.1g}. CellularSheaf.connection builds one"
        )
    transports = tail.conj().swapaxes(1, 2) @ head / safe
    transports[weights == 0] = eye
    return with_components(sheaf.n_vertices, sheaf.edges, transports, weights * unit**2)


def connection_from(F: CellularSheaf | PoseGraph) -> Connection:
    """Return the connection of a sheaf or of a pose graph."""
    if isinstance(F, str | os.PathLike):
        raise TypeError(
            f"`F` must be a CellularSheaf or a PoseGraph, got {type(F).__name__}: "
            f"read_g2o(path, poses=True) opens a file"
        )
    if not isinstance(F, PoseGraph):
        return read_connection(check_sheaf(F, "F"))
    if not F.n_vertices:
        raise ValueError("`F` must have poses, got a pose graph without any")
    return with_components(
        F.n_vertices, F.edges, F.rotations, np.asarray(F.kappa), F._displacements
    )


def with_components(
    n_vertices: int,
    edges: np.ndarray,
    transports: np.ndarray,
    weights: np.ndarray,
    displacements: Displacements | None = None,
) -> Connection:
    """Return the connection of conforming arrays, with its components."""
    component = component_labels(n_vertices, edges[weights > 0])
    roots = np.unique(component, return_index=True)[1]
    reflects = (weights > 0) & (determinants(transports).real < 0)
    complex_scalars = transports.dtype.kind == "c"
    turns_only = np.full(len(roots), not complex_scalars)
    turns_only[component[edges[reflects, 0]]] = False
    return Connection(
        n_vertices, edges, transports, weights, component, roots, turns_only, displacements
    )


def sheaf_of(connection: Connection) -> CellularSheaf:
    """Return a connection as a sheaf."""
    return CellularSheaf.connection(
        connection.edges,
        connection.transports,
        weight=connection.weights,
        n_vertices=connection.n_vertices,
    )


def determinants(matrices: np.ndarray) -> np.ndarray:
    """Return the determinants of matrices (m, d, d), by formula for d <= 3."""
    d = matrices.shape[1]
    rows = matrices.transpose(1, 2, 0)
    if d == 1:
        return rows[0, 0]
    if d == 2:
        return rows[0, 0] * rows[1, 1] - rows[0, 1] * rows[1, 0]
    if d == 3:
        (a, b, c), (p, q, r), (u, v, w) = rows
        return a * (q * w - r * v) + b * (r * u - p * w) + c * (p * v - q * u)
    return np.linalg.det(matrices)


def _stalk_dimension(sheaf: CellularSheaf) -> int:
    for what, dims in (("vertex", sheaf.vertex_dims), ("edge", sheaf.edge_dims)):
        other = np.flatnonzero(dims != sheaf.vertex_dims[:1])
        if other.size:
            raise ValueError(
                f"`F` must be a connection, with stalks of equal dimension, but {what} {other[0]} "
                f"has dimension {dims[other[0]]} and vertex 0 has {sheaf.vertex_dims[0]}"
            )
    if not sheaf.n_vertices or not sheaf.vertex_dims[0]:
        raise ValueError(f"`F` must have vertices and stalks of dimension at least 1, got {sheaf}")
    return int(sheaf.vertex_dims[0])
