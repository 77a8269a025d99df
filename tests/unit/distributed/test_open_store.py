"""Stored sheaves: attributes, valid and invalid, parts, and the Laplacian, part by part."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.distributed._open_store import amount
from tests.support.helpers import assert_residual
from tests.unit.distributed.cases import FOURS, edit, grid_sheaf, ragged_sheaf

SHEAF_ATTRIBUTES = [
    ({"format": "another"}, "whose writing did not end"),
    ({"format": None}, "whose writing did not end"),
    # of another version, whatever its checksum is
    ({"version": 3, "check": 0}, "of version 3, but this library reads versions 1 to 2"),
    ({"version": 0}, "of version 0"),
    ({"kind": "hierarchy"}, "`levels` is missing"),
    ({"kind": "tree"}, "`kind` in zarr.json must be one of partition, sheaf, .*, got 'tree'"),
    ({"kind": "hierarchy", "levels": [], "stopped_because": ""}, "holds a hierarchy, not a sheaf"),
]


@pytest.mark.parametrize(("changes", "message"), SHEAF_ATTRIBUTES, ids=str)
def test_attributes_of_another_store_raise(changes, message, memory):
    dist.to_store(memory("src"), grid_sheaf(4))
    edit(memory("src"), **{"check": None, **changes})
    with pytest.raises(dist.StoreError, match=message):
        dist.open_store(memory("src")).load()


ATTRIBUTES = [
    ("parts", None, "`parts` is missing"),
    ("parts", [0], r"`parts` in zarr.json must be a list of different folder names, got \[0\]"),
    ("parts", ["../other/parts/000000"], "`parts` in zarr.json must be a list of different folder"),
    ("parts", ["000000", "000000"], "`parts` in zarr.json must be a list of different folder"),
    ("dtype", "int8", "`dtype` in zarr.json must be one of <f4, .*, got 'int8'"),
    ("dtype", [], "`dtype` in zarr.json must be one of <f4"),
    ("n_edges", True, "`n_edges` in zarr.json must be an integer"),
    ("n_edges", 2**63, "`n_edges` in zarr.json must be an integer"),
    ("largest_entry", float("inf"), "`largest_entry` in zarr.json must be a finite number"),
    ("largest_entry", "1", "`largest_entry` in zarr.json must be a finite number"),
    ("local_operator", "outer", "`local_operator` in zarr.json must be one of None, internal"),
    ("oversampled", {"ring": 1}, "`oversampled` in zarr.json must be null or an object with"),
    ("oversampled", [], "`oversampled` in zarr.json must be null or an object with"),
    ("run", 3, "`run` in zarr.json must be a string or null"),
    ("report", [], "`report` in zarr.json must be an object"),
    ("version", "1", "`version` in zarr.json must be an integer of at least 0, got '1'"),
    ("id", None, "`id` is missing"),
    ("n_vertices", -1, "`n_vertices` in zarr.json must be an integer"),
    ("permuted", 0, "`permuted` in zarr.json must be true or false, got 0"),
    ("source", {"url": "x"}, "`source` in zarr.json must be an object with the strings `url` and"),
]


@pytest.mark.parametrize(("name", "value", "message"), ATTRIBUTES)
def test_missing_or_invalid_attributes_raise_and_are_named(name, value, message, url):
    dist.to_store(url("src"), sc.coarsen(grid_sheaf(4), sc.Partition(FOURS), 2))
    edit(url("src"), **{name: value})
    for opened in (dist.open_store, dist.open_coarsening):
        with pytest.raises(dist.StoreError, match=f"src: the attribute {message}.*: restore"):
            opened(url("src"))


@pytest.mark.parametrize(
    ("place", "opened"), [("src", dist.open_store), ("out", dist.open_coarsening)]
)
def test_damage_of_zarr_json_is_detected(place, opened, url):
    """The checksum covers names and values of the attributes; unknown attributes may be added."""
    src = dist.to_store(url("src"), grid_sheaf(4))
    dist.coarsen(src, url("out"), FOURS, 2)
    meta = Path(url(place), "zarr.json")
    whole = meta.read_bytes()

    def flipped(byte, bit=1):
        return whole[:byte] + bytes([whole[byte] ^ bit]) + whole[byte + 1 :]

    brace = flipped(whole.index(b"{"), 4)
    for damaged in (whole[: len(whole) // 2], b"", brace, b"[]", b"\xff\xfe{}"):
        meta.write_bytes(damaged)
        with pytest.raises(dist.StoreError, match=f"{place}: zarr.json is damaged .*restore"):
            opened(url(place))
    if place == "out":
        with pytest.raises(dist.StoreError, match="out: zarr.json is damaged"):
            dist.coarsen(src, url("out"), FOURS, 2)
    name = whole.index(b'"check"')  # damaging this name would disable the check
    for byte in {*range(0, len(whole), 7)} - {*range(name, name + 8)}:
        meta.write_bytes(flipped(byte))
        try:
            opened(url(place))
        except dist.StoreError:
            continue
        # the last digit of a number may round to the same double
        assert json.loads(flipped(byte)) == json.loads(whole)
    meta.write_bytes(whole)
    edit(url(place), author="somebody")
    assert opened(url(place)) is not None


def test_parts_hold_consecutive_edges_and_are_indexed_like_sequences(memory):
    F = ragged_sheaf()
    src = dist.to_store(memory("src"), F, part_bytes=500)
    for found, name in zip(src.topology(), ("edges", "vertex_dims", "edge_dims"), strict=True):
        assert np.array_equal(found, getattr(F, name))
    count = len(src.parts)
    numbers = np.concatenate([src.edges_of(p) for p in range(count)])
    assert np.array_equal(numbers, np.arange(F.n_edges))
    tails, heads = (np.concatenate(maps) for maps in zip(*map(src.maps, range(count)), strict=True))
    assert np.array_equal(tails, F.tail_data)
    assert np.array_equal(heads, F.head_data)
    assert np.array_equal(src.maps(-1)[1], src.maps(count - 1)[1])
    assert np.array_equal(src.edges_of(-1), src.edges_of(count - 1))
    for bad in (True, 1.0, "0"):
        with pytest.raises(TypeError, match="`p` must be an integer, the index of a part"):
            src.maps(bad)
    with pytest.raises(IndexError, match=f"part {count} is out of range for {count} parts"):
        src.maps(count)


def test_stores_can_be_pickled(memory):
    src = dist.to_store(memory("src"), ragged_sheaf())
    src.maps(0)
    assert pickle.loads(pickle.dumps(src)).load().n_edges == src.n_edges


def test_amounts_of_bytes_have_units():
    assert [amount(x) for x in (12, 1234, 5.678e6, 999.9e6, 3.2e9, 4e12, 5e15)] == [
        "12 bytes", "1.23 kB", "5.68 MB", "1 GB", "3.2 GB", "4 TB", "5000 TB",
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_the_operator_is_the_laplacian_of_the_full_sheaf(dtype, memory):
    F = ragged_sheaf(dtype)
    A = dist.laplacian_operator(dist.to_store(memory("src"), F, part_bytes=2000))
    L = sc.laplacian(F).toarray()
    X = np.random.default_rng(0).standard_normal((F.dim_c0, 3)).astype(dtype)
    assert A.dtype == dtype
    for B, Y in ((A, X), (A, X[:, 0]), (A.adjoint(), X), (A, 1j * X)):
        assert_residual(B @ Y - L @ Y, L, Y, n=F.dim_c0)
    for kind in (np.longdouble, np.clongdouble, object):
        for B in (A, sc.laplacian_operator(F)):
            with pytest.raises(TypeError, match="`x` must hold numbers in .*, got dtype"):
                B @ np.ones(F.dim_c0, kind)


def test_invalid_arguments_and_missing_stores_raise(url):
    for bad in (5, grid_sheaf(4)):
        with pytest.raises(TypeError, match=r"`store` must be a SheafStore, got .*open_store\(url"):
            dist.laplacian_operator(bad)
    with pytest.raises(TypeError, match="disks, which takes no option `bogus`"):
        dist.open_store(url("src"), bogus=3)
    with pytest.raises(dist.StoreError, match="there is no store"):
        dist.open_store(url("nothing"))
