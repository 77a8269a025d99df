"""Reader of meshes in the PLY format, text or binary."""

import io
from typing import NamedTuple

import numpy as np

from sheafcoarsen.io.polygons import FaceLines, Mesh, face_array
from sheafcoarsen.io.text import file_error, opened, shown

TYPES = {
    **dict.fromkeys(("char", "int8"), "i1"),
    **dict.fromkeys(("uchar", "uint8"), "u1"),
    **dict.fromkeys(("short", "int16"), "i2"),
    **dict.fromkeys(("ushort", "uint16"), "u2"),
    **dict.fromkeys(("int", "int32"), "i4"),
    **dict.fromkeys(("uint", "uint32"), "u4"),
    **dict.fromkeys(("float", "float32"), "f4"),
    **dict.fromkeys(("double", "float64"), "f8"),
}
"""Numpy names of the PLY number types."""

FORMATS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
"""Byte order of each format; empty for text."""

CORNERS = ("vertex_indices", "vertex_index")
"""Possible names of the list of a face's vertices."""


class _Property(NamedTuple):
    """One column of an element: a number, or a list preceded by its length."""

    name: str
    kind: str  # numpy type
    length: str | None = None  # numpy type of a list's length


class _Element(NamedTuple):
    """A table of the file, with one row per item."""

    name: str
    rows: int
    properties: list[_Property]

    def place(self, *names: str) -> int | None:
        """Return the index of the first property with one of the given names, or None."""
        return next((i for i, p in enumerate(self.properties) if p.name in names), None)


def read_ply(path: str) -> Mesh:
    """Read the points and faces of a PLY file; other elements are ignored."""
    with opened(path) as file:
        content = file.read()
    if not content.startswith(b"ply"):
        raise file_error(path, 1, "a PLY file begins with a line ply")
    stream = io.BytesIO(content)
    order, elements, n_lines = _header(path, stream)
    tables = {element.name: element for element in elements}
    vertex, face = tables.get("vertex"), tables.get("face")
    if vertex is None or None in map(vertex.place, "xyz"):
        raise file_error(path, None, "the header has no element vertex with properties x, y and z")
    if any(column.length for column in vertex.properties):
        raise file_error(path, None, "the element vertex has lists, which are not supported")
    if face is not None:
        at = face.place(*CORNERS)
        if at is None or not face.properties[at].length:
            raise file_error(path, None, "the element face has no list vertex_indices")
        if any(column.length for column in face.properties[:at]):
            raise file_error(path, None, "lists before vertex_indices are not supported")
        if face.properties[at].kind[0] == "f":
            raise file_error(path, None, "vertex_indices must be whole numbers")
    if order:
        return _from_binary(path, stream.read(), order, elements)
    return _from_text(path, stream.read().decode("ascii", "replace"), n_lines, elements)


def _header(path: str, stream: io.BytesIO) -> tuple[str, list[_Element], int]:
    """Parse the lines up to end_header; return byte order, elements, and the number of lines."""
    elements: list[_Element] = []
    order, number = None, 0
    while (line := stream.readline()).endswith(b"\n"):
        number += 1
        match words := line.decode("ascii", "replace").split():
            case [] | ["ply" | "comment" | "obj_info", *_]:
                pass
            case ["end_header", *_]:
                break
            case ["format", name, *_] if name in FORMATS:
                order = FORMATS[name]
            case ["format", *_]:
                message = f"the format must be one of {', '.join(FORMATS)}, got {words[1:]}"
                raise file_error(path, number, message)
            case ["element", name, count] if count.isascii() and count.isdigit():
                if name in (element.name for element in elements):
                    raise file_error(path, number, f"a second element {shown(name)}")
                elements.append(_Element(name, int(count), []))
            case ["element", *_]:
                raise file_error(path, number, "an element requires a name and a count")
            case ["property", *_] if not elements:
                raise file_error(path, number, "a property before any element")
            case ["property", "list", length, kind, name] if length in TYPES and kind in TYPES:
                if TYPES[length][0] == "f":
                    raise file_error(path, number, "the length of a list must be a whole number")
                elements[-1].properties.append(_Property(name, TYPES[kind], TYPES[length]))
            case ["property", kind, name] if kind in TYPES:
                elements[-1].properties.append(_Property(name, TYPES[kind]))
            case ["property", *rest]:
                kinds = rest[1:3] if rest[:1] == ["list"] else rest[:1]
                unknown = next((shown(kind) for kind in kinds if kind not in TYPES), None)
                message = (
                    "a property needs a type and a name, or the word list, two types and a name"
                )
                raise file_error(path, number, f"no type {unknown}" if unknown else message)
            case _:
                raise file_error(path, number, f"unknown word {shown(words[0])} in the header")
    else:
        raise file_error(path, None, "the file ends before end_header: fetch or write it again")
    if order is None:
        raise file_error(path, None, "the header has no format")
    for element in elements:
        if not element.properties:
            raise file_error(path, None, f"the element {shown(element.name)} has no properties")
    return order, elements, number


def _from_text(path: str, text: str, n_lines: int, elements: list[_Element]) -> Mesh:
    """Parse the rows of a text file, one per line; ``n_lines`` lines precede them."""
    lines = enumerate(text.split("\n"), start=n_lines + 1)
    rows = ((number, line.split()) for number, line in lines if line.strip())
    mesh = FaceLines(path)
    for element in elements:
        axes = [element.place(axis) or 0 for axis in "xyz"]
        at = element.place(*CORNERS) or 0
        for _ in range(element.rows):
            number, words = next(rows, (0, []))
            if not words:
                raise _cut_off(path, element)
            if element.name == "vertex":
                if len(words) != len(element.properties):
                    message = f"a vertex has {len(element.properties)} numbers, got {len(words)}"
                    raise file_error(path, number, message)
                mesh.add_point(number, [words[axis] for axis in axes])
            elif element.name == "face":
                mesh.add_face(number, words[at:])
    extra = next(rows, None)
    if extra is not None:
        raise file_error(path, extra[0], "more lines than the header announces")
    return mesh.mesh()


def _from_binary(path: str, content: bytes, order: str, elements: list[_Element]) -> Mesh:
    """Parse the rows of a binary file, element by element."""
    at, points = 0, np.zeros((0, 3))
    corners, sizes = [np.zeros(0, dtype=np.int64)], np.zeros(0, dtype=np.int64)
    for element in elements:
        try:
            tables = _tables(content, at, order, element)
        except ValueError:
            raise _cut_off(path, element) from None
        at += sum(rows.nbytes for rows in tables)
        if element.name == "vertex" and tables:
            axes = [tables[0][f"f{element.place(axis)}"] for axis in "xyz"]
            points = np.stack(axes, axis=1).astype(np.float64)
        elif element.name == "face":
            lists = [rows[f"f{element.place(*CORNERS)}"] for rows in tables]
            corners += [vertices.reshape(-1) for vertices in lists]
            sizes = np.repeat([v.shape[1] for v in lists], [len(v) for v in lists]).astype(int)
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if bad.size:
        message = f"coordinates must be finite, got {points[bad[0]].tolist()} at vertex {bad[0]}"
        raise file_error(path, None, message)
    return points, face_array(path, len(points), np.concatenate(corners).astype(np.int64), sizes)


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
    row_types: dict[tuple[int, ...], np.dtype] = {}  # by the lengths of lists
    while len(tables) < element.rows:
        lengths: tuple[int, ...] = ()
        end = at
        for kind, length in columns:
            if length is None:
                end += kind.itemsize
            else:
                k = max(int(np.frombuffer(content, length, 1, end)[0]), 0)
                lengths += (k,)
                end += length.itemsize + k * kind.itemsize
        if lengths not in row_types:
            row_types[lengths] = _row_type(columns, lengths)
        row_type = row_types[lengths]
        if not tables and at + element.rows * row_type.itemsize <= len(content):
            rows = np.frombuffer(content, row_type, element.rows, at)
            counts = [rows[name] for name in row_type.names or () if name[0] == "n"]
            if all((count == count[0]).all() for count in counts):
                return [rows]
        tables.append(np.frombuffer(content, row_type, 1, at))
        at = end
    return tables


def _row_type(columns: list, lengths: tuple[int, ...]) -> np.dtype:
    """Return the type of a row whose lists have the given lengths."""
    fields: list[tuple] = []
    rest = iter(lengths)
    for i, (kind, length) in enumerate(columns):
        if length is None:
            fields.append((f"f{i}", kind))
        else:
            fields += [(f"n{i}", length), (f"f{i}", kind, (next(rest),))]
    return np.dtype(fields)


def _cut_off(path: str, element: _Element) -> ValueError:
    message = f"the file ends inside its {element.rows} elements {shown(element.name)}"
    return file_error(path, None, f"{message}: fetch or write it again")
