"""`save` and `load`: round trips are exact, a crash leaves the old file whole, and a bad file is one clear error."""

import os
import zipfile

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.strategies import sheaves_with_partitions

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def nan_first(array):
    array = array.copy()
    array[0] = np.nan
    return array


def same_sheaf(F, G):
    assert F.dtype == G.dtype
    assert F.vertex_labels == G.vertex_labels
    for name in ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data"):
        np.testing.assert_array_equal(getattr(F, name), getattr(G, name))
        assert not getattr(G, name).flags.writeable


def same_coarsening(C, D):
    same_sheaf(C.fine, D.fine)
    same_sheaf(C.sheaf, D.sheaf)
    np.testing.assert_array_equal(C.partition.labels, D.partition.labels)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(C.prolongation, name), getattr(D.prolongation, name))
    assert (C.crossing_rows is None) == (D.crossing_rows is None)
    if C.crossing_rows is not None:
        np.testing.assert_array_equal(C.crossing_rows, D.crossing_rows)
    np.testing.assert_array_equal(C.restored_loops, D.restored_loops)
    assert C.loops == D.loops
    assert (C.modes is None) == (D.modes is None)
    if C.modes is not None:
        assert C.modes.local_operator == D.modes.local_operator
        assert C.modes.singular is D.modes.singular
        for name in ("ranks", "scores", "next_eigenvalues", "tied", "operator_norms"):
            np.testing.assert_array_equal(getattr(C.modes, name), getattr(D.modes, name))


@given(
    sheaves_with_partitions(),
    st.sampled_from(["internal", "principal", "oversampled", "basis"]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=25)
def test_round_trip_is_exact(tmp_path_factory, case, kind, loops, compress):
    F, P = case
    path = tmp_path_factory.mktemp("npz") / "file.npz"
    sc.save(path, F)
    same_sheaf(F, sc.load(path))
    sc.save(path, P)
    np.testing.assert_array_equal(sc.load(path).labels, P.labels)
    if kind == "basis":
        dims = [int(F.vertex_dims[P.cluster(a)].sum()) for a in range(P.n_clusters)]
        C = sc.coarsen(F, P, basis=[np.eye(n, min(n, 2)) for n in dims], loops=loops, compress=compress)
    else:
        C = sc.coarsen(F, P, 2, local_operator=kind, loops=loops, compress=compress)
    sc.save(path, C)
    D = sc.load(path)
    same_coarsening(C, D)
    assert sc.verify(D).passed
    deeper = sc.coarsen(C.sheaf, sc.Partition(np.zeros(P.n_clusters, int)), 1)
    sc.save(path, deeper)  # its fine sheaf is a coarse one
    same_coarsening(deeper, sc.load(path))


def test_a_loaded_coarsening_is_refreshed_like_the_one_that_was_saved(tmp_path):
    F = sc.gallery.bundle(nx.grid_2d_graph(6, 6), 2, seed=5)
    P = sc.Partition(np.arange(36) // 12)
    bent = F.with_maps(F.tail_data, F.head_data * np.linspace(1, 2, len(F.head_data)))
    C = sc.coarsen(F, P, sc.ranks.kernel(), compress=True)
    C2 = C.recoarsen(bent)
    assert C2.restored_loops.tolist() == [0, 1, 2]
    for saved in (C, C2):
        sc.save(tmp_path / "c.npz", saved)
        loaded = sc.load(tmp_path / "c.npz")
        same_coarsening(saved, loaded)
        assert loaded.modes.singular
        for sheaf in (F, bent):
            same_coarsening(saved.recoarsen(sheaf), loaded.recoarsen(sheaf))


@given(sheaves_with_partitions(), st.sampled_from(["internal", "principal"]), st.booleans(), st.booleans())
@settings(max_examples=15)
def test_a_hierarchy_makes_the_round_trip(tmp_path_factory, case, operator, loops, compress):
    F, P = case
    path = tmp_path_factory.mktemp("npz") / "file.npz"
    down = [P, sc.Partition(np.arange(P.n_clusters) // 2), sc.Partition(np.zeros((P.n_clusters + 1) // 2, int))]
    for n_levels in (0, 3):
        H = sc.coarsen_levels(
            F, partitions=down[:n_levels], rank=3, local_operator=operator, loops=loops, compress=compress
        )
        F2 = F.with_maps(F.tail_data + F.tail_data.dtype.type(1), F.head_data)
        for saved in (H, H.recoarsen(F2)):
            sc.save(path, saved)
            loaded = sc.load(path)
            assert isinstance(loaded, sc.Hierarchy)
            assert len(loaded) == n_levels
            same_sheaf(saved.fine, loaded.fine)
            assert (loaded.stopped_because, loaded.rebuilt_levels) == (saved.stopped_because, saved.rebuilt_levels)
            assert np.isnan(loaded.seconds).all()
            for i, (C, D) in enumerate(zip(saved, loaded, strict=True)):
                same_coarsening(C, D)
                assert D.fine is loaded.sheaves[i]
            for C, D in zip(saved.recoarsen(F), loaded.recoarsen(F), strict=True):
                same_coarsening(C, D)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_levels": 3}, r"has no array 'sheaves.3.edges'"),
        ({"n_levels": -1}, "`n_levels` must be an integer of at least 0"),
        ({"n_levels": [2]}, "`n_levels` must be an integer of at least 0"),
        ({"n_levels": 1.5}, "`n_levels` must be an integer of at least 0"),
        ({"stopped_because": None}, "has no array 'stopped_because'"),
        ({"sheaves__1__edges": None}, "has no array 'sheaves.1.edges'"),
        ({"sheaves__1__tail_data": nan_first}, "must be finite"),
        ({"levels__1__R__data": None}, "has no array 'levels.1.R.data'"),
        ({"levels__1__R__data": nan_first}, "level 1: R must be finite"),
        ({"levels__1__partition__labels": [0, 0]}, "level 1: its parts do not fit: 3 vertices, a partition of 2 into"),
        ({"levels__0__modes__ranks": [1, 2, 2]}, "level 0: the ranks of its modes"),
    ],
)
def test_damaged_hierarchies(tmp_path, changes, message):
    F = sc.CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5)
    path = tmp_path / "h.npz"
    sc.save(path, sc.coarsen_levels(F, partitions=[sc.Partition([0, 0, 1, 1, 2, 2]), sc.Partition([0, 0, 1])], rank=2))
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=message) as caught:
        sc.load(path)
    assert str(caught.value).startswith(str(path))


def test_files_of_version_1(file):
    """They had no compression, no restored loops, and did not say how modes were computed."""
    C = sc.load(file)
    rewrite(file, version=1, compress=None, restored_loops=None, modes__singular=None)
    same_coarsening(C, sc.load(file))


def test_a_coarse_sheaf_with_tiny_maps_is_not_refused(tmp_path):
    """Exact kernels leave crossing maps of rounding size; the limit for a caller's own maps does not hold for them."""
    F = sc.CellularSheaf.constant(nx.path_graph(4))
    small = [np.eye(2, 1) * 1e-170, np.eye(2, 1) * 1e-170]
    C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), basis=small)
    sc.save(tmp_path / "c.npz", C)
    same_sheaf(C.sheaf, sc.load(tmp_path / "c.npz").sheaf)


def test_labels_of_every_kind(tmp_path):
    graph = nx.Graph([((0, "a"), 3), (3, "three"), ("three", (1.5, (True, None)))])
    F = sc.CellularSheaf.constant(graph)
    sc.save(tmp_path / "f.npz", F)
    assert sc.load(tmp_path / "f.npz").vertex_labels == tuple(graph.nodes)


def test_labels_that_cannot_be_saved(tmp_path):
    F = sc.CellularSheaf.constant(nx.Graph([(frozenset({1}), 2)]))
    with pytest.raises(TypeError, match=r"vertex label frozenset.*cannot be saved.*relabel"):
        sc.save(tmp_path / "f.npz", F)
    assert list(tmp_path.iterdir()) == []


def test_the_path_is_used_as_it_is(tmp_path):
    sc.save(tmp_path / "no_ending", sc.Partition([0, 0]))
    sc.save(str(tmp_path / "text.npz"), sc.Partition([0, 1]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["no_ending", "text.npz"]
    assert sc.load(tmp_path / "no_ending").n_clusters == 1


def test_a_crash_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "f.npz"
    sc.save(path, sc.Partition([0, 1, 0]))
    before = path.read_bytes()

    def crash(stream, **arrays):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", crash)
    with pytest.raises(KeyboardInterrupt):
        sc.save(path, sc.Partition([0]))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["f.npz"]


def test_no_such_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        sc.save(tmp_path / "none" / "f.npz", sc.Partition([0]))
    with pytest.raises(FileNotFoundError):
        sc.load(tmp_path / "none.npz")


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(
        TypeError, match="`obj` must be a CellularSheaf, a Partition, a Coarsening or a Hierarchy, got nd"
    ):
        sc.save(tmp_path / "f.npz", np.zeros(3))


@pytest.fixture
def file(tmp_path):
    F = sc.CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5)
    path = tmp_path / "c.npz"
    sc.save(path, sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2))
    return path


def rewrite(path, **changes):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, value in changes.items():
        name = name.replace("__", ".")
        if value is None:
            arrays.pop(name)
        else:
            arrays[name] = value(arrays[name]) if callable(value) else np.asarray(value)
    with open(path, "wb") as stream:
        np.savez(stream, **arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 99}, "format version 99; this library reads up to 2: upgrade"),
        ({"version": 0}, "format version 0"),
        ({"format": "other"}, "not a sheafcoarsen file"),
        ({"format": None}, "not a sheafcoarsen file"),
        ({"kind": "galaxy"}, "holds a 'galaxy'"),
        ({"fine__edges": None}, "has no array 'fine.edges'"),
        ({"fine__edges": lambda a: a + 4}, r"`edges\[1\]` = .* is out of range for 6 vertices"),
        ({"fine__edges": lambda a: a[:, :1]}, r"`edges` must have shape \(m, 2\)"),
        ({"fine__edges": lambda a: -a}, "negative endpoint"),
        ({"fine__vertex_dims": lambda a: -a}, "`vertex_dims` must not be negative"),
        ({"fine__vertex_dims": lambda a: a * 2**60}, "`vertex_dims` must sum to at most"),
        ({"fine__vertex_dims": lambda a: a[:-1]}, "6 names for 5 vertices"),
        ({"fine__vertex_dims": 3}, "must be one-dimensional"),
        ({"fine__edge_dims": lambda a: a + 1}, "`tail_data` must have shape"),
        ({"fine__tail_data": nan_first}, r"`tail_maps\[0\]` \(edge 0 -> 1\) must be finite"),
        ({"fine__tail_data": lambda a: a.astype(str)}, "got dtype <U"),
        ({"fine__vertex_labels": np.frombuffer(b"[1, 2", np.uint8)}, "`vertex_labels` cannot be read"),
        ({"fine__vertex_labels": np.frombuffer(b"[1, 2]", np.uint8)}, "2 names for 6 vertices"),
        ({"partition__labels": [0, 0, 0, 0, 1]}, "its parts do not fit"),
        ({"partition__labels": [0, 0, 0, 0, 0, 0]}, "its parts do not fit"),
        ({"R__indptr": lambda a: a[:-1]}, "R does not have 12 rows"),
        ({"R__indptr": lambda a: a[::-1].copy()}, "R does not have 12 rows"),
        ({"R__indices": lambda a: a + 99}, "R does not have 4 columns"),
        ({"R__indices": lambda a: a - 1}, "R does not have 4 columns"),
        ({"R__data": nan_first}, "R must be finite"),
        (
            {"R__data": lambda a: a[:1], "R__indices": lambda a: a[:1], "R__indptr": lambda a: np.minimum(a, 1)},
            "full block",
        ),
        ({"crossing_rows": None}, "has no array 'crossing_rows'"),
        ({"crossing_rows": [10**6]}, "`crossing_rows` must lie in"),
        ({"restored_loops": [2]}, "`restored_loops` must lie in 0 .. 1"),
        ({"compress": "maybe"}, "`compress` must be true or false"),
        ({"modes__singular": [True, False]}, "`modes.singular` must be true or false"),
        ({"modes__ranks": [1, 2]}, "ranks of its modes"),
        ({"modes__scores": [1.0]}, "`modes.scores` must hold 4 real numbers"),
        ({"modes__scores": nan_first}, "`modes.scores` must hold 4 real numbers"),
        ({"modes__tied": [0, 1]}, "`modes.tied` must hold 2 booleans"),
        ({"modes__local_operator": "spectral"}, "local operator 'spectral'"),
    ],
)
def test_damaged_contents(file, changes, message):
    if "fine__vertex_labels" in changes:
        with np.load(file) as archive:
            arrays = {name: archive[name] for name in archive.files}
        arrays["fine.vertex_labels"] = changes["fine__vertex_labels"]
        with open(file, "wb") as stream:
            np.savez(stream, **arrays)
    else:
        rewrite(file, **changes)
    with pytest.raises(ValueError, match=message) as caught:
        sc.load(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_object_arrays_are_refused(file):
    rewrite(file, fine__edges=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="truncated or damaged"):
        sc.load(file)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip at all", b"PK\x03\x04 and then rubbish"])
def test_foreign_files(tmp_path, content):
    path = tmp_path / "f.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"f\.npz: (not a sheafcoarsen file|truncated or damaged)"):
        sc.load(path)


def test_a_zip_of_something_else(tmp_path):
    path = tmp_path / "f.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(ValueError, match="not a sheafcoarsen file"):
        sc.load(path)


def test_a_folder(tmp_path):
    with pytest.raises(OSError, match=os.strerror(21) if os.name == "posix" else ""):
        sc.load(tmp_path)


@given(st.data())
@settings(max_examples=60)
def test_fuzzed_bytes_load_or_are_one_clear_error(tmp_path_factory, data):
    F = sc.CellularSheaf.random(nx.cycle_graph(4), 1, 1, seed=5)
    C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), 1)
    H = sc.Hierarchy(F, (C,))
    path = tmp_path_factory.getbasetemp() / "fuzzed.npz"
    sc.save(path, data.draw(st.sampled_from([F, C, C.partition, H])))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    path.write_bytes(bytes(content))
    try:
        sc.load(path)
    except ValueError as error:
        assert "\n" not in str(error)
