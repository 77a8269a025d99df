"""Writing sheaves, partitions and coarsenings from memory, and sheaves from pieces, to stores."""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.io import SETTINGS
from tests.support.helpers import ties_allowed
from tests.support.recorded import own_basis
from tests.unit.distributed.cases import differences, grid_sheaf, power_cut, ragged_sheaf

COARSENINGS = {
    "internal": lambda F, P: sc.coarsen(F, P, 3),
    "compressed": lambda F, P: sc.coarsen(F, P, 3, compress=True),
    "kernel": lambda F, P: sc.coarsen(F, P, sc.ranks.kernel()),
    "principal": lambda F, P: sc.coarsen(F, P, 3, local_operator="principal", loops=False),
    "oversampled": lambda F, P: sc.coarsen(F, P, sc.ranks.budget(1), local_operator="oversampled"),
    "own basis": lambda F, P: sc.coarsen(F, P, basis=own_basis(F, P)),
    "restored loops": lambda F, P: with_restored_loops(),
}


def with_restored_loops():
    """Return a coarsening with names of its own and with loops that new maps require."""
    F = sc.CellularSheaf.constant([[u, v] for u in range(6) for v in range(u)])
    C = sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 1)
    C = C.recoarsen(F.with_maps(F.tail_data, 2 * F.head_data))
    assert C.restored_loops.tolist() == [0, 1]
    return dataclasses.replace(C, sheaf=C.sheaf.with_labels(["a", ("b", 2.5)]))


@pytest.mark.parametrize("kind", COARSENINGS)
def test_coarsening_round_trip(kind, url):
    F = ragged_sheaf(np.complex64 if kind == "internal" else np.float64)
    P = sc.select(F, 6)
    with ties_allowed():
        C = COARSENINGS[kind](F, P)
    D = dist.to_store(url("C"), C, part_bytes=3000)
    Path(url("C")).rename(url("moved"))
    D = dist.open_coarsening(url("moved"))
    loaded = D.load()
    if C.modes is not None:
        assert differences(C, loaded) == []
        for name in SETTINGS:
            assert getattr(loaded.modes, name) == getattr(C.modes, name)
        assert (C.modes.over_budget > 0) == (kind == "oversampled")
    else:
        assert loaded.modes is None
        assert np.array_equal(C.prolongation.data, loaded.prolongation.data)
    assert np.array_equal(C.restored_loops, loaded.restored_loops)
    z = np.ones(C.sheaf.dim_c0, C.sheaf.dtype)
    assert np.array_equal(D.lift(z), C.lift(z))
    V = D.verify()
    assert V.passed, str(V)
    skipped = V["section-2"].skipped_because
    assert (skipped is not None) == (kind == "own basis")
    assert repr(D).split(": ")[1].startswith("own basis" if C.modes is None else "")
    assert dist.open_store(url("moved")).load().equals(C.sheaf)


def test_stored_partitions_round_trip_and_are_accepted(url):
    F = grid_sheaf(6)
    P = sc.select(F, 4)
    stored = dist.to_store(url("P"), P)
    assert (stored.n_vertices, stored.n_clusters) == (36, 4)
    found = dist.open_store(url("P"))
    assert isinstance(found, dist.PartitionStore)
    assert np.array_equal(found.load().labels, P.labels)
    src = dist.to_store(url("src"), F)
    C = dist.coarsen(src, url("out"), found, 2)
    assert differences(sc.coarsen(F, P, 2, compress=True), C.load()) == []
    assert dist.estimate(src, found, 2) == dist.estimate(src, P, 2)
    with pytest.raises(TypeError, match="`src` must be a SheafStore, got PartitionStore"):
        dist.coarsen(found, url("other"), P, 2)
    with pytest.raises(dist.StoreError, match="holds a partition, not a coarsening"):
        dist.open_coarsening(url("P"))


@pytest.mark.parametrize("kind", ["url", "memory"])
def test_interrupted_writing_leaves_no_valid_store(kind, request):
    """The attributes of every kind of store are written last."""
    place, F = request.getfixturevalue(kind), grid_sheaf(6)
    C = sc.coarsen(F, sc.select(F, 4), 2)
    for name, what in (("F", F), ("P", C.partition), ("C", C)):
        with power_cut("to_store"):
            dist.to_store(place(name), what)
        with pytest.raises(FileExistsError, match="whose writing did not end: remove it"):
            dist.to_store(place(name), what)
        with pytest.raises(dist.StoreError, match="whose writing did not end: .* else remove it"):
            dist.open_store(place(name))


def test_every_attribute_and_array_is_documented(url):
    F = grid_sheaf(6)
    dist.to_store(url("C"), sc.coarsen(F, sc.select(F, 4), 2))
    attributes = json.loads(Path(url("C"), "zarr.json").read_text())["attributes"]
    guide = (Path(__file__).parents[3] / "docs/guides/distributed.md").read_text()
    for name in attributes:
        assert f"`{name}`" in guide, name
    for path in Path(url("C")).rglob("zarr.json"):
        if json.loads(path.read_text())["node_type"] == "array":
            assert f"{path.parent.name}`" in guide, path
            assert (path.parents[1] / "zarr.json").exists()  # arrays are in groups


def test_unsupported_objects_and_invalid_arguments_raise(memory):
    with pytest.raises(TypeError, match="must be a CellularSheaf, a Partition or a Coarsening"):
        dist.to_store(memory("src"), [[0, 1]])
    F = sc.CellularSheaf.constant([[0, 1]]).with_labels([frozenset(), 1])
    with pytest.raises(TypeError, match="cannot be saved"):
        dist.to_store(memory("src"), F)
    with pytest.raises(ValueError, match="`part_bytes` must be at least 1"):
        dist.to_store(memory("src"), ragged_sheaf(), part_bytes=float("nan"))
    with pytest.raises(ValueError, match="`part_bytes` must be at least 1"):
        dist.write_store(memory("src"), [1], [], part_bytes=0)
    with pytest.raises(TypeError, match="`pieces` must be an iterable of .*, got int"):
        dist.write_store(memory("src"), [1], 5)
    with pytest.raises(ValueError, match="`vertex_dims` must not be negative"):
        dist.write_store(memory("src"), [1, -1], [])


@pytest.mark.parametrize(("dtype", "low"), [(np.float64, 1e-151), (np.float32, 1e-16)])
def test_coarse_sheaves_may_have_smaller_maps_than_a_user_may_pass(dtype, low, memory):
    """Sections of a path are constant: the coarse maps are those of the light edge over sqrt(2)."""
    maps = np.array([20 * low, low, 20 * low], dtype).reshape(-1, 1, 1)
    F = sc.CellularSheaf([[0, 1], [1, 2], [2, 3]], maps, maps)
    C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), sc.ranks.kernel())
    with pytest.raises(ValueError, match="the largest entry of .* is .*, outside"):
        sc.CellularSheaf([[0, 1]], maps[1:2], maps[1:2])
    assert C.sheaf.equals(dist.to_store(memory("C"), C).load().sheaf)
    assert C.sheaf.equals(dist.to_store(memory("sheaf"), C.sheaf).load())


def pieces_of(F, cuts):
    for lo, hi in itertools.pairwise(cuts):
        tail = F.tail_data[F.tail_offsets[lo] : F.tail_offsets[hi]]
        head = F.head_data[F.head_offsets[lo] : F.head_offsets[hi]]
        yield F.edges[lo:hi], F.edge_dims[lo:hi], tail, head


@pytest.mark.parametrize(
    ("cuts", "part_bytes", "dtype"),
    [
        ([0, 90], 500, np.float64),
        ([0, 1, 30, 30, 90], 1000, np.complex64),
        ([0, 1, 2, 3, 40, 90], 32e6, np.float32),
        ([0, 90], np.inf, np.complex128),
    ],
)
def test_pieces_are_written_as_one_sheaf(cuts, part_bytes, dtype, memory):
    F = ragged_sheaf(dtype)
    src = dist.write_store(memory("src"), F.vertex_dims, pieces_of(F, cuts), part_bytes)
    assert (len(src.parts) == 1) == (part_bytes == np.inf)
    assert dist.open_store(memory("src")).load().equals(F)
    assert (src.dim_c0, src.dim_c1, src.dtype) == (F.dim_c0, F.dim_c1, F.dtype)
    assert src.n_bytes == F.tail_data.nbytes + F.head_data.nbytes
    assert src.largest_entry == F.largest_entry


def test_parts_are_about_as_large_as_requested(memory):
    F = ragged_sheaf()
    src = dist.to_store(memory("src"), F, part_bytes=1000)
    sizes = [sum(maps.nbytes for maps in src.maps(p)) for p in range(len(src.parts))]
    largest = 8 * int((F.edge_dims * F.vertex_dims[F.edges].sum(axis=1)).max())
    assert max(sizes) <= 1000 + largest
    assert min(sizes) > 1000 / 2 - largest
    equal = sc.CellularSheaf.constant([[k, k + 1] for k in range(12)])  # 16 bytes per edge
    src = dist.to_store(memory("equal"), equal, part_bytes=32)
    assert src.part_ptr.tolist() == [0, 2, 4, 6, 8, 10, 12]


def test_sheaves_without_edges_or_vertices_can_be_written(memory):
    src = dist.write_store(memory("vertices"), [2, 1], [])
    assert src.load().dim_c0 == 3
    assert dist.write_store(memory("nothing"), np.zeros(0, int), []).load().n_vertices == 0


def test_existing_stores_are_not_overwritten(url, memory):
    F = sc.CellularSheaf.constant([[0, 1]])
    for place in (url, memory):
        dist.to_store(place("src"), F)
        with pytest.raises(FileExistsError, match="exists: remove it"):
            dist.to_store(place("src"), F)
        C = dist.to_store(place("C"), sc.coarsen(F, sc.Partition([0, 0]), 1))
        with pytest.raises(FileExistsError, match="the result of another call"):
            dist.coarsen(C.fine, place("C"), C.partition, 1)
    with open(url("file"), "w") as file:
        file.write("mine")
    with pytest.raises(FileExistsError, match="exists"):
        dist.write_store(url("file"), [1], [])


ONE = [1.0]
GOOD = ([[0, 1]], 1, ONE, ONE)
BAD = [
    (3, TypeError, r"`pieces\[1\]` must be \(edges, edge_dims, tail_data, head_data\)"),
    (GOOD[:3], TypeError, r"`pieces\[1\]` must be"),
    (([[0, 5]], 1, ONE, ONE), ValueError, r"1\]`: `edges\[0\]` = \(0, 5\) is out of range for 3"),
    (([0, 1], 1, ONE, ONE), ValueError, "2-dimensional"),
    (([[0, 1, 2]], 1, ONE, ONE), ValueError, r"shape \(m, 2\)"),
    (([[0, 1]], 2, [1.0], [1.0, 1.0]), ValueError, r"1\]`: `tail_data` must have shape \(2,\)"),
    (([[0, 1]], 1, [1.0], [1.0, 1.0]), ValueError, r"1\]`: `head_data` must have shape \(1,\)"),
    (([[0, 1]], -1, [1.0], [1.0]), ValueError, "at least 0"),
    (([[0, 1]], 1, [1.0], [np.nan]), ValueError, r"1\]`: `head_maps\[0\]` \(edge 0 -> 1\) must be"),
    (([[0, 1]], 1, [1.0], [1j]), TypeError, "holds complex128, but earlier pieces hold float64"),
    (([[0, 1]], 1, [1.0], ["x"]), TypeError, "must hold float32"),
    (([[0, 1]], 1, [1e300], [1.0]), ValueError, "the maps of all pieces"),
]


@pytest.mark.parametrize(("piece", "error", "message"), BAD)
def test_invalid_pieces_raise_and_are_named(piece, error, message, memory):
    with pytest.raises(error, match=message):
        dist.write_store(memory("src"), [1, 1, 1], [GOOD, piece])
    with pytest.raises(dist.StoreError):
        dist.open_store(memory("src"))
