"""Stores that are damaged, mixed up, forged or of an earlier version."""

import json
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from tests.support.helpers import ties_allowed
from tests.unit.distributed.cases import FOURS, differences, edit, grid_sheaf, ragged_sheaf, rewrite

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def stored(url):
    """Return a coarsening of three shards and its source, on the disk."""
    F = ragged_sheaf(n=60, m=150)
    P = sc.select(F, 10)
    src = dist.to_store(url("src"), F, part_bytes=1000)
    with ties_allowed():
        return dist.coarsen(src, url("out"), P, 3, n_shards=3, compress=False)


def put(index, value):
    """Return what replaces an entry of an array."""

    def change(values):
        values = values.copy()
        values.reshape(-1)[index] = value
        return values

    return change


SOURCE = [
    ("edges", put(3, 60), "the array edges holds 60 at index 3, outside 0 .. 59"),
    ("edges", put(0, -1), "the array edges holds -1 at index 0"),
    ("edges", lambda values: values[:-1], r"the array edges must hold integers of shape \(150, 2"),
    ("edges", lambda values: values.astype(float), "the array edges must hold integers"),
    ("vertex_dims", put(2, -1), "the array vertex_dims holds -1"),
    ("vertex_dims", put(2, 7), "`dim_c0` is"),
    ("edge_dims", put(2, -1), "the array edge_dims holds -1"),
    ("edge_dims", put(2, 7), "`dim_c1` and `n_bytes` are"),
    ("edge_dims", lambda values: values[::-1].copy(), "`dim_c1` and `n_bytes` are"),
    ("part_ptr", put(-1, 149), "the array part_ptr must ascend from 0 to 150 edges"),
    ("part_ptr", put(0, 1), "the array part_ptr must ascend"),
    ("part_ptr", put(1, 150), "the array part_ptr must ascend"),
    ("part_ptr", put(1, 2), "entries of tail maps, but"),
    ("parts/000001/tail", put(3, np.nan), "part 1: the tail maps must be finite, got nan at ind"),
    ("parts/000001/head", put(3, np.inf), "part 1: the head maps must be finite, got inf at ind"),
    ("parts/000001/head", put(3, 1e160), "part 1: the head maps have entries up to 1e.160, whose"),
    ("parts/000001/head", lambda values: values[:-1], "part 1 holds .* entries of head maps, but"),
    ("parts/000001/head", lambda values: values.astype(np.float32), "must hold float64 of shape"),
]


@pytest.mark.parametrize(("name", "change", "message"), SOURCE)
def test_invalid_contents_of_a_sheaf_store_raise(name, change, message, url):
    """Nothing is read beyond the end of an array, and no wrong number is returned."""
    F = ragged_sheaf(n=60, m=150)
    rewrite(dist.to_store(url("src"), F, part_bytes=1000), name, change)
    src, P = dist.open_store(url("src")), np.arange(60) // 10
    for use in (
        src.load,
        lambda: dist.laplacian_operator(src) @ np.ones(F.dim_c0),
        lambda: dist.coarsen(src, url("out"), P, 1),
        lambda: dist.coarsen(src, url("other"), P, 1, local_operator="principal", n_shards=2),
    ):
        with pytest.raises(dist.StoreError, match=message):
            use()


COARSE = [
    ("edge_numbers", put(0, 1000), "the array edge_numbers holds 1000 at index 0"),
    ("edge_numbers", lambda values: values * 0, "the array edge_numbers holds an edge twice"),
    ("labels", put(4, 10), "the array labels holds 10 at index 4"),
    ("labels", put(4, -1), "the array labels holds -1"),
    ("basis/clusters", put(0, 10), "clusters holds 10 at index 0"),
    ("basis/clusters", lambda values: values[[0, 2, 1, *range(3, len(values))]], "in ascending"),
    ("basis/clusters", lambda values: values[1:], "must hold each cluster once"),
    ("basis/data", put(0, np.nan), "the entries of R in basis/.* must be finite"),
    ("basis/data", put(0, 1e160), "the entries of R in basis/.* whose squares overflow"),
    ("basis/data", lambda values: values[1:], "data must hold float64 of shape"),
]
# what only loading reads
LOADED = [
    ("labels", lambda labels: (labels + 1) % 10, "do not match the fine sheaf|data must hold"),
    ("basis/scores", put(0, np.nan), "scores hold NaN"),
    ("basis/operator_norms", put(0, np.inf), "`operator_norms` must be finite"),
    ("basis/tied", lambda tied: tied[:-1], "tied must hold int8 of shape"),
    ("edges", lambda edges: edges[::-1].copy(), "entries of|crossing edges of the coarse sheaf"),
]


@pytest.mark.parametrize(("name", "change", "message"), COARSE + LOADED)
def test_invalid_contents_of_a_coarsening_store_raise(name, change, message, stored, url):
    C, only_loaded = stored.sheaf, (name, change, message) in LOADED
    rewrite(C, name.replace("basis/", f"basis/{C.header.basis[0]}/"), change)
    D = dist.open_coarsening(url("out"))
    uses = [D.load]
    if not only_loaded:
        uses.append(D.verify)
    if not only_loaded and name != "edge_numbers":
        uses += [lambda: D.lift(np.ones(C.dim_c0)), lambda: D.pool(np.ones(D.fine.dim_c0))]
        uses += [lambda: D.ledger(np.ones(D.fine.dim_c0))]
    for use in uses:
        with pytest.raises(dist.StoreError, match=message) as caught:
            use()
        assert str(caught.value).count(url("out") + ":") == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (None, "has no array 'modes.rings'"),
        ({"rings": [1, 2], "target": 1.0, "pilot": False, "over_budget": 0}, "out/zarr.json|out: "),
        ({"rings": 1, "target": 1.0, "pilot": 3, "over_budget": 0}, "`pilot` must be True or"),
    ],
)
def test_invalid_settings_of_oversampled_modes_raise(settings, message, url):
    F = grid_sheaf(6)
    dist.to_store(url("out"), sc.coarsen(F, sc.select(F, 4), 2, local_operator="oversampled"))
    edit(url("out"), check=None, oversampled=settings)
    with pytest.raises(dist.StoreError, match=message):
        dist.open_coarsening(url("out")).load()


@pytest.mark.parametrize(
    ("labels", "message"),
    [([0, 0, 0, 0], "2 clusters, got 1"), ([0, 2, 2, 1], "labels"), ([0, -1, 1, 1], "labels")],
)
def test_invalid_partitions_raise(labels, message, memory):
    P = dist.to_store(memory("P"), sc.Partition([0, 0, 1, 1]))
    rewrite(P, "labels", lambda _: np.array(labels))
    with pytest.raises(dist.StoreError, match=message):
        dist.open_store(memory("P")).load()


def test_too_few_names_raise(memory):
    F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]]).with_labels(list("abcd"))
    src = dist.to_store(memory("src"), F)
    rewrite(src, "vertex_labels", lambda _: np.frombuffer(b"[1, 2]", np.uint8).astype(np.int16))
    with pytest.raises(dist.StoreError, match="`vertex_labels` has 2 names for 4 vertices"):
        src.load()


def test_stored_url_on_another_file_system_is_not_opened(url, memory):
    F = grid_sheaf(4)
    C = sc.coarsen(F, sc.Partition(FOURS), 2)
    src = dist.to_store(memory("src"), F)
    dist.coarsen(src, url("out"), C.partition, 2)
    with pytest.raises(dist.StoreError, match=r"out names 'memory://.*, which is outside this "):
        dist.open_coarsening(url("out"))
    for source in (memory("src"), src):
        D = dist.open_coarsening(url("out"), source=source)
        assert np.array_equal(D.load().sheaf.edges, C.sheaf.edges)
    with pytest.raises(dist.StoreError, match="is not the store that"):
        dist.open_coarsening(url("out"), source=dist.to_store(memory("other"), F))
    with pytest.raises(TypeError, match="`source` must be a path or a URL, got int"):
        dist.open_coarsening(url("out"), source=3)


@pytest.mark.parametrize(
    ("out", "source", "followed"),
    [
        ("s3://bucket/out", "s3://bucket/a/src", True),
        ("s3://bucket/out", "s3://other/src", False),
        ("s3://bucket/out", "/etc/src", False),
        ("s3://bucket/out", "simplecache::s3://bucket/src", False),
        ("s3://bucket/out", "foo://bucket/src", False),
        ("s3://bucket/out", "", False),
        ("memory://out", "memory://src", True),
        ("/data/out", "/elsewhere/src", True),
        ("/data/out", "http://host/src", False),
        ("http://host/out", "http://other/src", False),
    ],
)
def test_stored_urls_are_opened_only_if_allowed(out, source, followed, monkeypatch):
    class Opened:
        def __init__(self, place):
            self.url = place.url

    header = SimpleNamespace(kind="coarsening", source={"url": source})
    module = dist.open_coarsening.__module__
    monkeypatch.setattr(f"{module}.header_of", lambda place: header)
    monkeypatch.setattr(f"{module}.SheafStore", Opened)
    monkeypatch.setattr(f"{module}.StoredCoarsening", lambda sheaf, fine: fine.url)
    if followed:
        assert dist.open_coarsening(out) == source
    else:
        with pytest.raises(dist.StoreError, match="pass that URL, or the opened store, as `s"):
            dist.open_coarsening(out)


def test_moved_levels_are_opened(url):
    src = dist.to_store(url("src"), grid_sheaf(8))
    with ties_allowed():
        H = dist.coarsen_levels(src, url("levels"), 4, 2, rank=2, memory_bytes=0)
    shutil.move(url("src"), url("src-elsewhere"))
    shutil.move(url("levels"), url("elsewhere"))
    with pytest.raises(dist.StoreError, match="there is no store"):
        dist.open_levels(url("elsewhere"))
    again = dist.open_levels(url("elsewhere"), source=url("src-elsewhere"))
    assert [C.sheaf.header.id for C in again] == [C.sheaf.header.id for C in H]
    assert again[1].fine.url == url("elsewhere") + "/level-0"


@pytest.fixture(scope="module")
def version_1():
    """Return the address of stores that were written in version 1."""
    fs = fsspec.filesystem("memory")
    with tarfile.open(DATA / "stores_version_1.tar.xz") as archive:
        for member in archive.getmembers():
            fs.pipe_file("/" + member.name, archive.extractfile(member).read())
    return "memory://version-1"


@pytest.mark.parametrize("name", ["internal_real", "oversampled_complex", "basis_complex"])
def test_coarsenings_of_version_1_are_read(name, version_1):
    C, D = sc.load(DATA / f"{name}.npz"), dist.open_coarsening(f"{version_1}/{name}")
    E = D.load()
    assert D.verify().passed
    assert C.fine.equals(E.fine)
    assert C.sheaf.with_labels(None).equals(E.sheaf.with_labels(None))
    assert (C.prolongation != E.prolongation).nnz == 0
    assert np.array_equal(C.restored_loops, E.restored_loops)
    if C.modes is not None:
        assert differences(C, E) == []
        for setting in ("rings", "target", "pilot", "over_budget"):
            assert getattr(C.modes, setting) == getattr(E.modes, setting)


def test_stores_of_version_1_can_be_used(version_1, memory):
    C = sc.load(DATA / "internal_real.npz")
    src, P = (dist.open_store(f"{version_1}/{name}") for name in ("sheaf", "partition"))
    assert np.array_equal(P.load().labels, C.partition.labels)
    assert len(src.parts) == 3
    assert np.array_equal(src.load().tail_data, C.fine.tail_data)
    D = dist.open_coarsening(f"{version_1}/coarse")
    assert D.verify().passed
    assert np.array_equal(D.load().partition.labels, C.partition.labels)
    # the same call reuses the finished run
    again = dist.coarsen(src, f"{version_1}/coarse", P, C.modes.ranks)
    assert again.sheaf.header == D.sheaf.header
    assert again.sheaf.header.version == 1
    anew = dist.coarsen(src, memory("out"), P, C.modes.ranks, n_shards=2)
    assert anew.sheaf.header.version == 2
    H = dist.open_levels(f"{version_1}/levels")
    assert [C.sheaf.n_vertices for C in H] == [3, 2]
    assert all(C.verify().passed for C in H)


def test_unfinished_run_of_version_1_raises(version_1, memory):
    from sheafcoarsen.distributed._estimate import Request
    from sheafcoarsen.distributed.location import checksum, place_of

    src = dist.open_store(f"{version_1}/sheaf")
    P = np.arange(src.n_vertices) // 3
    run = Request(src, P, 2).run
    for note in ({"run": run}, {"run": run, "library": "0.1.0", "id": "it"}):
        content = json.dumps(note).encode()  # as version 1 wrote it, without a line break
        claim = place_of(memory("out")) / "work/claim.json"
        claim.put(content, checksum(content, "claim.json"))
        with pytest.raises(FileExistsError, match="unfinished run of another call or version"):
            dist.coarsen(src, memory("out"), P, 2)


def test_damage_detectable_in_version_1_raises(version_1):
    fs = fsspec.filesystem("memory")
    path = "/version-1/sheaf/parts/000001/tail/zarr.json"
    held = fs.cat_file(path)
    try:
        for change in ((b"float64", b"complex64"), (b"float64", b"int64"), (b"[", b"[2, ")):
            fs.pipe_file(path, held.replace(*change))
            with pytest.raises(dist.StoreError):
                dist.open_store(f"{version_1}/sheaf").load()
    finally:
        fs.pipe_file(path, held)


def damaged(rng, files):
    """Return the files that a damage changes: {name: new contents, or None if removed}."""
    one, other = rng.choice(sorted(files), 2, replace=False)
    held, more, at = files[one], files[other], int(rng.integers(len(files[one])))
    kind = rng.choice(["flip", "swap", "cut", "zeros", "gone", "copy", "longer"])
    return {
        "flip": {one: held[:at] + bytes([held[at] ^ (1 << rng.integers(8))]) + held[at + 1 :]},
        "swap": {one: more, other: held},
        "cut": {one: held[:at]},
        "zeros": {one: held[:at] + bytes(len(held) - at)},
        "gone": {one: None},
        "copy": {one: more},
        "longer": {one: held + more},
    }[kind]


def test_random_damage_raises_or_is_harmless(memory):
    F = ragged_sheaf(n=60, m=150)
    src = dist.to_store(memory("src"), F, part_bytes=2000)
    with ties_allowed():
        C = dist.coarsen(src, memory("out"), sc.select(F, 10), 3, n_shards=3, compress=False)
    expected, z = C.load(), np.ones(C.sheaf.dim_c0)
    lifted, image = C.lift(z), dist.laplacian_operator(src) @ np.ones(F.dim_c0)
    fs, root = C.sheaf.place.file_system()
    files = {path: fs.cat_file(path) for path in fs.find(root.rpartition("/")[0])}
    harmless = 0
    for seed in range(40):
        changed = damaged(np.random.default_rng(seed), files)
        for path, contents in changed.items():
            fs.rm_file(path) if contents is None else fs.pipe_file(path, contents)
        try:
            D = dist.open_coarsening(memory("out"))
            assert differences(expected, D.load()) == [], (seed, changed)
            assert np.array_equal(D.lift(z), lifted), (seed, changed)
            assert np.array_equal(dist.laplacian_operator(D.fine) @ np.ones(F.dim_c0), image)
            harmless += 1
        except dist.StoreError:
            pass
        for path in changed:
            fs.pipe_file(path, files[path])
    assert harmless < 20
