"""The result of synchronization: poses, and the residuals of every edge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen._support import ReadOnly, checks, linalg, ragged, tables
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve import tolerance
from sheafcoarsen.synchronization._pose_graph import PoseGraph, connection_from
from sheafcoarsen.synchronization.connection import (
    Connection,
    Poses,
    angles_of,
    costs_of,
    edge_turns,
)
from sheafcoarsen.synchronization.fits import least_residual_poses, squared_residuals, weighted
from sheafcoarsen.synchronization.refinement import PoseCertificate, certificate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Synchronization(ReadOnly):
    """Absolute poses fitted to measured relative poses; :func:`synchronize` computes them.

    Each connected component has its own frame, in which its first vertex has the pose (I, 0).

    Attributes
    ----------
    rotations : ndarray, shape (n, d, d)
        R_i; R_j is about R_i R_ij for an edge (i, j).
    translations : ndarray, shape (n, d), or None
        t_i; None if a sheaf was given, which has no translations.
    landmarks : ndarray, shape (L, d), or None
        Positions of landmarks; nan for those that no pose has seen (``np.nan_to_num`` makes them
        valid ``places`` of Sightings).
    edges : ndarray of int, shape (m, 2)
    angles : ndarray, shape (m,)
        Rotation angle between R_i R_ij and R_j in radians, 0 .. pi; for d > 3 the largest one. It
        is nan for edges of weight 0.
    distances : ndarray, shape (m,), or None
        norm(t_j - t_i - R_i t_ij), in the units of the translations.
    edge_costs : ndarray, shape (m,)
        kappa norm(R_j - R_i R_ij)_F^2 + tau norm(t_j - t_i - R_i t_ij)^2.
    cost : float
        The cost of SE-Sync: the edge costs, weighted by ``weights``, and those of sightings.
    weights : ndarray, shape (m,), or None
        0 for measurements that a robust fit discards, 1 for the others; None without ``robust``.
    eigenvalues : ndarray, shape (d + 1,), or None
        The lowest eigenvalues of the component with the smallest ``gap``, the last to about five
        digits; the first d are 0 for consistent rotations. None if no modes were computed.
    component : ndarray of int, shape (n,)
    costs : ndarray
        The cost before refinement and after each of its steps, which does not increase.
    converged : bool
        Whether refinement converged; True without refinement.
    method : str
        "spectral", "anchored", "joint", "tls" after a robust fit, or "start" from given rotations.
    group : str
        "SO(2)", "SO(3)", ..., or "O(d)" and "U(d)" if transports reflect or are complex.
    measurements : CellularSheaf or PoseGraph
    vertex_labels : tuple or None

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> S = sc.synchronize(sc.gallery.cycle(6, 0.6))
    >>> S
    Synchronization(n_vertices=6, n_edges=6, SO(2), 1 component, gap=0.8221, cost=0.1199)
    >>> S.angles.round(3)
    array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    """

    rotations: np.ndarray
    translations: np.ndarray | None
    landmarks: np.ndarray | None
    edges: np.ndarray
    angles: np.ndarray
    distances: np.ndarray | None
    edge_costs: np.ndarray
    cost: float
    component: np.ndarray
    costs: np.ndarray
    converged: bool
    method: str
    group: str
    measurements: CellularSheaf | PoseGraph
    vertex_labels: tuple | None = None
    weights: np.ndarray | None = None
    eigenvalues: np.ndarray | None = None

    @property
    def gap(self) -> float | None:
        """The (d + 1)-th lowest eigenvalue minus the d-th, or None; inf without edges.

        Measurement errors much smaller than the gap hardly change the frames.
        """
        return None if self.eigenvalues is None else float(np.diff(self.eigenvalues)[-1])

    @property
    def n_vertices(self) -> int:
        """Number of poses n."""
        return len(self.rotations)

    @property
    def n_edges(self) -> int:
        """Number of measurements m."""
        return len(self.edges)

    @property
    def n_components(self) -> int:
        """Number of connected components, each with its own frame."""
        return int(self.component.max(initial=-1)) + 1

    @property
    def _poses(self) -> Poses:
        """Poses in double precision, landmarks last, with costs if ``rotations`` are double."""
        given = [part for part in (self.translations, self.landmarks) if part is not None]
        positions = np.nan_to_num(np.concatenate(given or [np.zeros((self.n_vertices, 0))]))
        rotations = self.rotations.astype(np.result_type(self.rotations, np.float64), copy=False)
        costs = tuple(self.costs) if rotations is self.rotations else ()
        return Poses(rotations, positions, costs)

    def cochain(self) -> np.ndarray:
        """Return the poses as d cochains of ``G.joint_sheaf()``, or of the given sheaf.

        Returns
        -------
        ndarray, shape (dim_c0, d)
            Blocks [R_i^T; t_i^T], then rows t_l^T of landmarks; blocks R_i^* for a sheaf. The
            energies of all columns add up to the cost of all measurements.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.gallery.cycle(6, 0.6)
        >>> S = sc.synchronize(F)
        >>> round(float(sc.energy(F, S.cochain()).sum()), 6), round(S.cost, 6)
        (0.1199, 0.1199)
        """
        return self._poses.cochain.astype(self.rotations.dtype)

    @cached_property
    def suspicion(self) -> np.ndarray:
        """Residual of each edge (m,) in a robust fit, in standard deviations.

        The fit approximately minimizes the sum of residuals, not of squares. With landmarks, or
        after ``robust="tls"``, the fit is this result. Edges on no cycle have residual 0.
        """
        connection, poses = connection_from(self.measurements), self._poses
        if self.weights is None and not connection.n_landmarks:
            poses = least_residual_poses(connection)
        return ragged.read_only(np.sqrt(squared_residuals(connection, poses)))

    def outliers(self, threshold: float | None = None) -> np.ndarray:
        """Return all edges, or those above a threshold, in descending order of ``suspicion``.

        Without ``robust="tls"`` this ranks the edges, and is no test: good edges may exceed any
        threshold in the second fit that ``suspicion`` describes.

        Parameters
        ----------
        threshold : float, optional
            In standard deviations.

        Returns
        -------
        ndarray of int, shape (m,) or fewer

        Raises
        ------
        ValueError, TypeError
            If the threshold is not a number.

        Examples
        --------
        >>> import networkx as nx
        >>> import numpy as np
        >>> import sheafcoarsen as sc
        >>> F = sc.gallery.bundle(nx.grid_2d_graph(8, 8), dim=2, noise=0.02, seed=0)
        >>> head = F.head_data.reshape(-1, 2, 2).copy()
        >>> head[17] = head[17] @ [[0.0, -1.0], [1.0, 0.0]]
        >>> S = sc.synchronize(F.with_maps(F.tail_data, head))
        >>> S.outliers(threshold=1.0).tolist()
        [17]
        """
        ranked = np.argsort(-self.suspicion, kind="stable")
        if threshold is None:
            return ranked
        if np.isnan(threshold := checks.real_number("threshold", threshold)):
            raise ValueError("`threshold` must be a number of standard deviations, got nan")
        return ranked[self.suspicion[ranked] > threshold]

    def _residuals(self, count: int | None = None) -> dict[str, Any]:
        """Return the residuals of the worst edges and sightings (or of all) as columns."""
        connection, m = connection_from(self.measurements), self.n_edges
        names = list(self.vertex_labels or range(self.n_vertices))
        if isinstance(self.measurements, PoseGraph):
            names = self.measurements._names()
        costs = costs_of(connection, self._poses)[1][m:]
        # arrays of edges, and of sightings
        columns: dict[str, tuple] = {
            "suspicion": (self.suspicion, np.sqrt(costs)),
            "residual": (np.sqrt(squared_residuals(connection, self._poses)), np.sqrt(costs)),
            "angle": (self.angles, np.full_like(costs, np.nan)),
            "cost": (self.edge_costs, costs),
            "distance": (self.distances, np.sqrt(costs / connection.tau[m:])),
            "weight": (self.weights, np.ones_like(costs)),
        }
        known = {name: np.append(*pair) for name, pair in columns.items() if pair[0] is not None}
        worst = np.argsort(-known["suspicion"], kind="stable")[:count]
        start, end = ([names[v] for v in ends] for ends in connection.ends[worst].T.tolist())
        found = {"edge": worst, "from": start, "to": end}
        return found | {name: column[worst] for name, column in known.items()}

    def to_frame(self) -> pd.DataFrame:
        """Return the residuals of all edges and sightings as a pandas DataFrame, worst first.

        Returns
        -------
        pandas.DataFrame
            A row for each edge of ``G.joint_sheaf()`` (sightings from m on), in the order of
            descending suspicion: the vertices it leads from and to, suspicion, residual at these
            poses (both in standard deviations), angle (nan for sightings), cost, and distance and
            weight if known.

        Raises
        ------
        ImportError
            Without pandas: ``pip install "sheafcoarsen[pandas]"``.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> S = sc.synchronize(sc.gallery.cycle(6, 0.6))
        >>> S.to_frame()[["from", "to", "angle"]]  # doctest: +SKIP
        """
        columns = self._residuals()
        return tables.data_frame("edge", columns.pop("edge"), columns)

    @cached_property
    def _certificates(self) -> dict[float, PoseCertificate]:
        return {}

    def certify(self, tol: float = 1e-6) -> PoseCertificate:
        """Return a lower bound on the minimum cost, and whether these poses attain it.

        The bound comes from the Lagrange multipliers (Rosen et al., IJRR 2019) of poses that are
        refined if possible, for measurements weighted by ``weights``. Its gap is that of these
        poses, which rarely attain the bound if they were not refined. If the relaxation is not
        tight, an optimum may not be recognized; a certified optimum is always one.

        Parameters
        ----------
        tol : float
            Largest gap of certified poses, relative to the cost.

        Returns
        -------
        PoseCertificate

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.synchronize(sc.gallery.cycle(6, 0.6), refine=True).certify()
        PoseCertificate(optimal, cost=0.1199, lower_bound=0.1199)
        """
        tol = tolerance("tol", tol, linalg.eps_of(np.float64))
        if tol not in self._certificates:
            connection = connection_from(self.measurements)
            if self.weights is not None:
                connection = weighted(connection, self.weights)
            self._certificates[tol] = certificate(connection, self._poses, self.cost, tol)
        return self._certificates[tol]

    def __repr__(self) -> str:
        gap = "" if self.gap is None else f", gap={self.gap:.4g}"
        refined = "" if len(self.costs) == 1 else f", {self._verdict()}"
        out = "" if self.weights is None else f" ({self._n_left_out} left out)"
        return (
            f"Synchronization(n_vertices={self.n_vertices}, n_edges={self.n_edges}{out}, "
            f"{self.group}, {self._frames}{gap}, cost={self.cost:.6g}{refined})"
        )

    @property
    def _frames(self) -> str:
        """Number of components as text."""
        return tables.counted(self.n_components, "component", "components, a frame for each")

    @property
    def _n_left_out(self) -> int:
        """Number of measurements that a robust fit discards."""
        return 0 if self.weights is None else int((self.weights < 0.5).sum())

    def _verdict(self) -> str:
        """Return a phrase that says whether the poses are refined or certified."""
        if not self._certificates:
            refined = "refined" if self.converged else "not converged"
            refined = "not refined" if len(self.costs) == 1 else refined
            return f"{refined}, certify() not called"
        *_, last = self._certificates.values()
        return "certified" if last.is_optimal else f"at most {last.gap:.3g} above the optimum"

    def _repr_html_(self) -> str:
        rows: list[tuple] = [("poses", len(self.rotations)), ("of", self.group)]
        rows += [("frames", self._frames), ("cost", f"{self.cost:.6g}")]
        rows += [] if self.weights is None else [("measurements left out", self._n_left_out)]
        rows += [("angles (radians)", tables.span(self.angles))]
        if self.distances is not None:
            rows.append(("distances", tables.span(self.distances)))
        if self.gap is not None:
            rows.append(("gap after the frames' eigenvalues", self.gap))
        rows += [("method", self.method), ("steps of refinement", len(self.costs) - 1)]
        rows += [("converged", self.converged), ("optimum", self._verdict())]
        return tables.table(rows, caption="Synchronization")


def result_at(
    F: CellularSheaf | PoseGraph,
    connection: Connection,
    poses: Poses,
    method: str,
    weights: np.ndarray | None,
    eigenvalues: np.ndarray | None,
) -> Synchronization:
    """Compute the residuals of every edge and the cost at given poses, and return the result."""
    n, m = connection.n_vertices, len(connection.edges)
    rotations, positions, costs, converged = poses
    turns, moves = costs_of(connection, poses)
    angles = angles_of(edge_turns(connection, rotations))
    angles[connection.weights == 0] = np.nan
    distances = translations = landmarks = None
    if connection.has_positions:
        distances = ragged.read_only(np.sqrt(moves[:m] / connection.tau[:m]))
        translations = ragged.read_only(positions[:n])
        if connection.n_landmarks:
            unseen = np.bincount(connection.ends[m:, 1], minlength=len(positions))[n:] == 0
            landmarks = ragged.read_only(np.where(unseen[:, None], np.nan, positions[n:]))
    edge_costs, seen = turns + moves[:m], moves[m:].sum()
    cost = float(edge_costs.sum() if weights is None else weights @ edge_costs) + float(seen)
    return Synchronization(
        rotations=ragged.read_only(rotations.astype(getattr(F, "dtype", np.float64))),
        translations=translations,
        landmarks=landmarks,
        edges=connection.edges,
        measurements=F,
        angles=ragged.read_only(angles),
        distances=distances,
        edge_costs=ragged.read_only(edge_costs),
        cost=cost,
        component=ragged.read_only(connection.joined[:n]),
        costs=ragged.read_only(np.array(costs or [cost])),
        converged=converged,
        method=method,
        group=connection.group,
        vertex_labels=F.vertex_labels,
        weights=weights,
        eigenvalues=eigenvalues,
    )
