"""Readers of surface meshes in OFF, OBJ and PLY; they return points and faces.

No library is used: meshio 5.3 misreads negative indices of OBJ, ends the process on malformed
files, and does not return for a truncated PLY header; trimesh 5.2 reads one in ten damaged files as
a smaller surface, splits quadrilaterals, repeats vertices at changes of material and rejects binary
PLY with polygons of several sizes; plyfile has another licence.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import PathLike, checks, ragged
from sheafcoarsen.io.text import (
    FileError,
    numbers,
    opened,
    parsed,
    read_lines,
    reader_of,
    reading,
    shown,
)

Mesh = tuple[np.ndarray, np.ndarray]
"""Points of shape (n, 3) and faces of shape (f, k)."""


def read_mesh(path: PathLike) -> tuple[np.ndarray, np.ndarray]:
    r"""Read the points and faces of a surface mesh.

    The format follows from the file extension, which may be followed by ``.gz``:

    ``.off``
        Text. Additional columns such as normals and colours (``NOFF``, ``COFF``) are ignored.
    ``.obj``
        The lines ``v x y z`` and ``f a b c``, also ``f a/t/n ...``; negative indices count
        from the last vertex. All other lines are ignored.
    ``.ply``
        Text or binary: x, y, z of the element "vertex" and the list "vertex_indices" (or
        "vertex_index") of "face".

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    points : ndarray, shape (n, 3)
        In the order of the file, float64.
    faces : ndarray of int, shape (f, k)
        Vertices of each face in order, numbered from 0. If the faces of a file differ in size,
        they are split into triangles at their first corners, so k = 3.

    Raises
    ------
    FileNotFoundError
    ValueError
        ``path:line: ...`` or ``path: ...`` for a file that is truncated or inconsistent, values
        that are not finite, an unknown file extension, and a face with fewer than three corners or
        with a repeated or missing vertex.

    See Also
    --------
    sheafcoarsen.gallery.tangent_bundle : the sheaf of the surface's tangent planes.
    sheafcoarsen.plot.surface : a figure of the surface.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import sheafcoarsen as sc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "square.off"
    ...     _ = path.write_text("OFF\n4 1 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n")
    ...     points, faces = sc.read_mesh(path)
    >>> points.shape, faces.tolist()
    ((4, 3), [[0, 1, 2, 3]])
    """
    path = checks.file_path(path)
    readers = {".off": read_off, ".obj": read_obj, ".ply": read_ply}
    with reading(path):
        return reader_of(path, readers, "read_mesh")(path)


# ---------------------------------------------------------------- faces


def face_array(
    n: int, corners: np.ndarray, sizes: np.ndarray, lines: Sequence[int] = (), first: int = 0
) -> np.ndarray:
    """Return the faces with ``sizes`` corners, split into triangles if their sizes differ.

    Errors name the face's line, if known; the file's first vertex has the number ``first``.
    """

    def refuse(f: int, message: str) -> None:
        raise FileError(f"face {f} {message}", lines[f] if lines else None)

    if (f := checks.first_true(sizes < 3)) is not None:
        refuse(f, f"has {sizes[f]} corners, but needs at least 3")
    face = np.repeat(np.arange(len(sizes)), sizes)
    if (bad := checks.first_true((corners < 0) | (corners >= n))) is not None:
        among = f"vertices {first} .. {n - 1 + first}" if n else "no vertex"
        corner = int(corners[bad]) + first
        refuse(int(face[bad]), f"contains vertex {corner}, but there are {among}")
    order = np.lexsort((corners, face))
    again = (np.diff(face[order]) == 0) & (np.diff(corners[order]) == 0)
    if (bad := checks.first_true(again)) is not None:
        at = order[bad]
        refuse(int(face[at]), f"contains vertex {corners[at] + first} twice")
    if not len(sizes):
        return np.zeros((0, 3), dtype=np.int64)
    if (sizes == sizes[0]).all():
        return corners.reshape(-1, int(sizes[0]))
    starts, fan = ragged.offsets(sizes)[:-1], sizes - 2
    second = ragged.ranges(starts + 1, fan)
    return np.stack([corners[np.repeat(starts, fan)], corners[second], corners[second + 1]], axis=1)


Row = tuple[int, tuple[str, ...]]
"""Number and words of a line. The garbage collector visits many lists again and again."""


def _text_mesh(points: list[Row], faces: list[Row], before: list[int] | None = None) -> Mesh:
    """Return the mesh of points, with at least three coordinates each, and of faces' corners.

    Corners count from 0; with ``before``, the numbers of points above the faces, from 1, or if
    they are negative, back from these points.
    """
    for number, words in points:
        if len(words) < 3:
            raise FileError(f"a vertex needs 3 coordinates, got {len(words)}", number)
    coordinates = [word for _, words in points for word in words[:3]]
    places = numbers(coordinates, [number for number, _ in points], "a coordinate").reshape(-1, 3)
    face_lines = [number for number, _ in faces]
    sizes = np.array([len(words) for _, words in faces], dtype=np.int64)
    lines = np.repeat(face_lines, sizes)
    flat = [word for _, words in faces for word in words]
    corners = parsed(int, flat, lines, "a corner of a face")
    # huge numbers are clipped, and reported as out of range
    vertices = np.array([min(max(v, -(2**62)), 2**62) for v in corners], dtype=np.int64)
    if before is not None:
        if (zero := checks.first_true(vertices == 0)) is not None:
            raise FileError("vertices are numbered from 1, got 0", lines[zero])
        vertices = np.where(vertices > 0, vertices - 1, vertices + np.repeat(before, sizes))
    first = 0 if before is None else 1
    return places, face_array(len(places), np.maximum(vertices, -1), sizes, face_lines, first)


def _listed(number: int, words: Sequence[str]) -> Row:
    """Return the corners of a face in a line that begins with their number."""
    k = int(words[0]) if words and words[0].isascii() and words[0].isdigit() else 0
    if k == 0:  # the word must be an integer
        parsed(int, list(words[:1]), [number], "the number of corners of a face")
    if len(words) <= k:
        message = f"a face of {k} corners needs as many vertices, got {len(words) - 1}"
        raise FileError(message, number)
    return number, tuple(words[1 : 1 + k])


# ---------------------------------------------------------------- OFF and OBJ


def _fields(path: str, joined: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the words of each line, without comments and empty lines.

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


def read_off(path: str) -> Mesh:
    """Read an OFF file in text form."""
    lines = _fields(path)
    number, fields = next(lines, (None, ["nothing"]))
    if not re.fullmatch(r"(ST)?C?N?OFF", fields[0]):
        message = f"an OFF file begins with OFF, COFF or NOFF, got {shown(fields[0])}"
        raise FileError(message, number)
    if fields[1:2] == ["BINARY"]:
        raise FileError("binary OFF is not supported: write the mesh as text, or as .ply", number)
    number, fields = (number, fields[1:]) if fields[1:] else next(lines, (number, fields))
    counts = parsed(int, fields[:3], [number or 1], "a number of vertices or faces")
    if len(counts) < 2 or min(counts) < 0:
        raise FileError("numbers of vertices, faces and edges must follow the word OFF", number)
    n, f = counts[:2]
    rows = [(number, tuple(words)) for number, words in lines]
    if len(rows) < n + f:
        got = f"{len(rows)} of {n} vertices" if len(rows) < n else f"{len(rows) - n} of {f} faces"
        raise FileError(f"the file ends after {got}: fetch or write it again")
    if len(rows) > n + f:
        message = f"{n} vertices and {f} faces were announced, but more lines follow"
        raise FileError(message, rows[n + f][0])
    return _text_mesh(rows[:n], [_listed(*row) for row in rows[n:]])


def read_obj(path: str) -> Mesh:
    """Read the vertices and faces of an OBJ file."""
    points: list[Row] = []
    faces: list[Row] = []
    before: list[int] = []
    for number, fields in _fields(path, joined=True):
        if fields[0] == "v":
            points.append((number, tuple(fields[1:])))
        elif fields[0] == "f":
            faces.append((number, tuple(word.partition("/")[0] for word in fields[1:])))
            before.append(len(points))
    if not points:
        raise FileError("not an OBJ file, or one without vertices: no line is v x y z")
    return _text_mesh(points, faces, before)


# ---------------------------------------------------------------- PLY


CORNERS = "vertex_indices"
"""Name of the list of a face's vertices."""

TYPES = {"char": "b", "uchar": "B", "short": "h", "ushort": "H"}
TYPES |= {"int": "i", "uint": "I", "float": "f", "double": "d"}
TYPES |= {np.dtype(code).name: code for code in TYPES.values()}
"""Codes of number types in numpy and struct, by PLY's names: those of C and those of numpy."""

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
"""Byte orders by PLY's names of formats; empty for text."""


class _Element(NamedTuple):
    """Header of an element: its name, number of rows, and properties."""

    name: str
    rows: int
    properties: list[tuple[str, str, str]]  # name, type, and the type of a list's length or ""

    def place(self, name: str) -> int | None:
        """Return the index of the first property with a given name, or None."""
        return next((i for i, (own, *_) in enumerate(self.properties) if own == name), None)

    def cut_off(self) -> FileError:
        """Return the error for a file without some of the rows."""
        message = f"the file ends inside its {self.rows} elements {shown(self.name)}"
        return FileError(f"{message}: fetch or write it again")


def read_ply(path: str) -> Mesh:
    """Read the points and faces of a PLY file; other elements are ignored."""
    with opened(path) as file:
        content = file.read()
    if not content.startswith(b"ply"):
        raise FileError("a PLY file begins with a line ply", 1)
    stream = io.BytesIO(content)
    order, elements, n_lines = _ply_header(stream)
    vertex, face = elements.get("vertex"), elements.get("face")
    if vertex is None or None in map(vertex.place, "xyz"):
        raise FileError("the header has no element vertex with properties x, y and z")
    if any(length for *_, length in vertex.properties):
        raise FileError("the element vertex has lists, which are not supported")
    if face is not None:
        at = face.place(CORNERS)
        if at is None or not face.properties[at][2]:
            raise FileError("the element face has no list vertex_indices")
        if any(length for *_, length in face.properties[:at]):
            raise FileError("lists before vertex_indices are not supported")
        if face.properties[at][1] in "fd":
            raise FileError("vertex_indices must be whole numbers")
    if order:
        return _from_binary(stream.read(), order, elements)
    return _from_text(stream.read().decode("ascii", "replace"), n_lines, elements)


def _ply_header(stream: io.BytesIO) -> tuple[str, dict[str, _Element], int]:
    """Return the byte order (empty for text), the elements, and the number of header lines."""
    elements: dict[str, _Element] = {}
    properties: list = []  # of the last element
    order, number = None, 0

    def code(name: str) -> str:
        if name not in TYPES:
            raise FileError(f"no type {shown(name)}", number)
        return TYPES[name]

    while (line := stream.readline()).endswith(b"\n"):
        number += 1
        match words := line.decode("ascii", "replace").split():
            case [] | ["ply" | "comment" | "obj_info", *_]:
                pass
            case ["end_header", *_]:
                break
            case ["format", name, *_] if name in ORDERS:
                order = ORDERS[name]
            case ["format", *_]:
                message = f"the format must be one of {', '.join(ORDERS)}, got {words[1:]}"
                raise FileError(message, number)
            case ["element", name, count] if count.isascii() and count.isdigit():
                if name in elements:
                    raise FileError(f"a second element {shown(name)}", number)
                properties = []
                elements[name] = _Element(name, int(count), properties)
            case ["element", *_]:
                raise FileError("an element requires a name and a count", number)
            case ["property", *_] if not elements:
                raise FileError("a property before any element", number)
            case ["property", "list", length, kind, name]:
                if code(length) in "fd":
                    raise FileError("the length of a list must be a whole number", number)
                name = CORNERS if name == "vertex_index" else name
                properties.append((name, code(kind), code(length)))
            case ["property", kind, name]:
                properties.append((name, code(kind), ""))
            case ["property", *_]:
                form = "a type and a name, or the word list, two types and a name"
                raise FileError(f"a property needs {form}", number)
            case _:
                raise FileError(f"unknown word {shown(words[0])} in the header", number)
    else:
        raise FileError("the file ends before end_header: fetch or write it again")
    if order is None:
        raise FileError("the header has no format")
    for element in elements.values():
        if not element.properties:
            raise FileError(f"the element {shown(element.name)} has no properties")
    return order, elements, number


def _from_text(text: str, n_lines: int, elements: dict[str, _Element]) -> Mesh:
    """Parse the rows of a text file, one per line; ``n_lines`` lines precede them."""
    lines = enumerate(text.split("\n"), start=n_lines + 1)
    rows = ((number, line.split()) for number, line in lines if line.strip())
    points: list[Row] = []
    faces: list[Row] = []
    for element in elements.values():
        axes, at = [element.place(axis) or 0 for axis in "xyz"], element.place(CORNERS) or 0
        for _ in range(element.rows):
            number, words = next(rows, (0, []))
            if not words:
                raise element.cut_off()
            if element.name == "vertex":
                if len(words) != len(element.properties):
                    message = f"a vertex has {len(element.properties)} numbers, got {len(words)}"
                    raise FileError(message, number)
                points.append((number, tuple(words[axis] for axis in axes)))
            elif element.name == "face":
                faces.append(_listed(number, words[at:]))
    for number, _ in rows:
        raise FileError("more lines than the header announces", number)
    return _text_mesh(points, faces)


def _spans(content: bytes, at: int, columns: list[tuple]) -> list[tuple[int, int, int]]:
    """Return where in a row the length of each property begins, and where its values do and end."""
    spans = []
    for kind, length in columns:
        begin, count = at, 1
        if length is not None:
            count = max(length.unpack_from(content, at)[0], 0)
            begin += length.size
        spans.append((at, begin, begin + count * kind.itemsize))
        at = spans[-1][2]
    return spans


def _from_binary(content: bytes, order: str, elements: dict[str, _Element]) -> Mesh:
    """Parse the rows of a binary file: at once if all are alike, otherwise one by one."""
    at, points, corners = 0, np.zeros((0, 3)), np.zeros(0, np.int64)
    sizes: list[int] = []
    for element in elements.values():
        columns = [
            (np.dtype(order + kind), struct.Struct(order + length) if length else None)
            for _, kind, length in element.properties
        ]
        least = sum(kind.itemsize if length is None else length.size for kind, length in columns)
        if at + element.rows * least > len(content):
            raise element.cut_off()
        if all(length is None for _, length in columns):
            fields = np.dtype([(f"{i}", kind) for i, (kind, _) in enumerate(columns)])
            rows = np.frombuffer(content, fields, element.rows, at)
            at += rows.nbytes
            if element.name == "vertex":
                axes = [rows[f"{element.place(axis)}"] for axis in "xyz"]
                points = np.stack(axes, axis=1).astype(np.float64)
            continue
        listed = element.place(CORNERS) if element.name == "face" else None
        lists, k = [], 0
        while k < element.rows:
            try:
                spans = _spans(content, at, columns)
            except struct.error:
                raise element.cut_off() from None
            width, alike = spans[-1][2] - at, 1
            if k == 0 and element.rows * width <= len(content) - at:
                # if all lists are as long as those of the first row, all rows are read at once
                table = np.frombuffer(content, np.uint8, element.rows * width, at)
                table = table.reshape(element.rows, width)
                same = (
                    table[:, lo - at : mid - at] == table[0, lo - at : mid - at]
                    for lo, mid, _ in spans
                )
                alike = element.rows if all(part.all() for part in same) else 1
            if listed is not None:
                _, lo, hi = spans[listed]
                sizes += [(hi - lo) // columns[listed][0].itemsize] * alike
                lists.append(
                    content[lo:hi] if alike == 1 else table[:, lo - at : hi - at].tobytes()
                )
            at, k = at + alike * width, k + alike
        if at > len(content):
            raise element.cut_off()
        if listed is not None:
            corners = np.frombuffer(b"".join(lists), columns[listed][0]).astype(np.int64)
    if (bad := checks.first_true(~np.isfinite(points).all(axis=1))) is not None:
        raise FileError(f"coordinates must be finite, got {points[bad].tolist()} at vertex {bad}")
    return points, face_array(len(points), corners, np.array(sizes, np.int64))
