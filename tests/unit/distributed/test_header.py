"""Attributes of a store, valid and invalid."""

import json
from pathlib import Path

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from tests.unit.distributed.cases import grid_sheaf


def test_invalid_stores_raise_store_error(url):
    with pytest.raises(dist.StoreError, match="there is no store"):
        dist.open_store(url("nothing"))
    dist.to_store(url("src"), grid_sheaf(4))
    meta = Path(url("src"), "zarr.json")
    whole = json.loads(meta.read_text())
    del whole["attributes"]["check"]  # without the checksum, edited attributes are accepted
    for change, message in (
        ({"format": "another"}, "whose writing did not end"),
        ({"version": 3}, "of version 3, but this library reads versions 1 to 2"),
        ({"version": 0}, "of version 0"),
        ({"kind": "hierarchy"}, "`levels` is missing"),
        ({"kind": "tree"}, "`kind` in zarr.json must be one of partition, sheaf, .*, got 'tree'"),
        (
            {"kind": "hierarchy", "levels": [], "stopped_because": ""},
            "holds a hierarchy, not a sheaf",
        ),
    ):
        attributes = {**whole["attributes"], **change}
        meta.write_text(json.dumps({**whole, "attributes": attributes}))
        with pytest.raises(dist.StoreError, match=message):
            dist.open_store(url("src"))
    meta.write_text(json.dumps({**whole, "attributes": {}}))
    with pytest.raises(dist.StoreError, match="whose writing did not end"):
        dist.open_store(url("src"))


def test_a_damaged_zarr_json_raises_and_is_named(url):
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
    ("parts", [0], r"`parts` in zarr.json must be a list of different folder names, got \[0\]"),
    ("parts", ["../other/parts/000000"], "`parts` in zarr.json must be a list of different folder"),
    ("parts", ["000000", "000000"], "`parts` in zarr.json must be a list of different folder"),
    ("dtype", "int8", "`dtype` in zarr.json must be one of <f4, .*, got 'int8'"),
    ("dtype", ",f8", "`dtype` in zarr.json must be one of <f4"),
    ("dtype", [], "`dtype` in zarr.json must be one of <f4"),
    ("n_edges", True, "`n_edges` in zarr.json must be an integer"),
    ("n_edges", 2**63, "`n_edges` in zarr.json must be an integer"),
    ("largest_entry", float("inf"), "`largest_entry` in zarr.json must be a finite number"),
    ("largest_entry", "1", "`largest_entry` in zarr.json must be a finite number"),
    ("vertex_labels", "yes", "`vertex_labels` in zarr.json must be true or false"),
    ("local_operator", "outer", "`local_operator` in zarr.json must be one of None, internal"),
    ("oversampled", {"ring": 1}, "`oversampled` in zarr.json must be null or an object with"),
    ("oversampled", [], "`oversampled` in zarr.json must be null or an object with"),
    ("run", 3, "`run` in zarr.json must be a string or null"),
    ("report", [], "`report` in zarr.json must be an object"),
    ("basis", ["."], "`basis` in zarr.json must be a list of different folder names"),
    ("version", "1", "`version` in zarr.json must be an integer of at least 0, got '1'"),
    ("id", None, "`id` is missing"),
    ("n_vertices", -1, "`n_vertices` in zarr.json must be an integer"),
    ("permuted", 0, "`permuted` in zarr.json must be true or false, got 0"),
    ("source", {"url": "x"}, "`source` in zarr.json must be an object with the strings `url` and"),
]


@pytest.mark.parametrize(("name", "value", "message"), ATTRIBUTES)
def test_missing_or_invalid_attributes_raise_and_are_named(name, value, message, url):
    dist.to_store(url("src"), sc.coarsen(grid_sheaf(4), sc.Partition(np.arange(16) // 4), 2))
    meta = Path(url("src"), "zarr.json")
    whole = json.loads(meta.read_text())
    whole["attributes"].pop(name, None)
    if value is not None:
        whole["attributes"][name] = value
    meta.write_text(json.dumps(whole))
    for opened in (dist.open_store, dist.open_coarsening):
        with pytest.raises(dist.StoreError, match=f"src: the attribute {message}.*: restore"):
            opened(url("src"))


def test_flipped_bits_in_attributes_are_detected(url):
    """The checksum covers names and values of the attributes; unknown attributes may be added."""
    F = grid_sheaf(4)
    src = dist.to_store(url("src"), F)
    dist.coarsen(src, url("out"), np.arange(16) // 4, 2)
    for place, opened in (("src", dist.open_store), ("out", dist.open_coarsening)):
        meta = Path(url(place), "zarr.json")
        whole = meta.read_bytes()
        name = whole.index(b'"check"')  # damaging this name would disable the check
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
