"""Coarsening of new maps on the same graph by `recoarsen`, against a new coarsening."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from tests.support.helpers import assert_verified, new_maps
from tests.support.strategies import DTYPES, SCALES, bases, mode_counts, sheaves_with_partitions

pytestmark = pytest.mark.filterwarnings(
    "ignore::sheafcoarsen.TiedModesWarning", "ignore::sheafcoarsen.SingularProblemWarning"
)

NEW_MAPS = ("general", "zero", "partly zero", "integer")


@st.composite
def refreshable(draw):
    """Draw triples (coarsening, sheaf with new maps, new coarsening of that sheaf)."""
    F, P = draw(sheaves_with_partitions())
    kind = draw(st.sampled_from(["internal", "principal", "oversampled", "basis"]))
    options = {"loops": draw(st.booleans()), "compress": draw(st.booleans())}
    maps, dtype = draw(st.sampled_from(NEW_MAPS)), np.dtype(draw(st.sampled_from(DTYPES)))
    scale = draw(st.sampled_from(SCALES[dtype.type(0).real.itemsize]))
    if kind == "basis" and dtype.type(0).real.itemsize == 4:  # a large basis would raise an error
        scale = 1.0
    F2 = new_maps(F, maps, draw(st.integers(0, 99)), dtype, scale)
    if kind == "basis":
        blocks = draw(bases(F, P))
        single = {"c": np.complex64, "f": np.float32}
        options["basis"] = [R_a.astype(single[R_a.dtype.kind]) for R_a in blocks]
        C, D = (sc.coarsen(G, P, **options) for G in (F, F2))
    else:
        options["local_operator"] = kind
        if kind == "oversampled":
            options["rings"] = draw(st.integers(0, 2))
            options["target"] = draw(st.sampled_from([None, 0.5]))  # None computes a new pilot
        C = sc.coarsen(F, P, draw(mode_counts(P)), **options)
        D = sc.coarsen(F2, P, C.ranks, **options)
    return C, F2, D


def loops_of(C):
    """Return B_a of every cluster that has a loop."""
    loops = range(C.n_crossing_edges, C.sheaf.n_edges)
    return {int(C.sheaf.edges[e, 0]): C.sheaf.tail_map(e) - C.sheaf.head_map(e) for e in loops}


def assert_shared(C, D):
    """Assert that D shares every index array with C, whose Laplacian pattern is valid for D."""
    names = ["edges", "vertex_dims", "edge_dims"]
    names += ["vertex_offsets", "edge_offsets", "tail_offsets", "head_offsets"]
    assert all(getattr(C.sheaf, name) is getattr(D.sheaf, name) for name in names)
    for name in ("clusters", "crossing_rows", "partition"):
        assert getattr(D, name) is getattr(C, name)
    assert np.shares_memory(D.prolongation.indptr, C.prolongation.indptr)
    if C.prolongation.nnz:
        assert np.shares_memory(D.prolongation.indices, C.prolongation.indices)
    filled, own = sc.LaplacianPattern(C.sheaf).fill(D.sheaf), sc.laplacian(D.sheaf)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(filled, name), getattr(own, name))


@given(refreshable())
def test_recoarsen_equals_a_new_coarsening_except_for_kept_loop_rows(case):
    C, F2, D = case
    C2 = C.recoarsen(F2)
    assert C2.fine is F2
    if C2.sheaf.dtype != D.sheaf.dtype:  # only the old maps were complex
        assert C2.sheaf.dtype == F2.dtype
        assert not D.prolongation.data.imag.any()
    np.testing.assert_array_equal(C2.prolongation.data, D.prolongation.data)
    np.testing.assert_array_equal(C2.prolongation.indices, D.prolongation.indices)
    if D.modes is None:
        assert C2.modes is None
    else:
        assert C2.modes.sheaf is F2
        assert C2.modes.clusters.half_edges is C.modes.clusters.half_edges
        for name in ("scores", "next_eigenvalues"):
            np.testing.assert_array_equal(getattr(C2.modes, name), getattr(D.modes, name))
        for name in ("local_operator", "rings", "target", "pilot"):
            assert getattr(C2.modes, name) == getattr(D.modes, name)
    assert C2.n_crossing_edges == D.n_crossing_edges
    for e in range(D.n_crossing_edges):
        np.testing.assert_array_equal(C2.sheaf.tail_map(e), D.sheaf.tail_map(e))
        np.testing.assert_array_equal(C2.sheaf.head_map(e), D.sheaf.head_map(e))
    old, refreshed, fresh = loops_of(C), loops_of(C2), loops_of(D)
    assert sorted(refreshed) == sorted({*old, *fresh})
    assert (C2.sheaf.edges is C.sheaf.edges) == (sorted(refreshed) == sorted(old))
    for a, B in refreshed.items():
        assert len(B) == max(len(old.get(a, ())), len(fresh.get(a, ())))  # no row is lost
        rows = B[np.abs(B).any(axis=1)]
        np.testing.assert_array_equal(rows, fresh[a] if a in fresh else B[:0])
    restored = [a for a in fresh if len(fresh[a]) > len(old.get(a, ()))]
    assert C2.restored_loops.tolist() == sorted(restored)
    assert not C2.restored_loops.flags.writeable
    assert_verified(C2)
    assert C2.loops is C.loops
    if not C2.loops:
        assert (C2.n_crossing_edges, C2.restored_loops.size) == (C2.sheaf.n_edges, 0)


@given(refreshable(), st.integers(0, 99))
def test_laplacian_patterns_stay_valid_after_the_first_recoarsen(case, seed):
    """Loop rows restored once remain, even after maps that are zero."""
    C, F2, _ = case
    C2 = C.recoarsen(F2)
    if C2.restored_loops.size == 0:
        assert_shared(C, C2)
    zero = C2.recoarsen(new_maps(F2, "zero", seed))
    assert_shared(C2, zero)
    assert not zero.sheaf.tail_data.any()
    again = zero.recoarsen(F2)
    assert_shared(C2, again)
    for name in ("tail_data", "head_data"):
        np.testing.assert_array_equal(getattr(again.sheaf, name), getattr(C2.sheaf, name))
    assert again.restored_loops.size == zero.restored_loops.size == 0


def test_the_repr_counts_clusters_with_restored_loops():
    F, P = CellularSheaf.constant(nx.complete_graph(8)), Partition([0] * 4 + [1] * 4)
    tail = F.tail_data.copy()
    tail[(F.edges < 4).all(axis=1)] *= np.linspace(1, 3, 6)  # constants have energy only there
    C = sc.coarsen(F, P, 1).recoarsen(F.with_maps(tail, F.head_data))
    assert C.sheaf.edges.tolist() == [[0, 1], [0, 0]]
    assert repr(C).endswith("28 -> 1 edges + 1 loops, loop rows put back in 1 clusters)")
    assert "put back" not in repr(C.recoarsen(F))


def stiff(F, seed):
    """Scale edges over decades: sections stay the same, but eigenvectors are inaccurate."""
    weight = 10.0 ** np.random.default_rng(seed).uniform(-4, 4, F.n_edges)
    per_entry = np.repeat(weight, np.diff(F.tail_offsets))
    return F.with_maps(F.tail_data * per_entry, F.head_data * per_entry)


def test_recoarsen_with_kernel_modes_stays_loopless_if_the_new_maps_allow():
    graph = nx.connected_watts_strogatz_graph(30, 4, 0.3, seed=5)
    P = Partition(np.arange(30) // 10)
    F, F2 = (stiff(gallery.bundle(graph, 2, seed=seed), seed) for seed in (3, 7))
    C, D = (sc.coarsen(G, P, sc.ranks.kernel()) for G in (F, F2))
    assert not sc.coarsen(F, P, 2).modes.singular
    C2 = C.recoarsen(F2)
    assert C.modes.singular
    assert C2.modes.singular
    assert C2.sheaf.n_edges == C2.n_crossing_edges == C.sheaf.n_edges
    np.testing.assert_array_equal(C2.prolongation.data, D.prolongation.data)
    assert_shared(C, C2)
    assert sc.verify(C2)["prop:kernel_preservation_loopless"].skipped_because is None
    C3 = C2.recoarsen(new_maps(F, "general", 5))
    assert C3.restored_loops.tolist() == [0, 1, 2]
    assert_verified(C3)


@given(sheaves_with_partitions(), st.integers(0, 99), st.sampled_from(NEW_MAPS), st.booleans())
def test_recoarsen_keeps_kernel_ranks_for_any_new_maps(case, seed, kind, compress):
    F, P = case
    C = sc.coarsen(F, P, sc.ranks.kernel(), compress=compress)
    C2 = C.recoarsen(new_maps(F, kind, seed))
    np.testing.assert_array_equal(C2.ranks, C.ranks)
    assert_verified(C2)
    again = C.recoarsen(F)
    np.testing.assert_array_equal(again.prolongation.data, C.prolongation.data)
    np.testing.assert_array_equal(again.sheaf.tail_data, C.sheaf.tail_data)


def test_ranks_that_split_multiplets_of_new_maps_are_kept_with_a_warning():
    """The rule that chose them is not applied again."""
    F = sc.CellularSheaf.random(nx.path_graph(4), 2, 4, seed=0)
    C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), sc.ranks.fixed(1).whole_multiplets())
    ones = np.tile(np.eye(4, 2), (3, 1, 1)).ravel()
    with pytest.warns(sc.TiedModesWarning, match="the old ranks were kept: call coarsen again"):
        D = C.recoarsen(F.with_maps(ones, ones))
    np.testing.assert_array_equal(C.modes.ranks, D.modes.ranks)


def test_a_user_basis_whose_coarse_maps_do_not_overflow_is_kept():
    F, P = CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1])
    C = sc.coarsen(F, P, basis=[np.full((2, 1), 1e10j)] * 2)
    assert C.recoarsen(new_maps(F, "general", 7)).prolongation is C.prolongation
    assert C.recoarsen(new_maps(F, "general", 7, np.float32)).sheaf.dtype == np.complex64
    message = r"the coarsening's basis has entries up to 1e\+10: .* rescale the basis"
    with pytest.raises(ValueError, match=message):
        C.recoarsen(new_maps(F, "general", 3, np.float32, scale=1e9))


def test_recoarsen_uses_replaced_fields_and_inconsistent_parts_raise():
    F, P = CellularSheaf.random(nx.path_graph(6), 2, 3, seed=3), Partition([0, 0, 0, 1, 1, 1])
    C, basis = sc.coarsen(F, P, 2), sc.coarsen(F, P, basis=[np.eye(6, 2)] * 2)
    R = basis.prolongation.copy()
    R.eliminate_zeros()
    for fields in ({"prolongation": R}, {"partition": Partition([0, 0, 1, 1, 1, 1])}):
        with pytest.raises(ValueError, match="full block"):
            dataclasses.replace(basis, **fields)
    C.prolongation.data, basis.prolongation.data = C.prolongation.data * 2, R.data
    assert C.recoarsen(F).prolongation.max() <= 1  # modes are recomputed
    with pytest.raises(ValueError, match="full block"):
        basis.recoarsen(F)
    C = sc.coarsen(F, P, 2)  # fields may be replaced
    assert C.sheaf.n_edges == 3
    assert dataclasses.replace(C, loops=False).recoarsen(F).sheaf.n_edges == 1
    assert dataclasses.replace(C, crossing_rows=None).recoarsen(F).sheaf.edge_dims[0] == 3
