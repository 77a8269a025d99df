"""Pose graphs: measured relative rotations and translations with their weights."""

from __future__ import annotations

import numbers
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import ReadOnly, checks, ragged, tables
from sheafcoarsen._support import labels as naming
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, check_unitary, vertex_names
from sheafcoarsen.synchronization.connection import Connection, concentrations, read_connection


@dataclass(frozen=True, eq=False, repr=False)
class Sightings(ReadOnly):
    """Positions of landmarks (points without an orientation) measured from poses.

    A sighting (i, l) measures the position t_l = t_i + R_i z of landmark l, with the cost tau
    norm(t_l - t_i - R_i z)^2.

    Parameters
    ----------
    edges : array_like of int, shape (s, 2), or list of pairs
        (pose, landmark), both numbered from 0, or pairs (name, landmark) if the poses of the graph
        have names that are not all numbers.
    points : array_like, shape (s, d)
        z, in the frame of the pose.
    tau : array_like, shape (s,)
        Positive weights.
    labels : tuple, optional
        Names of the landmarks.
    places : array_like, shape (L, d), optional
        Initial positions.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.Sightings([[0, 0], [1, 0]], [[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0])
    Sightings(2 of 1 landmark in dimension 2)
    """

    edges: np.ndarray
    points: np.ndarray
    tau: np.ndarray
    labels: tuple | None = None
    places: np.ndarray | None = None

    def __post_init__(self) -> None:
        edges = _named_pairs(self.edges)
        points = _real("points", self.points, (len(edges), 2), (len(edges), 3))
        tau = _positive("tau", self.tau, len(edges))
        count, places, labels = int(edges[:, 1].max(initial=-1)) + 1, self.places, self.labels
        if places is not None:
            count = max([count, *checks.scalar_array("places", places).shape[:1]])
            places = _real("places", places, (count, points.shape[1]))
        if labels is not None and len(labels := tuple(labels)) < count:
            marks = tables.counted(count, "landmark")
            raise ValueError(f"`labels` must hold a name for each of {marks}, got {len(labels)}")
        try:
            hash(labels)
        except TypeError as error:
            raise TypeError(f"`labels` must hold hashable names: {error}") from None
        # through vars, because the class is frozen
        vars(self).update(edges=edges, points=points, tau=tau, places=places, labels=labels)

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks L."""
        named = self.labels if self.labels is not None else self.places
        return int(self.edges[:, 1].max(initial=-1)) + 1 if named is None else len(named)

    def __repr__(self) -> str:
        marks = tables.counted(self.n_landmarks, "landmark")
        return f"Sightings({len(self.edges):,} of {marks} in dimension {self.points.shape[1]})"


@dataclass(frozen=True, eq=False, repr=False)
class PoseGraph(ReadOnly):
    """Relative poses measured between unknown poses (R_i, t_i) in the plane or in space.

    An edge e = (i, j) holds the pose of j seen from i: R_j is about R_i R_ij, and t_j about
    t_i + R_i t_ij. The cost of poses is that of SE-Sync (Rosen et al., IJRR 2019)::

        sum over e of kappa_e norm(R_j - R_i R_ij)_F^2 + tau_e norm(t_j - t_i - R_i t_ij)^2

    :func:`read_g2o` with ``poses=True`` reads one, :func:`synchronize` computes poses of low cost;
    ``dataclasses.replace`` replaces measurements.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
    rotations : array_like, shape (m, d, d)
        R_ij, with d = 2 or 3 and determinant 1.
    translations : array_like, shape (m, d)
        t_ij, in the frame of i.
    kappa, tau : array_like, shape (m,), or float, optional
        Concentrations of rotations and translations, positive; by default those of ``information``,
        or 1. Errors of standard deviation s in every coordinate have tau = 1 / s^2; errors of
        s radians about every axis have kappa = 1 / s^2 in the plane, 1 / (2 s^2) in space.
    information : array_like, shape (m, p, p), optional
        Information matrices, p = d + d (d - 1) / 2, translations first, for `write_g2o`. They
        determine ``kappa`` and ``tau`` as in SE-Sync: d / trace(inv(I_t)), and d (d - 1) / 2 /
        trace(inv(I_r)) in the plane, half of it in space, where I_t and I_r are the diagonal blocks
        of the translation and of the rotation.
    poses : (array_like of shape (n, d, d), array_like of shape (n, d)), optional
        Poses given with the measurements.
    vertex_labels : tuple, optional
    n_vertices : int, optional
        Number of vertices, if the last ones are isolated.
    sightings : Sightings, optional
        Landmarks.

    Raises
    ------
    ValueError, TypeError
        If shapes are inconsistent, or values are not finite, not rotations, or not positive.

    Examples
    --------
    A square, whose sides are one step ahead and a rotation by pi / 2:

    >>> import sheafcoarsen as sc
    >>> rotation = [[0.0, -1.0], [1.0, 0.0]]
    >>> G = sc.PoseGraph([[0, 1], [1, 2], [2, 3], [3, 0]], [rotation] * 4, [[1.0, 0.0]] * 4)
    >>> S = sc.synchronize(G)
    >>> S.translations.round(9) + 0.0
    array([[0., 0.],
           [1., 0.],
           [1., 1.],
           [0., 1.]])
    """

    edges: np.ndarray
    rotations: np.ndarray
    translations: np.ndarray
    kappa: np.ndarray | float | None = None
    tau: np.ndarray | float | None = None
    information: np.ndarray | None = None
    poses: tuple[np.ndarray, np.ndarray] | None = None
    vertex_labels: tuple[Hashable, ...] | None = None
    n_vertices: int | None = None
    sightings: Sightings | None = None

    def __post_init__(self) -> None:
        edges = _pairs(self.edges)
        m = len(edges)
        rotations = _rotations("rotations", self.rotations, (m, 2, 2), (m, 3, 3))
        dim = rotations.shape[1]
        labels = None if self.vertex_labels is None else tuple(self.vertex_labels)
        least, poses = int(edges.max(initial=-1)) + 1, self.poses
        if poses is not None and not (isinstance(poses, Sequence) and len(poses) == 2):
            raise ValueError("`poses` must be a pair of arrays: rotations and translations")
        if self.n_vertices is None:
            given = () if poses is None else checks.scalar_array("poses[1]", poses[1]).shape
            n = max(least, len(labels or ()), *given[:1])
        else:
            n = checks.whole_number("n_vertices", self.n_vertices)
            checks.vertex_count("n_vertices", n)
            if n < least:
                reason = f", because of vertex {least - 1} in `edges`" if least else ""
                raise ValueError(f"`n_vertices` must be at least {least}{reason}, got {n}")
        if poses is not None:
            R = _rotations("poses[0]", poses[0], (n, dim, dim))
            poses = R, _real("poses[1]", poses[1], (n, dim))
        if labels is not None:
            vertex_names(labels, n)
        if (seen := self.sightings) is not None:
            if not isinstance(seen, Sightings):
                raise TypeError(f"`sightings` must be Sightings, got {type(seen).__name__}")
            if (got := seen.points.shape[1]) != dim:
                message = f"`sightings` must have the dimension of the poses, {dim}, got {got}"
                raise ValueError(message)
            if seen.edges.dtype == object:
                if labels is None:
                    raise ValueError("`sightings` name poses, but the graph has no `vertex_labels`")
                who = naming.named_vertices("sightings", list(seen.edges[:, 0]), labels)
                seen = replace(seen, edges=np.stack([who, seen.edges[:, 1].astype(int)], axis=1))
            if (bad := checks.first_true(seen.edges[:, 0] >= n)) is not None:
                name = f"`sightings.edges[{bad}]` refers to pose {seen.edges[bad, 0]}"
                raise ValueError(f"{name}, but there are {tables.counted(n, 'pose')}")
        vars(self).update(  # as the class is frozen
            edges=edges,
            rotations=rotations,
            translations=_real("translations", self.translations, (m, dim)),
            poses=poses,
            vertex_labels=labels,
            n_vertices=n,
            sightings=seen,
            **self._weights(m, dim),
        )
        roots = np.sqrt(self._connection.tau)
        lengths = np.maximum(np.abs(self._connection.points).max(axis=1, initial=0), 1)
        for name, sizes in (
            ("sqrt(kappa)", np.sqrt(self._connection.weights)),
            ("sqrt(tau)", roots),
            ("translations or points", lengths),
            ("sqrt(tau) times translations or points", roots * lengths),
        ):
            checks.check_range(name, sizes.max(initial=0), np.float64, "use other units")

    def _weights(self, m: int, dim: int) -> dict[str, np.ndarray]:
        """Check information matrices, kappa and tau, also against each other, and return them."""
        checked = {"kappa": np.ones(m), "tau": np.ones(m)}
        if self.information is not None:
            size = dim * (dim + 1) // 2
            information = _real("information", self.information, (m, size, size))
            asymmetric = np.argwhere(information != information.swapaxes(1, 2))
            if len(asymmetric):
                e, p, q = asymmetric[0].tolist()
                raise ValueError(
                    f"`information[{e}]` must be symmetric, got {information[e, p, q]:g} at "
                    f"{(p, q)} and {information[e, q, p]:g} at {(q, p)}"
                )
            kappa, tau, (rotation_fails, translation_fails, _) = concentrations(information, dim)
            if (bad := checks.first_true(rotation_fails | translation_fails)) is not None:
                raise ValueError(
                    f"`information[{bad}]` must have positive definite blocks of the translation "
                    f"and of the rotation, got {information[bad].tolist()}: omit the measurement, "
                    f"or pass information=None with your own `kappa` and `tau`"
                )
            checked = {"information": information, "kappa": kappa, "tau": tau}
        for name, given in (("kappa", self.kappa), ("tau", self.tau)):
            if given is None:
                continue
            values, own = _positive(name, given, m), checked[name]
            differs = np.abs(values - own) > 1e-6 * own
            if self.information is not None and (e := checks.first_true(differs)) is not None:
                raise ValueError(
                    f"`{name}[{e}]` = {values[e]:.6g}, but `information[{e}]` implies "
                    f"{own[e]:.6g}: omit `{name}` (in dataclasses.replace pass {name}=None), or "
                    "pass information=None to use your own weights"
                )
            checked[name] = values  # unchanged
        return {name: ragged.read_only(array) for name, array in checked.items()}

    @property
    def dim(self) -> int:
        """Dimension of space, 2 or 3."""
        return self.translations.shape[1]

    @property
    def n_edges(self) -> int:
        """Number of measurements m."""
        return len(self.edges)

    @cached_property
    def sheaf(self) -> CellularSheaf:
        """Connection given by the measured rotations, weighted by kappa.

        Its sections are the transposed rotations of poses that satisfy all measurements.
        """
        sheaf = self._connection.without_positions.sheaf
        return sheaf if self.vertex_labels is None else sheaf.with_labels(self.vertex_labels)

    @cached_property
    def _connection(self) -> Connection:
        n, ends, points = int(self.n_vertices or 0), self.edges, self.translations
        kappa, tau = np.asarray(self.kappa), np.asarray(self.tau)
        if (seen := self.sightings) is not None:
            ends = np.concatenate([ends, seen.edges + np.array([0, n])])
            points = np.concatenate([points, seen.points])
            tau = np.append(tau, seen.tau)
        n_landmarks = 0 if seen is None else seen.n_landmarks
        return Connection(n, ends, self.rotations, kappa, points, tau, n_landmarks)

    def joint_sheaf(self) -> CellularSheaf:
        """Return the sheaf on which the energies of the d cochains ``S.cochain()`` sum to the cost.

        The vertices are the poses, with stalks of dimension d + 1, then the landmarks, with stalks
        of dimension 1; the edges are the measurements, then the sightings. Poses and landmarks keep
        their names, unless two of them are equal.

        Returns
        -------
        CellularSheaf

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> rotation = [[0.0, -1.0], [1.0, 0.0]]
        >>> G = sc.PoseGraph([[0, 1], [1, 2], [2, 0]], [rotation] * 3, [[1.0, 0.0]] * 3)
        >>> S = sc.synchronize(G)
        >>> energy = sc.energy(G.joint_sheaf(), S.cochain()).sum()
        >>> round(float(energy), 6), round(S.cost, 6)
        (1.607695, 1.607695)
        """
        names, seen = self._names(), self.sightings
        is_named = self.vertex_labels is not None or (seen is not None and seen.labels is not None)
        if not is_named or len(set(names)) < len(names):
            return self._connection.sheaf
        return self._connection.sheaf.with_labels(names)

    def _names(self) -> list[Hashable]:
        """Return the names of the poses, then those of the landmarks."""
        names: list[Hashable] = list(self.vertex_labels or range(int(self.n_vertices or 0)))
        if (seen := self.sightings) is not None:
            names += seen.labels or [f"landmark {mark}" for mark in range(seen.n_landmarks)]
        return names

    def subset(self, edges: npt.ArrayLike) -> PoseGraph:
        """Return the pose graph with some of the measurements, and all poses and landmarks.

        Parameters
        ----------
        edges : array_like, indices or a mask of shape (m,)
            The measurements to keep, with all sightings. A mask of shape (m + s,), in the order of
            the edges of ``joint_sheaf()``, selects among the s sightings of landmarks, too; the
            last landmarks are then omitted if no pose sees them and they have no names or places.

        Returns
        -------
        PoseGraph

        Raises
        ------
        ValueError, TypeError
            If indices are out of range or repeated, or a mask has another length.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> rotation = [[0.0, -1.0], [1.0, 0.0]]
        >>> G = sc.PoseGraph([[0, 1], [1, 2], [2, 0]], [rotation] * 3, [[1.0, 0.0]] * 3)
        >>> G.subset([0, 2]).edges.tolist()
        [[0, 1], [2, 0]]
        """
        names = ["edges", "rotations", "translations", "kappa", "tau"]
        names += [] if self.information is None else ["information"]
        parts: dict[str, Any] = {}
        given, seen = np.asarray(edges), self.sightings
        count = self.n_edges + (0 if seen is None else len(seen.edges))
        if seen is not None and given.dtype == bool and given.shape == (count,):
            edges, chosen = given[: self.n_edges], given[self.n_edges :]
            chosen_parts = {k: getattr(seen, k)[chosen] for k in ("edges", "points", "tau")}
            parts["sightings"] = replace(seen, **chosen_parts)
        kept = edge_indices("edges", edges, self.n_edges)
        parts |= {name: getattr(self, name)[kept] for name in names}
        return replace(self, **parts)

    def __repr__(self) -> str:
        seen, known = self.sightings, "with" if self.poses is not None else "without"
        sizes = f"n_vertices={self.n_vertices}, n_edges={self.n_edges}"
        if seen is not None:
            marks = tables.counted(seen.n_landmarks, "landmark")
            sizes += f", {marks}, {tables.counted(len(seen.edges), 'sighting')}"
        return f"PoseGraph(SE({self.dim}), {sizes}, {known} poses)"

    def _repr_html_(self) -> str:
        rows: list[tuple] = [("poses", self.n_vertices), ("in", f"SE({self.dim})")]
        rows += [("measurements", len(self.edges))]
        rows += [("components", len(np.unique(self._connection.component)))]
        rows += [(name, tables.span(getattr(self, name))) for name in ("kappa", "tau")]
        rows += [("poses given", self.poses is not None)]
        if (seen := self.sightings) is not None:
            rows += [("landmarks", seen.n_landmarks), ("sightings", len(seen.edges))]
        return tables.table(rows, caption="PoseGraph")


def order_of(S: Any) -> np.ndarray:
    """Return the rank of each vertex by its label if labels are integers, else its index."""
    labels = S.vertex_labels
    if labels is None or not all(isinstance(label, numbers.Integral) for label in labels):
        return np.arange(S.n_vertices)
    return np.argsort(np.argsort(np.array(labels, object)))


def connection_from(F: CellularSheaf | PoseGraph) -> Connection:
    """Return the connection that a sheaf or a pose graph describes."""
    if isinstance(F, str | os.PathLike):
        raise TypeError(
            f"`F` must be a CellularSheaf or a PoseGraph, got {type(F).__name__}: "
            f"read a file with read_g2o(path, poses=True)"
        )
    if not isinstance(F, PoseGraph):
        return read_connection(check_sheaf(F, "F"))
    if not F.n_vertices:
        raise ValueError("`F` must have at least one pose, got a pose graph without poses")
    return F._connection


def edge_indices(name: str, value: npt.ArrayLike, n_edges: int) -> np.ndarray:
    """Return the indices of edges given as indices, which must not repeat, or as a mask."""
    given = np.asarray(value)
    if given.dtype == bool:
        if given.shape != (n_edges,):
            raise ValueError(f"`{name}` must be a mask of shape ({n_edges},), got {given.shape}")
        return np.flatnonzero(given)
    indices = checks.integer_array(name, given)
    repeated = np.ones(len(indices), bool)
    repeated[np.unique(indices, return_index=True)[1]] = False
    if (bad := checks.first_true(repeated | (indices < 0) | (indices >= n_edges))) is not None:
        raise ValueError(
            f"`{name}[{bad}]` must be the index of an edge, 0 to {n_edges - 1}, that is not "
            f"repeated, got {indices[bad]}"
        )
    return indices


def _pairs(value: npt.ArrayLike) -> np.ndarray:
    """Check that edges are an array (m, 2) of non-negative integers, and return a copy."""
    edges = checks.integer_array("edges", value if np.size(value) else np.zeros((0, 2)), ndim=2)
    if edges.shape[1] != 2:
        raise ValueError(f"`edges` must have shape (m, 2), got {edges.shape}")
    if (bad := checks.first_true((edges < 0).any(axis=1))) is not None:
        raise ValueError(f"`edges[{bad}]` must not be negative, got {edges[bad].tolist()}")
    checks.vertex_count("edges", int(edges.max(initial=-1)) + 1)
    return ragged.read_only(edges)


def _named_pairs(value: Any) -> np.ndarray:
    """Return pairs of indices, or of names of poses and indices as an array of objects."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
        value = value.tolist()
    if not isinstance(value, list | tuple) or not any(
        isinstance(pair, list | tuple) and pair and not isinstance(pair[0], numbers.Number)
        for pair in value
    ):
        return _pairs(value)
    edges = np.empty((len(value), 2), dtype=object)
    for i, pair in enumerate(value):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"`edges[{i}]` must be a pair (pose, landmark), got {pair!r}")
        edges[i, 0] = pair[0]
        edges[i, 1] = checks.whole_number(f"edges[{i}][1]", pair[1], at_least=0)
    checks.vertex_count("edges", int(edges[:, 1].max()) + 1)
    return ragged.read_only(edges)


def _real(name: str, value: Any, *shapes: tuple[int, ...]) -> np.ndarray:
    """Check that an array is real and finite and has one of the shapes; return a float64 copy."""
    if isinstance(value, list) and not value:  # it does not determine its shape
        value = np.zeros((0, *shapes[0][1:]))
    array = checks.real_array(name, value, shapes, "have shape " + " or ".join(map(str, shapes)))
    return ragged.read_only(np.array(array, dtype=np.float64))


def _positive(name: str, value: Any, count: int) -> np.ndarray:
    """Check that numbers are positive, and return ``count`` of them; repeat a single number."""
    array = _real(name, np.full(count, value) if np.ndim(value) == 0 else value, (count,))
    if (bad := checks.first_true(array <= 0)) is not None:
        raise ValueError(f"`{name}[{bad}]` must be positive, got {array[bad]:g}")
    return array


def _rotations(name: str, value: Any, *shapes: tuple[int, ...]) -> np.ndarray:
    """Check that matrices are rotations up to sqrt(eps) of their type, and return them."""
    matrices = _real(name, value, *shapes)
    single = np.asarray(value).dtype.type is np.float32
    check_unitary(matrices.astype(np.float32) if single else matrices, lambda k: f"`{name}[{k}]`")
    if single:  # the nearest ones in double precision
        U, _, V = np.linalg.svd(matrices)
        matrices = ragged.read_only(U @ V)
    if (bad := checks.first_true(np.linalg.det(matrices) < 0)) is not None:
        raise ValueError(f"`{name}[{bad}]` must be a rotation, but its determinant is -1")
    return matrices
