"""Reading a stored sheaf, valid or damaged."""

import json
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.distributed._open_store import amount
from sheafcoarsen.distributed.schema import read_array
from tests.unit.distributed.cases import grid_sheaf, ragged_sheaf


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_sheaf_round_trip(dtype, memory):
    F = ragged_sheaf(dtype)
    src = dist.to_store(memory("src"), F, part_bytes=500)
    assert len(src.parts) > 3
    G = dist.open_store(memory("src")).load()
    for name in ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data"):
        assert np.array_equal(getattr(F, name), getattr(G, name))
        assert getattr(F, name).dtype == getattr(G, name).dtype
    assert (src.dim_c0, src.dim_c1, src.dtype) == (F.dim_c0, F.dim_c1, F.dtype)
    assert src.n_bytes == F.tail_data.nbytes + F.head_data.nbytes
    assert src.largest_entry == F.largest_entry


def test_parts_hold_consecutive_edges(memory):
    F = ragged_sheaf()
    src = dist.to_store(memory("src"), F, part_bytes=500)
    edges, vertex_dims, edge_dims = src.topology()
    assert np.array_equal(edges, F.edges)
    assert np.array_equal(vertex_dims, F.vertex_dims)
    assert np.array_equal(edge_dims, F.edge_dims)
    numbers = np.concatenate([src.edges_of(p) for p in range(len(src.parts))])
    assert np.array_equal(numbers, np.arange(F.n_edges))
    tails = np.concatenate([src.maps(p)[0] for p in range(len(src.parts))])
    assert np.array_equal(tails, F.tail_data)
    last = len(src.parts) - 1
    assert np.array_equal(src.maps(-1)[1], src.maps(last)[1])
    assert np.array_equal(src.edges_of(-1), src.edges_of(last))


@pytest.mark.parametrize("bad", [True, 1.0, "0"])
def test_invalid_part_indices_raise(bad, memory):
    src = dist.to_store(memory("src"), grid_sheaf(4))
    with pytest.raises(TypeError, match="the index of a part must be an integer"):
        src.maps(bad)
    with pytest.raises(IndexError, match="part 1 is out of range for 1 parts"):
        src.maps(1)


def test_vertex_labels_round_trip(memory):
    names = ["a", 3, ("b", 2.5), ""]
    F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]]).with_labels(names)
    assert dist.to_store(memory("src"), F).load().vertex_labels == tuple(names)
    assert dist.to_store(memory("plain"), F.with_labels(None)).load().vertex_labels is None


def test_stores_can_be_pickled(memory):
    src = dist.to_store(memory("src"), ragged_sheaf())
    src.maps(0)
    assert pickle.loads(pickle.dumps(src)).load().n_edges == src.n_edges


def test_sizes_inconsistent_with_the_arrays_raise(url):
    dist.to_store(url("src"), grid_sheaf(4))
    meta = Path(url("src"), "zarr.json")
    whole = json.loads(meta.read_text())
    del whole["attributes"]["check"]  # without the checksum, edited attributes are accepted
    whole = json.dumps(whole)
    for name, value, message in (
        ("n_vertices", 16, r"the array vertex_dims must hold integers of shape \(18\)|edges holds"),
        ("n_edges", 24, r"the array edges must hold integers of shape \(26, 2\)"),
        ("dim_c0", 32, "`dim_c0` is 34 in zarr.json, but 32"),
        ("dim_c1", 72, r"`dim_c1` and `n_bytes` are \(74, 2304\) in zarr.json, but \(72, 2304\)"),
        ("n_bytes", 2304, r"`dim_c1` and `n_bytes` are \(72, 2306\) in zarr.json"),
    ):
        meta.write_text(whole.replace(f'"{name}": {value}', f'"{name}": {value + 2}'))
        with pytest.raises(dist.StoreError, match=message):
            dist.open_store(url("src")).load()


def test_storage_options_for_a_local_path_raise(url):
    dist.to_store(url("src"), grid_sheaf(4))
    with pytest.raises(TypeError, match="disks, which takes no option `bogus`"):
        dist.open_store(url("src"), bogus=3)


def test_parts_moved_from_another_store_raise(url):
    dist.to_store(url("src"), grid_sheaf(4), part_bytes=500)
    other = dist.to_store(url("other"), grid_sheaf(6), part_bytes=2000)
    Path(url("src"), "parts", "000000").rename(Path(url("away")))
    Path(other.url, "parts", "000000").rename(Path(url("src"), "parts", "000000"))
    with pytest.raises(dist.StoreError, match="parts/000000/tail is not the one that was written"):
        dist.open_store(url("src")).load()
    older = dist.open_store(url("src"))
    older.array = partial(read_array, replace(older.root, version=1))
    with pytest.raises(dist.StoreError, match="120 entries of tail maps, but its dim"):
        older.load()


def test_amounts_of_bytes_have_units():
    assert [amount(x) for x in (12, 1234, 5.678e6, 999.9e6, 3.2e9, 4e12)] == [
        "12 bytes", "1.23 kB", "5.68 MB", "1000 MB", "3.2 GB", "4 TB",
    ]  # fmt: skip
