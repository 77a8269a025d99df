"""`save` and `load`: round trips are exact, and a bad file is one clear error.

A crash leaves the old file whole.
"""

import dataclasses
import functools
import pathlib
import tempfile

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support.strategies import sheaves_with_partitions

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


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
        for name in ("rings", "target", "pilot", "over_budget"):
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
    if kind == "basis":
        dims = [int(F.vertex_dims[P.cluster(a)].sum()) for a in range(P.n_clusters)]
        C = sc.coarsen(
            F, P, basis=[np.eye(n, min(n, 2)) for n in dims], loops=loops, compress=compress
        )
    else:
        C = sc.coarsen(F, P, 2, local_operator=kind, loops=loops, compress=compress)
    sc.save(path, C)
    D = sc.load(path)
    same_coarsening(C, D)
    assert sc.verify(D).passed
    deeper = sc.coarsen(C.sheaf, sc.Partition(np.zeros(P.n_clusters, int)), 1)
    sc.save(path, deeper)  # its fine sheaf is a coarse one
    same_coarsening(deeper, sc.load(path))


def test_round_trip_of_oversampled_modes_above_their_budget(tmp_path):
    F = sc.CellularSheaf.constant(nx.path_graph(8))
    C = sc.coarsen(
        F, sc.Partition(np.arange(8) // 2), sc.ranks.budget(1), local_operator="oversampled"
    )
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
    down = [
        P,
        sc.Partition(np.arange(P.n_clusters) // 2),
        sc.Partition(np.zeros((P.n_clusters + 1) // 2, int)),
    ]
    for n_levels in (0, 3):
        H = sc.coarsen_levels(
            F,
            partitions=down[:n_levels],
            rank=3,
            local_operator=operator,
            loops=loops,
            compress=compress,
        )
        F2 = F.with_maps(F.tail_data + F.tail_data.dtype.type(1), F.head_data)
        for saved in (H, H.recoarsen(F2)):
            sc.save(path, saved)
            loaded = sc.load(path)
            assert isinstance(loaded, sc.Hierarchy)
            assert len(loaded) == n_levels
            same_sheaf(saved.fine, loaded.fine)
            assert (loaded.stopped_because, loaded.rebuilt_levels) == (
                saved.stopped_because,
                saved.rebuilt_levels,
            )
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


@functools.cache
def saved(kind):
    """Return (an object, the bytes of its file)."""
    F = sc.CellularSheaf.random(
        nx.MultiGraph([(0, "b"), ("b", 2), (2, 0), (0, 0), (2, 0)]), 2, 1, seed=5
    )
    C = sc.coarsen(F, sc.Partition([0, 0, 1]), 2, compress=kind == "compressed")
    objects = {
        "sheaf": F,
        "partition": C.partition,
        "coarsening": C,
        "compressed": C,
        "basis": sc.coarsen(F, C.partition, basis=[np.eye(4, 2), np.eye(2)]),
        "hierarchy": sc.coarsen_levels(F, partitions=[C.partition, sc.Partition([0, 0])], rank=2),
    }
    with tempfile.TemporaryDirectory() as folder:
        sc.save(f"{folder}/file.npz", objects[kind])
        return objects[kind], pathlib.Path(folder, "file.npz").read_bytes()


KINDS = st.sampled_from(["sheaf", "partition", "coarsening", "compressed", "basis", "hierarchy"])


def check_valid(value):
    """See that a loaded object is whole.

    Its numbers are finite, and what it should be able to do it does.
    """
    if isinstance(value, sc.Hierarchy):
        for C in value:
            check_valid(C)
        assert repr(value)
        return check_valid(value.fine)
    if isinstance(value, sc.Partition):
        assert value.sizes.min(initial=1) > 0
        return None
    if isinstance(value, sc.Coarsening):
        check_valid(value.fine)
        check_valid(value.sheaf)
        assert np.isfinite(value.lift(np.ones(value.sheaf.dim_c0))).all()
        assert np.isfinite(value.pool(np.ones(value.fine.dim_c0))).all()
        again = value.recoarsen(value.fine)
        np.testing.assert_array_equal(again.ranks, value.ranks)
        assert repr(value)
        return None
    assert np.isfinite(sc.laplacian(value).data).all()
    assert np.isfinite(sc.energy(value, np.ones(value.dim_c0)))
    return None


def loads_or_is_refused(path):
    """Load a file: the result is either an object that is whole, or one clear error."""
    try:
        value = sc.load(path)
    except ValueError as error:
        assert type(error) is ValueError
        assert str(error).startswith(str(path))
        assert "\n" not in str(error)
    else:
        check_valid(value)


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


def changed(arrays, name, at, value):
    array = arrays[name].copy()
    array[at] = value
    return {**arrays, name: array}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: changed(a, "kept", 0, 99), "`kept` must hold vertex indices in 0 .. 33"),
        (lambda a: changed(a, "steps.vertices", 0, a["steps.vertices"][1]), "must be listed once"),
        (lambda a: changed(a, "steps.starts", 3, 99), "must be lists of neighbours"),
        (lambda a: changed(a, "steps.neighbors", 0, -1), "must be lists of neighbours"),
        (
            lambda a: changed(a, "steps.neighbors", -1, a["steps.vertices"][0]),
            "refers to a vertex that was eliminated before it",
        ),
        (lambda a: changed(a, "steps.blocks", 0, np.nan), "`steps` must be finite"),
        (
            lambda a: {**a, "steps.blocks": a["steps.blocks"][1:]},
            "`steps.inverses` must have sizes",
        ),
        (lambda a: {**a, "steps.inverses": a["steps.inverses"] * 1j}, "must be real"),
        (
            lambda a: {**a, "max_neighbors": np.array(-1)},
            "`max_neighbors` must be at least 0, got -1",
        ),
        (lambda a: {k: v for k, v in a.items() if k != "steps.starts"}, "has no array"),
    ],
)
def test_inconsistent_eliminations_raise(tmp_path, change, message):
    K = sc.eliminate(sc.CellularSheaf.constant(nx.karate_club_graph()), keep=[4])
    sc.save(tmp_path / "k.npz", K)
    with np.load(tmp_path / "k.npz") as archive:
        arrays = dict(archive)
    np.savez(tmp_path / "bad.npz", **change(arrays))
    with pytest.raises(ValueError, match=message):
        sc.load(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eps": 1.0}, "`eps` must be above 0 and below 1, got 1"),
        ({"eps": np.nan}, "`eps` must be"),
        ({"eps": [0.5]}, "`eps` must be a single number, got shape"),
        ({"eps": "half"}, "`eps` must hold"),
        ({"weights": lambda a: a[1:]}, "`weights` must have one entry per edge"),
        ({"weights": lambda a: -a}, "`weights` must be positive"),
        ({"edges": lambda a: a[::-1].copy()}, "`edges` must be ascending"),
        ({"edges": None}, "has no array 'edges'"),
    ],
)
def test_sparsifications_are_read_with_or_without_eps_or_are_refused(tmp_path, changes, message):
    path, F = tmp_path / "z.npz", sc.CellularSheaf.constant(nx.complete_graph(40))
    Z = sc.sparsify(F, 0.9)
    for eps in (0.9, None):
        sc.save(path, dataclasses.replace(Z, eps=eps))
        loaded = sc.load(path)
        assert loaded.eps == eps
        same_sheaf(Z.sheaf, loaded.sheaf)
        assert np.array_equal(Z.edges, loaded.edges)
        assert np.array_equal(Z.weights, loaded.weights)
    sc.save(path, Z)
    rewrite(path, **changes)
    with pytest.raises(ValueError, match=message) as caught:
        sc.load(path)
    assert str(caught.value).startswith(str(path))
