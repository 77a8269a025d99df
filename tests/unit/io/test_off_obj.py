"""Variants of OFF and OBJ files, and invalid ones."""

import functools

import pytest

import sheafcoarsen as sc
from tests.support import errors

refuses = functools.partial(errors.refuses, sc.read_mesh)


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


THREE = "0 0 0\n1 0 0\n0 1 0\n"

BAD_OFF = [
    ("", None, "begins with OFF, COFF or NOFF, got 'nothing'"),
    ("PLY\n", 1, "begins with OFF, COFF or NOFF, got 'PLY'"),
    ("4OFF\n", 1, "begins with OFF"),
    ("OFF BINARY\n", 1, "binary OFF is not supported"),
    ("OFF\n", 1, "must be a whole number"),
    ("OFF\n3\n", 2, "numbers of vertices, faces and edges must follow"),
    ("OFF\n3 x 0\n", 2, "must be a whole number, got 'x'"),
    ("OFF\n3 -1 0\n", 2, "must follow"),
    ("OFF\n4 1 0\n" + THREE, None, "the file ends after 3 of 4 vertices"),
    ("OFF\n3 2 0\n" + THREE + "3 0 1 2\n", None, "ends after 1 of 2 faces"),
    ("OFF\n3 1 0\n" + THREE + "3 0 1 2\n3 0 2 1\n", 7, "but more lines follow"),
    ("OFF\n3 1 0\n0 0\n", 3, "a vertex needs 3 coordinates, got 2"),
    ("OFF\n3 0 0\n0 0 0\n1 nan 0\n0 1 0\n", 4, "a coordinate must be finite, got 'nan'"),
    ("OFF\n3 0 0\n0 0 0\n1 0 0\n0 1_0 0\n", 5, "must be a number, got '1_0'"),
    ("OFF\n3 1 0\n" + THREE + "3 0 1\n", 6, "needs as many vertices, got 2"),
    ("OFF\n3 1 0\n" + THREE + "3 0 1 x\n", 6, "must be a whole number, got 'x'"),
    ("OFF\n3 1 0\n" + THREE + "three 0 1 2\n", 6, "whole number, got 'three'"),
    ("OFF\n3 1 0\n" + THREE + "2 0 1\n", 6, "face 0 has 2 corners, but needs at least 3"),
    ("OFF\n3 1 0\n" + THREE + "3 0 1 3\n", 6, "vertex 3, but there are vertices 0 .. 2"),
    ("OFF\n3 1 0\n" + THREE + "3 0 -1 2\n", 6, "face 0 contains vertex -1"),
    ("OFF\n3 1 0\n" + THREE + f"3 0 1 {10**30}\n", 6, "face 0 contains vertex"),
    ("OFF\n3 2 0\n" + THREE + "3 0 1 2\n3 0 1 0\n", 7, "face 1 contains vertex 0 twice"),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD_OFF, ids=[row[-1] for row in BAD_OFF])
def test_invalid_off_files_raise(write, text, line, message):
    refuses(write(text, "m.off"), line, message)


def test_negative_obj_indices_count_from_the_last_vertex(write):
    text = "v 0 0 0\nv 1 0 0 1.0\nv 0 1 0\nf -3 -2/7 -1\nv 5 5 5\nf 1 2 -1\nf \\\n4 3 \\\n2\n"
    points, faces = sc.read_mesh(write(text, "m.obj"))
    assert points[3].tolist() == [5, 5, 5]
    assert faces.tolist() == [[0, 1, 2], [0, 1, 3], [3, 2, 1]]


BAD_OBJ = [
    ("", None, "no line is v x y z"),
    ("v 0 0\n", 1, "a vertex needs 3 coordinates, got 2"),
    ("v 0 0 inf\n", 1, "a coordinate must be finite, got 'inf'"),
    ("v 0 0 0\nf 1 0 1\n", 2, "vertices are numbered from 1, got 0"),
    ("v 0 0 0\n\nf 1 a/2 1\n", 3, "must be a whole number, got 'a'"),
    ("v 0 0 0\nv 1 0 0\nf 1 2 3\n", 3, "vertex 3, but there are vertices 1 .. 2"),
    ("v 0 0 0\nf -1 -2 1\n", 2, "face 0 contains vertex 0"),
    ("v 0 0 0\nv 1 0 0\nf 1 2\n", 3, "face 0 has 2 corners"),
    ("v 0 0 0\nv 1 0 0\nf 1 2 1\n", 3, "face 0 contains vertex 1 twice"),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD_OBJ, ids=[row[-1] for row in BAD_OBJ])
def test_invalid_obj_files_raise(write, text, line, message):
    refuses(write(text, "m.obj"), line, message)
