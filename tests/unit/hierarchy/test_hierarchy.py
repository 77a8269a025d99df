"""Hierarchies: composition, transfer, ledger, recoarsening and table."""

import dataclasses
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from tests.support import reference
from tests.support.helpers import (
    assert_closes,
    assert_residual,
    assert_verified,
    dense_kernel,
    dense_rank,
    eps_of,
    size,
)
from tests.support.strategies import DTYPES, cochains, known_sections, sheaves
from tests.unit.coarsening.test_coarsen import assert_is_galerkin
from tests.unit.coarsening.test_refresh import NEW_MAPS, assert_shared, new_maps
from tests.unit.hierarchy.test_coarsen_levels import block_size, composite, grid, hierarchies

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def assert_is_composite(H):
    """Assert that the last Laplacian is R* L R for the product R of all levels."""
    P, _, blocks = composite(H)
    assert_is_galerkin(sc.laplacian(H.sheaves[-1]).toarray(), H.fine, P, blocks, levels=len(H) + 1)


@pytest.mark.statement("thm:Galerkin_realization")
@given(hierarchies(loops=(True,)))
def test_the_last_laplacian_is_the_galerkin_operator_of_all_levels(H):
    assert_is_composite(H)


@given(hierarchies(), st.data())
def test_prolongation_pool_and_lift_are_the_product_of_all_levels(H, data):
    R, what = np.eye(H.fine.dim_c0), {"n": block_size(H), "eps": eps_of(H.fine.dtype)}
    for level, sheaf in enumerate(H.sheaves):
        if level:
            R = R @ H[level - 1].prolongation.toarray()
        ours, norm = H.prolongation(level), np.sqrt(max(R.shape[1], 1))
        assert (ours.dtype, ours.shape) == (H.fine.dtype, (H.fine.dim_c0, sheaf.dim_c0))
        ours.check_format()
        assert ours.has_canonical_format
        assert_residual(ours.toarray() - R, norm, **what)
        x, z = data.draw(cochains(H.fine)), data.draw(cochains(sheaf))
        assert_residual(H.pool(x, level) - R.conj().T @ x, x, **what)
        assert_residual(H.lift(z, level=level) - R @ z, z, **what)
    np.testing.assert_array_equal(H.prolongation().toarray(), ours.toarray())
    np.testing.assert_array_equal(H.pool(x), H.pool(x, len(H)))
    np.testing.assert_array_equal(H.lift(z), H.lift(z, len(H)))
    assert_residual(R.conj().T @ R - np.eye(R.shape[1]), norm, **what)


def test_returned_arrays_are_copies():
    F = CellularSheaf.constant(nx.path_graph(8))
    H = sc.coarsen_levels(F, partitions=[Partition([0] * 4 + [1] * 4)], rank=2)
    x = np.ones(8)
    for changed in (H.pool(x, 0), H.lift(x, 0), H.prolongation(1).data, H.prolongation(0).data):
        changed[:] = 7
    assert x.tolist() == [1.0] * 8
    assert H[0].prolongation.data.max() < 1


@given(hierarchies(), st.sampled_from(NEW_MAPS), st.sampled_from(DTYPES), st.integers(0, 99))
def test_recoarsen_equals_rebuilding_with_the_same_ranks(H, kind, dtype, seed):
    current = F2 = new_maps(H.fine, kind, seed, dtype)
    H2 = H.recoarsen(F2)
    assert H2.fine is F2
    assert H2.stopped_because == H.stopped_because
    assert len(H2.seconds) == len(H) == len(H.sheaves) - 1
    for i, (C, C2) in enumerate(zip(H, H2, strict=True)):
        assert C2.fine is current
        assert C2.partition is C.partition
        assert C2.loops is C.loops
        assert C2.sheaf.dtype == dtype
        for name in ("singular", "local_operator"):
            assert getattr(C2.modes, name) == getattr(C.modes, name)
        if not C.modes.singular:
            # all levels use the target of the finest; a pilot returns 0 without energy
            same = {"local_operator": C.modes.local_operator, "rings": C.modes.rings}
            same |= {"target": C2.modes.target or None, "loops": C.loops}
            same["compress"] = C.crossing_rows is None
            D = sc.coarsen(current, C.partition, C.ranks.tolist(), **same)
            np.testing.assert_array_equal(C2.prolongation.data, D.prolongation.data)
            np.testing.assert_array_equal(C2.prolongation.indices, D.prolongation.indices)
            for e in range(D.n_crossing_edges):
                np.testing.assert_array_equal(C2.sheaf.tail_map(e), D.sheaf.tail_map(e))
                np.testing.assert_array_equal(C2.sheaf.head_map(e), D.sheaf.head_map(e))
            L, M = sc.laplacian(C2.sheaf), sc.laplacian(D.sheaf)
            np.testing.assert_array_equal(L.toarray(), M.toarray())
        np.testing.assert_array_equal(C2.ranks, C.ranks)
        assert (i + 1 in H2.rebuilt_levels) == (C2.restored_loops.size > 0 and i + 1 < len(H))
        if i not in H2.rebuilt_levels and C2.restored_loops.size == 0:
            assert_shared(C, C2)
        assert_verified(C2)
        current = C2.sheaf
    if all(C.loops for C in H):
        assert_is_composite(H2)


def test_the_level_after_restored_loop_rows_is_rebuilt():
    F = CellularSheaf.constant(nx.complete_graph(27))
    given_ = [Partition(np.arange(27) // 3), Partition(np.arange(9) // 3), Partition([0, 0, 0])]
    H = sc.coarsen_levels(F, partitions=given_, rank=1)
    tail = F.tail_data.copy()
    # constants have energy only in the first cluster
    tail[(F.edges < 3).all(axis=1)] *= np.linspace(1, 3, 3)
    H2 = H.recoarsen(F.with_maps(tail, F.head_data))
    back = H2.recoarsen(F)
    more = [37, 4, 1]
    for each, last, rebuilt in ((H, [36, 3, 0], ()), (H2, more, (1, 2)), (back, more, ())):
        assert [G.n_edges for G in each.sheaves] == [351, *last]
        assert each.rebuilt_levels == rebuilt
    assert [C.restored_loops.tolist() for C in H2] == [[0], [0], [0]]
    assert "level 2 rebuilt: loop rows put back in 1 clusters of level 1" in repr(H2)
    for C, D in zip(H2, back, strict=True):
        assert_verified(C)
        assert_shared(C, D)


def test_levels_with_a_user_supplied_basis_can_be_recoarsened():
    graph, fours, twos = nx.complete_graph(8), Partition(np.arange(8) // 2), Partition([0, 0, 1, 1])
    random, ones = CellularSheaf.random(graph, 1, 1, seed=3), np.ones((2, 1))
    for F, first, second, rebuilt, skew in (
        (random, np.eye(2, 1), np.eye(2) * 2, (), 1),
        (CellularSheaf.constant(graph), ones, ones, (1,), 0),
    ):
        C = sc.coarsen(F, fours, basis=[first] * 4)
        H = sc.Hierarchy(F, (C, sc.coarsen(C.sheaf, twos, basis=[second] * 2)))
        H2 = H.recoarsen(new_maps(random, "general", 3))
        assert H2.rebuilt_levels == rebuilt
        assert_is_composite(H2)
        for C in H2:
            assert_verified(C)
        with pytest.raises(ValueError, match=f"level {skew}: the ledger requires orthonormal"):
            H.ledger(np.ones(8))


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SingularProblemWarning")
@given(known_sections(), st.integers(1, 3), st.booleans())
def test_levels_that_keep_all_local_sections_keep_global_sections(case, n_levels, compress):
    F, sections = case
    H = sc.coarsen_levels(F, factor=2, n_levels=n_levels, rank=sc.ranks.kernel(), compress=compress)
    R = H.prolongation().toarray()
    coarse = dense_kernel(sc.coboundary(H.sheaves[-1]).toarray())
    assert coarse.shape[1] == sections.shape[1] or not len(H)
    assert_residual(sections - R @ (R.conj().T @ sections), sections, n=max(F.dim_c0, 1))
    assert dense_rank(R @ coarse) == coarse.shape[1]


def test_the_table_shows_sizes_and_times_of_all_sheaves():
    H = sc.coarsen_levels(grid(), 4, 2, rank=3)
    head, names, *rows = repr(H).splitlines()
    assert head == "Hierarchy: 2 levels; stopped because `n_levels` = 2"
    columns = ["sheaf", "vertices", "edges", "dim C^0", "dim C^1", "nonzeros", "time"]
    assert re.split("  +", names.strip()) == columns
    shares = []
    for i, (row, F) in enumerate(zip(rows, H.sheaves, strict=True)):
        numbers = row.replace("%", "").split()
        counts = (i, F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1, sc.laplacian(F).nnz)
        assert [int(number) for number in numbers[:6]] == list(counts)
        shares += numbers[6:]
    assert len(shares) == 2
    assert 98 <= sum(map(int, shares)) <= 102
    unknown = dataclasses.replace(H)
    assert all(row.endswith("  -") for row in repr(unknown).splitlines()[3:])
    one = sc.coarsen_levels(grid(), n_levels=1, rank=3)
    assert repr(one).startswith("Hierarchy: 1 level; stopped")
    assert repr(sc.Hierarchy(H.fine, H.levels)).startswith("Hierarchy: 2 levels\n")


@given(sheaves())
def test_the_table_counts_the_stored_entries_of_the_laplacian(F):
    row = repr(sc.Hierarchy(F, ())).splitlines()[2].split()
    assert int(row[5]) == sc.laplacian(F).nnz


def test_the_table_remarks_on_laplacians_that_grew():
    ring = CellularSheaf.random(nx.circulant_graph(40, [1, 7, 11]), 1, 1, seed=3)
    partitions = [Partition(np.arange(40) // 4), Partition(np.arange(10) // 5)]
    H = sc.coarsen_levels(ring, partitions=partitions, rank=[4, 1])
    counts = [sc.laplacian(F).nnz for F in H.sheaves]
    assert counts[1] > counts[0] > counts[2]
    remark = f"level 0: its Laplacian has {counts[1]:,} entries, the fine one {counts[0]:,}: "
    *rows, last = repr(H).splitlines()
    assert last.startswith(f"  {remark}fewer modes or larger clusters")
    assert len(rows) == 2 + 3
    assert f"<p>{remark}" in H._repr_html_()
    assert "level 1" not in repr(H) + H._repr_html_()
    lean = sc.coarsen_levels(ring, partitions=partitions, rank=1)
    assert "Laplacian" not in repr(lean) + lean._repr_html_()


@pytest.mark.filterwarnings("default::sheafcoarsen.TiedModesWarning")
def test_ties_warn_once_per_level_at_the_line_of_the_call():
    constant = CellularSheaf.constant(nx.complete_graph(8))
    given_ = [Partition([0, 0, 0, 0, 1, 1, 1, 1]), Partition([0, 0])]
    with pytest.warns(sc.TiedModesWarning) as caught:
        H = sc.coarsen_levels(constant, partitions=given_, rank=[2, 1])
    (warning,) = caught
    assert str(warning.message).startswith("level 0: the cut splits a multiple eigenvalue in the")
    with pytest.warns(sc.TiedModesWarning, match="level 0: the cut splits") as again:
        H.recoarsen(constant)
    assert {w.filename for w in (*caught, *again)} == {__file__}


def test_rows_of_crossing_edges_are_new_where_edge_stalks_of_a_level_change(tmp_path):
    """Elimination of general maps joins parallel edges into stalks of dimension 2, not 1."""
    edges = np.array(nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, 4)).edges)
    one = np.ones((len(edges), 2, 1))
    F = CellularSheaf(edges, one, one)
    options = {"factor": 3, "rank": 1, "n_levels": 1, "compress": False, "eliminate": True}
    H = sc.coarsen_levels(F, **options)
    maps = np.random.default_rng(0).standard_normal((2, *one.shape))
    again = H.recoarsen(F.with_maps(*maps))
    assert again[1].fine.edge_dims.sum() > H[1].fine.edge_dims.sum()
    assert_verified(again[1])
    crossing = (sc.coboundary(again[1].fine) @ again[1].prolongation)[again[1].crossing_rows]
    coarse = sc.coboundary(again[1].sheaf)[: crossing.shape[0]]
    assert_residual((crossing - coarse).toarray(), crossing.toarray(), n=16)
    sc.save(tmp_path / "levels.npz", again)
    sc.load(tmp_path / "levels.npz")


@given(hierarchies(), st.data())
def test_the_ledger_closes_and_has_the_lines_of_the_pooled_cochains(H, data):
    x = data.draw(cochains(H.fine))
    E, eps = H.ledger(x), eps_of(H.fine.dtype)
    assert list(E.lines)[-1] == "coarsest energy"
    assert len(E.lines) == 4 * len(H) + 1 + sum(not C.loops for C in H)
    for i, (C, mine) in enumerate(zip(H, E.levels, strict=True)):
        theirs = sc.energy_ledger(C, H.pool(x, i))
        for name, line in theirs.lines.items():
            np.testing.assert_array_equal(mine.lines[name], line)
            if name not in ("retained crossing", "retained internal"):
                np.testing.assert_array_equal(E.lines[f"level {i}: {name}"], line)
        if not C.loops:
            lost = E.lines[f"level {i}: retained internal"]
            np.testing.assert_array_equal(lost, theirs.realization_loss)
    np.testing.assert_array_equal(E.lines["coarsest energy"], sc.energy(H.sheaves[-1], H.pool(x)))
    last = [line.strip().partition("  ")[0] for line in repr(E).splitlines()[-3:]]
    assert last == ["coarsest energy", "fine energy", "closure"]
    assert isinstance(E.closure, float) if x.ndim == 1 else E.closure.shape == x.shape[1:]

    bound, n = size(reference.coboundary(H.fine)), block_size(H)
    P, _, blocks = composite(H)
    for k, column in enumerate([x] if x.ndim == 1 else x.T):
        lines = [np.atleast_1d(line)[k] for line in E.lines.values()]
        fine = float(np.atleast_1d(E.fine_energy)[k])
        error = fine - reference.energy(H.fine, column)
        assert_residual(error, bound, bound, column, column, n=H.fine.dim_c0, eps=eps)
        assert_closes(lines, fine, bound * size(column), n=n, eps=eps)
        total, closure = sum(map(abs, lines)), np.atleast_1d(E.closure)[k]
        assert_residual(closure - ((sum(lines) - fine) / total if total else 0), n=len(lines))
        if all(C.loops for C in H):  # the coarsest energy is that of what all levels retain
            R = reference.prolongation(H.fine, P, blocks)
            error = lines[-1] - reference.energy(H.fine, R @ H.pool(column))
            assert_residual(error, bound, bound, column, column, n=n, eps=eps)
