"""Hierarchies: composition, transfer, ledger, recoarsening, table and invalid input."""

import dataclasses
import re
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from tests.support import reference
from tests.support.errors import raises
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
from tests.unit.hierarchy.test_coarsen_levels import (
    block_size,
    composite,
    grid,
    hierarchies,
)

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

SIX = CellularSheaf.random(nx.path_graph(6), 2, 2, seed=3)
THREE, TWO = Partition([0, 0, 1, 1, 2, 2]), Partition([0, 0, 1])


# ---------------------------------------------------------------- all levels at once


@pytest.mark.statement("thm:Galerkin_realization")
@given(hierarchies(loops=(True,)))
def test_the_last_laplacian_is_the_galerkin_operator_of_all_levels(H):
    P, _, blocks = composite(H)
    assert_is_galerkin(sc.laplacian(H.sheaves[-1]).toarray(), H.fine, P, blocks, levels=len(H) + 1)


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SingularProblemWarning")
@given(hierarchies())
def test_every_level_is_a_coarsening_of_the_previous_sheaf(H):
    assert len(H.sheaves) == len(H) + 1
    assert H.sheaves[0] is H.fine
    for i, C in enumerate(H):
        assert C is H[i]
        assert C.fine is H.sheaves[i]
        assert C.sheaf is H.sheaves[i + 1]
        compress = C.crossing_rows is None
        D = sc.coarsen(C.fine, C.partition, C.modes, loops=C.loops, compress=compress)
        np.testing.assert_array_equal(D.sheaf.tail_data, C.sheaf.tail_data)
        np.testing.assert_array_equal(D.sheaf.edge_dims, C.sheaf.edge_dims)
        assert_verified(C)


@given(hierarchies(), st.data())
def test_prolongation_pool_and_lift_are_the_product_of_all_levels(H, data):
    R, eps = np.eye(H.fine.dim_c0), eps_of(H.fine.dtype)
    for level, sheaf in enumerate(H.sheaves):
        if level:
            R = R @ H[level - 1].prolongation.toarray()
        ours = H.prolongation(level)
        assert ours.dtype == H.fine.dtype
        assert ours.shape == (H.fine.dim_c0, sheaf.dim_c0)
        ours.check_format()
        assert ours.has_canonical_format
        n = block_size(H)
        assert_residual(ours.toarray() - R, np.sqrt(max(R.shape[1], 1)), n=n, eps=eps)
        x, z = data.draw(cochains(H.fine)), data.draw(cochains(sheaf))
        assert_residual(H.pool(x, level) - R.conj().T @ x, x, n=n, eps=eps)
        assert_residual(H.lift(z, level=level) - R @ z, z, n=n, eps=eps)
    assert_residual(H.prolongation().toarray() - R, np.sqrt(max(R.shape[1], 1)), n=n, eps=eps)
    np.testing.assert_array_equal(H.pool(x), H.pool(x, len(H)))
    np.testing.assert_array_equal(H.lift(z), H.lift(z, len(H)))
    gram = R.conj().T @ R
    assert_residual(gram - np.eye(len(gram)), np.sqrt(max(len(gram), 1)), n=n, eps=eps)


def test_returned_arrays_are_copies():
    F = CellularSheaf.constant(nx.path_graph(8))
    H = sc.coarsen_levels(F, partitions=[Partition([0] * 4 + [1] * 4)], rank=2)
    x = np.ones(8)
    for changed in (H.pool(x, 0), H.lift(x, 0), H.prolongation(1).data, H.prolongation(0).data):
        changed[:] = 7
    assert x.tolist() == [1.0] * 8
    assert H[0].prolongation.data.max() < 1


# ---------------------------------------------------------------- new maps


@given(hierarchies(), st.sampled_from(NEW_MAPS), st.sampled_from(DTYPES), st.integers(0, 99))
def test_recoarsen_equals_rebuilding_with_the_same_ranks(H, kind, dtype, seed):
    F2 = new_maps(H.fine, kind, seed, dtype)
    H2 = H.recoarsen(F2)
    assert H2.fine is F2
    assert H2.stopped_because == H.stopped_because
    assert len(H2.seconds) == len(H)
    current = F2
    for i, (C, C2) in enumerate(zip(H, H2, strict=True)):
        assert C2.fine is current
        assert C2.partition is C.partition
        assert C2.loops is C.loops
        assert C2.sheaf.dtype == dtype
        assert C2.modes.singular == C.modes.singular
        assert C2.modes.local_operator == C.modes.local_operator
        if not C.modes.singular:
            # all levels use the target of the finest; a pilot returns 0 without energy
            target = C2.modes.target or None
            D = sc.coarsen(
                current,
                C.partition,
                C.ranks.tolist(),
                local_operator=C.modes.local_operator,
                loops=C.loops,
                rings=C.modes.rings,
                target=target,
                compress=C.crossing_rows is None,
            )
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
        P, _, blocks = composite(H2)
        assert_is_galerkin(sc.laplacian(H2.sheaves[-1]).toarray(), F2, P, blocks, levels=len(H) + 1)


@given(hierarchies(), st.integers(0, 99))
def test_laplacian_patterns_stay_valid_once_all_loop_rows_exist(H, seed):
    full = H.recoarsen(new_maps(H.fine, "general", seed))
    zero = full.recoarsen(new_maps(H.fine, "zero", seed))
    assert zero.rebuilt_levels == ()
    for C, D in zip(full, zero, strict=True):
        assert_shared(C, D)
        assert not D.sheaf.tail_data.any()


def test_the_level_after_restored_loop_rows_is_rebuilt():
    F = CellularSheaf.constant(nx.complete_graph(27))
    given_ = [Partition(np.arange(27) // 3), Partition(np.arange(9) // 3), Partition([0, 0, 0])]
    H = sc.coarsen_levels(F, partitions=given_, rank=1)
    assert [G.n_edges for G in H.sheaves] == [351, 36, 3, 0]
    tail = F.tail_data.copy()
    # constants have energy only in the first cluster
    tail[(F.edges < 3).all(axis=1)] *= np.linspace(1, 3, 3)
    H2 = H.recoarsen(F.with_maps(tail, F.head_data))
    assert H2.rebuilt_levels == (1, 2)
    assert [C.restored_loops.tolist() for C in H2] == [[0], [0], [0]]
    assert [G.n_edges for G in H2.sheaves] == [351, 37, 4, 1]
    assert "level 2 rebuilt: loop rows put back in 1 clusters of level 1" in repr(H2)
    for C in H2:
        assert sc.verify(C).passed
    back = H2.recoarsen(F)
    assert back.rebuilt_levels == ()
    assert [G.n_edges for G in back.sheaves] == [351, 37, 4, 1]
    for C, D in zip(H2, back, strict=True):
        assert_shared(C, D)


def test_levels_with_a_user_supplied_basis_can_be_recoarsened():
    F = CellularSheaf.random(nx.complete_graph(8), 1, 1, seed=3)
    C = sc.coarsen(F, Partition(np.arange(8) // 2), basis=[np.eye(2, 1)] * 4)
    D = sc.coarsen(C.sheaf, Partition([0, 0, 1, 1]), basis=[np.eye(2) * 2] * 2)
    H = sc.Hierarchy(F, (C, D))
    F2 = new_maps(F, "general", 3)
    H2 = H.recoarsen(F2)
    assert_is_galerkin(sc.laplacian(H2.sheaves[-1]).toarray(), F2, *composite(H2)[::2], levels=3)
    with pytest.raises(ValueError, match="level 1: the ledger requires orthonormal columns"):
        H.ledger(np.ones(8))
    constant = CellularSheaf.constant(nx.complete_graph(8))
    H = sc.Hierarchy(constant, [sc.coarsen(constant, C.partition, basis=[np.ones((2, 1))] * 4)])
    last = sc.coarsen(H.sheaves[-1], D.partition, basis=[np.ones((2, 1))] * 2)
    H = sc.Hierarchy(constant, [*H, last])
    H2 = H.recoarsen(F2)
    assert H2.rebuilt_levels == (1,)
    assert all(sc.verify(C).passed for C in H2)


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SingularProblemWarning")
@given(known_sections(), st.integers(1, 3), st.booleans())
def test_levels_that_keep_all_local_sections_keep_global_sections(case, n_levels, compress):
    """By fact 2 of docs/conventions.md, kernel ranks without loops preserve H^0."""
    F, sections = case
    H = sc.coarsen_levels(F, factor=2, n_levels=n_levels, rank=sc.ranks.kernel(), compress=compress)
    R = H.prolongation().toarray()
    coarse = dense_kernel(sc.coboundary(H.sheaves[-1]).toarray())
    assert coarse.shape[1] == sections.shape[1] or not len(H)
    assert_residual(sections - R @ (R.conj().T @ sections), sections, n=max(F.dim_c0, 1))
    assert dense_rank(R @ coarse) == coarse.shape[1]


# ---------------------------------------------------------------- the table


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


FIVE = CellularSheaf.random(nx.path_graph(5), 2, 2, seed=3)
TAKE_A_LEVEL = (
    lambda H, level: H.prolongation(level),
    lambda H, level: H.pool(np.ones(12), level),
    lambda H, level: H.lift(np.ones(4), level),
)
BAD_LEVELS = {
    3: "ValueError: `level` must be an index of `sheaves`, from 0 for the fine sheaf to 2 for the "
    "coarsest one, got 3",
    -1: "ValueError: `level` must be at least 0, got -1",
    "coarsest": "TypeError: `level` must be an integer",
}
EDGES = "its edges differ, there are 4 of them, not 5: use coarsen_levels for another"
OTHER = "must be a coarsening of"
SHAPE = "must have shape (dim_c0,) or (dim_c0, h) with dim_c0 ="
INVALID = [
    *((partial(call, level=k), BAD_LEVELS[k]) for call in TAKE_A_LEVEL for k in BAD_LEVELS),
    (lambda H: H.pool(np.ones(4)), f"ValueError: `x` {SHAPE} 12 of the fine sheaf"),
    (lambda H: H.ledger(np.ones(4)), f"ValueError: `x` {SHAPE} 12 of the fine sheaf"),
    (lambda H: H.lift(np.ones(4), 1), f"ValueError: `z` {SHAPE} 6 of level 1's sheaf"),
    (lambda H: H[2], "IndexError: index out of range"),
    (lambda H: H.recoarsen(FIVE), f"ValueError: {EDGES}"),
    (lambda H: sc.Hierarchy(SIX, ()).recoarsen(FIVE), f"ValueError: {EDGES}"),
    (lambda H: sc.Hierarchy(SIX, H[1:]), f"ValueError: `levels[0]` {OTHER} `fine`"),
    (lambda H: sc.Hierarchy(SIX, [H[0]] * 2), f"ValueError: `levels[1]` {OTHER} `levels[0].sheaf`"),
    (lambda H: sc.Hierarchy(SIX, (H[0], SIX)), "TypeError: `levels[1]` must be a Coarsening, got"),
    # they are measured and not an argument
    (lambda H: sc.Hierarchy(SIX, H.levels, seconds=(1.0, 2.0)), "TypeError: seconds"),
]


@pytest.mark.parametrize(("call", "error"), INVALID)
def test_invalid_levels_and_cochains_raise(call, error):
    H = sc.coarsen_levels(SIX, partitions=[THREE, TWO], rank=2)
    with raises(error):
        call(H)


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
    assert sc.verify(again[1]).passed
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
            np.testing.assert_array_equal(
                E.lines[f"level {i}: retained internal"], theirs.realization_loss
            )
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
