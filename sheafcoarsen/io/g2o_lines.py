"""Parser of g2o lines: ids and numbers of poses, measurements, landmarks and sightings."""

from typing import NamedTuple

from sheafcoarsen.io.text import Words, file_error, read_lines, shown


class Layout(NamedTuple):
    """Contents of the lines with one tag."""

    kind: str  # attribute of G2oLines
    dim: int  # dimension of space, and of the stalks
    n_ids: int
    n_poses: int  # number of poses among the ids, which are the first ones
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
            self._take(number, fields, tags[fields[0]])
        if not self.dim:
            message = f"not a g2o file: no line begins with one of {', '.join(POSE_TAGS)}"
            raise file_error(path, None, message)

    def _take(self, number: int, fields: list[str], layout: Layout) -> None:
        """Append the words of one line to the table of its kind."""
        tag, (kind, dim, n_ids, n_poses, n_numbers, n_information) = fields[0], layout
        self.dim = self.dim or dim
        if dim != self.dim:
            message = f"{tag} in a file that began with SE{self.dim}; all poses must be of one kind"
            raise file_error(self.path, number, message)
        count = n_ids + n_numbers + n_information
        if len(fields) != 1 + count:
            parts = {1: "a vertex id", 2: "2 vertex ids", 3: "2 vertex ids, an offset id"}[n_ids]
            parts += f", {n_numbers} of the {'pose' if n_poses == n_ids else 'place'}"
            if n_information:
                parts += f", {n_information} of the information matrix"
            message = f"{tag} needs {count} numbers ({parts}), got {len(fields) - 1}"
            raise file_error(self.path, number, message)
        ids, numbers = fields[1 : 1 + n_ids], fields[1 + n_ids :]
        information = numbers[n_numbers:]
        if tag == "EDGE2":  # TORO writes xx, xy, yy, tt, xt, yt, where t is the angle
            information = [information[k] for k in (0, 1, 4, 2, 5, 3)]
        table: Table = getattr(self, kind)
        table.tags.append(tag)
        table.first.append(len(self.ids.words))
        self.ids.add(number, ids[:n_poses])
        table.marks.add(number, ids[n_poses:2])
        table.numbers.add(number, numbers[:n_numbers])
        table.information.add(number, information)


def _about_unknown(tag: str, landmarks: bool) -> str:
    if landmarks:
        tags = ", ".join([*POSE_TAGS, "FIX", *LANDMARK_TAGS])
        return f"unknown tag {shown(tag)}; read_g2o(..., poses=True) reads {tags}"
    if tag in LANDMARK_TAGS:
        return f"landmarks ({tag!r}) are not poses; read_g2o(..., poses=True) reads them"
    return f"unknown tag {shown(tag)}; read_g2o reads {', '.join([*POSE_TAGS, 'FIX'])}"
