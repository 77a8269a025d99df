"""PLY files of all kinds, and invalid ones."""

import struct

import numpy as np
import pytest

import sheafcoarsen as sc
from tests.unit.io.test_off_obj import refuses

VERTICES = "element vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
FACES = "element face 1\nproperty list uchar int vertex_index\n"
ROWS = "0 0 0\n1 0 0\n0 1 0\n"


def text(*parts, form="ascii"):
    return f"ply\nformat {form} 1.0\n" + "".join(parts[:-1]) + "end_header\n" + parts[-1]


def test_other_elements_are_ignored_and_columns_may_be_permuted(write):
    header = (
        "element camera 2\nproperty float f\n"
        "element vertex 3\nproperty uchar red\nproperty float z\nproperty float y\n"
        "property float x\nelement face 1\nproperty uchar flag\n"
        "property list uint8 uint vertex_indices\nproperty list uchar float texcoord\n"
        "element edge 1\nproperty int a\n"
    )
    rows = "9\n8\n255 0 1 2\n255 3 4 5\n255 6 7 8\n1 3 0 1 2 2 0.5 0.5\n7\n"
    points, faces = sc.read_mesh(write(text(header, rows), "m.ply"))
    assert points.tolist() == [[2, 1, 0], [5, 4, 3], [8, 7, 6]]
    assert faces.tolist() == [[0, 1, 2]]
    body = struct.pack("<2f", 9, 8)
    body += b"".join(struct.pack("<B3f", 255, *z) for z in ((0, 1, 2), (3, 4, 5), (6, 7, 8)))
    body += struct.pack("<BB3IB2f", 1, 3, 0, 1, 2, 2, 0.5, 0.5) + struct.pack("<i", 7)
    binary = text(header, "", form="binary_little_endian").encode() + body
    points, again = sc.read_mesh(write(binary, "m.ply"))
    assert points.tolist() == [[2, 1, 0], [5, 4, 3], [8, 7, 6]]
    np.testing.assert_array_equal(again, faces)


def test_lists_before_the_faces_are_skipped(write):
    strips = "element strip 2\nproperty list uchar short n\n"
    header = text(strips, VERTICES, FACES, "", form="binary_big_endian")
    body = struct.pack(">BhBhh", 1, 5, 2, 6, 7) + struct.pack(">9f", 0, 0, 0, 1, 0, 0, 0, 1, 0)
    body += struct.pack(">B3i", 3, 2, 1, 0)
    points, faces = sc.read_mesh(write(header.encode() + body, "m.ply"))
    assert points.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert faces.tolist() == [[2, 1, 0]]


def test_point_clouds_have_no_faces(write):
    points, faces = sc.read_mesh(write(text(VERTICES, ROWS), "m.ply"))
    assert len(points) == 3
    assert faces.shape == (0, 3)


BAD = [
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
    (text(VERTICES, "element a 9\n", ROWS), None, "the element 'a' has no properties"),
    ("ply\nelement vertex 3\nproperty int\nend_header\n", 3, "a type and a name"),
    (text("element face 1\nproperty list float int vertex_index\n", ""), 4, "whole"),
    (text(FACES, ""), None, "no element vertex with properties x, y and z"),
    (text(VERTICES.replace(" z", " w"), ROWS), None, "no element vertex with"),
    (text(VERTICES, "property list uchar int a\n", ROWS), None, "vertex has lists"),
    (text(VERTICES, "element face 1\nproperty int a\n", ROWS), None, "no list vertex_"),
    (
        text(VERTICES, "element face 1\nproperty list uchar float vertex_index\n", ROWS),
        None,
        "vertex_indices must be whole numbers",
    ),
    (
        text(
            VERTICES, FACES.replace("1\n", "1\nproperty list uchar int a\n"), ROWS + "1 5 3 0 1 2"
        ),
        None,
        "lists before vertex_indices are not supported",
    ),
    (text(VERTICES, FACES, "0 0 0\n1 0 0\n"), None, "ends inside its 3 elements 'vertex'"),
    (text(VERTICES, FACES, ROWS), None, "ends inside its 1 elements 'face'"),
    (text(VERTICES, "0 0 0\n1 0\n"), 9, "a vertex has 3 numbers, got 2"),
    (text(VERTICES, "0 0 0\n1 0 nan\n0 0 0\n"), 9, "a coordinate must be finite"),
    (text(VERTICES, FACES, ROWS + "3 0 1\n"), 13, "needs as many vertices, got 2"),
    (text(VERTICES, FACES, ROWS + "3 0 1 3\n"), 13, "face 0 contains vertex 3"),
    (text(VERTICES, FACES, ROWS + "3 0 1 2\n1\n"), 14, "more lines than the header"),
]


@pytest.mark.parametrize(("content", "line", "message"), BAD, ids=[row[-1] for row in BAD])
def test_invalid_ply_files_raise(write, content, line, message):
    refuses(write(content, "m.ply"), line, message)


def test_invalid_binary_ply_files_raise(write):
    header = text(VERTICES, FACES, "", form="binary_little_endian").encode()
    points = struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 0)
    refuses(write(header + points[:-1], "m.ply"), None, "ends inside its 3 elements 'vertex'")
    refuses(write(header + points, "m.ply"), None, "ends inside its 1 elements 'face'")
    face = struct.pack("<B3i", 3, 0, 1, 2)
    refuses(write(header + points + face[:-2], "m.ply"), None, "ends inside its 1 elements 'face'")
    wrong = struct.pack("<B3i", 3, 0, 1, 7)
    refuses(write(header + points + wrong, "m.ply"), None, "face 0 contains vertex 7")
    for count in (10**20, 2**32 - 1):
        many = header.replace(b"vertex 3", b"vertex %d" % count)
        refuses(write(many + points, "m.ply"), None, f"ends inside its {count} elements 'vertex'")
    face_of_many = struct.pack("<I3i", 2**32 - 1, 0, 1, 2)
    long = header.replace(b"list uchar", b"list uint") + points + face_of_many
    refuses(write(long, "m.ply"), None, "ends inside its 1 elements 'face'")
    nan = struct.pack("<9f", 0, 0, 0, 1, np.nan, 0, 0, 1, 0)
    refuses(write(header + nan + face, "m.ply"), None, "got [1.0, nan, 0.0] at vertex 1")
