"""Connections: measured transports and displacements as one sheaf, whose energy is the cost."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import EPS, eps_of
from sheafcoarsen.operators import apply_coboundary
from sheafcoarsen.sheaf import CellularSheaf, component_labels, trusted_sheaf


class Displacements(NamedTuple):
    """Measured displacements z of pairs (i, j): the position t_j is about t_i + R_i z."""

    ends: np.ndarray  # (m + s, 2), measurements, then sightings; landmarks are numbered after poses
    points: np.ndarray  # (m + s, d), z
    tau: np.ndarray  # (m + s,)
    n_vertices: int  # number of poses and landmarks


@dataclass(frozen=True, eq=False)
class Connection:
    """Transports between stalks of dimension d in double precision, and optional displacements."""

    n_vertices: int
    edges: np.ndarray  # (m, 2)
    transports: np.ndarray  # (m, d, d), x_u = U x_v for e = (u, v)
    weights: np.ndarray  # (m,)
    displacements: Displacements | None = None  # None if only rotations are measured

    @property
    def dim(self) -> int:
        """Dimension d of the stalks."""
        return self.transports.shape[1]

    @cached_property
    def component(self) -> np.ndarray:
        """Component of every vertex; edges of weight 0 do not connect vertices."""
        return component_labels(self.n_vertices, self.edges[self.weights > 0])

    @cached_property
    def joined(self) -> np.ndarray:
        """Component of every vertex, landmarks last, in the graph that includes sightings."""
        measured = self.displacements
        if measured is None:
            return self.component
        return component_labels(measured.n_vertices, measured.ends)

    @cached_property
    def proper(self) -> np.ndarray:
        """Mask (n,) of the vertices in components whose transports all have determinant 1."""
        mask = np.full(self.n_vertices, self.transports.dtype.kind != "c")
        reflects = (self.weights > 0) & (np.linalg.det(self.transports).real < 0)
        return mask & ~np.isin(self.component, self.component[self.edges[reflects, 0]])

    @property
    def group(self) -> str:
        """Name of the group to which frames are rounded."""
        if self.transports.dtype.kind == "c":
            return f"U({self.dim})"
        return f"{'SO' if self.proper.all() else 'O'}({self.dim})"

    @cached_property
    def rotation_sheaf(self) -> CellularSheaf:
        """Sheaf of the weighted transports."""
        (m, d, _), n = self.transports.shape, self.n_vertices
        roots = np.sqrt(self.weights)[:, None, None]
        tail = roots * np.eye(d, dtype=self.transports.dtype)
        head = roots * self.transports
        return trusted_sheaf(self.edges, np.full(n, d), np.full(m, d), tail.ravel(), head.ravel())

    @cached_property
    def sheaf(self) -> CellularSheaf:
        """Sheaf whose energy is the cost.

        If only rotations are measured, its stalks have dimension d. Otherwise a pose has the stalk
        R^(d + 1) with the value [R_i^T; t_i^T], a landmark the stalk R with its position as value.
        The maps of an edge are [[sqrt(kappa) R_ij^T, 0], [sqrt(tau) t_ij^T, sqrt(tau)]] and
        diag(sqrt(kappa) I, sqrt(tau)), those of a sighting [sqrt(nu) z^T, sqrt(nu)] and [sqrt(nu)].
        """
        if self.displacements is None:
            return self.rotation_sheaf
        m, d = self.transports.shape[:2]
        ends, points, tau, n_vertices = self.displacements
        s, n_landmarks = len(ends) - m, n_vertices - self.n_vertices
        rotation_roots, translation_roots = np.sqrt(self.weights)[:, None], np.sqrt(tau)[:, None]
        tail, head = np.zeros((2, m, d + 1, d + 1))
        tail[:, :d, :d] = rotation_roots[:, :, None] * self.transports.swapaxes(1, 2)
        tail[:, d, :d], tail[:, d, d] = translation_roots[:m] * points[:m], translation_roots[:m, 0]
        head[:, range(d), range(d)], head[:, d, d] = rotation_roots, translation_roots[:m, 0]
        seen = translation_roots[m:] * np.hstack([points[m:], np.ones((s, 1))])
        return trusted_sheaf(
            ends,
            np.repeat([d + 1, 1], [self.n_vertices, n_landmarks]),
            np.repeat([d + 1, 1], [m, s]),
            np.concatenate([tail.ravel(), seen.ravel()]),
            np.concatenate([head.ravel(), translation_roots[m:].ravel()]),
        )


class Poses(NamedTuple):
    """Rotations and positions, with the costs before refinement and after each of its steps."""

    rotations: np.ndarray  # (n, d, d)
    positions: np.ndarray | None  # (n + L, d), landmarks last; None without displacements
    costs: tuple[float, ...] = ()
    converged: bool = True

    @property
    def cochain(self) -> np.ndarray:
        """Cochain (dim_c0, d) of blocks [R_i*; t_i^T] of poses, then positions of landmarks."""
        n, d = self.rotations.shape[:2]
        blocks = self.rotations.conj().swapaxes(1, 2)
        if self.positions is None:
            return blocks.reshape(-1, d)
        blocks = np.concatenate([blocks, self.positions[:n, None, :]], axis=1)
        return np.concatenate([blocks.reshape(-1, d), self.positions[n:]])


def first_vertices(labels: np.ndarray) -> np.ndarray:
    """Return the first vertex of every component."""
    return np.unique(labels, return_index=True)[1]


def read_connection(sheaf: CellularSheaf) -> Connection:
    """Return the connection given by a sheaf whose maps are multiples of orthogonal matrices.

    Both maps of an edge must have the same factor sqrt(w), up to sqrt(eps). Then U = A* B / w for
    the maps A at the tail and B at the head; edges of weight 0 are ignored.
    """
    d = _stalk_dimension(sheaf)
    data = np.stack([sheaf.tail_data, sheaf.head_data])
    unit = float(sheaf.largest_entry or 1.0)
    maps = data.astype(np.result_type(data, np.float64)).reshape(2, -1, d, d) / unit
    weights = (np.einsum("seij,seij->se", maps.conj(), maps).real / d).max(axis=0)
    safe = np.where(weights > 0, weights, 1)[:, None, None]
    eye = np.eye(d)
    gram = maps.conj().swapaxes(2, 3) @ maps / safe
    worst = np.abs(gram - eye).max(axis=(0, 2, 3), initial=0)
    allowed = np.sqrt(eps_of(sheaf.dtype))
    bad = np.flatnonzero(~(worst <= allowed) & (weights > 0))
    if bad.size:
        e = int(bad[0])
        u, v = sheaf.edges[e].tolist()
        raise ValueError(
            f"`F` must be a connection, but the maps of edge {e} ({u} -> {v}) are not equal "
            f"multiples of orthogonal or unitary matrices: an entry of A* A / w - I is "
            f"{worst[e]:.3g}, above {allowed:.1g}. Use CellularSheaf.connection to build one"
        )
    transports = maps[0].conj().swapaxes(1, 2) @ maps[1] / safe
    transports[weights == 0] = eye
    return Connection(sheaf.n_vertices, sheaf.edges, transports, weights * unit**2)


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


def costs_of(connection: Connection, poses: Poses) -> tuple[np.ndarray, np.ndarray]:
    """Return the costs of rotations (m,) and of displacements (m + s,), sightings last."""
    m, d = connection.transports.shape[:2]
    squares = np.square(np.abs(apply_coboundary(connection.sheaf, poses.cochain))).sum(axis=1)
    if connection.displacements is None:
        return squares.reshape(m, d).sum(axis=1), np.zeros(m)
    of_edges = squares[: m * (d + 1)].reshape(m, d + 1)
    return of_edges[:, :d].sum(axis=1), np.append(of_edges[:, d], squares[m * (d + 1) :])


def edge_turns(connection: Connection, rotations: np.ndarray) -> np.ndarray:
    """Return U* R_i* R_j for every edge; it is the identity if the rotations fit the edge."""
    i, j = connection.edges.T
    seen = rotations[i].conj().swapaxes(1, 2) @ rotations[j]
    return connection.transports.conj().swapaxes(1, 2) @ seen


def angles_of(turns: np.ndarray) -> np.ndarray:
    """Return the largest rotation angle, between 0 and pi, of each of the matrices (m, d, d)."""
    d = turns.shape[1]
    if turns.dtype.kind == "c" or d not in (2, 3):
        return np.abs(np.angle(np.linalg.eigvals(turns))).max(axis=1, initial=0)
    skew = turns - turns.swapaxes(1, 2)
    sines = np.sqrt(np.einsum("eij,eij->e", skew, skew) / 8)
    cosines = (np.einsum("eii->e", turns) - (d - 2)) / 2
    return np.where(np.linalg.det(turns) > 0, np.arctan2(sines, cosines), np.pi)


def agree_to_rounding(connection: Connection, poses: Poses) -> bool:
    """Return whether the costs of all measurements and sightings are at rounding level."""
    turns, moves = costs_of(connection, poses)
    unit = (8 * EPS) ** 2
    agree = bool((turns <= 4 * unit * connection.dim * connection.weights).all())
    if connection.displacements is None or poses.positions is None:
        return agree
    ends, points, tau, _ = connection.displacements
    sizes = sum(np.square(x).sum(axis=1) for x in (*poses.positions[ends.T], points))
    return agree and bool((moves <= unit * tau * sizes).all())
