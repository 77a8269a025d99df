"""Writing sheaves, partitions and coarsenings from memory to stores."""

import json
from pathlib import Path

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.io import SETTINGS
from tests.support.helpers import ties_allowed
from tests.unit.distributed.cases import differences, grid_sheaf, ragged_sheaf


def own_basis(F, P):
    rng = np.random.default_rng(0)
    dims = np.bincount(P.labels, F.vertex_dims, P.n_clusters).astype(int)
    return sc.coarsen(F, P, basis=[rng.standard_normal((n, min(n, 2))) for n in dims])


COARSENINGS = {
    "internal": lambda F, P: sc.coarsen(F, P, 3),
    "compressed": lambda F, P: sc.coarsen(F, P, 3, compress=True),
    "kernel": lambda F, P: sc.coarsen(F, P, sc.ranks.kernel()),
    "principal": lambda F, P: sc.coarsen(F, P, 3, local_operator="principal", loops=False),
    "oversampled": lambda F, P: sc.coarsen(F, P, sc.ranks.budget(1), local_operator="oversampled"),
    "own basis": own_basis,
    "again": lambda F, P: sc.coarsen(F, P, 3).recoarsen(
        F.with_maps(2 * F.tail_data, 3 * F.head_data)
    ),
}


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


def test_restored_loops_are_stored(memory):
    F = sc.CellularSheaf.constant([[u, v] for u in range(6) for v in range(u)])
    C = sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 1)
    C = C.recoarsen(F.with_maps(F.tail_data, 2 * F.head_data))
    assert dist.to_store(memory("C"), C).load().restored_loops.tolist() == [0, 1]


def test_a_coarsening_written_by_to_store_is_not_overwritten(url):
    F = grid_sheaf(6)
    P = sc.select(F, 4)
    dist.to_store(url("C"), sc.coarsen(F, P, 2))
    with pytest.raises(FileExistsError, match="the result of another call"):
        dist.coarsen(dist.open_store(url("C/fine")), url("C"), P, 2)


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
    (chunk,) = Path(url("P"), "labels/c").iterdir()
    chunk.unlink()
    with pytest.raises(dist.StoreError, match="the chunk labels/c/0 is missing"):
        found.load()


def test_interrupted_writing_leaves_no_valid_store(url, monkeypatch):
    """The attributes of every kind of store are written last."""
    F = grid_sheaf(6)
    C = sc.coarsen(F, sc.select(F, 4), 2)

    def stopped(*_, **__):
        raise RuntimeError("power cut")

    monkeypatch.setattr("sheafcoarsen.distributed._write_store.mark", stopped)
    monkeypatch.setattr("sheafcoarsen.distributed._to_store.mark", stopped)
    for name, what in (("F", F), ("P", C.partition), ("C", C)):
        with pytest.raises(RuntimeError, match="power cut"):
            dist.to_store(url(name), what)
        with pytest.raises(dist.StoreError, match="there is no store|did not end"):
            dist.open_store(url(name))


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


def test_unsupported_objects_and_labels_raise(memory):
    with pytest.raises(TypeError, match="must be a CellularSheaf, a Partition or a Coarsening"):
        dist.to_store(memory("src"), [[0, 1]])
    F = sc.CellularSheaf.constant([[0, 1]]).with_labels([frozenset(), 1])
    with pytest.raises(TypeError, match="cannot be saved"):
        dist.to_store(memory("src"), F)
    with pytest.raises(ValueError, match="`part_bytes` must be at least 1"):
        dist.to_store(memory("src"), ragged_sheaf(), part_bytes=float("nan"))
