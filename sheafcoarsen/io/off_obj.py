"""Readers of meshes in OFF and OBJ text."""

import re
from collections.abc import Iterator
from itertools import chain

from sheafcoarsen.io.polygons import FaceLines, Mesh
from sheafcoarsen.io.text import Words, file_error, read_lines, shown

Fields = Iterator[tuple[int, list[str]]]
"""Pairs of a line number and the words of that line."""


def read_off(path: str) -> Mesh:
    """Read an OFF file in text form."""
    lines = _fields(path)
    number, fields = next(lines, (None, ["nothing"]))
    if not re.fullmatch(r"(ST)?C?N?OFF", fields[0]):
        message = f"an OFF file begins with OFF, COFF or NOFF, got {shown(fields[0])}"
        raise file_error(path, number, message)
    if fields[1:2] == ["BINARY"]:
        message = "binary OFF is not supported: write the mesh as text, or as .ply"
        raise file_error(path, number, message)
    number, fields = (number, fields[1:]) if fields[1:] else next(lines, (number, fields))
    counts = Words(path, "a number of vertices or faces")
    counts.add(number or 1, fields[:3])
    sizes = counts.integers()
    if len(sizes) < 2 or min(sizes) < 0:
        message = "numbers of vertices, faces and edges must follow the word OFF"
        raise file_error(path, number, message)
    n, f = sizes[:2]
    mesh = FaceLines(path)
    for add, count, what in ((mesh.add_point, n, "vertices"), (mesh.add_face, f, "faces")):
        for i in range(count):
            number, fields = next(lines, (None, []))
            if number is None:
                message = f"the file ends after {i} of {count} {what}: fetch or write it again"
                raise file_error(path, None, message)
            add(number, fields)
    number, _ = next(lines, (None, []))
    if number is not None:
        message = f"{n} vertices and {f} faces were announced, but more lines follow"
        raise file_error(path, number, message)
    return mesh.mesh()


def read_obj(path: str) -> Mesh:
    """Read the vertices and faces of an OBJ file."""
    mesh = FaceLines(path)
    before: list[int] = []  # number of vertices above each corner's line, for relative indices
    for number, fields in _fields(path, joined=True):
        if fields[0] == "v":
            mesh.add_point(number, fields[1:])
        elif fields[0] == "f":
            mesh.corners.add(number, [word.partition("/")[0] for word in fields[1:]])
            before += [len(mesh.points.lines)] * len(fields[1:])
    if not mesh.points.words:
        raise file_error(path, None, "not an OBJ file, or one without vertices: no line is v x y z")
    numbers = mesh.corners.integers()
    if 0 in numbers:
        message = "vertices are numbered from 1, got 0"
        raise file_error(path, mesh.corners.line(numbers.index(0)), message)
    vertices = [v - 1 if v > 0 else count + v for v, count in zip(numbers, before, strict=True)]
    return mesh.mesh(vertices, first=1)


def _fields(path: str, joined: bool = False) -> Fields:
    """Yield the number and the words of each line that is not empty or a comment.

    If ``joined``, a line that ends in a backslash continues on the next one.
    """
    first, before = 0, ""
    for number, line in enumerate(chain(read_lines(path), [""]), start=1):
        first = first if before else number
        if joined and line.endswith("\\"):
            before += line[:-1] + " "
            continue
        fields = (before + line).partition("#")[0].split()
        before = ""
        if fields:
            yield first, fields
