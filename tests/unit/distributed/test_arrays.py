"""Arrays of a store, valid, damaged or incomplete, and blobs."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sheafcoarsen.distributed.location import StoreError, crc32c, optional, place_of
from sheafcoarsen.distributed.schema import Root, read_array, write_array
from tests.unit.distributed.cases import swap


@pytest.fixture
def root(url):
    return Root(place_of(url("group")), "this store")


@pytest.fixture
def meta(url):
    return Path(url("group"), "x", "zarr.json")


@pytest.mark.parametrize(
    "values",
    [
        np.arange(70, dtype=np.int32),
        np.arange(140).reshape(70, 2),
        np.array([0, 1, 1], np.int8),
        np.arange(70) * (1 - 2j),
        np.array([1 + 2j], np.complex64),
        np.arange(5, dtype=np.float32),
        np.array([np.inf, 1.0]),
        np.zeros(0),
        np.zeros((0, 2), np.int8),
    ],
)
def test_arrays_are_read_again_and_by_zarr_python(values, root, meta, monkeypatch):
    """Arrays follow the Zarr format, so that zarr-python can read them."""
    import zarr

    monkeypatch.setattr("sheafcoarsen.distributed.schema.CHUNK", 20)
    write_array(root, "x", values)
    array = zarr.open_array(meta.parent)
    for found in (read_array(root, "x", values.dtype, values.shape), array[...]):
        assert found.dtype == values.dtype
        assert np.array_equal(found, values)
    if values.size:
        next(path for path in Path(meta.parent, "c").rglob("0") if path.is_file()).unlink()
        found = zarr.open_array(meta.parent)[...]
        lost = found == -1 if values.dtype.kind == "i" else np.isnan(found)
        assert lost.any()
        assert np.array_equal(found[~lost], values[~lost])
        array[...] = 2 * values  # zarr-python does not update the checksum
        with pytest.raises(StoreError, match="the array x is not the one that was written here"):
            read_array(root, "x", values.dtype, (None,) * values.ndim)


@pytest.mark.parametrize("values", [np.zeros(70), np.arange(140).reshape(70, 2), np.zeros(70, int)])
@pytest.mark.parametrize("chunk", [20, 70])
def test_missing_or_damaged_chunks_are_named(values, chunk, root, meta, monkeypatch):
    """Integers are compressed in chunks of some rows; other arrays are one chunk."""
    monkeypatch.setattr("sheafcoarsen.distributed.schema.CHUNK", chunk)
    write_array(root, "x", values)
    chunks = sorted(path for path in Path(meta.parent, "c").rglob("*") if path.is_file())
    assert len(chunks) == (1 if values.dtype == float else -(-70 // chunk))
    for path in chunks:
        name = path.relative_to(meta.parents[1]).as_posix()
        held = path.read_bytes()
        flipped = held[:-6] + bytes([held[-6] ^ 1]) + held[-5:]
        for damaged in (flipped, held[: len(held) // 2], held[:4], held[:3], b""):
            path.write_bytes(damaged)
            with pytest.raises(StoreError, match=f"{name} is damaged"):
                read_array(root, "x", values.dtype, values.shape)
        path.unlink()
        with pytest.raises(StoreError, match=f"the chunk {name} is missing"):
            read_array(root, "x", values.dtype, values.shape, "part 3")
        path.write_bytes(held)
    assert np.array_equal(read_array(root, "x", values.dtype, values.shape), values)


@pytest.mark.parametrize(
    ("packed", "held", "instead", "message"),
    [
        (False, '"crc32c"', '"gzip"', "chunks are not those of this library"),
        (False, '"chunk_shape": [7]', '"chunk_shape": [3]', "chunks are not those of this library"),
        (False, '"shape": [7]', '"shape": [6]', "chunks are not those of this library"),
        (False, '"float64"', '"bits"', "cannot be read"),
        (False, '"shape"', '"form"', "cannot be read"),
        (False, "{", "", "cannot be read"),
        (False, '"float64"', '"float32"', "must hold float64 of shape"),
        (True, '"shape": [7]', f'"shape": [{2**47}]', "x cannot be read: Unable to allocate"),
        (True, '"shape": [7]', f'"shape": [{2**48}]', "its shape is"),
        (True, '"shape": [7]', '"shape": [-1]', "its shape is"),
    ],
)
def test_other_chunk_layouts_and_false_sizes_raise(packed, held, instead, message, root, meta):
    values = np.arange(7) if packed else np.arange(7.0)
    write_array(root, "x", values)
    text = meta.read_text()
    assert held in text
    meta.write_text(text.replace(held, instead, 1))
    for older in (root, replace(root, version=1)):
        with pytest.raises(StoreError, match=message):
            read_array(older, "x", values.dtype)


SWAPPED = [
    ("ints", "ints/c/0", "ints/c/1"),
    ("ints", "ints/c/0", "twice/c/0"),
    ("ints", "ints/c", "twice/c"),
    ("ints", "ints", "twice"),
    ("floats", "floats/c/0", "squares/c/0"),
    ("floats", "floats", "squares"),
]


@pytest.mark.parametrize(("name", "one", "other"), SWAPPED)
def test_swapped_chunks_and_arrays_raise(name, one, other, root, meta, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.distributed.schema.CHUNK", 20)
    ints, floats, folder = np.arange(60), np.arange(60.0), meta.parents[1]
    arrays = {"ints": ints, "twice": 2 * ints, "floats": floats, "squares": floats**2}
    for key, values in arrays.items():
        write_array(root, key, values)
    swap(folder / one, folder / other)
    with pytest.raises(StoreError, match=f"the array {name} is not the one that was written here"):
        read_array(root, name, float if name == "floats" else None)


def test_missing_arrays_and_those_of_another_shape_or_store_raise(root, meta):
    write_array(root, "x", np.arange(6))
    with pytest.raises(StoreError, match="the array y is missing"):
        read_array(root, "y", None, (None,))
    with pytest.raises(StoreError, match="the array x must hold integers of shape"):
        read_array(root, "x", None, (None, 2))
    another = replace(root, id="another")
    assert np.array_equal(read_array(replace(another, version=1), "x"), np.arange(6))
    with pytest.raises(StoreError, match="x is not the one that was written here"):
        read_array(another, "x")
    meta.write_text(meta.read_text().replace('"check"', '"chick"'))
    with pytest.raises(StoreError, match="x is not the one that was written here"):
        read_array(root, "x")


def test_false_sizes_in_chunks_take_no_memory(root, meta):
    root = replace(root, version=1)
    write_array(root, "x", np.arange(6))

    def write_chunk(size):
        packed = optional("numcodecs.zstd").compress(np.zeros(size, np.uint8), 1)
        Path(meta.parent, "c/0").write_bytes(packed + crc32c(packed).to_bytes(4, "little"))

    write_chunk(10**8)
    tracemalloc.start()
    with pytest.raises(StoreError, match="x/c/0 is damaged: destination buffer too small"):
        read_array(root, "x")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()
    write_chunk(8)
    assert np.array_equal(read_array(root, "x"), [0, -1, -1, -1, -1, -1])


def test_blobs_are_read_again_unless_damaged_or_renamed(memory):
    arrays = {
        "names": np.array(["a", "longer"]),
        "rows": np.arange(6).reshape(3, 2),
        "none": np.zeros(0, np.int64),
        "one": np.array(True),
        "numbers": np.array([1.5, np.inf]),
        "every other": np.arange(10)[::2],
    }
    here, there = place_of(memory("a/here")), place_of(memory("b/there"))
    here.put_record(**arrays, text="\u00e9\n", list=[1, 2])
    found = here.record()
    assert (found.pop("text"), found.pop("list")) == ("\u00e9\n", [1, 2])
    assert set(found) == set(arrays)
    for name, values in arrays.items():
        assert found[name].dtype == values.dtype
        assert np.array_equal(found[name], values)
    blob = here.find()
    flipped = blob[:40] + bytes([blob[40] ^ 4]) + blob[41:]
    for damaged in (blob[:-1], blob[:5], b"", flipped, b"[]", b'{"crc": 1}'):
        here.put(damaged)
        with pytest.raises(StoreError, match="here is damaged"):
            here.record()
        assert here.find_record() is None
    assert there.find_record() is None
    there.put(blob)
    with pytest.raises(StoreError, match="there is damaged"):
        there.record()
