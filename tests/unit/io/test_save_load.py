"""`save` and `load`: round trips are exact, of old files too."""

import dataclasses
import io
import pathlib
import re
import zipfile

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen.io._save_load import VERSION
from tests.support.strategies import sheaves_with_partitions
from tests.unit.io.conftest import rewrite, saved_file

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def same_sheaf(F, G):
    assert F.equals(G)
    for name in ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data"):
        assert not getattr(G, name).flags.writeable


def same_coarsening(C, D):
    same_sheaf(C.fine, D.fine)
    same_sheaf(C.sheaf, D.sheaf)
    np.testing.assert_array_equal(C.partition.labels, D.partition.labels)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(C.prolongation, name), getattr(D.prolongation, name))
    for name in ("crossing_rows", "restored_loops"):  # some are None
        np.testing.assert_array_equal(getattr(C, name), getattr(D, name))
    assert C.loops == D.loops
    assert (C.modes is None) == (D.modes is None)
    if C.modes is not None:
        for name in ("local_operator", "singular", "rings", "target", "pilot", "over_budget"):
            assert getattr(C.modes, name) == getattr(D.modes, name)
        for name in ("ranks", "scores", "next_eigenvalues", "tied", "operator_norms"):
            np.testing.assert_array_equal(getattr(C.modes, name), getattr(D.modes, name))
        np.testing.assert_array_equal(C.modes.R.data, D.modes.R.data)


@given(
    sheaves_with_partitions(),
    st.sampled_from(["internal", "principal", "oversampled", "basis"]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=25)
def test_save_load_round_trip_is_exact(tmp_path_factory, case, kind, loops, compress):
    F, P = case
    path = tmp_path_factory.mktemp("npz") / "file.npz"
    sc.save(path, F)
    same_sheaf(F, sc.load(path))
    sc.save(path, P)
    np.testing.assert_array_equal(sc.load(path).labels, P.labels)
    options = {"rank": 2, "local_operator": kind}
    if kind == "basis":
        dims = [int(F.vertex_dims[P.cluster(a)].sum()) for a in range(P.n_clusters)]
        options = {"basis": [np.eye(n, min(n, 2)) for n in dims]}
    C = sc.coarsen(F, P, **options, loops=loops, compress=compress)
    sc.save(path, C)
    D = sc.load(path)
    same_coarsening(C, D)
    assert sc.verify(D).passed
    deeper = sc.coarsen(C.sheaf, sc.Partition(np.zeros(P.n_clusters, int)), 1)
    sc.save(path, deeper)  # its fine sheaf is a coarse one
    same_coarsening(deeper, sc.load(path))


def test_round_trip_of_oversampled_modes_above_their_budget(tmp_path):
    F = sc.CellularSheaf.constant(nx.path_graph(8))
    P = sc.Partition(np.arange(8) // 2)
    C = sc.coarsen(F, P, sc.ranks.budget(1), local_operator="oversampled")
    assert C.modes.over_budget == 3
    for saved in (C, dataclasses.replace(C, prolongation=-C.prolongation)):  # and of other modes
        sc.save(tmp_path / "c.npz", saved)
        same_coarsening(saved, sc.load(tmp_path / "c.npz"))


def test_loaded_coarsening_is_refreshed_like_the_original(tmp_path):
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


@given(
    sheaves_with_partitions(),
    st.sampled_from(["internal", "principal"]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=15)
def test_round_trip_of_hierarchies(tmp_path_factory, case, operator, loops, compress):
    F, P = case
    path = tmp_path_factory.mktemp("npz") / "file.npz"
    pairs = np.arange(P.n_clusters) // 2
    down = [P, sc.Partition(pairs), sc.Partition(0 * np.unique(pairs))]
    options = {"rank": 3, "local_operator": operator, "loops": loops, "compress": compress}
    for n_levels in (0, 3):
        H = sc.coarsen_levels(F, partitions=down[:n_levels], **options)
        F2 = F.with_maps(F.tail_data + F.tail_data.dtype.type(1), F.head_data)
        for saved in (H, H.recoarsen(F2)):
            sc.save(path, saved)
            loaded = sc.load(path)
            assert isinstance(loaded, sc.Hierarchy)
            assert len(loaded) == n_levels
            same_sheaf(saved.fine, loaded.fine)
            assert loaded.stopped_because == saved.stopped_because
            assert loaded.rebuilt_levels == saved.rebuilt_levels
            assert np.isnan(loaded.seconds).all()
            for i, (C, D) in enumerate(zip(saved, loaded, strict=True)):
                same_coarsening(C, D)
                assert D.fine is loaded.sheaves[i]
            for C, D in zip(saved.recoarsen(F), loaded.recoarsen(F), strict=True):
                same_coarsening(C, D)


def test_path_is_used_without_adding_an_extension(tmp_path):
    sc.save(tmp_path / "no_ending", sc.Partition([0, 0]))
    sc.save(str(tmp_path / "text.npz"), sc.Partition([0, 1]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["no_ending", "text.npz"]
    assert sc.load(tmp_path / "no_ending").n_clusters == 1


@pytest.mark.parametrize("dtype", [np.float32, complex])
def test_round_trip_of_eliminations(tmp_path, dtype):
    F = sc.CellularSheaf.random(nx.karate_club_graph(), 2, 3, seed=3, dtype=dtype)
    K = sc.eliminate(F, keep=[4])
    sc.save(tmp_path / "k.npz", K)
    L = sc.load(tmp_path / "k.npz")
    same_sheaf(K.fine, L.fine)
    same_sheaf(K.sheaf, L.sheaf)
    assert np.array_equal(K.kept, L.kept)
    assert L.max_neighbors == 2
    b = np.arange(F.dim_c0).astype(dtype)
    assert np.array_equal(K.reduce(b), L.reduce(b))
    z = np.ones(K.sheaf.dim_c0, dtype)
    assert np.array_equal(K.extend(z, b), L.extend(z, b))
    assert (K.prolongation != L.prolongation).nnz == 0
    assert np.array_equal(L.refresh(F).kept, K.kept)


def test_round_trip_of_sparsifications(tmp_path):
    path, F = tmp_path / "z.npz", sc.CellularSheaf.constant(nx.complete_graph(40))
    Z = sc.sparsify(F, 0.9)
    for eps in (0.9, None):
        sc.save(path, dataclasses.replace(Z, eps=eps))
        loaded = sc.load(path)
        assert loaded.eps == eps
        same_sheaf(Z.sheaf, loaded.sheaf)
        assert np.array_equal(Z.edges, loaded.edges)
        assert np.array_equal(Z.weights, loaded.weights)


def twice(array):
    return np.repeat(array, 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"fine__edges": np.asfortranarray},
        # version 1 had no compression, no restored loops, and did not say how modes were computed
        {"version": 1, "compress": None, "restored_loops": None, "modes__singular": None},
        # duplicate entries of R are summed
        {"R__data": lambda a: twice(a / 2), "R__indices": twice, "R__indptr": lambda a: 2 * a},
    ],
    ids=["fortran order", "version 1", "duplicates"],
)
def test_other_forms_of_a_file_are_read(file, changes):
    C = sc.load(file)
    rewrite(file, **changes)
    same_coarsening(C, sc.load(file))


def test_coarse_sheaves_with_tiny_maps_are_read(tmp_path):
    """Exact kernels leave such maps; the limit is for a caller's own."""
    F = sc.CellularSheaf.constant(nx.path_graph(4))
    C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), basis=2 * [np.eye(2, 1) * 1e-170])
    sc.save(tmp_path / "c.npz", C)
    same_sheaf(C.sheaf, sc.load(tmp_path / "c.npz").sheaf)


def test_labels_of_all_types_round_trip(tmp_path):
    names = ((0, "a"), 3, "thr\u00e9e", True, (1.5, (True, None)), "", np.int64(7))
    sc.save(tmp_path / "f.npz", sc.CellularSheaf.constant(nx.empty_graph(names)))
    found = sc.load(tmp_path / "f.npz").vertex_labels
    assert found == names
    assert [type(label) for label in found] == [tuple, int, str, bool, tuple, str, int]


def test_unsupported_labels_raise(tmp_path):
    F = sc.CellularSheaf.constant(nx.Graph([(frozenset({1}), 2)]))
    with pytest.raises(TypeError, match=r"vertex label frozenset.*cannot be saved.*with_labels"):
        sc.save(tmp_path / "f.npz", F)
    assert list(tmp_path.iterdir()) == []


def test_every_array_is_documented():
    page = pathlib.Path(__file__).parents[3] / "docs" / "file_format.md"
    text = page.read_text(encoding="utf-8")
    assert f"describes version {VERSION}" in text
    part = re.compile(r"^(fine|sheaf|partition|sheaves\.\d|levels\.\d)\.")
    for kind in ("sheaf", "partition", "coarsening", "compressed", "basis", "hierarchy"):
        with zipfile.ZipFile(io.BytesIO(saved_file(kind))) as archive:
            for name in archive.namelist():
                own = part.sub("", name.removesuffix(".npy"))
                assert f"`{own.removeprefix('partition.')}`" in text
