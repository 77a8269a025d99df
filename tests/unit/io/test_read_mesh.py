"""The same surface in every format, and damaged files."""

import gzip
import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support.strategies import examples

POINTS = [[0, 0, 0.5], [1, 0, 0], [1, 1, -2e-3], [0, 1, 0], [2, 0.5, 1]]
QUAD, TRIANGLE = [0, 1, 2, 3], [1, 4, 2]


def off(faces):
    rows = [" ".join(map(str, p)) for p in POINTS]
    rows += [" ".join(map(str, [len(f), *f])) for f in faces]
    return "OFF\n" + f"{len(POINTS)} {len(faces)} 0\n" + "\n".join(rows) + "\n"


def obj(faces):
    rows = ["# a comment", "o thing", *(f"v {p[0]} {p[1]} {p[2]}" for p in POINTS), "vn 0 0 1"]
    rows += ["f " + " ".join(f"{v + 1}//1" for v in f) for f in faces]
    return "\n".join(rows) + "\n"


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
def test_every_mesh_format_gives_the_same_surface(tmp_path, name, faces, expected):
    content = FORMATS[name](faces)
    content = content if isinstance(content, bytes) else content.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
    points, found = sc.read_mesh(path)
    assert points.dtype == np.float64
    assert found.dtype == np.int64
    np.testing.assert_array_equal(points, POINTS)
    np.testing.assert_array_equal(found, expected)


def test_unknown_file_extension_raises(tmp_path):
    with pytest.raises(ValueError, match=re.escape("read_mesh reads .off, .obj, .ply, each also")):
        sc.read_mesh(tmp_path / "mesh.stl")
    with pytest.raises(FileNotFoundError):
        sc.read_mesh(tmp_path / "mesh.obj")


@pytest.mark.parametrize("name", [name for name in FORMATS if "mixed" not in name])
@given(data=st.data())
@examples(15)
def test_damaged_files_load_or_raise(tmp_path_factory, name, data):
    """A truncated file or one with a changed byte raises an error with the path, or loads."""
    content = FORMATS[name]([TRIANGLE, QUAD])
    content = bytearray(content if isinstance(content, bytes) else content.encode())
    if data.draw(st.booleans(), label="cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        at = data.draw(st.integers(0, len(content) - 1), label="at")
        content[at] = data.draw(st.integers(0, 255), label="byte")
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
    try:
        points, faces = sc.read_mesh(path)
    except ValueError as error:
        assert str(error).startswith(str(path))
        assert "\n" not in str(error)
    else:
        assert np.isfinite(points).all()
        assert points.shape[1] == 3
        assert faces.min(initial=0) >= 0
        assert faces.max(initial=-1) < len(points)


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("name", ["mesh.off", "ascii.ply", "little.ply", "little-colors.ply"])
def test_truncated_files_raise(write, name, cut):
    content = FORMATS[name]([TRIANGLE, [0, 1, 2]])
    content = content if isinstance(content, bytes) else content.encode()
    # text without the last line; any number of bytes of a binary file
    kept = content[: int(cut * (len(content) - 2))]
    kept = kept if name.startswith("little") else kept[: kept.rfind(b"\n") + 1]
    with pytest.raises(ValueError, match="the file ends|must follow|begins with|has no format"):
        sc.read_mesh(write(kept, name))


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
