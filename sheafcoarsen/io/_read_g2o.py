"""Reader of pose graphs in g2o text, as measurements or as a connection sheaf of rotations."""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple, TypeAlias, get_args, overload

import numpy as np
from scipy.spatial.transform import Rotation

from sheafcoarsen._support import PathLike, choice, file_path, first_true, flag
from sheafcoarsen.io.text import Words, file_error, read_lines, shown
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.synchronization import (
    Concentrations,
    PoseGraph,
    Sightings,
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
    path = file_path(path)
    choice("weights", weights, get_args(G2oWeights))
    poses = flag("poses", poses)
    lines = G2oLines(path, landmarks=poses)
    d = lines.dim
    n_pose = 3 if d == 2 else 7
    labels = lines.ids.integers()
    placed = lines.poses.numbers.numbers()  # parsed even if not needed, to detect damaged files
    index = {label: v for v, label in enumerate(dict.fromkeys(labels))}
    vertices = np.array([index[label] for label in labels], dtype=np.int64)
    tails = np.array(lines.edges.first, dtype=np.int64)
    edges = np.stack([vertices[tails], vertices[tails + 1]], axis=1)
    measured = lines.edges.numbers.numbers().reshape(-1, n_pose)
    rotations = _rotations(lines.edges.numbers, measured)
    kappa, tau, information = np.ones(len(edges)), np.ones(len(edges)), None
    if weights == "information":
        information = _symmetric(lines.edges.information, 3 if d == 2 else 6)
        found = concentrations(information, d)
        _check_definite(lines, found, poses)
        kappa, tau = found.kappa, found.tau
    try:
        sheaf = CellularSheaf.connection(edges, rotations, weight=kappa, n_vertices=len(index))
        if not poses:
            return sheaf.with_labels(index)
        return PoseGraph(
            edges,
            rotations,
            measured[:, :d],
            kappa,
            tau,
            information,
            _poses(lines, vertices, placed.reshape(-1, n_pose), len(index)),
            tuple(index),
            len(index),
            _sightings(lines, vertices, index, weights),
        )
    except ValueError as error:  # for example, squares of weights overflow
        message = str(error)
        raise (error if message.startswith(path) else file_error(path, None, message)) from None


def _rotations(source: Words, numbers: np.ndarray) -> np.ndarray:
    """Return the rotations of poses or measurements, given as angles or quaternions."""
    if numbers.shape[1] == 3:
        c, s = np.cos(numbers[:, 2]), np.sin(numbers[:, 2])
        return np.stack([c, -s, s, c], axis=1).reshape(-1, 2, 2)
    quaternions = numbers[:, 3:]  # x y z w
    size = np.abs(quaternions).max(axis=1, initial=0)
    if not size.all():
        message = "the quaternion qx qy qz qw is zero, so it is not a rotation"
        raise file_error(source.path, source.lines[int(size.argmin())], message)
    if not len(quaternions):
        return np.zeros((0, 3, 3))
    return Rotation.from_quat(quaternions / size[:, None]).as_matrix()


def _symmetric(source: Words, size: int) -> np.ndarray:
    """Return symmetric matrices, given their upper triangles row by row."""
    rows, columns = np.triu_indices(size)
    entries = source.numbers().reshape(-1, len(rows))
    matrices = np.empty((len(entries), size, size))
    matrices[:, rows, columns] = matrices[:, columns, rows] = entries
    return matrices


def _check_definite(lines: G2oLines, found: Concentrations, poses: bool) -> None:
    """Reject diagonal blocks, and warn about matrices, that are not positive definite."""
    numbers = lines.edges.information.lines
    for bad, what in ((found.rotation_fails, "rotation"), (found.fails & poses, "translation")):
        if bad.any():
            message = (
                f"the information matrix of the {what} must be positive definite, because the "
                f"edge's weight is computed from it; weights='unit' ignores it"
            )
            raise file_error(lines.path, numbers[int(bad.argmax())], message)
    count = int(found.indefinite.sum())
    if count and poses:
        warnings.warn(
            f"{lines.path}:{numbers[int(found.indefinite.argmax())]}: {count:,} of "
            f"{len(found.kappa):,} information matrices {'is' if count == 1 else 'are'} "
            f"indefinite; kappa and tau are computed from the rotation and translation blocks, "
            f"which are positive definite",
            UserWarning,
            stacklevel=3,
        )


def _poses(
    lines: G2oLines, vertices: np.ndarray, numbers: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the poses of VERTEX lines in vertex order, or None without such lines."""
    words = lines.poses.first  # indices of their ids
    if not words:
        return None
    order = np.full(n, -1)
    for k, v in enumerate(vertices[words].tolist()):
        if order[v] >= 0:
            message = f"vertex {lines.ids.words[words[k]]} has a VERTEX line already"
            raise file_error(lines.path, lines.poses.numbers.lines[k], message)
        order[v] = k
    if (word := first_true(order[vertices] < 0)) is not None:
        message = (
            f"vertex {lines.ids.words[word]} has no VERTEX line, but "
            f"{'another has' if len(words) == 1 else f'{len(words):,} others have'} one: add it, "
            f"or omit all of them"
        )
        raise file_error(lines.path, lines.ids.line(word), message)
    rotations = _rotations(lines.poses.numbers, numbers)
    return rotations[order], numbers[order, : lines.dim]


def _sightings(
    lines: G2oLines, vertices: np.ndarray, index: dict[int, int], weights: G2oWeights
) -> Sightings | None:
    """Return the landmarks and their sightings, or None if there are none."""
    placed, seen = lines.landmarks, lines.sightings
    named, sighted = placed.marks.integers(), seen.marks.integers()
    if not named and not sighted:
        return None

    def refuse(table: Table, k: int, message: str) -> None:
        raise file_error(lines.path, table.marks.lines[k], message)

    offset = np.flatnonzero(lines.offsets.numbers())
    if sighted and offset.size:
        message = "sensors must be at the origin of their pose; offsets are not supported"
        raise file_error(lines.path, lines.offsets.line(int(offset[0])), message)
    separate = [tag == "LANDMARK2" for tag in seen.tags]  # landmark ids may equal ids of poses
    for table, labels in ((placed, named), (seen, sighted)):
        for k, label in enumerate(labels):
            if label in index and not (table is seen and separate[k]):
                refuse(table, k, f"{table.marks.words[k]} is a landmark here and a pose elsewhere")
    kinds = dict(zip(sighted, separate, strict=True))
    for k, label in enumerate(sighted):
        if kinds[label] != separate[k]:
            message = (
                f"landmark {label} is in LANDMARK2 lines and in EDGE_SE2_XY lines, whose landmark "
                f"ids are separate: change its id in one of them"
            )
            refuse(seen, k, message)
    marks = {label: k for k, label in enumerate(dict.fromkeys([*named, *sighted]))}
    places = None
    if named:
        for k, label in enumerate(named):
            if marks[label] != k:
                refuse(placed, k, f"landmark {label} has a VERTEX line already")
        for k, label in enumerate(sighted):
            if marks[label] >= len(named):
                refuse(seen, k, f"landmark {label} has no VERTEX line, but others have one")
        places = placed.numbers.numbers().reshape(-1, lines.dim)
    tau = np.ones(len(sighted))
    if weights == "information":
        tau, bad = harmonic_means(_symmetric(seen.information, lines.dim))
        if bad.any():
            refuse(seen, int(bad.argmax()), "the information matrix must be positive definite")
    pose = vertices[np.array(seen.first, dtype=np.int64)]
    mark = np.array([marks[label] for label in sighted], dtype=np.int64)
    points = seen.numbers.numbers().reshape(-1, lines.dim)
    names = None if marks.keys() & index.keys() else tuple(marks)
    return Sightings(np.stack([pose, mark], axis=1), points, tau, names, places)


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
    **dict.fromkeys(("VERTEX_SE2", "VERTEX2"), Layout("poses", 2, 1, 1, 3)),
    "VERTEX_SE3:QUAT": Layout("poses", 3, 1, 1, 7),
    **dict.fromkeys(("EDGE_SE2", "EDGE2"), Layout("edges", 2, 2, 2, 3, 6)),
    "EDGE_SE3:QUAT": Layout("edges", 3, 2, 2, 7, 21),
}

LANDMARK_TAGS = {
    "VERTEX_XY": Layout("landmarks", 2, 1, 0, 2),
    "VERTEX_TRACKXYZ": Layout("landmarks", 3, 1, 0, 3),
    **dict.fromkeys(("EDGE_SE2_XY", "LANDMARK2"), Layout("sightings", 2, 2, 1, 2, 3)),
    "EDGE_SE3_TRACKXYZ": Layout("sightings", 3, 3, 1, 3, 6),  # the third id is that of an offset
}


class Table:
    """Words of the lines of one kind."""

    def __init__(self, path: str, what: str):
        self.tags: list[str] = []
        self.first: list[int] = []  # index of the line's first pose in `G2oLines.ids`
        self.marks = Words(path, "a landmark id")
        self.numbers = Words(path, f"an entry of a {what}")
        self.information = Words(path, "an entry of an information matrix")


class G2oLines:
    """Parsed lines of a file by kind; numbers are converted on request.

    Lines of landmarks are an error unless ``landmarks``.
    """

    def __init__(self, path: str, landmarks: bool):
        self.path = path
        self.ids = Words(path, "a vertex id")  # ids of poses in order of occurrence
        self.poses, self.edges = Table(path, "pose"), Table(path, "measurement")
        self.landmarks, self.sightings = Table(path, "place"), Table(path, "measurement")
        self.offsets = Words(path, "an entry of an offset")  # of sensors from their poses
        self.dim = 0
        tags = {**POSE_TAGS, **LANDMARK_TAGS} if landmarks else POSE_TAGS
        for number, line in enumerate(read_lines(path), start=1):
            fields = line.partition("#")[0].split()
            if not fields or fields[0] == "FIX" or fields[0].startswith("PARAMS_"):
                if landmarks and fields[:1] == ["PARAMS_SE3OFFSET"]:
                    self.offsets.add(number, fields[2:8])  # without the last entry, of the rotation
                continue
            if fields[0] not in tags:
                raise file_error(path, number, _about_unknown(fields[0], landmarks))
            tag, (kind, dim, n_ids, n_poses, n_numbers, n_information) = fields[0], tags[fields[0]]
            self.dim = self.dim or dim
            if dim != self.dim:
                message = (
                    f"{tag} in a file that began with SE{self.dim}; all poses must be of one kind"
                )
                raise file_error(path, number, message)
            count = n_ids + n_numbers + n_information
            if len(fields) != 1 + count:
                ids = {1: "a vertex id", 2: "2 vertex ids", 3: "2 vertex ids, an offset id"}
                what = "pose" if n_poses == n_ids else "place"
                parts = f"{ids[n_ids]}, {n_numbers} of the {what}"
                if n_information:
                    parts += f", {n_information} of the information matrix"
                message = f"{tag} needs {count} numbers ({parts}), got {len(fields) - 1}"
                raise file_error(path, number, message)
            names, numbers = fields[1 : 1 + n_ids], fields[1 + n_ids :]
            information = numbers[n_numbers:]
            if tag == "EDGE2":  # TORO writes xx, xy, yy, tt, xt, yt, where t is the angle
                information = [information[k] for k in (0, 1, 4, 2, 5, 3)]
            table: Table = getattr(self, kind)
            table.tags.append(tag)
            table.first.append(len(self.ids.words))
            self.ids.add(number, names[:n_poses])
            table.marks.add(number, names[n_poses:2])
            table.numbers.add(number, numbers[:n_numbers])
            table.information.add(number, information)
        if not self.dim:
            message = f"not a g2o file: no line begins with one of {', '.join(POSE_TAGS)}"
            raise file_error(path, None, message)


def _about_unknown(tag: str, landmarks: bool) -> str:
    if landmarks:
        tags = ", ".join([*POSE_TAGS, "FIX", *LANDMARK_TAGS])
        return f"unknown tag {shown(tag)}; read_g2o(..., poses=True) reads {tags}"
    if tag in LANDMARK_TAGS:
        return f"landmarks ({tag!r}) are not poses; read_g2o(..., poses=True) reads them"
    return f"unknown tag {shown(tag)}; read_g2o reads {', '.join([*POSE_TAGS, 'FIX'])}"
