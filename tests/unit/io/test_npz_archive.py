"""Files that are damaged, foreign or malicious: each raises one clear error."""

import contextlib
import copy
import io
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support.strategies import examples
from tests.unit.io.test_save_load import KINDS, loads_or_is_refused, rewrite, saved

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([{"a": 1}], dtype=object), "holds object, not numbers or text"),
        (np.zeros(2, [("a", int)]), "not numbers or text"),
        (np.array([b"text"]), "holds .S4, not numbers or text"),
        (np.array(["2020-01-01"], "M8[D]"), "holds datetime64"),
    ],
)
def test_arrays_of_unsupported_dtypes_raise(file, array, message):
    rewrite(file, fine__edges=array)
    with pytest.raises(ValueError, match=message):
        sc.load(file)


def test_arrays_may_be_in_fortran_order(file):
    edges = sc.load(file).fine.edges
    rewrite(file, fine__edges=np.asfortranarray)
    np.testing.assert_array_equal(sc.load(file).fine.edges, edges)


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("something in a file was executed",))


@pytest.mark.parametrize("name", ["format", "fine.edges", "unknown"])
def test_loading_executes_no_code(file, name):
    with np.load(file) as archive:
        arrays = {**archive}
    arrays[name] = np.array([Harmful()], dtype=object)
    np.savez(file, **arrays)
    with pytest.raises(ValueError, match="holds object, not numbers or text"):
        sc.load(file)


def npy(header, data=b""):
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            npy(HUGE % 10**13),
            r"'fine.edges.npy' is not as long as its shape \(10000000000000,\) requires",
        ),
        (npy(HUGE % 10**30), "is not as long as its shape"),
        (npy(HUGE % 2, bytes(8)), "is not as long as its shape"),
        (npy(HUGE % 2, bytes(24)), "is not as long as its shape"),
        (npy(HUGE % -2, bytes(16)), "is not as long as its shape"),
        (npy(HUGE % "-2, -1", bytes(16)), "is not as long as its shape"),
        (npy(HUGE % "0, 1000000000000, 3"), "`edge_dims` must have one entry per edge, 0"),
        (
            npy("{'descr': '<U100000000', 'fortran_order': False, 'shape': (), }"),
            "is not as long as its shape",
        ),
        (
            npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }"),
            "truncated or damaged",
        ),
        (
            npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", b"\1\2"),
            "neither true nor false",
        ),
        (npy("{'descr': '<f8', " + "(" * 500), "truncated or damaged"),
        (npy("__import__('os').abort()"), "truncated or damaged"),
        (
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }", bytes(8)),
            "truncated or damaged|edges",
        ),
        (b"\x93NUMPY\x09\x00", "is not of .npy version 1.0"),
        (b"", "truncated or damaged"),
    ],
)
def test_headers_with_wrong_sizes_raise(file, content, message):
    replace_member(file, "fine.edges.npy", content)
    with pytest.raises(ValueError, match=message), little_memory():
        sc.load(file)


def replace_member(path, name, content):
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for other, old in members.items():
            archive.writestr(other, content if other == name else old)


@contextlib.contextmanager
def little_memory(limit=2**26):
    """Check that at most ``limit`` bytes are allocated at any time, by Python and numpy."""
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < limit


def test_compressed_files_raise(file):
    with np.load(file) as archive:
        arrays = {**archive}
    arrays["fine.edges"] = np.zeros((2**22, 2), np.int64)  # 64 MiB in a small file
    np.savez_compressed(file, **arrays)
    assert file.stat().st_size < 2**18
    with (
        pytest.raises(
            ValueError,
            match=r"'format.npy' is compressed: write it with numpy\.savez, not savez_compressed",
        ),
        little_memory(),
    ):
        sc.load(file)


def test_archive_members_that_share_bytes_raise(file):
    """The directory of a zip file may refer to the same bytes many times."""
    with zipfile.ZipFile(file, "a") as archive:
        big = archive.infolist()[3]
        for k in range(200):
            other = copy.copy(big)
            other.filename = f"copy{k}.npy"
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
        archive._didModify = True
    with pytest.raises(ValueError, match="its arrays are larger than the file"):
        sc.load(file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a sheafcoarsen file"),
        (b"PK", "not a sheafcoarsen file"),
        (b"0 1\n1 2\n", "not a sheafcoarsen file, .*; read_graph and read_g2o read graphs"),
        (b"PK\x03\x04 and then rubbish", "truncated or damaged"),
        (b"PK\x05\x06" + bytes(18), "not a sheafcoarsen file"),
    ],
)
def test_files_of_other_formats_raise(tmp_path, content, message):
    path = tmp_path / "f.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"f\.npz: {message}"):
        sc.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", content)
    with pytest.raises(ValueError, match="not a sheafcoarsen file"):
        sc.load(path)


@pytest.mark.parametrize("inside", [False, True], ids=["file", "member"])
@given(KINDS, st.data())
@examples(60)
def test_corrupted_bytes_load_or_raise_one_value_error(tmp_path_factory, inside, kind, data):
    """Bytes of the file, or of a member and its checksum, so that headers and numbers change."""
    path = tmp_path_factory.getbasetemp() / "fuzzed.npz"
    content = bytearray(saved(kind)[1])
    name = ""
    if inside:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            name = data.draw(st.sampled_from(archive.namelist()))
            content = bytearray(archive.read(name))
    for _ in range(data.draw(st.integers(1, 4))):
        at, end = (data.draw(st.integers(0, len(content))) for _ in range(2))
        byte = st.integers(0, 255) | st.sampled_from(b"0123456789<>fiUO")
        new = data.draw(byte.map(lambda b: bytes([b])) | st.binary(max_size=9))
        start = data.draw(st.just(at) | st.integers(0, len(content)))
        change = data.draw(st.sampled_from(["replace", "insert", "copy", "truncate"]))
        if change == "replace":
            content[at : at + 1] = new
        elif change == "insert":
            content[at:at] = new
        elif change == "copy":
            content[at : at + 30] = content[start : start + 30]
        else:
            del content[at : max(end, at)]
    if inside:
        path.write_bytes(saved(kind)[1])
        replace_member(path, name, bytes(content))
    else:
        path.write_bytes(content)
    loads_or_is_refused(path)
