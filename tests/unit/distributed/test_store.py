"""What is read from a store, and what is refused."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.distributed.store import amount
from tests.unit.distributed.cases import grid_sheaf, ragged_sheaf


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_a_sheaf_comes_back(dtype, memory):
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
    assert np.array_equal(src.maps(-1)[1], src.maps(len(src.parts) - 1)[1])


@pytest.mark.parametrize("bad", [True, 1.0, "0"])
def test_parts_are_named_by_integers(bad, memory):
    src = dist.to_store(memory("src"), grid_sheaf(4))
    with pytest.raises(TypeError, match="a part is named by an integer"):
        src.maps(bad)
    with pytest.raises(IndexError, match="part 1 is out of range for 1 parts"):
        src.maps(1)


def test_names_come_back(memory):
    names = ["a", 3, ("b", 2.5), ""]
    F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]]).with_labels(names)
    assert dist.to_store(memory("src"), F).load().vertex_labels == tuple(names)
    assert dist.to_store(memory("plain"), F.with_labels(None)).load().vertex_labels is None


def test_it_travels(memory):
    src = dist.to_store(memory("src"), ragged_sheaf())
    src.maps(0)
    assert pickle.loads(pickle.dumps(src)).load().n_edges == src.n_edges


def test_what_is_no_store(url):
    with pytest.raises(dist.StoreError, match="there is no store"):
        dist.open_store(url("nothing"))
    dist.to_store(url("src"), grid_sheaf(4))
    meta = Path(url("src"), "zarr.json")
    whole = json.loads(meta.read_text())
    del whole["attributes"]["check"]  # as of one who edits by hand
    for change, message in (
        ({"format": "another"}, "whose writing did not end"),
        ({"version": 2}, "of version 2, this library reads version 1"),
        ({"kind": "hierarchy"}, "holds a hierarchy, not a sheaf"),
    ):
        attributes = {**whole["attributes"], **change}
        meta.write_text(json.dumps({**whole, "attributes": attributes}))
        with pytest.raises(dist.StoreError, match=message):
            dist.open_store(url("src"))
    meta.write_text(json.dumps({**whole, "attributes": {}}))
    with pytest.raises(dist.StoreError, match="whose writing did not end"):
        dist.open_store(url("src"))


def test_a_damaged_zarr_json_is_named(url):
    src = dist.to_store(url("src"), grid_sheaf(4))
    P = np.arange(16) // 4
    dist.coarsen(src, url("out"), P, 2)
    for place, opened in (("src", dist.open_store), ("out", dist.open_coarsening)):
        meta = Path(url(place), "zarr.json")
        whole = meta.read_bytes()
        brace = whole.index(b"{")
        flipped = bytes([whole[brace] ^ 4]) + whole[brace + 1 :]
        for damaged in (whole[: len(whole) // 2], b"", flipped, b"[]", b"\xff\xfe{}"):
            meta.write_bytes(damaged)
            with pytest.raises(dist.StoreError, match=f"{place}: zarr.json is damaged .*restore"):
                opened(url(place))
        if place == "out":
            with pytest.raises(dist.StoreError, match="out: zarr.json is damaged"):
                dist.coarsen(src, url("out"), P, 2)
        meta.write_bytes(whole)
    assert dist.open_coarsening(url("out")).sheaf.n_vertices == 4


ATTRIBUTES = [
    ("parts", None, "`parts` is missing"),
    ("parts", [0], r"`parts` in zarr.json must be a list of strings, got \[0\]"),
    ("dtype", "int8", "`dtype` in zarr.json must be one of float32, .*, got 'int8'"),
    ("dtype", ",f8", "`dtype` in zarr.json must be one of float32"),
    ("dtype", "nonsense", "`dtype` in zarr.json must be one of float32"),
    ("version", "1", "`version` in zarr.json must be an integer of at least 0, got '1'"),
    ("id", None, "`id` is missing"),
    ("n_vertices", -1, "`n_vertices` in zarr.json must be an integer"),
    ("permuted", 0, "`permuted` in zarr.json must be true or false, got 0"),
    ("source", {"url": "x"}, "`source` in zarr.json must be an object with `url` and `id`"),
]


@pytest.mark.parametrize(("name", "value", "message"), ATTRIBUTES)
def test_an_attribute_that_is_lost_or_wrong_is_named(name, value, message, url):
    dist.to_store(url("src"), sc.coarsen(grid_sheaf(4), sc.Partition(np.arange(16) // 4), 2))
    meta = Path(url("src"), "zarr.json")
    whole = json.loads(meta.read_text())
    whole["attributes"].pop(name)
    if value is not None:
        whole["attributes"][name] = value
    meta.write_text(json.dumps(whole))
    for opened in (dist.open_store, dist.open_coarsening):
        with pytest.raises(dist.StoreError, match=f"src: the attribute {message}.*: restore"):
            opened(url("src"))


def test_no_single_bit_of_the_attributes_can_be_lost(url):
    """What is read of them is checked, names and numbers too; others may add their own."""
    F = grid_sheaf(4)
    src = dist.to_store(url("src"), F)
    dist.coarsen(src, url("out"), np.arange(16) // 4, 2)
    for place, opened in (("src", dist.open_store), ("out", dist.open_coarsening)):
        meta = Path(url(place), "zarr.json")
        whole = meta.read_bytes()
        name = whole.index(b'"check"')  # without that name nothing is checked, nor damaged
        for byte in {*range(0, len(whole), 7)} - {*range(name, name + 8)}:
            damaged = whole[:byte] + bytes([whole[byte] ^ 1]) + whole[byte + 1 :]
            meta.write_bytes(damaged)
            try:
                opened(url(place))
            except dist.StoreError:
                continue
            # the last digit of a number may round to the same double
            assert json.loads(damaged) == json.loads(whole)
        more = json.loads(whole)
        more["attributes"]["author"] = "somebody"
        meta.write_text(json.dumps(more))
        assert opened(url(place)) is not None


def test_sizes_that_arrays_do_not_have(url):
    dist.to_store(url("src"), grid_sheaf(4))
    meta = Path(url("src"), "zarr.json")
    whole = json.loads(meta.read_text())
    del whole["attributes"]["check"]  # as of one who edits by hand
    whole = json.dumps(whole)
    for name, sizes in (("n_vertices", "18, 24, 32, 72"), ("dim_c1", "16, 24, 32, 74")):
        value = {"n_vertices": 16, "dim_c1": 72}[name]
        meta.write_text(whole.replace(f'"{name}": {value}', f'"{name}": {value + 2}'))
        with pytest.raises(dist.StoreError, match=rf"are \({sizes}\) in zarr.json"):
            dist.open_store(url("src")).load()


def test_options_that_a_disk_does_not_take(url):
    dist.to_store(url("src"), grid_sheaf(4))
    with pytest.raises(TypeError, match="disks, which takes no option `bogus`"):
        dist.open_store(url("src"), bogus=3)


def test_a_part_of_another_store_is_refused(url):
    dist.to_store(url("src"), grid_sheaf(4), part_bytes=500)
    other = dist.to_store(url("other"), grid_sheaf(6), part_bytes=2000)
    Path(url("src"), "parts", "000000").rename(Path(url("away")))
    Path(other.url, "parts", "000000").rename(Path(url("src"), "parts", "000000"))
    with pytest.raises(dist.StoreError, match="part 0 holds"):
        dist.open_store(url("src")).load()


def test_every_chunk_that_is_lost_or_damaged_is_named(url):
    src = dist.to_store(url("src"), grid_sheaf(4), part_bytes=1000)
    chunks = [path for path in Path(src.url).rglob("*") if "c" in path.parts and path.is_file()]
    assert len(chunks) > 8
    for path in chunks:
        name = path.relative_to(src.url).as_posix()
        held = path.read_bytes()
        path.write_bytes(bytes([held[0] ^ 16]) + held[1:])
        with pytest.raises(dist.StoreError, match=f"{name} is damaged"):
            dist.open_store(src.url).load()
        path.unlink()
        with pytest.raises(dist.StoreError, match=f"{name} is missing"):
            dist.open_store(src.url).load()
        path.write_bytes(held)
    assert dist.open_store(src.url).load().n_edges == src.n_edges


def test_amounts_are_read_easily():
    assert [amount(x) for x in (12, 1234, 5.678e6, 999.9e6, 3.2e9, 4e12)] == [
        "12 bytes", "1.23 kB", "5.68 MB", "1000 MB", "3.2 GB", "4 TB",
    ]  # fmt: skip
