"""Pose graphs in g2o text, read as measurements or as a connection of rotations, and written."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args, overload

import numpy as np
from scipy.spatial.transform import Rotation

from sheafcoarsen._support import PathLike, checks, files
from sheafcoarsen.io.text import FileError, numbers, parsed, read_lines, reading, shown
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.synchronization import (
    PoseGraph,
    Sightings,
    Synchronization,
    concentrations,
    harmonic_means,
)

G2oWeights: TypeAlias = Literal["information", "unit"]
"""Source of the edge weights."""


@overload
def read_g2o(
    path: PathLike, weights: G2oWeights = ..., poses: Literal[False] = ...
) -> CellularSheaf: ...


@overload
def read_g2o(path: PathLike, weights: G2oWeights = ..., *, poses: Literal[True]) -> PoseGraph: ...


@overload
def read_g2o(path: PathLike, weights: G2oWeights, poses: Literal[True]) -> PoseGraph: ...


def read_g2o(
    path: PathLike, weights: G2oWeights = "information", poses: bool = False
) -> CellularSheaf | PoseGraph:
    r"""Read an SE(2) or SE(3) pose graph, either its rotations as a connection or all its data.

    A line ``EDGE_SE2 i j dx dy dtheta`` or ``EDGE_SE3:QUAT i j dx dy dz qx qy qz qw``, followed by
    the upper triangle of the information matrix row by row, measures the pose of j in the frame of
    i. It becomes the edge with tail i and head j whose transport R_ij is the measured rotation
    (``eq:app-connection-restrictions``)::

        (delta x)_e = sqrt(w) (x_i - R_ij x_j)

    Every ``EDGE`` line is a separate edge, so repeated measurements are parallel edges and i = j is
    a loop. Vertices are numbered in the order of their first occurrence in ``VERTEX`` and ``EDGE``
    lines; ``vertex_labels`` holds their ids. Comments (``#``), ``FIX`` and ``PARAMS_...`` lines are
    ignored, but sightings of landmarks with a sensor offset (``PARAMS_SE3OFFSET``) other than the
    identity are an error. ``VERTEX2`` and ``EDGE2`` lines have the format of TORO, with another
    order of the information entries.

    Parameters
    ----------
    path : str or path-like
        Plain text, or gzipped if the name ends in ``.gz``.
    weights : {"information", "unit"}
        ``"information"``: w is the angle's information, in SE(3) ``3 / (2 tr(inv(Omega)))`` with
        Omega the information of the rotation (the lower right 3 x 3 block). ``"unit"``: w = 1; the
        information entries are counted, but not parsed.
    poses : bool
        Return a :class:`PoseGraph`: that sheaf, translations, information, poses of ``VERTEX``
        lines, and landmarks (``VERTEX_XY``, ``EDGE_SE2_XY``, ``VERTEX_TRACKXYZ``,
        ``EDGE_SE3_TRACKXYZ``; ``LANDMARK2 pose landmark x y`` with three entries of information,
        whose landmarks are numbered separately from poses, and have no labels if an id is also
        that of a pose). Its ``kappa`` is w, its ``tau`` is ``d / tr(inv(Omega_t))`` with Omega_t
        the information of the translation, and 1 for unit weights.

    Returns
    -------
    CellularSheaf or PoseGraph
        All stalks have dimension 2, or all 3; maps are float64.

    Raises
    ------
    FileNotFoundError
    ValueError
        ``path:line: ...`` for landmarks without ``poses``, other tags, SE2 mixed with SE3,
        wrong or missing numbers, a quaternion of length zero, or rotation information that is not
        positive definite. With ``poses`` also for such information of the translation, a vertex
        with two ``VERTEX`` lines, or without one if others have one.

    Warns
    -----
    UserWarning
        With ``poses``: the number of information matrices that are indefinite although both of
        their diagonal blocks are positive definite.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sheafcoarsen.io import read_g2o
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two_poses.g2o"
    ...     _ = path.write_text("EDGE_SE2 7 3 1.0 0.0 1.5707963267948966 1 0 0 1 0 4\n")
    ...     F = read_g2o(path)
    ...     G = read_g2o(path, poses=True)
    >>> F.vertex_labels
    (7, 3)
    >>> F.head_map(0).round(12)  # a quarter turn with weight 4
    array([[ 0., -2.],
           [ 2.,  0.]])
    >>> G
    PoseGraph(SE(2), n_vertices=2, n_edges=1, without poses)
    >>> G.translations, G.kappa, G.tau
    (array([[1., 0.]]), array([4.]), array([1.]))
    """
    path = checks.file_path(path)
    checks.choice("weights", weights, get_args(G2oWeights))
    poses = checks.flag("poses", poses)
    with reading(path):
        found = G2oLines(path, poses)
        d, n, rows = found.dim, len(found.index), found.edges
        n_pose = 3 if d == 2 else 7
        placed = found.vertices.array(n_pose)  # parsed even if not needed, to detect damaged files
        measured = rows.array(n_pose)
        edges = np.array(rows.poses, dtype=np.int64).reshape(-1, 2)
        rotations = _rotations(rows, measured)
        kappa, tau, information = np.ones(len(edges)), np.ones(len(edges)), None
        if weights == "information":
            information = _information(rows, 3 if d == 2 else 6)
            kappa, tau, (turn_fails, move_fails, indefinite) = concentrations(information, d)
            for what, fails in (("rotation", turn_fails), ("translation", move_fails & poses)):
                rows.refuse(
                    fails,
                    f"the information matrix of the {what} must be positive definite, because the "
                    f"edge's weight is computed from it; weights='unit' ignores it",
                )
            if poses and (count := int(indefinite.sum())):
                warnings.warn(
                    f"{path}:{rows.lines[int(indefinite.argmax())]}: {count:,} of "
                    f"{len(edges):,} information matrices {'is' if count == 1 else 'are'} "
                    f"indefinite; kappa and tau are computed from the rotation and translation "
                    f"blocks, which are positive definite",
                    UserWarning,
                    stacklevel=2,
                )
        sheaf = CellularSheaf.connection(edges, rotations, weight=kappa, n_vertices=n)
        if not poses:
            return sheaf.with_labels(found.index)
        known = _poses(found, placed), tuple(found.index), n, _sightings(found, weights)
        return PoseGraph(edges, rotations, measured[:, :d], kappa, tau, information, *known)


def _rotations(rows: Rows, values: np.ndarray) -> np.ndarray:
    """Return the rotations of poses or measurements, given as angles or quaternions."""
    if values.shape[1] == 3:
        c, s = np.cos(values[:, 2]), np.sin(values[:, 2])
        return np.stack([c, -s, s, c], axis=1).reshape(-1, 2, 2)
    quaternions = values[:, 3:]  # x y z w
    size = np.abs(quaternions).max(axis=1, initial=0)
    rows.refuse(size == 0, "the quaternion qx qy qz qw is zero, so it is not a rotation")
    if not len(values):
        return np.zeros((0, 3, 3))
    return Rotation.from_quat(quaternions / size[:, None]).as_matrix()


def _information(rows: Rows, size: int) -> np.ndarray:
    """Return information matrices, given their upper triangles row by row."""
    i, j = np.triu_indices(size)
    entries = numbers(rows.information, rows.lines, "an entry of an information matrix")
    matrices = np.empty((len(rows.lines), size, size))
    matrices[:, i, j] = matrices[:, j, i] = entries.reshape(-1, len(i))
    return matrices


def _poses(found: G2oLines, placed: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the poses of VERTEX lines in vertex order, or None without such lines."""
    rows, labels = found.vertices, list(found.index)
    if not rows.lines:
        return None
    order = np.full(len(labels), -1)
    for k, v in enumerate(rows.poses):
        if order[v] >= 0:
            raise FileError(f"vertex {labels[v]} has a VERTEX line already", rows.lines[k])
        order[v] = k
    if (bad := checks.first_true(order < 0)) is not None:
        count = len(rows.lines)
        others = "another has" if count == 1 else f"{count:,} others have"
        message = f"vertex {labels[bad]} has no VERTEX line, but {others} one: add it"
        raise FileError(f"{message}, or omit all of them", found.first_lines[bad])
    return _rotations(rows, placed)[order], placed[order, : found.dim]


def _sightings(found: G2oLines, weights: G2oWeights) -> Sightings | None:
    """Return the landmarks and their sightings, or None if there are none."""
    placed, seen, d = found.landmarks, found.sightings, found.dim
    if not placed.lines and not seen.lines:
        return None
    for number, words in found.offsets:
        if any(numbers(words, [number], "an entry of an offset")) and seen.lines:
            message = "sensors must be at the origin of their pose; offsets are not supported"
            raise FileError(message, number)
    marks = {label: k for k, label in enumerate(dict.fromkeys([*placed.marks, *seen.marks]))}
    last_tag = dict(zip(seen.marks, seen.tags, strict=True))
    for rows in (placed, seen):
        fields = zip(rows.lines, rows.tags, rows.marks, strict=True)
        for k, (number, tag, label) in enumerate(fields):
            # ids of landmarks in LANDMARK2 lines may equal ids of poses
            if label in found.index and tag != "LANDMARK2":
                raise FileError(f"{label} is a landmark here and a pose elsewhere", number)
            if rows is seen and last_tag[label] != tag:
                message = f"landmark {label} is in LANDMARK2 lines and in EDGE_SE2_XY lines"
                remedy = "whose landmark ids are separate: change its id in one of them"
                raise FileError(f"{message}, {remedy}", number)
            if rows is placed and marks[label] != k:
                raise FileError(f"landmark {label} has a VERTEX line already", number)
            if rows is seen and placed.lines and marks[label] >= len(placed.lines):
                raise FileError(f"landmark {label} has no VERTEX line, but others have one", number)
    tau = np.ones(len(seen.lines))
    if weights == "information":
        tau, bad = harmonic_means(_information(seen, d))
        seen.refuse(bad, "the information matrix must be positive definite")
    edges = np.array([seen.poses, [marks[label] for label in seen.marks]], dtype=np.int64).T
    labels = None if marks.keys() & found.index.keys() else tuple(marks)
    places = placed.array(d) if placed.lines else None
    return Sightings(edges, seen.array(d), tau, labels, places)


# ---------------------------------------------------------------- lines


class Layout(NamedTuple):
    """Layout of the lines with a given tag."""

    kind: str  # attribute of G2oLines
    dim: int  # dimension of space, and of the stalks
    n_ids: int
    n_poses: int  # number of poses among the ids, which begin with them
    n_numbers: int  # number of values in a pose, place or measurement
    n_information: int = 0  # number of upper-triangle entries of the information matrix


POSE_TAGS = {
    **dict.fromkeys(("VERTEX_SE2", "VERTEX2"), Layout("vertices", 2, 1, 1, 3)),
    "VERTEX_SE3:QUAT": Layout("vertices", 3, 1, 1, 7),
    **dict.fromkeys(("EDGE_SE2", "EDGE2"), Layout("edges", 2, 2, 2, 3, 6)),
    "EDGE_SE3:QUAT": Layout("edges", 3, 2, 2, 7, 21),
}

LANDMARK_TAGS = {
    "VERTEX_XY": Layout("landmarks", 2, 1, 0, 2),
    "VERTEX_TRACKXYZ": Layout("landmarks", 3, 1, 0, 3),
    **dict.fromkeys(("EDGE_SE2_XY", "LANDMARK2"), Layout("sightings", 2, 2, 1, 2, 3)),
    "EDGE_SE3_TRACKXYZ": Layout("sightings", 3, 3, 1, 3, 6),  # the third id is that of an offset
}


@dataclass
class Rows:
    """Fields of all lines of one kind, as flat lists; measured values are unparsed strings."""

    what: str  # what the values of a line are
    lines: list[int] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    poses: list[int] = field(default_factory=list)  # indices of vertices
    marks: list[int] = field(default_factory=list)  # ids of landmarks
    values: list[str] = field(default_factory=list)
    information: list[str] = field(default_factory=list)

    def array(self, width: int) -> np.ndarray:
        """Return the values as an array with a row of ``width`` entries for each line."""
        what = f"an entry of a {self.what}"
        return numbers(self.values, self.lines, what).reshape(-1, width)

    def refuse(self, bad: np.ndarray, message: str) -> None:
        """Raise an error that names the first line for which a mask is true, if there is one."""
        if bad.any():
            raise FileError(message, self.lines[int(bad.argmax())])


class G2oLines:
    """Lines of a file by kind; landmarks raise an error unless ``landmarks`` is true."""

    def __init__(self, path: str, landmarks: bool):
        self.dim = 0
        self.index: dict[int, int] = {}  # indices of vertices by their ids
        self.first_lines: list[int] = []  # in which each vertex occurs first
        self.vertices, self.edges = Rows("pose"), Rows("measurement")
        self.landmarks, self.sightings = Rows("place"), Rows("measurement")
        self.offsets: list[tuple[int, list[str]]] = []  # of sensors from their poses
        tags = {**POSE_TAGS, **LANDMARK_TAGS} if landmarks else POSE_TAGS
        for number, line in enumerate(read_lines(path), start=1):
            fields = line.partition("#")[0].split()
            if not fields or fields[0] == "FIX" or fields[0].startswith("PARAMS_"):
                if landmarks and fields[:1] == ["PARAMS_SE3OFFSET"]:
                    # without the last entry, of the rotation
                    self.offsets.append((number, fields[2:8]))
                continue
            tag = fields[0]
            if tag not in tags:
                if tag in LANDMARK_TAGS:
                    message = "are not poses; read_g2o(..., poses=True) reads them"
                    raise FileError(f"landmarks ({tag!r}) {message}", number)
                reader = "read_g2o(..., poses=True)" if landmarks else "read_g2o"
                known = ", ".join([*POSE_TAGS, "FIX", *(LANDMARK_TAGS if landmarks else ())])
                raise FileError(f"unknown tag {shown(tag)}; {reader} reads {known}", number)
            kind, dim, n_ids, n_poses, n_numbers, n_information = tags[tag]
            self.dim = self.dim or dim
            if dim != self.dim:
                message = f"{tag} in a file that began with SE{self.dim}"
                raise FileError(f"{message}; all poses must be of one kind", number)
            count = n_ids + n_numbers + n_information
            if len(fields) != 1 + count:
                ids = {1: "a vertex id", 2: "2 vertex ids", 3: "2 vertex ids, an offset id"}
                what = "pose" if n_poses == n_ids else "place"
                parts = f"{ids[n_ids]}, {n_numbers} of the {what}"
                if n_information:
                    parts += f", {n_information} of the information matrix"
                message = f"{tag} needs {count} numbers ({parts}), got {len(fields) - 1}"
                raise FileError(message, number)
            rows: Rows = getattr(self, kind)
            rows.lines.append(number)
            rows.tags.append(tag)
            for label in parsed(int, fields[1 : 1 + n_poses], [number], "a vertex id"):
                if label not in self.index:
                    self.index[label] = len(self.index)
                    self.first_lines.append(number)
                rows.poses.append(self.index[label])
            marks = fields[1 + n_poses : 1 + min(n_ids, 2)]
            rows.marks += parsed(int, marks, [number], "a landmark id")
            rows.values += fields[1 + n_ids :][:n_numbers]
            information = fields[1 + n_ids + n_numbers :]
            if tag == "EDGE2":  # TORO writes xx, xy, yy, tt, xt, yt, where t is the angle
                information = [information[k] for k in (0, 1, 4, 2, 5, 3)]
            rows.information += information
        if not self.dim:
            raise FileError(f"not a g2o file: no line begins with one of {', '.join(POSE_TAGS)}")


# ---------------------------------------------------------------- writer


def write_g2o(path: PathLike, G: PoseGraph, S: Synchronization | None = None) -> None:
    """Write a pose graph as g2o text, with its own poses or with computed ones.

    :func:`read_g2o` with ``poses=True`` reads it up to rounding of the rotations, with the vertices
    in the order of the file and their ids as labels: numbers are written with all digits, rotations
    as angles or quaternions. Landmarks that no pose saw are written only if ``S`` is None and ``G``
    has their positions. The file is written to a temporary name and renamed, so a crash does not
    damage an old file.

    Parameters
    ----------
    path : str or path-like
        Gzipped if the name ends in ``.gz``.
    G : PoseGraph
        The labels of its vertices and landmarks must be integers; without labels, vertices
        are numbered from 0.
    S : Synchronization, optional
        Poses for the ``VERTEX`` lines; by default those of ``G``, if it has any.

    Raises
    ------
    FileNotFoundError, OSError
        There is no such folder, or the file cannot be written.
    TypeError, ValueError
        No vertices, labels that are not integers, poses of another graph, or a vertex with neither
        a pose nor a measurement, which would be lost.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import sheafcoarsen as sc
    >>> G = sc.PoseGraph([[0, 1]], [[[0.0, -1.0], [1.0, 0.0]]], [[1.0, 0.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sc.write_g2o(pathlib.Path(folder) / "two.g2o", G, sc.synchronize(G))
    ...     print((pathlib.Path(folder) / "two.g2o").read_text(), end="")
    VERTEX_SE2 0 0 0 0
    VERTEX_SE2 1 1 0 1.5707963267948966
    EDGE_SE2 0 1 1 0 1.5707963267948966 1 0 0 1 0 1
    """
    target = checks.file_path(path)
    checks.kind("G", G, PoseGraph)
    if not G.n_vertices:
        raise ValueError(
            "`G` must have vertices, because a g2o file without lines has no dimension"
        )
    text = "".join(_lines(G, S)).encode()
    with files.replacing(target) as stream:
        # omit the time stamp, so that equal graphs give equal files
        stream.write(gzip.compress(text, mtime=0) if target.lower().endswith(".gz") else text)


def _lines(G: PoseGraph, S: Synchronization | None) -> Iterator[str]:
    vertex, edge, landmark, sighting = {
        2: ("VERTEX_SE2", "EDGE_SE2", "VERTEX_XY", "EDGE_SE2_XY"),
        3: ("VERTEX_SE3:QUAT", "EDGE_SE3:QUAT", "VERTEX_TRACKXYZ", "EDGE_SE3_TRACKXYZ"),
    }[G.dim]
    n, seen = int(G.n_vertices or 0), G.sightings
    ids, poses = _ids(G), G.poses
    if S is not None:
        checks.kind("S", S, Synchronization)
        if S.translations is None or S.translations.shape != (n, G.dim):
            got = "no translations" if S.translations is None else f"poses {S.translations.shape}"
            raise ValueError(
                f"`S` must hold {n} poses of dimension {G.dim}, got {got}: synchronize(G) returns "
                f"them"
            )
        marks = seen.n_landmarks if seen is not None else 0
        if (found := 0 if S.landmarks is None else len(S.landmarks)) != marks:
            raise ValueError(f"`S` must have the landmarks of `G`, {marks} in all, got {found}")
        poses = S.rotations, S.translations
    if poses is not None:
        yield from _text_rows(vertex, [ids[:n]], _pose_numbers(*poses))
    else:
        measured = [G.edges.ravel()] if seen is None else [G.edges.ravel(), seen.edges[:, 0]]
        lonely = np.setdiff1d(np.arange(n), np.concatenate(measured))
        if lonely.size:
            raise ValueError(
                f"`G` has no poses, and vertex {lonely[0]} has no measurements, so it would be "
                f"lost: pass `S`"
            )
    if seen is not None:
        places = seen.places if S is None else S.landmarks
        if places is not None:
            known = np.flatnonzero(~np.isnan(places).any(axis=1))
            yield from _text_rows(landmark, [[ids[n + k] for k in known]], places[known])
    d, information = G.dim, G.information
    if information is None:
        weights = [np.asarray(G.tau), (d - 1) * np.asarray(G.kappa)]
        diagonal = np.repeat(weights, [d, d * (d - 1) // 2], axis=0).T
        information = diagonal[:, :, None] * np.eye(diagonal.shape[1])
    ends = [[ids[v] for v in column] for column in G.edges.T.tolist()]
    upper = information[:, *np.triu_indices(information.shape[1])]
    table = np.hstack([_pose_numbers(G.rotations, G.translations), upper])
    yield from _text_rows(edge, ends, table)
    if seen is not None:
        ends = [[ids[v] for v in column] for column in (seen.edges + np.array([0, n])).T.tolist()]
        if G.dim == 3:
            yield "PARAMS_SE3OFFSET 0 0 0 0 0 0 0 1\n"
            ends.append([0] * len(seen.edges))
        upper = seen.tau[:, None] * np.eye(G.dim)[np.triu_indices(G.dim)]
        yield from _text_rows(sighting, ends, np.hstack([seen.points, upper]))


def _pose_numbers(rotations: np.ndarray, translations: np.ndarray) -> np.ndarray:
    """Return the numbers of each pose or measurement: translation, then angle or quaternion."""
    if rotations.shape[1] == 2:
        angles = np.arctan2(rotations[:, 1, 0], rotations[:, 0, 0])
        return np.hstack([translations, angles[:, None]])
    if not len(rotations):
        return np.zeros((0, 7))
    # copied, because scipy before 1.15 rejects read-only arrays
    quaternions = Rotation.from_matrix(rotations.copy()).as_quat(canonical=True)
    return np.hstack([translations, quaternions])


def _text_rows(tag: str, names: list[list[int]], table: np.ndarray) -> Iterator[str]:
    """Yield a line for each row: tag, ids, and the shortest decimals that round-trip."""
    for *ids, row in zip(*names, table.tolist(), strict=True):
        words = [tag, *map(str, ids), *(repr(number).removesuffix(".0") for number in row)]
        yield " ".join(words) + "\n"


def _ids(G: PoseGraph) -> list[int]:
    """Return distinct ids of the poses, then of the landmarks.

    They are the labels, or count from 0, for landmarks from 1 + the largest id of a pose.
    """
    kinds = [("G", "vertex_labels", "pose", G.vertex_labels, int(G.n_vertices or 0))]
    if (seen := G.sightings) is not None:
        kinds.append(("G.sightings", "labels", "landmark", seen.labels, seen.n_landmarks))
    named: dict[int, str] = {}
    for owner, name, kind, labels, count in kinds:
        first = max(named, default=-1) + 1
        for k, label in enumerate(range(first, first + count) if labels is None else labels):
            if isinstance(label, bool) or not isinstance(label, int | np.integer):
                raise TypeError(
                    f"`{owner}.{name}` must be integers for a g2o file, got {label!r}: "
                    f"dataclasses.replace({owner}, {name}=None) has numbers instead"
                )
            if int(label) in named:
                raise ValueError(
                    f"`{owner}.{name}[{k}]` = {label} is also the id of {named[int(label)]}, but "
                    f"a g2o file identifies vertices by their ids: use distinct labels, or none"
                )
            named[int(label)] = f"{kind} {k}"
    return list(named)
