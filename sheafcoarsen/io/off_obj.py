"""Readers of meshes in OFF and OBJ text."""

import re
from collections.abc import Iterable, Iterator

from sheafcoarsen.io.polygons import FaceLines, Polygons
from sheafcoarsen.io.text import Words, file_error, read_lines, shown

Fields = Iterator[tuple[int, list[str]]]
"""Pairs of a line number and the words of that line."""


def read_off(path: str) -> Polygons:
    """Read an OFF file in text form."""
    lines = _fields(read_lines(path))
    number, fields = next(lines, (None, ["nothing"]))
    if not re.fullmatch(r"(ST)?C?N?OFF", fields[0]):
        message = f"an OFF file begins with OFF, COFF or NOFF, got {shown(fields[0])}"
        raise file_error(path, number, message)
    if fields[1:2] == ["BINARY"]:
        message = "binary OFF is not supported: write the mesh as text, or as .ply"
        raise file_error(path, number, message)
    if not fields[1:]:
        number, fields = next(lines, (number, fields))
    else:
        fields = fields[1:]
    counts = Words(path, "a number of vertices or faces")
    counts.add(number or 1, fields[:3])
    sizes = counts.integers()
    if len(sizes) < 2 or min(sizes) < 0:
        message = "numbers of vertices, faces and edges must follow the word OFF"
        raise file_error(path, number, message)
    n, f = sizes[:2]
    mesh = FaceLines(path)
    for number, fields in _exactly(path, lines, n, "vertices"):
        if len(fields) < 3:
            raise file_error(path, number, f"a vertex needs 3 coordinates, got {len(fields)}")
        mesh.points.add(number, fields[:3])
    for number, fields in _exactly(path, lines, f, "faces"):
        mesh.add_face(number, fields)
    extra = next(lines, None)
    if extra is not None:
        message = f"{n} vertices and {f} faces were announced, but more lines follow"
        raise file_error(path, extra[0], message)
    return mesh.polygons()


def read_obj(path: str) -> Polygons:
    """Read the vertices and faces of an OBJ file."""
    mesh = FaceLines(path)
    before: list[int] = []  # number of vertices above each corner's line, for relative indices
    for number, fields in _fields(_joined(list(read_lines(path)))):
        if fields[0] == "v":
            if len(fields) < 4:
                message = f"a vertex needs 3 coordinates, got {len(fields) - 1}"
                raise file_error(path, number, message)
            mesh.points.add(number, fields[1:4])
        elif fields[0] == "f":
            corners = [word.partition("/")[0] for word in fields[1:]]
            before += [len(mesh.points.lines)] * len(corners)
            mesh.add_face(number, [str(len(corners)), *corners])
    if not mesh.points.words:
        raise file_error(path, None, "not an OBJ file, or one without vertices: no line is v x y z")
    numbers = mesh.corners.integers()
    if 0 in numbers:
        message = "vertices are numbered from 1, got 0"
        raise file_error(path, mesh.corners.line(numbers.index(0)), message)
    vertices = [v - 1 if v > 0 else count + v for v, count in zip(numbers, before, strict=True)]
    return mesh.polygons(vertices, first=1)


def _fields(lines: Iterable[str]) -> Fields:
    """Yield the line number and the words of each line that is not empty or a comment."""
    for number, line in enumerate(lines, start=1):
        fields = (line.partition("#")[0] if "#" in line else line).split()
        if fields:
            yield number, fields


def _joined(lines: list[str]) -> list[str]:
    """Join each line that ends in a backslash with the next line, which becomes empty."""
    joined = list(lines)
    for i in range(len(joined) - 1, 0, -1):
        if joined[i - 1].endswith("\\"):
            joined[i - 1] = f"{joined[i - 1][:-1]} {joined[i]}"
            joined[i] = ""
    return joined


def _exactly(path: str, lines: Fields, count: int, what: str) -> Fields:
    """Yield ``count`` lines, or raise an error if the file ends too early."""
    for i in range(count):
        found = next(lines, None)
        if found is None:
            message = f"the file ends after {i} of {count} {what}: fetch or write it again"
            raise file_error(path, None, message)
        yield found
