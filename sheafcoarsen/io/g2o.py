"""Pose graphs in g2o text: the measured rotations as a connection sheaf."""

from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from scipy.spatial.transform import Rotation

from sheafcoarsen._support import PathLike, choice, eps_of, file_path, zero_level
from sheafcoarsen.io.text import Words, file_error, read_lines, shown
from sheafcoarsen.sheaf import CellularSheaf

G2oWeights: TypeAlias = Literal["information", "unit"]
"""What the weights of edges are taken from."""


class _Group(NamedTuple):
    """How the lines of SE(2) or SE(3) are laid out."""

    name: str
    dim: int  # of space, and so of the stalks
    n_pose: int  # numbers in a pose or measurement
    n_information: int  # entries in the upper triangle of its information matrix


_SE2 = _Group("SE2", 2, 3, 6)


_SE3 = _Group("SE3", 3, 7, 21)


_VERTEX_TAGS = {"VERTEX_SE2": _SE2, "VERTEX_SE3:QUAT": _SE3}


_EDGE_TAGS = {"EDGE_SE2": _SE2, "EDGE_SE3:QUAT": _SE3}


_TAGS = ", ".join([*_VERTEX_TAGS, *_EDGE_TAGS])


def read_g2o(path: PathLike, weights: G2oWeights = "information") -> CellularSheaf:
    r"""Read a pose graph, SE(2) or SE(3), as an O(2) or O(3) connection.

    A line ``EDGE_SE2 i j dx dy dtheta`` or ``EDGE_SE3:QUAT i j dx dy dz qx qy qz qw``, followed by
    the upper triangle of the information matrix row by row, measures the pose of j seen from i. It
    becomes the edge with tail i and head j whose transport R_ij is the measured rotation
    (``eq:app-connection-restrictions``)::

        (delta x)_e = sqrt(w) (x_i - R_ij x_j)

    Translations do not enter. Every ``EDGE`` line is an edge of its own, so that repeated
    measurements become parallel edges and i = j a loop. Vertices are numbered in the order in which
    ``VERTEX`` and ``EDGE`` lines first name them; ``vertex_labels`` holds their ids. Comments
    (``#``), ``FIX`` and ``PARAMS_...`` lines are passed over.

    Parameters
    ----------
    path : str or path-like
        Plain text, or gzipped where the name ends in ``.gz``.
    weights : {"information", "unit"}
        ``"information"``: w is the angle's information, in SE(3) ``3 / (2 tr(inv(Omega)))`` with
        Omega the information of the rotation (the lower right 3 x 3 block). ``"unit"``: w = 1; the
        information entries are counted, but not looked at.

    Returns
    -------
    CellularSheaf
        All stalks of dimension 2 or 3, float64.

    Raises
    ------
    FileNotFoundError
    ValueError
        ``path:line: ...`` for landmarks and other tags that are not poses, SE2 mixed with SE3,
        wrong or missing numbers, a quaternion of length zero, or rotation information that is not
        positive definite.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sheafcoarsen.io import read_g2o
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "two_poses.g2o"
    ...     _ = path.write_text("EDGE_SE2 7 3 1.0 0.0 1.5707963267948966 1 0 0 1 0 4\n")
    ...     F = read_g2o(path)
    >>> F.vertex_labels
    (7, 3)
    >>> F.head_map(0).round(12)  # a quarter turn with weight 4
    array([[ 0., -2.],
           [ 2.,  0.]])
    """
    path = file_path(path)
    choice("weights", weights, get_args(G2oWeights))
    ids = Words(path, "a vertex id")
    poses = Words(path, "an entry of a pose")
    measured = Words(path, "an entry of a measurement")
    information = Words(path, "an entry of an information matrix")
    ends: list[int] = []  # where in `ids` the two ends of each edge begin
    group = None
    for number, line in enumerate(read_lines(path), start=1):
        fields = (line.partition("#")[0] if "#" in line else line).split()
        if not fields or fields[0] == "FIX" or fields[0].startswith("PARAMS_"):
            continue
        tag = fields[0]
        is_edge = tag in _EDGE_TAGS
        found = _EDGE_TAGS[tag] if is_edge else _VERTEX_TAGS.get(tag)
        if found is None:
            raise file_error(path, number, _about_unknown(tag))
        if group is None:
            group = found
        elif found is not group:
            message = f"{tag} in a file that began with {group.name}; all poses must be of one kind"
            raise file_error(path, number, message)
        n_ids = 1 + is_edge
        pose_end = 1 + n_ids + group.n_pose
        wanted = pose_end + (group.n_information if is_edge else 0)
        if len(fields) != wanted:
            raise file_error(path, number, _about_count(tag, group, is_edge, len(fields) - 1))
        if is_edge:
            ends.append(len(ids.words))
            measured.add(number, fields[3:pose_end])
            information.add(number, fields[pose_end:])
        else:
            poses.add(number, fields[2:])
        ids.add(number, fields[1 : 1 + n_ids])
    if group is None:
        raise file_error(path, None, f"not a g2o file: no line begins with one of {_TAGS}")

    labels = ids.integers()
    poses.numbers()  # the poses are not needed, but a damaged file should not pass
    index = {label: v for v, label in enumerate(dict.fromkeys(labels))}
    vertices = np.array([index[label] for label in labels], dtype=np.int64)
    tails = np.array(ends, dtype=np.int64)
    edges = np.stack([vertices[tails], vertices[tails + 1]], axis=1)
    transports = (_rotations_2d if group is _SE2 else _rotations_3d)(measured)
    if weights == "unit":
        w = np.ones(len(edges))
    else:
        w = (_weights_2d if group is _SE2 else _weights_3d)(information)
    try:
        sheaf = CellularSheaf.connection(edges, transports, weight=w, n_vertices=len(index))
    except ValueError as error:  # weights too large or too small to be squared
        raise file_error(path, None, str(error)) from None
    return sheaf.with_labels(index)


def _about_unknown(tag: str) -> str:
    if "XY" in tag:
        return f"landmarks ({shown(tag)}) are not poses; read_g2o reads {_TAGS}"
    return f"unknown tag {shown(tag)}; read_g2o reads {_TAGS}"


def _about_count(tag: str, group: _Group, is_edge: bool, got: int) -> str:
    parts = ["2 vertex ids" if is_edge else "a vertex id", f"{group.n_pose} of the pose"]
    total = 1 + is_edge + group.n_pose
    if is_edge:
        parts.append(f"{group.n_information} of the information matrix")
        total += group.n_information
    return f"{tag} needs {total} numbers ({', '.join(parts)}), got {got}"


def _rotations_2d(measured: Words) -> np.ndarray:
    angles = measured.numbers().reshape(-1, _SE2.n_pose)[:, 2]
    c, s = np.cos(angles), np.sin(angles)
    return np.stack([c, -s, s, c], axis=1).reshape(-1, 2, 2)


def _rotations_3d(measured: Words) -> np.ndarray:
    quaternions = measured.numbers().reshape(-1, _SE3.n_pose)[:, 3:]  # x y z w
    size = np.abs(quaternions).max(axis=1, initial=0)
    zero = np.flatnonzero(size == 0)
    if zero.size:
        line = measured.line(int(zero[0]) * _SE3.n_pose)
        message = "the quaternion qx qy qz qw is zero, so it is no rotation"
        raise file_error(measured.path, line, message)
    if not len(quaternions):
        return np.zeros((0, 3, 3))
    return Rotation.from_quat(quaternions / size[:, None]).as_matrix()  # normalizes


def _weights_2d(information: Words) -> np.ndarray:
    w = information.numbers().reshape(-1, _SE2.n_information)[:, -1]
    _refuse_indefinite(information, np.flatnonzero(~(w > 0)), _SE2.n_information)
    return w


def _weights_3d(information: Words) -> np.ndarray:
    """Return 3 / (2 tr(inv(Omega))), computed from S = D^-1/2 Omega D^-1/2 with a unit diagonal."""
    entries = information.numbers().reshape(-1, _SE3.n_information)[:, -6:]
    rows, columns = np.triu_indices(3)
    omega = np.empty((len(entries), 3, 3))
    omega[:, rows, columns] = omega[:, columns, rows] = entries
    diagonal = np.einsum("eii->ei", omega)
    negative = ~(diagonal > 0).all(axis=1)
    # scaled, so that units in which the axes differ much do not look like a singular matrix
    roots = np.sqrt(np.where(negative[:, None], 1.0, diagonal))
    scaled = omega / roots[:, :, None] / roots[:, None, :]
    finite = np.isfinite(scaled).all(axis=(1, 2)) & ~negative
    scaled[~finite] = np.eye(3)
    lowest = np.linalg.eigvalsh(scaled)[:, 0] if len(scaled) else np.zeros(0)
    singular = ~finite | (lowest <= zero_level(3, eps_of(float), 3.0))  # 3 bounds the norm of S
    _refuse_indefinite(information, np.flatnonzero(singular), _SE3.n_information)
    smallest = diagonal.min(axis=1, initial=np.inf)
    inverse = np.einsum("eii->ei", np.linalg.inv(scaled))
    return 1.5 * smallest / (inverse * (smallest[:, None] / diagonal)).sum(axis=1)


def _refuse_indefinite(information: Words, bad: np.ndarray, n_information: int) -> None:
    if bad.size:
        line = information.line(int(bad[0]) * n_information)
        message = (
            "the information matrix of the rotation must be positive definite, because the edge's "
            "weight comes from it; weights='unit' does without"
        )
        raise file_error(information.path, line, message)
