"""Reader of meshes in the PLY format, text or binary."""

import struct
from typing import NamedTuple

import numpy as np

from sheafcoarsen.io.polygons import FaceLines, Polygons
from sheafcoarsen.io.text import file_error, read_bytes, shown

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

    @property
    def has_lists(self) -> bool:
        return any(column.length is not None for column in self.properties)

    def place(self, *names: str) -> int | None:
        """Return the index of the property with one of the given names, or None."""
        found = [i for i, column in enumerate(self.properties) if column.name in names]
        return found[0] if found else None


class _Header(NamedTuple):
    """Parsed header of the file."""

    order: str  # byte order, "" for text
    elements: list[_Element]
    length: int  # length of the header in bytes
    lines: int


def read_ply(path: str) -> Polygons:
    """Read the points and faces of a PLY file; other elements are ignored."""
    content = read_bytes(path)
    header = _header(path, content)
    vertex = next((e for e in header.elements if e.name == "vertex"), None)
    if vertex is None or None in (vertex.place("x"), vertex.place("y"), vertex.place("z")):
        raise file_error(path, None, "the header has no element vertex with properties x, y and z")
    if vertex.has_lists:
        raise file_error(path, None, "the element vertex has lists, which are not supported")
    face = next((e for e in header.elements if e.name == "face"), None)
    if face is not None:
        at = face.place(*CORNERS)
        if at is None or face.properties[at].length is None:
            raise file_error(path, None, "the element face has no list vertex_indices")
        if any(column.length is not None for column in face.properties[:at]):
            raise file_error(path, None, "lists before vertex_indices are not supported")
        if face.properties[at].kind[0] == "f":
            raise file_error(path, None, "vertex_indices must be whole numbers")
    if header.order:
        return _Binary(path, content, header).polygons()
    return _from_text(path, content, header)


def _header(path: str, content: bytes) -> _Header:
    """Parse the lines up to end_header."""
    if not content.startswith(b"ply"):
        raise file_error(path, 1, "a PLY file begins with a line ply")
    elements: list[_Element] = []
    order, start, number = None, 0, 0
    while True:
        end = content.find(b"\n", start)
        if end < 0:
            raise file_error(path, None, "the file ends before end_header: fetch or write it again")
        number += 1
        text = content[start:end].decode("ascii", "replace").split()
        start = end + 1
        if text[:1] == ["end_header"]:
            break
        if text[:1] == ["format"]:
            if len(text) < 2 or text[1] not in FORMATS:
                message = f"the format must be one of {', '.join(FORMATS)}, got {text[1:]}"
                raise file_error(path, number, message)
            order = FORMATS[text[1]]
        elif text[:1] == ["element"]:
            if len(text) != 3 or not (text[2].isascii() and text[2].isdigit()):
                raise file_error(path, number, "an element requires a name and a count")
            if text[1] in (element.name for element in elements):
                raise file_error(path, number, f"a second element {shown(text[1])}")
            elements.append(_Element(text[1], int(text[2]), []))
        elif text[:1] == ["property"]:
            if not elements:
                raise file_error(path, number, "a property before any element")
            elements[-1].properties.append(_property(path, number, text[1:]))
        elif text and text[0] not in ("ply", "comment", "obj_info"):
            raise file_error(path, number, f"unknown word {shown(text[0])} in the header")
    if order is None:
        raise file_error(path, None, "the header has no format")
    empty = next((element for element in elements if not element.properties), None)
    if empty is not None:
        raise file_error(path, None, f"the element {shown(empty.name)} has no properties")
    return _Header(order, elements, start, number)


def _property(path: str, number: int, words: list[str]) -> _Property:
    kinds = words[1:3] if words[:1] == ["list"] else words[:1]
    wanted = 4 if words[:1] == ["list"] else 2
    unknown = next((kind for kind in kinds if kind not in TYPES), None)
    if len(words) != wanted or unknown is not None:
        message = "a property needs a type and a name, or the word list, two types and a name"
        raise file_error(path, number, message if unknown is None else f"no type {shown(unknown)}")
    if wanted == 2:
        return _Property(words[1], TYPES[words[0]])
    if TYPES[words[1]][0] == "f":
        raise file_error(path, number, "the length of a list must be a whole number")
    return _Property(words[3], TYPES[words[2]], TYPES[words[1]])


def _cut_off(path: str, element: _Element) -> ValueError:
    message = f"the file ends inside its {element.rows} elements {shown(element.name)}"
    return file_error(path, None, f"{message}: fetch or write it again")


# ---------------------------------------------------------------- text


def _from_text(path: str, content: bytes, header: _Header) -> Polygons:
    """Parse the rows of a text file, one per line."""
    text = content[header.length :].decode("ascii", "replace")
    lines = enumerate(text.split("\n"), start=header.lines + 1)
    rows = ((number, line.split()) for number, line in lines if line.strip())
    mesh = FaceLines(path)
    for element in header.elements:
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
                mesh.points.add(number, [words[axis] for axis in axes])
            elif element.name == "face":
                mesh.add_face(number, words[at:])
    extra = next(rows, None)
    if extra is not None:
        raise file_error(path, extra[0], "more lines than the header announces")
    return mesh.polygons()


# ---------------------------------------------------------------- binary


class _Binary:
    """Sequential reader of the elements of a binary file."""

    def __init__(self, path: str, content: bytes, header: _Header):
        self.path = path
        self.content = content
        self.header = header
        self.at = header.length

    def polygons(self) -> Polygons:
        """Return the points and faces."""
        points = np.zeros((0, 3))
        corners, sizes = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        for element in self.header.elements:
            if element.name == "face":
                corners, sizes = self._faces(element)
            elif element.has_lists:
                self._rows(element, 0)
            else:
                rows = self._table(element, self._dtype(element.properties))
                if element.name == "vertex":
                    columns = [f"f{element.place(axis)}" for axis in "xyz"]
                    points = np.stack([rows[name].astype(np.float64) for name in columns], axis=1)
        bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
        if bad.size:
            message = f"coordinates must be finite, got {points[bad[0]].tolist()} at vertex"
            raise file_error(self.path, None, f"{message} {bad[0]}")
        return Polygons(points, corners, sizes, None)

    def _dtype(self, properties: list[_Property], k: int = 0) -> np.dtype:
        """Return the dtype of a row, with fields f0, f1, ..., if all lists have length k."""
        fields: list = []
        for i, column in enumerate(properties):
            kind = self.header.order + column.kind
            if column.length is None:
                fields.append((f"f{i}", kind))
            else:
                fields += [(f"n{i}", self.header.order + column.length), (f"f{i}", kind, (k,))]
        return np.dtype(fields)

    def _table(self, element: _Element, dtype: np.dtype) -> np.ndarray:
        """Return the rows of an element without lists, and advance past them."""
        end = self.at + element.rows * dtype.itemsize
        if end > len(self.content):
            raise _cut_off(self.path, element)
        rows = np.frombuffer(self.content, dtype, element.rows, self.at) if element.rows else None
        self.at = end
        return np.zeros(0, dtype) if rows is None else rows

    def _faces(self, element: _Element) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners of all faces and the number of corners of each."""
        at = element.place(*CORNERS) or 0
        start = self.at
        if element.rows and sum(column.length is not None for column in element.properties) == 1:
            # fast path: usually all faces have as many corners as the first
            before = self._dtype(element.properties[:at]).itemsize
            count = np.dtype(self.header.order + str(element.properties[at].length))
            if start + before + count.itemsize > len(self.content):
                raise _cut_off(self.path, element)
            k = int(np.frombuffer(self.content, count, 1, start + before)[0])
            if 0 < k * element.rows <= len(self.content):
                dtype = self._dtype(element.properties, k)
                if start + element.rows * dtype.itemsize <= len(self.content):
                    rows = self._table(element, dtype)
                    if (rows[f"n{at}"] == k).all():
                        sizes = np.full(element.rows, k, dtype=np.int64)
                        return rows[f"f{at}"].astype(np.int64).reshape(-1), sizes
            self.at = start
        return self._rows(element, at)

    def _rows(self, element: _Element, at: int) -> tuple[np.ndarray, np.ndarray]:
        """Traverse rows of varying size; return the lists of property ``at`` and their lengths."""
        order, content = self.header.order, self.content
        found: list = []
        sizes = []
        for _ in range(element.rows):
            for i, column in enumerate(element.properties):
                kind = np.dtype(order + column.kind)
                length = 1
                if column.length is not None:
                    letter = order + np.dtype(column.length).char
                    try:
                        length = int(struct.unpack_from(letter, content, self.at)[0])
                    except struct.error:
                        raise _cut_off(self.path, element) from None
                    self.at += np.dtype(column.length).itemsize
                end = self.at + max(length, 0) * kind.itemsize
                if end > len(content):
                    raise _cut_off(self.path, element)
                if i == at and column.length is not None:
                    found.append(np.frombuffer(content, kind, max(length, 0), self.at))
                    sizes.append(length)
                self.at = end
        corners = np.concatenate(found).astype(np.int64) if found else np.zeros(0, dtype=np.int64)
        return corners, np.maximum(np.array(sizes, dtype=np.int64), 0)
