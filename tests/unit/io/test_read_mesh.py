"""The same surface in every format, variants of each format, and files that are refused."""

import functools
import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen.io import _read_mesh
from tests.support import errors
from tests.support.strategies import examples
from tests.unit.io.conftest import read_or_refused, stored

refuses = functools.partial(errors.refuses, sc.read_mesh)

VERTICES = "element vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
FACES = "element face 1\nproperty list uchar int vertex_index\n"
ROWS = "0 0 0\n1 0 0\n0 1 0\n"
POINTS = [[0, 0, 0.5], [1, 0, 0], [1, 1, -2e-3], [0, 1, 0], [2, 0.5, 1]]
QUAD, TRIANGLE = [0, 1, 2, 3], [1, 4, 2]


def off(faces):
    rows = [" ".join(map(str, p)) for p in POINTS]
    rows += [" ".join(map(str, [len(f), *f])) for f in faces]
    return ("OFF\n" + f"{len(POINTS)} {len(faces)} 0\n" + "\n".join(rows) + "\n").encode()


def obj(faces):
    rows = ["# a comment", "o thing", *(f"v {p[0]} {p[1]} {p[2]}" for p in POINTS), "vn 0 0 1"]
    rows += ["f " + " ".join(f"{v + 1}//1" for v in f) for f in faces]
    return ("\n".join(rows) + "\n").encode()


def ply(faces, order, with_colors=False):
    kind = {"": "ascii", "<": "binary_little_endian", ">": "binary_big_endian"}[order]
    header = ["ply", f"format {kind} 1.0", "comment made by hand", f"element vertex {len(POINTS)}"]
    header += [f"property double {axis}" for axis in "xyz"]
    header += ["property uchar red"] if with_colors else []
    header += [f"element face {len(faces)}", "property list uchar int vertex_indices"]
    header += ["property float quality"] if with_colors else []
    text = ("\n".join([*header, "end_header"]) + "\n").encode()
    red, quality = ((7,), (0.5,)) if with_colors else ((), ())
    if not order:
        rows = [[*p, *red] for p in POINTS] + [[len(f), *f, *quality] for f in faces]
        return text + "".join(" ".join(map(str, row)) + "\n" for row in rows).encode()
    for p in POINTS:
        text += struct.pack(order + "3d" + "B" * len(red), *p, *red)
    for f in faces:
        text += struct.pack(f"{order}B{len(f)}i" + "f" * len(quality), len(f), *f, *quality)
    return text


FORMATS = {
    "mesh.off": off,
    "mesh.obj": obj,
    "ascii.ply": lambda faces: ply(faces, ""),
    "ascii-colors.ply": lambda faces: ply(faces, "", True),
    "little.ply": lambda faces: ply(faces, "<"),
    "little-colors.ply": lambda faces: ply(faces, "<", True),
    "big.ply": lambda faces: ply(faces, ">"),
    "big.ply.gz": lambda faces: ply(faces, ">"),
    "MESH.OFF.GZ": off,
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("faces", "expected"),
    [
        ([QUAD], [QUAD]),
        ([TRIANGLE, [0, 1, 2]], [TRIANGLE, [0, 1, 2]]),
        ([TRIANGLE, QUAD], [TRIANGLE, [0, 1, 2], [0, 2, 3]]),
        ([[0, 1, 4, 2, 3], TRIANGLE], [[0, 1, 4], [0, 4, 2], [0, 2, 3], TRIANGLE]),
        ([], np.zeros((0, 3), dtype=int)),
    ],
    ids=["quad", "triangles", "mixed", "pentagon", "no-faces"],
)
def test_every_mesh_format_gives_the_same_surface(write, name, faces, expected):
    points, found = sc.read_mesh(write(FORMATS[name](faces), name))
    assert (points.dtype, found.dtype) == (np.float64, np.int64)
    np.testing.assert_array_equal(points, POINTS)
    np.testing.assert_array_equal(found, expected)


def test_unknown_file_extension_raises(tmp_path):
    with pytest.raises(ValueError, match=re.escape("read_mesh reads .off, .obj, .ply, each also")):
        sc.read_mesh(tmp_path / "mesh.stl")
    with pytest.raises(FileNotFoundError):
        sc.read_mesh(tmp_path / "mesh.obj")


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
@examples(15)
def test_damaged_files_load_or_raise(tmp_path_factory, name, data):
    """A truncated file or one with a changed byte raises an error with the path, or loads."""
    content = bytearray(FORMATS[name]([TRIANGLE, QUAD]))
    if data.draw(st.booleans(), label="cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        at = data.draw(st.integers(0, len(content) - 1), label="at")
        content[at] = data.draw(st.integers(0, 255), label="byte")
    path = stored(tmp_path_factory.mktemp("damaged"), name, content)
    if (found := read_or_refused(sc.read_mesh, path)) is not None:
        points, faces = found
        assert np.isfinite(points).all()
        assert points.shape[1] == 3
        assert faces.min(initial=0) >= 0
        assert faces.max(initial=-1) < len(points)


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("name", ["mesh.off", "ascii.ply", "little.ply", "little-colors.ply"])
def test_truncated_files_raise(write, name, cut):
    content = FORMATS[name]([TRIANGLE, [0, 1, 2]])
    # text without the last line; any number of bytes of a binary file
    kept = content[: int(cut * (len(content) - 2))]
    kept = kept if name.startswith("little") else kept[: kept.rfind(b"\n") + 1]
    with pytest.raises(ValueError, match="the file ends|must follow|begins with|has no format"):
        sc.read_mesh(write(kept, name))


@pytest.mark.parametrize(
    "text",
    [
        "OFF 3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n",
        "# first\nOFF # second\n\n3 1\n0 0 0 # third\n1 0 0\n\n0 1 0\n3 0 1 2 255 0 0\n",
        "COFF\n3 1 3\n0 0 0 1 1 1 1\n1 0 0 1 1 1 1\n0 1 0 1 1 1 1\n3 0 1 2 5\n",
        "NOFF\r\n3 1 3\r\n0 0 0 0 0 1\r\n1 0 0 0 0 1\r\n0 1 0 0 0 1\r\n3 0 1 2\r\n",
    ],
    ids=["counts-behind", "comments", "colors", "normals"],
)
def test_variants_of_off_are_read(write, text):
    points, faces = sc.read_mesh(write(text, "m.off"))
    assert points.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert faces.tolist() == [[0, 1, 2]]


def test_negative_obj_indices_count_from_the_last_vertex(write):
    text = "v 0 0 0\nv 1 0 0 1.0\nv 0 1 0\nf -3 -2/7 -1\nv 5 5 5\nf 1 2 -1\nf \\\n4 3 \\\n2\n"
    points, faces = sc.read_mesh(write(text, "m.obj"))
    assert points[3].tolist() == [5, 5, 5]
    assert faces.tolist() == [[0, 1, 2], [0, 1, 3], [3, 2, 1]]


def ply_text(*parts, form="ascii"):
    return f"ply\nformat {form} 1.0\n" + "".join(parts[:-1]) + "end_header\n" + parts[-1]


def test_other_elements_are_ignored_and_columns_may_be_permuted(write):
    header = (
        "element camera 2\nproperty float f\nelement strip 2\nproperty list uchar short n\n"
        "element vertex 3\nproperty uchar red\nproperty float z\nproperty float y\n"
        "property float x\nelement face 1\nproperty uchar flag\n"
        "property list uint8 uint vertex_indices\nproperty list uchar float texcoord\n"
        "element edge 1\nproperty int a\n"
    )
    rows = "9\n8\n1 5\n2 6 7\n255 0 1 2\n255 3 4 5\n255 6 7 8\n1 3 0 1 2 2 0.5 0.5\n7\n"
    points, faces = sc.read_mesh(write(ply_text(header, rows), "m.ply"))
    assert points.tolist() == [[2, 1, 0], [5, 4, 3], [8, 7, 6]]
    assert faces.tolist() == [[0, 1, 2]]
    body = struct.pack("<2fBhBhh", 9, 8, 1, 5, 2, 6, 7)
    body += b"".join(struct.pack("<B3f", 255, *z) for z in ((0, 1, 2), (3, 4, 5), (6, 7, 8)))
    body += struct.pack("<BB3IB2f", 1, 3, 0, 1, 2, 2, 0.5, 0.5) + struct.pack("<i", 7)
    binary = ply_text(header, "", form="binary_little_endian").encode() + body
    points, again = sc.read_mesh(write(binary, "m.ply"))
    assert points.tolist() == [[2, 1, 0], [5, 4, 3], [8, 7, 6]]
    np.testing.assert_array_equal(again, faces)


@pytest.mark.parametrize("odd", [None, 0, 3, 9])
def test_rows_of_a_binary_file_that_are_alike_are_read_at_once(write, monkeypatch, odd):
    """Unless the lists of one row have other lengths, in the list of vertices or in another one."""
    starts = []
    spans = _read_mesh._spans
    monkeypatch.setattr(_read_mesh, "_spans", lambda *row: starts.append(row[1]) or spans(*row))
    header = VERTICES + FACES.replace("1", "10") + "property list uchar float texcoord\n"
    body = np.eye(3, dtype="<f4").tobytes()
    for k in range(10):
        more = [0.5] * (1 if k == odd else 2)
        face = k % 3, (k + 1) % 3, (k + 2) % 3
        body += struct.pack(f"<B3iB{len(more)}f", 3, *face, len(more), *more)
    content = ply_text(header, "", form="binary_little_endian").encode() + body
    points, faces = sc.read_mesh(write(content, "m.ply"))
    assert points.tolist() == np.eye(3).tolist()
    np.testing.assert_array_equal(faces, (np.arange(10)[:, None] + [0, 1, 2]) % 3)
    assert len(starts) == (1 if odd is None else 10)


def test_point_clouds_have_no_faces(write):
    points, faces = sc.read_mesh(write(ply_text(VERTICES, ROWS), "m.ply"))
    assert (len(points), faces.shape) == (3, (0, 3))


BAD_OFF = [
    ("", None, "begins with OFF, COFF or NOFF, got 'nothing'"),
    ("PLY\n", 1, "begins with OFF, COFF or NOFF, got 'PLY'"),
    ("4OFF\n", 1, "begins with OFF"),
    ("OFF BINARY\n", 1, "binary OFF is not supported"),
    ("OFF\n", 1, "must be a whole number"),
    ("OFF\n3\n", 2, "numbers of vertices, faces and edges must follow"),
    ("OFF\n3 x 0\n", 2, "must be a whole number, got 'x'"),
    ("OFF\n3 -1 0\n", 2, "must follow"),
    ("OFF\n4 1 0\n" + ROWS, None, "the file ends after 3 of 4 vertices"),
    ("OFF\n3 2 0\n" + ROWS + "3 0 1 2\n", None, "ends after 1 of 2 faces"),
    ("OFF\n3 1 0\n" + ROWS + "3 0 1 2\n3 0 2 1\n", 7, "but more lines follow"),
    ("OFF\n1 0 0\n0 0\n", 3, "a vertex needs 3 coordinates, got 2"),
    ("OFF\n3 0 0\n0 0 0\n1 nan 0\n0 1 0\n", 4, "a coordinate must be finite, got 'nan'"),
    ("OFF\n3 1 0\n" + ROWS + "3 0 1\n", 6, "needs as many vertices, got 2"),
    ("OFF\n3 1 0\n" + ROWS + "3 0 1 x\n", 6, "must be a whole number, got 'x'"),
    ("OFF\n3 1 0\n" + ROWS + "three 0 1 2\n", 6, "whole number, got 'three'"),
    ("OFF\n3 1 0\n" + ROWS + "2 0 1\n", 6, "face 0 has 2 corners, but needs at least 3"),
    ("OFF\n3 1 0\n" + ROWS + "3 0 1 3\n", 6, "vertex 3, but there are vertices 0 .. 2"),
    ("OFF\n3 1 0\n" + ROWS + "3 0 -1 2\n", 6, "face 0 contains vertex -1"),
    ("OFF\n3 1 0\n" + ROWS + f"3 0 1 {10**30}\n", 6, "face 0 contains vertex"),
    ("OFF\n3 2 0\n" + ROWS + "3 0 1 2\n3 0 1 0\n", 7, "face 1 contains vertex 0 twice"),
]

BAD_OBJ = [
    ("", None, "no line is v x y z"),
    ("v 0 0 0\nf 1 0 1\n", 2, "vertices are numbered from 1, got 0"),
    ("v 0 0 0\n\nf 1 a/2 1\n", 3, "must be a whole number, got 'a'"),
    ("v 0 0 0\nv 1 0 0\nf 1 2 3\n", 3, "vertex 3, but there are vertices 1 .. 2"),
    ("v 0 0 0\nf -1 -2 1\n", 2, "face 0 contains vertex 0"),
    ("v 0 0 0\nv 1 0 0\nf 1 2 1\n", 3, "face 0 contains vertex 1 twice"),
]

REAL_FACES = FACES.replace("int", "float")
TWO_LISTS = FACES.replace("1\n", "1\nproperty list uchar int a\n")
BINARY = ply_text(VERTICES, FACES, "", form="binary_little_endian").encode()
MANY, MORE = (BINARY.replace(b"vertex 3", b"vertex %d" % n) for n in (2**32 - 1, 10**20))
PACKED_ROWS, NAN_ROWS = (struct.pack("<9f", 0, 0, 0, 1, x, 0, 0, 1, 0) for x in (0, np.nan))
PACKED_FACE = struct.pack("<B3i", 3, 0, 1, 2)
LONG_FACE = BINARY.replace(b"list uchar", b"list uint"), struct.pack("<I3i", 2**32 - 1, 0, 1, 2)

BAD_PLY = [
    ("", 1, "begins with a line ply"),
    ("OFF\n", 1, "begins with a line ply"),
    ("ply\nformat ascii 1.0\n", None, "the file ends before end_header"),
    ("ply\nformat text 1.0\n", 2, "the format must be one of ascii, binary_little"),
    ("ply\nend_header\n", None, "the header has no format"),
    ("ply\nfoo\nend_header\n", 2, "unknown word 'foo' in the header"),
    ("ply\nelement vertex -3\nend_header\n", 2, "an element requires a name and a count"),
    ("ply\nproperty int a\nend_header\n", 2, "a property before any element"),
    ("ply\nelement vertex 3\nproperty real x\nend_header\n", 3, "no type 'real'"),
    ("ply\nelement a 1\nproperty int b\nelement a 1\n", 4, "a second element 'a'"),
    (ply_text(VERTICES, "element a 9\n", ROWS), None, "the element 'a' has no properties"),
    ("ply\nelement vertex 3\nproperty int\nend_header\n", 3, "a type and a name"),
    (ply_text("element face 1\nproperty list float int vertex_index\n", ""), 4, "whole"),
    (ply_text(FACES, ""), None, "no element vertex with properties x, y and z"),
    (ply_text(VERTICES.replace(" z", " w"), ROWS), None, "no element vertex with"),
    (ply_text(VERTICES, "property list uchar int a\n", ROWS), None, "vertex has lists"),
    (ply_text(VERTICES, "element face 1\nproperty int a\n", ROWS), None, "no list vertex_"),
    (ply_text(VERTICES, REAL_FACES, ROWS), None, "vertex_indices must be whole numbers"),
    (ply_text(VERTICES, TWO_LISTS, ROWS), None, "lists before vertex_indices are not supported"),
    (ply_text(VERTICES, FACES, "0 0 0\n1 0 0\n"), None, "ends inside its 3 elements 'vertex'"),
    (ply_text(VERTICES, FACES, ROWS), None, "ends inside its 1 elements 'face'"),
    (ply_text(VERTICES, "0 0 0\n1 0\n"), 9, "a vertex has 3 numbers, got 2"),
    (ply_text(VERTICES, "0 0 0\n1 0 nan\n0 0 0\n"), 9, "a coordinate must be finite"),
    (ply_text(VERTICES, FACES, ROWS + "3 0 1\n"), 13, "needs as many vertices, got 2"),
    (ply_text(VERTICES, FACES, ROWS + "3 0 1 2\n1\n"), 14, "more lines than the header"),
    (BINARY + PACKED_ROWS[:-1], None, "ends inside its 3 elements 'vertex'"),
    (BINARY + PACKED_ROWS, None, "ends inside its 1 elements 'face'"),
    (BINARY + PACKED_ROWS + PACKED_FACE[:-2], None, "ends inside its 1 elements 'face'"),
    (BINARY + PACKED_ROWS + struct.pack("<B3i", 3, 0, 1, 7), None, "face 0 contains vertex 7"),
    (MANY + PACKED_ROWS, None, "ends inside its 4294967295 elements 'vertex'"),
    (MORE + PACKED_ROWS, None, f"ends inside its {10**20} elements 'vertex'"),
    (PACKED_ROWS.join(LONG_FACE), None, "ends inside its 1 elements 'face'"),
    (BINARY + NAN_ROWS + PACKED_FACE, None, "got [1.0, nan, 0.0] at vertex 1"),
]

BAD = [
    *(("m.off", *case) for case in BAD_OFF),
    *(("m.obj", *case) for case in BAD_OBJ),
    *(("m.ply", *case) for case in BAD_PLY),
]


@pytest.mark.parametrize(
    ("name", "content", "line", "message"), BAD, ids=[f"{case[0]} {case[-1]}" for case in BAD]
)
def test_invalid_files_raise(write, name, content, line, message):
    refuses(write(content, name), line, message)


@pytest.mark.real_data
def test_real_meshes_are_read(data_folder):
    sizes = {
        "mesh_bunny.off.gz": (34835, 69666, 3),
        "mesh_cat_head.off": (131, 248, 3),
        "mesh_moebius.off": (280, 224, 4),
        "mesh_sphere_small.off": (162, 320, 3),
        "mesh_spot.off.gz": (2930, 5856, 3),
    }
    for name, (n, f, k) in sizes.items():
        points, faces = sc.read_mesh(data_folder / name)
        assert (points.shape, faces.shape) == ((n, 3), (f, k))
        assert np.unique(faces).size == n
