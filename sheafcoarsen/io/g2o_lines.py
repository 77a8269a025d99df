"""Parser of g2o lines: tags, ids and numbers, collected by kind."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen.io.text import Words, file_error, read_lines, shown


class Group(NamedTuple):
    """Layout of the lines of SE(2) or SE(3)."""

    name: str
    dim: int  # dimension of space, and of the stalks
    n_pose: int  # number of values in a pose or measurement
    n_information: int  # number of upper-triangle entries of a measurement's information matrix
    n_sighting: int  # number of upper-triangle entries of a sighting's information matrix


SE2 = Group("SE2", 2, 3, 6, 3)

SE3 = Group("SE3", 3, 7, 21, 6)

VERTEX_TAGS = {"VERTEX_SE2": SE2, "VERTEX2": SE2, "VERTEX_SE3:QUAT": SE3}

EDGE_TAGS = {"EDGE_SE2": SE2, "EDGE2": SE2, "EDGE_SE3:QUAT": SE3}


LANDMARK_TAGS = {"VERTEX_XY": SE2, "VERTEX_TRACKXYZ": SE3}

SIGHTING_TAGS = {"EDGE_SE2_XY": SE2, "LANDMARK2": SE2, "EDGE_SE3_TRACKXYZ": SE3}

POSE_TAGS = ", ".join([*VERTEX_TAGS, *EDGE_TAGS, "FIX"])


class G2oLines:
    """Parsed lines of a file by kind; numbers are converted on request.

    Parameters
    ----------
    path : str
    landmarks : bool
        Whether lines of landmarks are read; otherwise they are an error.
    """

    def __init__(self, path: str, landmarks: bool):
        self.path = path
        self._landmarks = landmarks
        self.ids = Words(path, "a vertex id")  # ids of poses in order of occurrence
        self.ends: list[int] = []  # index in `ids` of the first end of each edge
        self.placed: list[int] = []  # index in `ids` of each VERTEX line's vertex
        self.seen_from: list[int] = []  # index in `ids` of each sighting's pose
        self.poses = Words(path, "an entry of a pose")
        self.measured = Words(path, "an entry of a measurement")
        self.information = Words(path, "an entry of an information matrix")
        self.landmark_ids = Words(path, "a landmark id")  # ids in VERTEX lines
        self.landmark_places = Words(path, "an entry of a place")
        self.sighted_ids = Words(path, "a landmark id")  # ids in sightings
        self.numbered_apart: list[bool] = []  # whether landmark ids are separate from vertex ids
        self.sighted = Words(path, "an entry of a measurement")
        self.sighting_information = Words(path, "an entry of an information matrix")
        self._offsets = Words(path, "an entry of an offset")
        self.group = self._read()

    def _read(self) -> Group:
        group = None
        for number, line in enumerate(read_lines(self.path), start=1):
            fields = (line.partition("#")[0] if "#" in line else line).split()
            if not fields or fields[0] == "FIX" or fields[0].startswith("PARAMS_"):
                # the offset of a sensor from its pose, to which sightings refer by its id
                if fields and self._landmarks and fields[0] == "PARAMS_SE3OFFSET":
                    self._offsets.add(number, fields[2:])
                continue
            tag = fields[0]
            found = VERTEX_TAGS.get(tag) or EDGE_TAGS.get(tag)
            if found is None and self._landmarks:
                found = LANDMARK_TAGS.get(tag) or SIGHTING_TAGS.get(tag)
            if found is None:
                raise file_error(self.path, number, _about_unknown(tag, self._landmarks))
            if group is None:
                group = found
            elif found is not group:
                message = (
                    f"{tag} in a file that began with {group.name}; all poses must be of one kind"
                )
                raise file_error(self.path, number, message)
            self._take(number, tag, fields, group)
        if group is None:
            tags = ", ".join([*VERTEX_TAGS, *EDGE_TAGS])
            message = f"not a g2o file: no line begins with one of {tags}"
            raise file_error(self.path, None, message)
        return group

    def _take(self, number: int, tag: str, fields: list[str], group: Group) -> None:
        """Store the words of one line by kind."""
        # Position in an ``EDGE2`` line of each entry of the upper triangle, row by row. TORO writes
        # the entries in the order xx, xy, yy, tt, xt, yt, where t is the angle.
        toro_order = 0, 1, 4, 2, 5, 3
        if tag in EDGE_TAGS:
            counts = (2, group.n_pose, group.n_information)
            ids, measured, information = _split(self.path, number, fields, counts, "pose")
            self.ends.append(len(self.ids.words))
            if tag == "EDGE2":
                information = [information[k] for k in toro_order]
            self.measured.add(number, measured)
            self.information.add(number, information)
            self.ids.add(number, ids)
        elif tag in VERTEX_TAGS:
            ids, pose, _ = _split(self.path, number, fields, (1, group.n_pose, 0), "pose")
            self.placed.append(len(self.ids.words))
            self.poses.add(number, pose)
            self.ids.add(number, ids)
        elif tag in LANDMARK_TAGS:
            ids, place, _ = _split(self.path, number, fields, (1, group.dim, 0), "place")
            self.landmark_ids.add(number, ids)
            self.landmark_places.add(number, place)
        else:
            counts = (2 + (group is SE3), group.dim, group.n_sighting)
            ids, place, information = _split(self.path, number, fields, counts, "place")
            self.seen_from.append(len(self.ids.words))
            self.ids.add(number, ids[:1])
            self.sighted_ids.add(number, ids[1:2])
            self.numbered_apart.append(tag == "LANDMARK2")
            self.sighted.add(number, place)
            self.sighting_information.add(number, information)

    def check_offsets(self) -> None:
        """Raise an error for sightings of a sensor that is not at its pose's origin."""
        offsets = self._offsets.numbers()
        if len(self.sighted.words) == 0 or not len(offsets):
            return
        k = 0
        for line, end in zip(self._offsets.lines, self._offsets.ends, strict=True):
            offset, k = offsets[k:end], end
            if np.any(offset[:6] != 0):
                message = "sensors must be at the origin of their pose; offsets are not supported"
                raise file_error(self.path, line, message)


def _split(
    path: str, number: int, fields: list[str], counts: tuple[int, int, int], what: str
) -> tuple[list[str], list[str], list[str]]:
    """Return the ids, the pose or position, and the information of a line."""
    n_ids, n_pose, _ = counts
    if len(fields) != 1 + sum(counts):
        raise file_error(path, number, _about_count(fields[0], counts, what, len(fields) - 1))
    pose_end = 1 + n_ids + n_pose
    return fields[1 : 1 + n_ids], fields[1 + n_ids : pose_end], fields[pose_end:]


def _about_unknown(tag: str, landmarks: bool) -> str:
    if landmarks:
        tags = ", ".join([POSE_TAGS, *LANDMARK_TAGS, *SIGHTING_TAGS])
        return f"unknown tag {shown(tag)}; read_g2o(..., poses=True) reads {tags}"
    if tag in (*LANDMARK_TAGS, *SIGHTING_TAGS):
        return f"landmarks ({tag!r}) are not poses; read_g2o(..., poses=True) reads them"
    return f"unknown tag {shown(tag)}; read_g2o reads {POSE_TAGS}"


def _about_count(tag: str, counts: tuple[int, int, int], what: str, got: int) -> str:
    n_ids, n_pose, n_information = counts
    parts = [
        {1: "a vertex id", 2: "2 vertex ids", 3: "2 vertex ids, an offset id"}[n_ids],
        f"{n_pose} of the {what}",
    ]
    if n_information:
        parts.append(f"{n_information} of the information matrix")
    return f"{tag} needs {sum(counts)} numbers ({', '.join(parts)}), got {got}"
