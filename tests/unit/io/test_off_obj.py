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

BAD_OFF = {
    "empty": ("", None, "begins with OFF, COFF or NOFF, got 'nothing'"),
    "header": ("PLY\n", 1, "begins with OFF, COFF or NOFF, got 'PLY'"),
    "four": ("4OFF\n", 1, "begins with OFF"),
    "binary": ("OFF BINARY\n", 1, "binary OFF is not supported"),
    "no-counts": ("OFF\n", 1, "must be a whole number"),
    "one-count": ("OFF\n3\n", 2, "numbers of vertices, faces and edges must follow"),
    "word-count": ("OFF\n3 x 0\n", 2, "must be a whole number, got 'x'"),
    "negative": ("OFF\n3 -1 0\n", 2, "must follow"),
    "few-vertices": ("OFF\n4 1 0\n" + THREE, None, "the file ends after 3 of 4 vertices"),
    "few-faces": ("OFF\n3 2 0\n" + THREE + "3 0 1 2\n", None, "ends after 1 of 2 faces"),
    "more": ("OFF\n3 1 0\n" + THREE + "3 0 1 2\n3 0 2 1\n", 7, "but more lines follow"),
    "flat": ("OFF\n3 1 0\n0 0\n", 3, "a vertex needs 3 coordinates, got 2"),
    "nan": ("OFF\n3 0 0\n0 0 0\n1 nan 0\n0 1 0\n", 4, "a coordinate must be finite, got 'nan'"),
    "word": ("OFF\n3 0 0\n0 0 0\n1 0 0\n0 1_0 0\n", 5, "must be a number, got '1_0'"),
    "short-face": ("OFF\n3 1 0\n" + THREE + "3 0 1\n", 6, "needs as many vertices, got 2"),
    "word-face": ("OFF\n3 1 0\n" + THREE + "3 0 1 x\n", 6, "must be a whole number, got 'x'"),
    "size-word": ("OFF\n3 1 0\n" + THREE + "three 0 1 2\n", 6, "whole number, got 'three'"),
    "edge": ("OFF\n3 1 0\n" + THREE + "2 0 1\n", 6, "face 0 has 2 corners, but needs at least 3"),
    "range": ("OFF\n3 1 0\n" + THREE + "3 0 1 3\n", 6, "vertex 3, but there are vertices 0 .. 2"),
    "below": ("OFF\n3 1 0\n" + THREE + "3 0 -1 2\n", 6, "face 0 contains vertex -1"),
    "huge": ("OFF\n3 1 0\n" + THREE + f"3 0 1 {10**30}\n", 6, "face 0 contains vertex"),
    "twice": ("OFF\n3 2 0\n" + THREE + "3 0 1 2\n3 0 1 0\n", 7, "face 1 contains vertex 0 twice"),
}


@pytest.mark.parametrize(("text", "line", "message"), BAD_OFF.values(), ids=BAD_OFF)
def test_invalid_off_files_raise(write, text, line, message):
    refuses(write(text, "m.off"), line, message)


def test_negative_obj_indices_count_from_the_last_vertex(write):
    text = "v 0 0 0\nv 1 0 0 1.0\nv 0 1 0\nf -3 -2/7 -1\nv 5 5 5\nf 1 2 -1\nf \\\n4 3 \\\n2\n"
    points, faces = sc.read_mesh(write(text, "m.obj"))
    assert points[3].tolist() == [5, 5, 5]
    assert faces.tolist() == [[0, 1, 2], [0, 1, 3], [3, 2, 1]]


BAD_OBJ = {
    "empty": ("", None, "no line is v x y z"),
    "flat": ("v 0 0\n", 1, "a vertex needs 3 coordinates, got 2"),
    "infinite": ("v 0 0 inf\n", 1, "a coordinate must be finite, got 'inf'"),
    "zero": ("v 0 0 0\nf 1 0 1\n", 2, "vertices are numbered from 1, got 0"),
    "word": ("v 0 0 0\n\nf 1 a/2 1\n", 3, "must be a whole number, got 'a'"),
    "range": ("v 0 0 0\nv 1 0 0\nf 1 2 3\n", 3, "vertex 3, but there are vertices 1 .. 2"),
    "below": ("v 0 0 0\nf -1 -2 1\n", 2, "face 0 contains vertex 0"),
    "short": ("v 0 0 0\nv 1 0 0\nf 1 2\n", 3, "face 0 has 2 corners"),
    "twice": ("v 0 0 0\nv 1 0 0\nf 1 2 1\n", 3, "face 0 contains vertex 1 twice"),
}


@pytest.mark.parametrize(("text", "line", "message"), BAD_OBJ.values(), ids=BAD_OBJ)
def test_invalid_obj_files_raise(write, text, line, message):
    refuses(write(text, "m.obj"), line, message)
