"""Readers of surface meshes in OFF, OBJ and PLY; they return points and faces.

No library is used: meshio 5.3 misreads negative indices of OBJ, ends the process on malformed
files, and does not return for a truncated PLY header; trimesh 5.2 reads one in ten damaged files as
a smaller surface, splits quadrilaterals, repeats vertices at changes of material and rejects binary
PLY with polygons of several sizes; plyfile has another licence.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import PathLike, checks, ragged
from sheafcoarsen.io.text import (
    FileError,
    integers,
    numbers,
    opened,
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
        Text. Additional columns such as normals and colours (``NOFF``, ``COFF``) are
        ignored.
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
        ``path:line: ...`` or ``path: ...`` for a file that is truncated or inconsistent, or has
        values that are not finite numbers; for a face with fewer than three corners, with a
        repeated vertex or one that does not exist; for an unknown file extension.

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

    Faces with fewer than three corners, with invalid or with repeated vertices are errors, with the
    face's line if known; the file's first vertex has the number ``first``.
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


class _TextMesh:
    """Points and faces of a text mesh, collected line by line as unparsed strings."""

    def __init__(self) -> None:
        self.coordinates: list[str] = []  # three for each point
        self.point_lines: list[int] = []
        self.corners: list[str] = []
        self.sizes: list[int] = []  # numbers of corners of the faces
        self.face_lines: list[int] = []
        self.before: list[int] = []  # numbers of points above the faces

    def add_point(self, number: int, words: list[str]) -> None:
        """Append a point, given as three coordinates; ignore other words."""
        if len(words) < 3:
            raise FileError(f"a vertex needs 3 coordinates, got {len(words)}", number)
        self.coordinates += words[:3]
        self.point_lines.append(number)

    def add_face(self, number: int, words: list[str]) -> None:
        """Append a face, given as the number of corners and the vertices; ignore other words."""
        k = int(words[0]) if words and words[0].isascii() and words[0].isdigit() else 0
        if k == 0:  # the word must be an integer
            integers(words[:1], [number], "the number of corners of a face")
        if len(words) <= k:
            message = f"a face of {k} corners needs as many vertices, got {len(words) - 1}"
            raise FileError(message, number)
        self.add_corners(number, words[1 : 1 + k])

    def add_corners(self, number: int, words: list[str]) -> None:
        """Append a face, given as its vertices."""
        self.corners += words
        self.sizes.append(len(words))
        self.face_lines.append(number)
        self.before.append(len(self.point_lines))

    def mesh(self, first: int = 0) -> Mesh:
        """Return points and faces.

        The file numbers vertices from ``first``; if this is 1, negative numbers count from the last
        vertex above the face.
        """
        points = numbers(self.coordinates, self.point_lines, "a coordinate").reshape(-1, 3)
        lines = np.repeat(self.face_lines, self.sizes)
        corners = integers(self.corners, lines, "a corner of a face")
        # clip huge numbers, which are reported as out of range
        most = 2**62 + first
        vertices = np.array([min(max(v, -most), most) for v in corners], dtype=np.int64)
        if first == 1:
            if (zero := checks.first_true(vertices == 0)) is not None:
                raise FileError("vertices are numbered from 1, got 0", lines[zero])
            from_last = vertices + np.repeat(self.before, self.sizes)
            vertices = np.where(vertices > 0, vertices - 1, from_last)
        sizes = np.array(self.sizes, dtype=np.int64)
        vertices = np.maximum(vertices, -1)
        return points, face_array(len(points), vertices, sizes, self.face_lines, first)


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
    counts = integers(fields[:3], [number or 1], "a number of vertices or faces")
    if len(counts) < 2 or min(counts) < 0:
        raise FileError("numbers of vertices, faces and edges must follow the word OFF", number)
    n, f = counts[:2]
    mesh = _TextMesh()
    for add, count, what in ((mesh.add_point, n, "vertices"), (mesh.add_face, f, "faces")):
        for i in range(count):
            number, fields = next(lines, (None, []))
            if number is None:
                message = f"the file ends after {i} of {count} {what}: fetch or write it again"
                raise FileError(message)
            add(number, fields)
    number, _ = next(lines, (None, []))
    if number is not None:
        raise FileError(f"{n} vertices and {f} faces were announced, but more lines follow", number)
    return mesh.mesh()


def read_obj(path: str) -> Mesh:
    """Read the vertices and faces of an OBJ file."""
    mesh = _TextMesh()
    for number, fields in _fields(path, joined=True):
        if fields[0] == "v":
            mesh.add_point(number, fields[1:])
        elif fields[0] == "f":
            mesh.add_corners(number, [word.partition("/")[0] for word in fields[1:]])
    if not mesh.point_lines:
        raise FileError("not an OBJ file, or one without vertices: no line is v x y z")
    return mesh.mesh(first=1)


# ---------------------------------------------------------------- PLY


CORNERS = "vertex_indices"
"""Name of the list of a face's vertices."""


class _Property(NamedTuple):
    """One column of an element: a number, or a list preceded by its length."""

    name: str
    kind: str  # numpy type
    length: str | None = None  # numpy type of a list's length


class _Element(NamedTuple):
    """Header of an element: its name, number of rows, and properties."""

    name: str
    rows: int
    properties: list[_Property]

    def place(self, name: str) -> int | None:
        """Return the index of the first property with a given name, or None."""
        names = [column.name for column in self.properties]
        return names.index(name) if name in names else None


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
    if any(column.length for column in vertex.properties):
        raise FileError("the element vertex has lists, which are not supported")
    if face is not None:
        at = face.place(CORNERS)
        if at is None or not face.properties[at].length:
            raise FileError("the element face has no list vertex_indices")
        if any(column.length for column in face.properties[:at]):
            raise FileError("lists before vertex_indices are not supported")
        if face.properties[at].kind[0] == "f":
            raise FileError("vertex_indices must be whole numbers")
    if order:
        return _from_binary(stream.read(), order, elements)
    return _from_text(stream.read().decode("ascii", "replace"), n_lines, elements)


def _ply_header(stream: io.BytesIO) -> tuple[str, dict[str, _Element], int]:
    """Return the byte order (empty for text), the elements, and the number of header lines."""
    # numpy's codes of PLY's number types, each of which has the name in C and that in numpy
    types = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2"}
    types |= {"int": "i4", "uint": "u4", "float": "f4", "double": "f8"}
    types |= {np.dtype(code).name: code for code in types.values()}
    orders = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
    elements: dict[str, _Element] = {}
    properties: list[_Property] = []  # of the last element
    order, number = None, 0
    while (line := stream.readline()).endswith(b"\n"):
        number += 1
        match words := line.decode("ascii", "replace").split():
            case [] | ["ply" | "comment" | "obj_info", *_]:
                pass
            case ["end_header", *_]:
                break
            case ["format", name, *_] if name in orders:
                order = orders[name]
            case ["format", *_]:
                message = f"the format must be one of {', '.join(orders)}, got {words[1:]}"
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
            case ["property", "list", length, kind, name] if length in types and kind in types:
                if types[length][0] == "f":
                    raise FileError("the length of a list must be a whole number", number)
                name = CORNERS if name == "vertex_index" else name
                properties.append(_Property(name, types[kind], types[length]))
            case ["property", kind, name] if kind in types:
                properties.append(_Property(name, types[kind]))
            case ["property", *rest]:
                kinds = rest[1:3] if rest[:1] == ["list"] else rest[:1]
                unknown = next((shown(kind) for kind in kinds if kind not in types), None)
                message = (
                    "a property needs a type and a name, or the word list, two types and a name"
                )
                raise FileError(f"no type {unknown}" if unknown else message, number)
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
    mesh = _TextMesh()
    for element in elements.values():
        axes, at = [element.place(axis) or 0 for axis in "xyz"], element.place(CORNERS) or 0
        for _ in range(element.rows):
            number, words = next(rows, (0, []))
            if not words:
                raise _cut_off(element)
            if element.name == "vertex":
                if len(words) != len(element.properties):
                    message = f"a vertex has {len(element.properties)} numbers, got {len(words)}"
                    raise FileError(message, number)
                mesh.add_point(number, [words[axis] for axis in axes])
            elif element.name == "face":
                mesh.add_face(number, words[at:])
    extra = next(rows, None)
    if extra is not None:
        raise FileError("more lines than the header announces", extra[0])
    return mesh.mesh()


def _from_binary(content: bytes, order: str, elements: dict[str, _Element]) -> Mesh:
    """Parse the rows of a binary file, element by element."""
    at, points = 0, np.zeros((0, 3))
    corners, sizes = [np.zeros(0, dtype=np.int64)], np.zeros(0, dtype=np.int64)
    for element in elements.values():
        try:
            tables = _tables(content, at, order, element)
        except ValueError:
            raise _cut_off(element) from None
        at += sum(rows.nbytes for rows in tables)
        if element.name == "vertex" and tables:
            axes = [tables[0][f"f{element.place(axis)}"] for axis in "xyz"]
            points = np.stack(axes, axis=1).astype(np.float64)
        elif element.name == "face":
            lists = [rows[f"f{element.place(CORNERS)}"] for rows in tables]
            corners += [vertices.reshape(-1) for vertices in lists]
            sizes = np.repeat([v.shape[1] for v in lists], [len(v) for v in lists]).astype(int)
    if (bad := checks.first_true(~np.isfinite(points).all(axis=1))) is not None:
        raise FileError(f"coordinates must be finite, got {points[bad].tolist()} at vertex {bad}")
    return points, face_array(len(points), np.concatenate(corners).astype(np.int64), sizes)


def _tables(content: bytes, at: int, order: str, element: _Element) -> list[np.ndarray]:
    """Return the rows of an element: one array if lists have equal lengths, or one for each row.

    The fields f0, f1, ... hold the properties, and n0, n1, ... the lengths of lists.
    """
    columns = [
        (np.dtype(order + kind), None if length is None else np.dtype(order + length))
        for _, kind, length in element.properties
    ]
    least = sum((kind if length is None else length).itemsize for kind, length in columns)
    if at + element.rows * least > len(content):
        raise ValueError
    tables: list[np.ndarray] = []
    row_types: dict[tuple, np.dtype] = {}  # by the shapes of the fields
    while len(tables) < element.rows:
        shapes: tuple[tuple[int, ...], ...] = ()
        end = at
        for kind, length in columns:
            if length is None:
                shapes += ((),)
                end += kind.itemsize
            else:
                k = max(int(np.frombuffer(content, length, 1, end)[0]), 0)
                shapes += ((k,),)
                end += length.itemsize + k * kind.itemsize
        if shapes not in row_types:
            fields: list[tuple] = []
            for i, ((kind, length), shape) in enumerate(zip(columns, shapes, strict=True)):
                fields += [] if length is None else [(f"n{i}", length)]
                fields.append((f"f{i}", kind, shape))
            row_types[shapes] = np.dtype(fields)
        row_type = row_types[shapes]
        if not tables and at + element.rows * row_type.itemsize <= len(content):
            rows = np.frombuffer(content, row_type, element.rows, at)
            counts = [rows[name] for name in row_type.names or () if name[0] == "n"]
            if all((count == count[0]).all() for count in counts):
                return [rows]
        tables.append(np.frombuffer(content, row_type, 1, at))
        at = end
    return tables


def _cut_off(element: _Element) -> FileError:
    message = f"the file ends inside its {element.rows} elements {shown(element.name)}"
    return FileError(f"{message}: fetch or write it again")
