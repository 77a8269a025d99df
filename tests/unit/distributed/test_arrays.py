"""Arrays of a store, valid, damaged or incomplete, and blobs."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sheafcoarsen.distributed.location import StoreError, crc32c, optional, place_of
from sheafcoarsen.distributed.schema import Root, get_arrays, put_arrays, read_array, write_array


def root_of(url):
    return Root(place_of(url), "this store")


@pytest.mark.parametrize(
    "values",
    [
        np.arange(7),
        np.zeros(5),
        np.zeros((3, 2), np.int32),
        np.array([1 + 2j], np.complex64),
        np.array([np.inf, 0.0]),
        np.zeros(0),
        np.zeros((0, 2), np.int64),
        np.array([0, 1, 1], np.int8),
    ],
)
def test_array_round_trip(values, memory):
    root = root_of(memory("group"))
    write_array(root, "x", values, packed=values.dtype.kind == "i")
    found = read_array(root, "x", values.dtype, values.shape)
    assert found.dtype == values.dtype
    assert np.array_equal(found, values)


@pytest.mark.parametrize("values", [np.zeros(70), np.arange(140).reshape(70, 2), np.zeros(70, int)])
@pytest.mark.parametrize(("chunk", "packed"), [(20, True), (70, True), (70, False)])
def test_missing_or_damaged_chunks_are_named(values, chunk, packed, url, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.distributed.schema.CHUNK", chunk)
    root = root_of(url("group"))
    place = root.place
    write_array(root, "x", values, packed=packed)
    shape = (70,) if values.ndim == 1 else (70, 2)
    chunks = sorted(path for path in Path(place.url, "x", "c").rglob("*") if path.is_file())
    assert len(chunks) == -(-70 // chunk)
    for path in chunks:
        name = path.relative_to(place.url).as_posix()
        held = path.read_bytes()
        flipped = held[:-6] + bytes([held[-6] ^ 1]) + held[-5:]
        for damaged in (flipped, held[: len(held) // 2], held[:4], held[:3], b""):
            path.write_bytes(damaged)
            with pytest.raises(StoreError, match=f"{name} is damaged"):
                read_array(root, "x", values.dtype, shape)
        path.unlink()
        with pytest.raises(StoreError, match=f"the chunk {name} is missing"):
            read_array(root, "x", values.dtype, shape, "part 3")
        path.write_bytes(held)
    assert np.array_equal(read_array(root, "x", values.dtype, shape), values)


@pytest.mark.parametrize(
    ("values", "packed"),
    [
        (np.arange(70, dtype=np.int32), True),
        (np.arange(140).reshape(70, 2), True),
        (np.arange(70) * (1 - 2j), False),
        (np.arange(5, dtype=np.float32), False),
        (np.zeros((0, 2), np.int8), True),
    ],
)
def test_zarr_python_reads_the_arrays(values, packed, url, monkeypatch):
    """Arrays follow the Zarr format, so that zarr-python can read them."""
    import zarr

    monkeypatch.setattr("sheafcoarsen.distributed.schema.CHUNK", 20)
    root = root_of(url("group"))
    place = root.place
    write_array(root, "x", values, packed=packed)
    array = zarr.open_array(f"{place.url}/x")
    assert array.dtype == values.dtype
    assert np.array_equal(array[...], values)
    if values.size:
        next(path for path in Path(place.url, "x", "c").rglob("0") if path.is_file()).unlink()
        found = zarr.open_array(f"{place.url}/x")[...]
        lost = found == -1 if values.dtype.kind == "i" else np.isnan(found)
        assert lost.any()
        assert np.array_equal(found[~lost], values[~lost])
        array[...] = 2 * values  # zarr-python does not update the checksum
        with pytest.raises(StoreError, match="the array x is not the one that was written here"):
            read_array(root, "x", values.dtype, (None,) * values.ndim)


@pytest.mark.parametrize(
    ("held", "instead", "message"),
    [
        ('"crc32c"', '"gzip"', "chunks are not those of this library"),
        ('"chunk_shape": [7]', '"chunk_shape": [3]', "chunks are not those of this library"),
        ('"shape": [7]', '"shape": [6]', "chunks are not those of this library"),
        ('"float64"', '"bits"', "cannot be read"),
        ('"shape"', '"form"', "cannot be read"),
        ("{", "", "cannot be read"),
        ('"float64"', '"float32"', "must hold float64 of shape"),
    ],
)
def test_other_chunk_layouts_raise(held, instead, message, url):
    root = root_of(url("group"))
    write_array(root, "x", np.arange(7.0), packed=False)
    meta = Path(url("group"), "x/zarr.json")
    text = meta.read_text()
    assert held in text
    meta.write_text(text.replace(held, instead, 1))
    for older in (root, replace(root, version=1)):
        with pytest.raises(StoreError, match=message):
            read_array(older, "x", float)


def test_missing_arrays_raise(memory):
    with pytest.raises(StoreError, match="the array y is missing"):
        read_array(root_of(memory("group")), "y")


def test_arrays_moved_from_another_name_or_store_raise(url):
    """The same bytes under another name, or with another dtype or shape, are rejected."""
    root = root_of(url("group"))
    for name in "xy":
        write_array(root, name, np.arange(6))
    with pytest.raises(StoreError, match="x is not the one that was written here"):
        read_array(replace(root, id="another"), "x")
    Path(url("group"), "x").rename(url("held"))
    Path(url("group"), "y").rename(url("group") + "/x")
    with pytest.raises(StoreError, match="x is not the one that was written here"):
        read_array(root, "x")
    assert np.array_equal(read_array(replace(root, version=1), "x"), np.arange(6))
    Path(url("group"), "x").rename(url("group") + "/y")
    meta = Path(url("group"), "y", "zarr.json")
    text = meta.read_text()
    for old, new in (('"int64"', '"int32"'), ("[6]", "[3]"), ('"check"', '"chick"')):
        meta.write_text(text.replace(old, new))
        with pytest.raises(StoreError, match="array y|y/c/0"):
            read_array(root, "y")
    meta.write_text(text)
    assert np.array_equal(read_array(root, "y"), np.arange(6))


@pytest.mark.parametrize(
    ("dtype", "shape"), [(None, (7,)), (float, (None,)), (None, (None, 2)), (None, ())]
)
def test_arrays_of_another_dtype_or_shape_raise(dtype, shape, memory):
    root = root_of(memory("group"))
    write_array(root, "x", np.arange(6))
    with pytest.raises(StoreError, match="the array x must hold .* of shape"):
        read_array(root, "x", dtype, shape)


def test_false_sizes_in_chunks_and_headers_take_no_memory(url):
    root = replace(root_of(url("group")), version=1)
    write_array(root, "x", np.arange(6))
    packed = optional("numcodecs.zstd").compress(np.zeros(10**8, np.uint8), 1)
    Path(url("group"), "x/c/0").write_bytes(packed + crc32c(packed).to_bytes(4, "little"))
    tracemalloc.start()
    with pytest.raises(StoreError, match="x/c/0 is damaged: destination buffer too small"):
        read_array(root, "x")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()
    short = optional("numcodecs.zstd").compress(np.zeros(8, np.uint8), 1)
    Path(url("group"), "x/c/0").write_bytes(short + crc32c(short).to_bytes(4, "little"))
    assert np.array_equal(read_array(root, "x"), [0, -1, -1, -1, -1, -1])
    meta = Path(url("group"), "x", "zarr.json")
    text = meta.read_text()
    for size, message in (
        (2**47, "entries by its zarr.json"),
        (2**48, "its shape is"),
        (-1, "its"),
    ):
        meta.write_text(text.replace('"shape": [6]', f'"shape": [{size}]'))
        with pytest.raises(StoreError, match=message):
            read_array(root, "x")


BLOB = {
    "names": np.array(["a", "longer"]),
    "rows": np.arange(6).reshape(3, 2),
    "none": np.zeros(0, np.int64),
    "one": np.array(True),
    "numbers": np.array([1.5, np.inf]),
    "every other": np.arange(10)[::2],
}


def test_blob_round_trip(memory):
    place = place_of(memory("blob"))
    put_arrays(place, BLOB)
    found = get_arrays(place)
    assert set(found) == set(BLOB)
    for name, values in BLOB.items():
        assert found[name].dtype == values.dtype
        assert np.array_equal(found[name], values)


def test_truncated_and_altered_and_renamed_blobs_raise(memory):
    here, there = place_of(memory("a/here")), place_of(memory("b/there"))
    put_arrays(here, BLOB)
    blob = here.get()
    for damaged in (blob[:-1], blob[:5], b"", blob[:40] + bytes([blob[40] ^ 4]) + blob[41:]):
        here.put(damaged)
        with pytest.raises(StoreError, match="here is damaged"):
            get_arrays(here)
    there.put(blob)
    with pytest.raises(StoreError, match="there is damaged"):
        get_arrays(there)
