"""Writer of pose graphs in g2o text."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import numpy as np
from scipy.spatial.transform import Rotation

from sheafcoarsen._support import PathLike, checks, files
from sheafcoarsen.synchronization import PoseGraph, Synchronization, isotropic_information


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
        yield from _rows(vertex, [ids[:n]], _pose_numbers(*poses))
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
            yield from _rows(landmark, [[ids[n + k] for k in known]], places[known])
    information = G.information
    if information is None:
        information = isotropic_information(np.asarray(G.kappa), np.asarray(G.tau), G.dim)
    ends = [[ids[v] for v in column] for column in G.edges.T.tolist()]
    upper = information[:, *np.triu_indices(information.shape[1])]
    numbers = np.hstack([_pose_numbers(G.rotations, G.translations), upper])
    yield from _rows(edge, ends, numbers)
    if seen is not None:
        ends = [[ids[v] for v in column] for column in (seen.edges + np.array([0, n])).T.tolist()]
        if G.dim == 3:
            yield "PARAMS_SE3OFFSET 0 0 0 0 0 0 0 1\n"
            ends.append([0] * len(seen.edges))
        upper = seen.tau[:, None] * np.eye(G.dim)[np.triu_indices(G.dim)]
        yield from _rows(sighting, ends, np.hstack([seen.points, upper]))


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


def _rows(tag: str, names: list[list[int]], numbers: np.ndarray) -> Iterator[str]:
    """Yield a line for each row: tag, ids, and the shortest decimals that round-trip."""
    for *ids, row in zip(*names, numbers.tolist(), strict=True):
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
    for owner, field, kind, labels, count in kinds:
        first = max(named, default=-1) + 1
        for k, label in enumerate(range(first, first + count) if labels is None else labels):
            if isinstance(label, bool) or not isinstance(label, int | np.integer):
                raise TypeError(
                    f"`{owner}.{field}` must be integers for a g2o file, got {label!r}: "
                    f"dataclasses.replace({owner}, {field}=None) has numbers instead"
                )
            if int(label) in named:
                raise ValueError(
                    f"`{owner}.{field}[{k}]` = {label} is also the id of {named[int(label)]}, but "
                    f"a g2o file identifies vertices by their ids: use distinct labels, or none"
                )
            named[int(label)] = f"{kind} {k}"
    return list(named)
