"""The result of synchronization: poses, and the residuals of every edge."""

from dataclasses import dataclass

import numpy as np

from sheafcoarsen._support import ReadOnly, tables
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.synchronization._pose_graph import PoseGraph
from sheafcoarsen.synchronization.reweighting import robust_costs


@dataclass(frozen=True, eq=False, repr=False)
class Synchronization(ReadOnly):
    """Absolute poses fitted to measured relative poses; :func:`synchronize` computes them.

    Each connected component has a frame of its own: its first vertex has the identity as rotation
    and is at the origin.

    Attributes
    ----------
    rotations : ndarray, shape (n, d, d)
        R_i; R_j is about R_i R_ij for an edge (i, j).
    translations : ndarray, shape (n, d), or None
        t_i; None if a sheaf was given, which has no translations.
    landmarks : ndarray, shape (L, d), or None
    edges : ndarray of int, shape (m, 2)
    angles : ndarray, shape (m,)
        Rotation angle between R_i R_ij and R_j in radians, 0 .. pi. (For d > 3 the largest of its
        rotation angles.)
    distances : ndarray, shape (m,), or None
        norm(t_j - t_i - R_i t_ij), in the units of the translations.
    edge_costs : ndarray, shape (m,)
        kappa norm(R_j - R_i R_ij)_F^2 + tau norm(t_j - t_i - R_i t_ij)^2.
    cost : float
        Their sum, and that of the sightings of landmarks: the cost of SE-Sync.
    gap : float or None
        The (d + 1)-th lowest eigenvalue of the connection minus the d-th, the smallest over
        components: measurement errors much smaller than it hardly change the frames. None if no
        modes were computed; inf if there are no edges.
    eigenvalues : ndarray, shape (d + 1,), or None
        The lowest eigenvalues of the component with that gap, the last to about five digits; the
        first d are 0 for consistent rotations.
    component : ndarray of int, shape (n,)
        The connected component of every vertex.
    costs : ndarray
        The cost before refinement and after each of its steps; it never rises.
    converged : bool
        Whether refinement converged; True without refinement.
    method : str
    group : str
        "SO(2)", "SO(3)", ..., or "O(d)" and "U(d)" where transports reflect or are complex.
    measurements : CellularSheaf or PoseGraph
        What was synchronized.
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
    gap: float | None
    eigenvalues: np.ndarray | None
    component: np.ndarray
    costs: np.ndarray
    converged: bool
    method: str
    group: str
    measurements: CellularSheaf | PoseGraph
    vertex_labels: tuple | None = None

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
        """Number of connected components, each with a frame of its own."""
        return int(self.component.max(initial=-1)) + 1

    def outliers(self) -> np.ndarray:
        """Return all edges, ranked by how badly they fit the others, the worst first.

        By their costs in a robust fit that starts at these poses: least squares would spread the
        error of an outlier over all edges of its cycles. An edge on no cycle always fits.

        Returns
        -------
        ndarray of int, shape (m,)

        Examples
        --------
        >>> import networkx as nx
        >>> import numpy as np
        >>> import sheafcoarsen as sc
        >>> F = sc.gallery.bundle(nx.grid_2d_graph(8, 8), dim=2, noise=0.02, seed=0)
        >>> head = F.head_data.reshape(-1, 2, 2).copy()
        >>> head[17] = head[17] @ [[0.0, -1.0], [1.0, 0.0]]
        >>> int(sc.synchronize(F.with_maps(F.tail_data, head)).outliers()[0])
        17
        """
        spots = self.translations
        if spots is not None and self.landmarks is not None:
            spots = np.concatenate([spots, self.landmarks])
        costs = robust_costs(self.measurements, self.rotations, spots)
        return np.argsort(-costs, kind="stable")

    def _words(self) -> str:
        count = self.n_components
        return f"{count:,} component" if count == 1 else f"{count:,} components, a frame for each"

    def __repr__(self) -> str:
        gap = "" if self.gap is None else f", gap={self.gap:.4g}"
        return (
            f"Synchronization(n_vertices={self.n_vertices}, n_edges={self.n_edges}, "
            f"{self.group}, {self._words()}{gap}, cost={self.cost:.6g})"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("poses", len(self.rotations)),
            ("of", self.group),
            ("frames", self._words()),
            ("cost", f"{self.cost:.6g}"),
            ("angles (radians)", tables.span(self.angles)),
        ]
        if self.distances is not None:
            rows.append(("distances", tables.span(self.distances)))
        if self.gap is not None:
            rows.append(("gap behind the frames' eigenvalues", self.gap))
        rows += [
            ("method", self.method),
            ("steps of refinement", len(self.costs) - 1),
            ("converged", self.converged),
        ]
        return tables.table(rows, caption="Synchronization")
