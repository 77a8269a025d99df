"""Measurements as one sheaf whose energy is the cost, and their weights (SE-Sync)."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import checks, linalg
from sheafcoarsen.operators import apply_coboundary
from sheafcoarsen.sheaf import CellularSheaf, check_unitary, component_labels, trusted_sheaf


@dataclass(frozen=True, eq=False)
class Connection:
    """Measured transports and displacements, in double precision; landmarks follow poses.

    A displacement z of (i, j) says that the position t_j is about t_i + R_i z.
    """

    n_vertices: int  # number of poses
    ends: np.ndarray  # (m + s, 2), measurements between poses, then sightings
    transports: np.ndarray  # (m, d, d), x_u = U x_v for e = (u, v)
    weights: np.ndarray  # (m,)
    points: np.ndarray  # (m + s, d), z; (m, 0) if only rotations are measured
    tau: np.ndarray  # (m + s,), weights of displacements
    n_landmarks: int = 0

    @property
    def dim(self) -> int:
        """Dimension d of the stalks."""
        return self.transports.shape[1]

    @property
    def edges(self) -> np.ndarray:
        """Edges (m, 2) between poses."""
        return self.ends[: len(self.transports)]

    @property
    def has_positions(self) -> bool:
        """Whether displacements are measured."""
        return self.points.shape[1] > 0

    @property
    def without_positions(self) -> "Connection":
        """The connection without displacements and sightings."""
        if not self.has_positions:
            return self
        ends, m = self.edges, len(self.transports)
        return replace(self, ends=ends, points=np.zeros((m, 0)), tau=np.zeros(m), n_landmarks=0)

    @cached_property
    def component(self) -> np.ndarray:
        """Component of every vertex; edges of weight 0 do not connect vertices."""
        return component_labels(self.n_vertices, self.edges[self.weights > 0])

    @cached_property
    def joined(self) -> np.ndarray:
        """Component of every vertex, landmarks last, in the graph that includes sightings."""
        connects = np.append(self.weights > 0, np.ones(len(self.ends) - len(self.edges), bool))
        return component_labels(self.n_vertices + self.n_landmarks, self.ends[connects])

    @cached_property
    def roots(self) -> np.ndarray:
        """First vertex of every component of ``joined``, which determines its frame."""
        return np.unique(self.joined, return_index=True)[1]

    @cached_property
    def signs(self) -> np.ndarray:
        """Sign (m,) of the real part of the determinant of every transport."""
        return np.sign(np.linalg.det(self.transports).real)

    @cached_property
    def proper(self) -> np.ndarray:
        """Mask (n,) of the vertices in components whose transports are all real rotations."""
        mask = np.full(self.n_vertices, self.transports.dtype.kind != "c")
        reflects = (self.weights > 0) & (self.signs < 0)
        return mask & ~np.isin(self.component, self.component[self.edges[reflects, 0]])

    @property
    def group(self) -> str:
        """Name of the group to which frames are rounded."""
        if self.transports.dtype.kind == "c":
            return f"U({self.dim})"
        return f"{'SO' if self.proper.all() else 'O'}({self.dim})"

    @cached_property
    def sheaf(self) -> CellularSheaf:
        """Sheaf whose energy is the cost.

        If only rotations are measured, its stalks have dimension d and the values R_i^T. Otherwise
        a pose has the stalk R^(d + 1) with the value [R_i^T; t_i^T], a landmark the stalk R with
        its position as value. The maps of an edge are [[sqrt(kappa) R_ij^T, 0],
        [sqrt(tau) t_ij^T, sqrt(tau)]] and diag(sqrt(kappa) I, sqrt(tau)), those of a sighting
        [sqrt(tau) z^T, sqrt(tau)] and [sqrt(tau)].
        """
        (m, d, _), n = self.transports.shape, self.n_vertices
        roots, move_roots = np.sqrt(self.weights)[:, None, None], np.sqrt(self.tau)
        if not self.has_positions:
            tail, head = roots * np.eye(d, dtype=self.transports.dtype), roots * self.transports
            dims = np.full(n, d), np.full(m, d)
            return trusted_sheaf(self.edges, *dims, tail.ravel(), head.ravel())
        moves = move_roots[:, None] * np.hstack([self.points, np.ones((len(self.points), 1))])
        tail, head = np.zeros((2, m, d + 1, d + 1))
        tail[:, :d, :d] = roots * self.transports.swapaxes(1, 2)
        head[:, range(d), range(d)] = roots[:, 0]
        tail[:, d], head[:, d, d] = moves[:m], move_roots[:m]
        return trusted_sheaf(
            self.ends,
            np.repeat([d + 1, 1], [n, self.n_landmarks]),
            np.repeat([d + 1, 1], [m, len(moves) - m]),
            np.append(tail, moves[m:]),
            np.append(head, move_roots[m:]),
        )


class Poses(NamedTuple):
    """Rotations and positions, with the costs before refinement and after each of its steps."""

    rotations: np.ndarray  # (n, d, d)
    positions: np.ndarray  # (n + L, d), landmarks last; (n, 0) if only rotations are measured
    costs: tuple[float, ...] = ()
    converged: bool = True

    @property
    def cochain(self) -> np.ndarray:
        """Cochain (dim_c0, d) of blocks [R_i*; t_i^T] of poses, then positions of landmarks."""
        n, d = self.rotations.shape[:2]
        blocks = self.rotations.conj().swapaxes(1, 2)
        if not self.positions.size:
            return np.ascontiguousarray(blocks.reshape(-1, d))
        blocks = np.concatenate([blocks, self.positions[:n, None, :]], axis=1)
        x = np.concatenate([blocks.reshape(-1, d), self.positions[n:]])
        return np.ascontiguousarray(x)  # of a single pose, blocks are in Fortran order


def read_connection(sheaf: CellularSheaf) -> Connection:
    """Return the connection given by a sheaf whose maps are multiples of orthogonal matrices.

    Both maps A and B of an edge have the same factor sqrt(w), up to sqrt(eps); U = A* B / w.
    """
    if not sheaf.dim_c0:
        raise ValueError(f"`F` must have vertices and stalks of dimension at least 1, got {sheaf}")
    d = int(sheaf.vertex_dims[0])
    for what, dims in (("vertex", sheaf.vertex_dims), ("edge", sheaf.edge_dims)):
        if (other := checks.first_true(dims != d)) is not None:
            raise ValueError(
                f"`F` must be a connection, with stalks of equal dimension, but {what} {other} "
                f"has dimension {dims[other]} and vertex 0 has {d}"
            )
    data = np.stack([sheaf.tail_data, sheaf.head_data])
    maps = data.astype(np.result_type(data, np.float64)).reshape(2, -1, d, d)
    unit = np.abs(maps).max(axis=(0, 2, 3), initial=0)
    maps = maps / np.where(unit > 0, unit, 1)[:, None, None]
    weights = (np.einsum("seij,seij->se", maps.conj(), maps).real / d).max(axis=0)
    safe = np.where(weights > 0, weights, 1)[:, None, None]
    maps /= np.sqrt(safe)
    maps[:, weights == 0] = np.eye(d)
    own = "`F` must be a connection, as CellularSheaf.connection builds: the maps of edge"
    for matrices in maps.astype(sheaf.dtype):
        check_unitary(matrices, lambda e: f"{own} {e}, divided by the root of its weight,")
    transports = maps[0].conj().swapaxes(1, 2) @ maps[1]
    m, n, weights = sheaf.n_edges, sheaf.n_vertices, weights * unit**2
    return Connection(n, sheaf.edges, transports, weights, np.zeros((m, 0)), np.zeros(m))


def costs_of(connection: Connection, poses: Poses) -> tuple[np.ndarray, np.ndarray]:
    """Return the costs of rotations (m,) and of displacements (m + s,), sightings last."""
    m, d = connection.transports.shape[:2]
    k = d + connection.has_positions
    squares = np.square(np.abs(apply_coboundary(connection.sheaf, poses.cochain))).sum(axis=1)
    of_edges = squares[: m * k].reshape(m, k)
    moves = np.append(of_edges[:, d:].sum(axis=1), squares[m * k :])
    return of_edges[:, :d].sum(axis=1), moves


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


def concentrations(
    information: np.ndarray, dim: int
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """Return kappa and tau of information matrices (m, p, p), translations first, and masks.

    They are the harmonic means of the eigenvalues of the rotation's and the translation's block,
    the former divided by d - 1 (Rosen et al. 2019). The masks (m,) are True where the block of the
    rotation, that of the translation, or the matrix is not positive definite.
    """
    kappa, rotation_fails = harmonic_means(information[:, dim:, dim:])
    tau, translation_fails = harmonic_means(information[:, :dim, :dim])
    return kappa / (dim - 1), tau, (rotation_fails, translation_fails, _scaled(information)[1])


def harmonic_means(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return k / tr(inv(B)) of matrices B (m, k, k), and a mask of those not positive definite."""
    scaled, fails = _scaled(blocks)
    diagonal = np.where(fails[:, None], 1.0, np.einsum("eii->ei", blocks))
    inverse = np.einsum("eii->ei", np.linalg.inv(scaled)) / diagonal
    return blocks.shape[1] / inverse.sum(axis=1), fails


def _scaled(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return matrices scaled to unit diagonal, or I, and a mask of those not positive definite."""
    k = blocks.shape[1]
    diagonal = np.einsum("eii->ei", blocks)
    fails = ~(diagonal > 0).all(axis=1)
    roots = np.sqrt(np.where(fails[:, None], 1.0, diagonal))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = blocks / roots[:, :, None] / roots[:, None, :]
    fails |= ~np.isfinite(scaled).all(axis=(1, 2))
    scaled[fails] = np.eye(k)
    smallest = np.linalg.eigvalsh(scaled)[:, 0]
    fails |= smallest <= linalg.zero_level(k, linalg.eps_of(float), float(k))
    scaled[fails] = np.eye(k)
    return scaled, fails
