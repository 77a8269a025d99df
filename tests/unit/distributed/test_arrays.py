"""Arrays whose chunks may be lost."""

from pathlib import Path

import numpy as np
import pytest

from sheafcoarsen.distributed.arrays import read_array, write_array
from sheafcoarsen.distributed.place import StoreError, place_of


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
def test_arrays_come_back(values, memory):
    place = place_of(memory("group"))
    write_array(place, "x", values, packed=values.dtype.kind == "i")
    found = read_array(place, "x")
    assert found.dtype == values.dtype
    assert np.array_equal(found, values)


@pytest.mark.parametrize("values", [np.zeros(70), np.arange(140).reshape(70, 2), np.zeros(70, int)])
@pytest.mark.parametrize(("chunk", "packed"), [(20, True), (70, True), (70, False)])
def test_a_chunk_that_is_lost_or_damaged_is_named(values, chunk, packed, url, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.distributed.arrays.CHUNK", chunk)
    place = place_of(url("group"))
    write_array(place, "x", values, packed=packed)
    chunks = sorted(path for path in Path(place.url, "x", "c").rglob("*") if path.is_file())
    assert len(chunks) == -(-70 // chunk)
    for path in chunks:
        name = path.relative_to(place.url).as_posix()
        held = path.read_bytes()
        path.write_bytes(held[:-6] + bytes([held[-6] ^ 1]) + held[-5:])
        with pytest.raises(StoreError, match=f"{name} is damaged"):
            read_array(place, "x")
        path.unlink()
        with pytest.raises(StoreError, match=f"the chunk {name} is missing"):
            read_array(place, "x", "part 3")
        path.write_bytes(held)
    assert np.array_equal(read_array(place, "x"), values)


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
def test_others_read_them(values, packed, url, monkeypatch):
    """They are arrays as Zarr has them: zarr-python reads and writes them."""
    import zarr

    monkeypatch.setattr("sheafcoarsen.distributed.arrays.CHUNK", 20)
    place = place_of(url("group"))
    write_array(place, "x", values, packed=packed)
    array = zarr.open_array(f"{place.url}/x")
    assert array.dtype == values.dtype
    assert np.array_equal(array[...], values)
    array[...] = 2 * values
    assert np.array_equal(read_array(place, "x"), 2 * values)
    if values.size:
        next(path for path in Path(place.url, "x", "c").rglob("0") if path.is_file()).unlink()
        found = zarr.open_array(f"{place.url}/x")[...]
        lost = found == -1 if values.dtype.kind == "i" else np.isnan(found)
        assert lost.any()
        assert np.array_equal(found[~lost], 2 * values[~lost])


@pytest.mark.parametrize(
    ("held", "instead", "message"),
    [
        ('"crc32c"', '"gzip"', "chunks are not those of this library"),
        ('"chunk_shape": [7]', '"chunk_shape": [3]', "chunks are not those of this library"),
        ('"shape": [7]', '"shape": [6]', "chunks are not those of this library"),
        ('"float64"', '"bits"', "cannot be read"),
        ('"shape"', '"form"', "cannot be read"),
        ("{", "", "cannot be read"),
        ('"float64"', '"float32"', "c/0 is damaged: cannot reshape"),
    ],
)
def test_another_layout_is_refused(held, instead, message, url):
    place = place_of(url("group"))
    write_array(place, "x", np.arange(7.0), packed=False)
    meta = Path(place.url, "x/zarr.json")
    text = meta.read_text()
    assert held in text
    meta.write_text(text.replace(held, instead, 1))
    with pytest.raises(StoreError, match=message):
        read_array(place, "x")


def test_a_chunk_that_was_cut_off(url):
    place = place_of(url("group"))
    write_array(place, "x", np.arange(7.0), packed=False)
    chunk = Path(place.url, "x/c/0")
    for length in (0, 3, 4, 20):
        chunk.write_bytes(chunk.read_bytes()[:length])
        with pytest.raises(StoreError, match="c/0 is damaged"):
            read_array(place, "x")


def test_an_array_that_is_lost(memory):
    place = place_of(memory("group"))
    with pytest.raises(StoreError, match="the array y is missing"):
        read_array(place, "y")
