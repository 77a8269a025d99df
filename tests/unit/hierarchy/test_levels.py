"""Levels: that they compose exactly, close their books, are refreshed as if rebuilt, and stop where they should."""

import dataclasses
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from tests.support import reference
from tests.support.helpers import (
    assert_closes,
    assert_residual,
    dense_kernel,
    dense_rank,
    eps_of,
    size,
)
from tests.support.strategies import (
    DTYPES,
    cochains,
    known_sections,
    mode_counts,
    partitions,
    sheaves,
)
from tests.unit.coarsening.test_coarsening import assert_is_galerkin, blocks_of
from tests.unit.coarsening.test_refresh import NEW_MAPS, assert_shared, new_maps

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@st.composite
def descents(draw, min_levels=0, **options):
    """Draw (F, partitions, ranks): one partition and one entry of ranks per level, any clusters, one, or as many as vertices."""
    F = draw(sheaves(**options))
    given_, ranks, n = [], [], F.n_vertices
    for _ in range(draw(st.integers(min_levels, 3))):
        P = draw(partitions(n))
        given_.append(P)
        ranks.append(
            draw(mode_counts(P) | st.just(sc.ranks.kernel()) | st.just(sc.ranks.budget(4)))
        )
        n = P.n_clusters
    return F, given_, ranks


@st.composite
def hierarchies(draw, loops=(True, False), **options):
    F, given_, ranks = draw(descents(**options))
    operator = draw(st.sampled_from(["internal", "principal", "oversampled"]))
    return sc.coarsen_levels(
        F,
        partitions=given_,
        rank=ranks,
        local_operator=operator,
        loops=draw(st.sampled_from(loops)),
        compress=draw(st.booleans()),
    )


def composite(H):
    """The whole way as one coarsening of the oracle: R_0 R_1 ... as blocks, and the fine vertices under each coarsest one."""
    labels = np.arange(H.fine.n_vertices)
    for C in H:
        labels = C.partition.labels[labels]
    P, R = Partition(labels), np.eye(H.fine.dim_c0)
    for C in H:
        R = R @ C.prolongation.toarray()
    columns = H.sheaves[-1].vertex_offsets
    return (
        P,
        R,
        [
            R[reference.cluster_coordinates(H.fine, P, a), columns[a] : columns[a + 1]]
            for a in range(P.n_clusters)
        ],
    )


def block_size(H):
    """Largest block of any level, times the levels whose rounding adds up."""
    return sum(max((max(R_a.shape) for R_a in blocks_of(C)), default=1) for C in H) + 1


# ---------------------------------------------------------------- all levels at once


@given(hierarchies(loops=(True,)))
def test_the_last_laplacian_is_the_galerkin_operator_of_all_levels_at_once(H):
    P, _, blocks = composite(H)
    assert_is_galerkin(sc.laplacian(H.sheaves[-1]).toarray(), H.fine, P, blocks, levels=len(H) + 1)


@given(hierarchies())
def test_every_level_is_that_coarsening_of_the_level_before(H):
    assert len(H.sheaves) == len(H) + 1
    assert H.sheaves[0] is H.fine
    for i, C in enumerate(H):
        assert C is H[i]
        assert C.fine is H.sheaves[i]
        assert C.sheaf is H.sheaves[i + 1]
        D = sc.coarsen(
            C.fine, C.partition, C.modes, loops=C.loops, compress=C.crossing_rows is None
        )
        np.testing.assert_array_equal(D.sheaf.tail_data, C.sheaf.tail_data)
        np.testing.assert_array_equal(D.sheaf.edge_dims, C.sheaf.edge_dims)
        V = sc.verify(C)
        assert V.passed, str(V)


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


def test_what_is_handed_out_is_fresh():
    F = CellularSheaf.constant(nx.path_graph(8))
    H = sc.coarsen_levels(F, partitions=[Partition([0] * 4 + [1] * 4)], rank=2)
    x = np.ones(8)
    for changed in (H.pool(x, 0), H.lift(x, 0), H.prolongation(1).data, H.prolongation(0).data):
        changed[:] = 7
    assert x.tolist() == [1.0] * 8
    assert H[0].prolongation.data.max() < 1


@given(descents(min_levels=1), st.booleans())
def test_levels_with_and_without_compression_have_the_same_laplacians(case, loops):
    F, given_, ranks = case
    H, D = (
        sc.coarsen_levels(F, partitions=given_, rank=ranks, loops=loops, compress=compress)
        for compress in (True, False)
    )
    assert H[0].crossing_rows is None
    assert D[0].crossing_rows is not None
    np.testing.assert_array_equal(H[0].prolongation.data, D[0].prolongation.data)
    for G, K in zip(H.sheaves[1:], D.sheaves[1:], strict=True):
        assert G.dim_c1 <= K.dim_c1
    L, M = sc.laplacian(H.sheaves[1]).toarray(), sc.laplacian(D.sheaves[1]).toarray()
    delta = reference.coboundary(F)
    assert_residual(L - M, delta, delta, n=block_size(H), eps=eps_of(F.dtype))


# ---------------------------------------------------------------- the ledger


@given(hierarchies(), st.data())
def test_the_ledger_of_the_whole_descent_closes(H, data):
    x = data.draw(cochains(H.fine))
    E, eps = H.ledger(x), eps_of(H.fine.dtype)
    columns = [x] if x.ndim == 1 else list(x.T)
    names = [
        f"level {i}: {name}"
        for i in range(len(H))
        for name in ("discarded internal", "internal coupling")
    ]
    assert set(names) <= set(E.lines)
    assert list(E.lines)[-1] == "coarsest energy"
    assert len(E.lines) == 4 * len(H) + 1 + sum(not C.loops for C in H)
    bound = size(reference.coboundary(H.fine))
    P, _, blocks = composite(H)
    for k, column in enumerate(columns):
        lines = [np.atleast_1d(line)[k] for line in E.lines.values()]
        fine = float(np.atleast_1d(E.fine_energy)[k])
        assert_residual(
            fine - reference.energy(H.fine, column),
            bound,
            bound,
            column,
            column,
            n=H.fine.dim_c0,
            eps=eps,
        )
        assert_closes(lines, fine, bound * size(column), n=block_size(H), eps=eps)
        total, closure = sum(map(abs, lines)), np.atleast_1d(E.closure)[k]
        assert_residual(closure - ((sum(lines) - fine) / total if total else 0), n=len(lines))
        if all(C.loops for C in H):  # what arrives is the energy of what is kept of all
            kept = reference.energy(
                H.fine, reference.prolongation(H.fine, P, blocks) @ H.pool(column)
            )
            assert_residual(
                lines[-1] - kept, bound, bound, column, column, n=block_size(H), eps=eps
            )
    assert isinstance(E.closure, float) if x.ndim == 1 else E.closure.shape == x.shape[1:]


@given(hierarchies(), st.data())
def test_the_ledger_of_each_level_is_that_of_the_pooled_cochain(H, data):
    x = data.draw(cochains(H.fine, columns=(2,)))
    E = H.ledger(x)
    assert len(E.levels) == len(H)
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


def test_the_ledger_by_hand():
    F = CellularSheaf.constant(nx.path_graph(4))
    H = sc.coarsen_levels(F, partitions=[Partition([0, 0, 1, 1]), Partition([0, 0])], rank=1)
    E = H.ledger([0.0, 1.0, 2.0, 4.0])
    # (.5, .5, 3, 3) on two vertices of value sqrt 2 times .5 and 3, then their mean
    expected = {"level 0: discarded internal": 5, "level 0: crossing coupling": -7.5, "level 0: discarded crossing": 2.25,
                "level 1: discarded internal": 6.25}  # fmt: skip
    for name, value in E.lines.items():
        assert_residual(value - expected.get(name, 0.0), 6.0, n=4)
    assert E.fine_energy == 6
    text = repr(E)
    assert [line[:28].strip() for line in text.splitlines()[-3:]] == [
        "coarsest energy",
        "fine energy",
        "closure",
    ]
    loopless = sc.coarsen_levels(
        F, partitions=[Partition([0, 0, 1, 1])], rank=2, loops=False
    ).ledger([0.0, 1, 2, 4])
    assert_residual(loopless.lines["level 0: retained internal"] - 5, 6.0, n=4)


# ---------------------------------------------------------------- new maps


@given(hierarchies(), st.sampled_from(NEW_MAPS), st.sampled_from(DTYPES), st.integers(0, 99))
def test_recoarsen_is_rebuilding_with_the_same_ranks(H, kind, dtype, seed):
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
        assert (C2.modes.singular, C2.modes.local_operator) == (
            C.modes.singular,
            C.modes.local_operator,
        )
        if not C.modes.singular:
            target = (
                C2.modes.target or None
            )  # all levels share that of the finest; 0: a pilot found no energy
            D = sc.coarsen(
                current, C.partition, C.ranks.tolist(), local_operator=C.modes.local_operator, loops=C.loops,
                rings=C.modes.rings, target=target, compress=C.crossing_rows is None,
            )  # fmt: skip
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
        V = sc.verify(C2)
        assert V.passed, str(V)
        current = C2.sheaf
    if all(C.loops for C in H):
        P, _, blocks = composite(H2)
        assert_is_galerkin(sc.laplacian(H2.sheaves[-1]).toarray(), F2, P, blocks, levels=len(H) + 1)


@given(hierarchies(), st.integers(0, 99))
def test_patterns_survive_once_all_loop_rows_are_there(H, seed):
    full = H.recoarsen(new_maps(H.fine, "general", seed))
    zero = full.recoarsen(new_maps(H.fine, "zero", seed))
    assert zero.rebuilt_levels == ()
    for C, D in zip(full, zero, strict=True):
        assert_shared(C, D)
        assert not D.sheaf.tail_data.any()


def test_a_level_below_loops_that_were_put_back_is_rebuilt():
    F = CellularSheaf.constant(nx.complete_graph(27))
    given_ = [Partition(np.arange(27) // 3), Partition(np.arange(9) // 3), Partition([0, 0, 0])]
    H = sc.coarsen_levels(F, partitions=given_, rank=1)
    assert [G.n_edges for G in H.sheaves] == [351, 36, 3, 0]
    tail = F.tail_data.copy()
    tail[(F.edges < 3).all(axis=1)] *= np.linspace(
        1, 3, 3
    )  # constants have energy in the first cluster alone
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


def test_levels_of_a_basis_of_ones_own_are_refreshed_too():
    F = CellularSheaf.random(nx.complete_graph(8), 1, 1, seed=3)
    C = sc.coarsen(F, Partition(np.arange(8) // 2), basis=[np.eye(2, 1)] * 4)
    D = sc.coarsen(C.sheaf, Partition([0, 0, 1, 1]), basis=[np.eye(2) * 2] * 2)
    H = sc.Hierarchy(F, (C, D))
    F2 = new_maps(F, "general", 3)
    H2 = H.recoarsen(F2)
    assert_is_galerkin(sc.laplacian(H2.sheaves[-1]).toarray(), F2, *composite(H2)[::2], levels=3)
    with pytest.raises(ValueError, match="level 1: the ledger needs an isometry"):
        H.ledger(np.ones(8))
    constant = CellularSheaf.constant(nx.complete_graph(8))
    H = sc.Hierarchy(constant, [sc.coarsen(constant, C.partition, basis=[np.ones((2, 1))] * 4)])
    H = sc.Hierarchy(
        constant, [*H, sc.coarsen(H.sheaves[-1], D.partition, basis=[np.ones((2, 1))] * 2)]
    )
    H2 = H.recoarsen(F2)
    assert H2.rebuilt_levels == (1,)
    assert all(sc.verify(C).passed for C in H2)


# ---------------------------------------------------------------- sections


@given(known_sections(), st.integers(1, 3), st.booleans())
def test_every_level_that_keeps_all_local_sections_keeps_the_global_ones(case, n_levels, compress):
    """Fact 2 of docs/conventions.md's list in `verify`, through all levels: kernel ranks without loops keep H^0 exactly."""
    F, sections = case
    H = sc.coarsen_levels(F, factor=2, n_levels=n_levels, rank=sc.ranks.kernel(), compress=compress)
    R = H.prolongation().toarray()
    coarse = dense_kernel(sc.coboundary(H.sheaves[-1]).toarray())
    assert coarse.shape[1] == sections.shape[1] or not len(H)
    assert_residual(sections - R @ (R.conj().T @ sections), sections, n=max(F.dim_c0, 1))
    assert dense_rank(R @ coarse) == coarse.shape[1]


# ---------------------------------------------------------------- how many levels


def grid(n=20, **options):
    return gallery.bundle(nx.grid_2d_graph(n, n), 2, noise=0.3, seed=3, **options)


def test_levels_are_made_while_there_are_more_than_min_vertices():
    H = sc.coarsen_levels(grid(), factor=3.5, min_vertices=33, rank=3)
    assert [G.n_vertices for G in H.sheaves] == [400, 115, 33]
    assert H.stopped_because == "33 vertices are at most `min_vertices` = 33"
    H = sc.coarsen_levels(grid(), factor=3.5, min_vertices=32, rank=3)
    assert [G.n_vertices for G in H.sheaves] == [400, 115, 33, 10]
    H = sc.coarsen_levels(grid(), rank=3)
    assert [G.n_vertices for G in H.sheaves] == [400, 40]
    H = sc.coarsen_levels(grid(10), rank=3)
    assert (len(H), H.sheaves, H.stopped_because) == (
        0,
        (H.fine,),
        "100 vertices are at most `min_vertices` = 100",
    )


def test_exactly_so_many_levels_as_were_asked_for():
    for n_levels in range(4):
        H = sc.coarsen_levels(grid(), 4, n_levels, rank=3)
        assert [G.n_vertices for G in H.sheaves] == [400, 100, 25, 7][: n_levels + 1]
        assert H.stopped_because == f"`n_levels` = {n_levels}"


def test_levels_end_where_they_cannot_shrink():
    F = grid()
    H = sc.coarsen_levels(F, 4, 9, rank=3)
    assert [G.n_vertices for G in H.sheaves] == [400, 100, 25, 7, 2, 1]
    assert H.stopped_because == "level 5 cannot shrink: it starts from 1 vertices"
    two = sc.disjoint_union([F, F, F])[0]
    H = sc.coarsen_levels(two, 20, 9, rank=3)
    assert [G.n_vertices for G in H.sheaves] == [1200, 60, 3]
    assert H.stopped_because == "level 2 cannot shrink: none of its 3 vertices is linked to another"
    assert (
        sc.coarsen_levels(CellularSheaf.constant([[0, 0]], n_vertices=3), n_levels=1, rank=1).levels
        == ()
    )
    H = sc.coarsen_levels(F, 1.001, rank=3)
    assert (
        H.stopped_because
        == "level 0 cannot shrink: `factor` = 1.001 makes 400 clusters of 400 vertices"
    )
    H = sc.coarsen_levels(
        CellularSheaf.random(nx.complete_graph(200), 2, 2, seed=3), rank=sc.ranks.kernel()
    )
    assert (len(H), H.stopped_because) == (0, "level 0 would keep no mode of any cluster")
    nothing = CellularSheaf.from_flat([], [], [], [], [])
    assert sc.coarsen_levels(nothing, n_levels=1, rank=1).stopped_because.endswith(
        "it starts from 0 vertices"
    )


def test_components_are_never_joined():
    F = sc.disjoint_union([grid(3)] * 30)[0]
    H = sc.coarsen_levels(F, 50, n_levels=1, rank=3)
    assert [G.n_vertices for G in H.sheaves] == [270, 30]
    assert H[0].sheaf.n_edges == 30  # loops


def test_given_partitions():
    F = grid()
    first, second = Partition(np.arange(400) % 7), Partition([0, 0, 1, 1, 2, 2, 2])
    H = sc.coarsen_levels(F, partitions=iter((first, second)), rank=[3, sc.ranks.kernel()])
    assert [C.partition for C in H] == [first, second]
    assert H.stopped_because == "`partitions` holds 2"
    everything = [Partition(np.arange(400)), Partition(np.zeros(400, int)), Partition([0])]
    H = sc.coarsen_levels(F, partitions=everything, rank=5)
    assert [G.n_vertices for G in H.sheaves] == [400, 400, 1, 1]
    assert [G.dim_c0 for G in H.sheaves] == [800, 800, 5, 5]
    assert (
        sc.coarsen_levels(F, partitions=everything, rank=0).sheaves[-1].dim_c0 == 0
    )  # as asked for
    assert len(sc.coarsen_levels(F, partitions=[], rank=5)) == 0


def test_ranks_level_by_level():
    F, P, Q = grid(), Partition(np.arange(400) // 100), Partition([0, 0, 1, 1])
    H = sc.coarsen_levels(F, partitions=[P, Q], rank=(2, [1, 3]))
    assert [C.ranks.tolist() for C in H] == [[2] * 4, [1, 3]]
    H = sc.coarsen_levels(F, partitions=[P, Q], rank=[np.array([4, 3, 2, 1]), sc.ranks.budget(3)])
    assert H[0].ranks.tolist() == [4, 3, 2, 1]
    assert H[1].ranks.sum() == 3
    H = sc.coarsen_levels(F, 4, min_vertices=10, rank=[3, 4])
    assert [set(C.ranks.tolist()) for C in H] == [{3}, {4}]
    assert H.stopped_because == "`rank` has entries for 2 levels"
    H = sc.coarsen_levels(F, 10, rank=[3, 4, 5])  # fewer vertices come first
    assert (len(H), H.stopped_because) == (1, "40 vertices are at most `min_vertices` = 100")


def test_every_option_reaches_its_levels():
    F = grid()
    plain = sc.coarsen_levels(F, 4, 2, rank=3)
    for C in plain:
        assert (C.modes.local_operator, C.loops, C.crossing_rows) == ("internal", True, None)
        np.testing.assert_array_equal(
            C.partition.labels, sc.select(C.fine, C.partition.n_clusters).labels
        )
    assert all(
        C.modes.local_operator == "principal"
        for C in sc.coarsen_levels(F, 4, 2, rank=3, local_operator="principal")
    )
    assert not any(C.loops for C in sc.coarsen_levels(F, 4, 2, rank=3, loops=False))
    assert all(
        C.crossing_rows is not None for C in sc.coarsen_levels(F, 4, 2, rank=3, compress=False)
    )
    for options in ({"seed": 5}, {"method": "matching"}):
        for C in sc.coarsen_levels(F, 4, 2, rank=3, **options):
            expected = sc.select(C.fine, C.partition.n_clusters, **options).labels
            np.testing.assert_array_equal(C.partition.labels, expected)
            assert (expected != sc.select(C.fine, C.partition.n_clusters).labels).any()


def test_a_progress_bar_is_shown_when_asked_for(capsys):
    sc.coarsen_levels(grid(), 4, 1, rank=3)
    assert capsys.readouterr().err == ""
    sc.coarsen_levels(grid(), 4, 1, rank=3, progress=True)
    assert "local modes" in capsys.readouterr().err


def test_the_table():
    H = sc.coarsen_levels(grid(), 4, 2, rank=3)
    head, names, *rows = repr(H).splitlines()
    assert head == "Hierarchy: 2 levels; stopped because `n_levels` = 2"
    assert re.split("  +", names.strip()) == [
        "vertices",
        "edges",
        "dim C^0",
        "dim C^1",
        "nonzeros",
        "time",
    ]
    shares = []
    for i, (row, F) in enumerate(zip(rows, H.sheaves, strict=True)):
        numbers = row.replace("%", "").split()
        counts = (i, F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1, sc.laplacian(F).nnz)
        assert [int(number) for number in numbers[:6]] == list(counts)
        shares += numbers[6:]
    assert len(shares) == 2
    assert 98 <= sum(map(int, shares)) <= 102
    unknown = dataclasses.replace(H, seconds=None)
    assert all(row.endswith("  -") for row in repr(unknown).splitlines()[3:])
    assert repr(sc.coarsen_levels(grid(), n_levels=1, rank=3)).startswith(
        "Hierarchy: 1 level; stopped"
    )
    assert repr(sc.Hierarchy(H.fine, H.levels)).startswith("Hierarchy: 2 levels\n")


@given(sheaves())
def test_the_table_counts_what_the_laplacian_stores(F):
    row = repr(sc.Hierarchy(F, ())).splitlines()[2].split()
    assert int(row[5]) == sc.laplacian(F).nnz


# ---------------------------------------------------------------- what is refused

F = CellularSheaf.random(nx.path_graph(6), 2, 2, seed=3)
THREE, TWO = Partition([0, 0, 1, 1, 2, 2]), Partition([0, 0, 1])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"partitions": [TWO]}, ValueError, "`partitions[0]` must label the sheaf's 6 vertices, got a partition of 3"),
        ({"partitions": [THREE, THREE]}, ValueError, "`partitions[1]` must label the 3 clusters of `partitions[0]`, got a partition of 6"),
        ({"partitions": THREE}, TypeError, "`partitions` must be a sequence of Partitions, one per level, got a single one: [P]"),
        ({"partitions": 3}, TypeError, "`partitions` must be a sequence of Partitions, one per level, got int"),
        ({"partitions": [[0, 0, 0, 1, 1, 1]]}, TypeError, "`partitions[0]` must be a Partition, got list: Partition(labels) makes"),
        ({"partitions": [THREE], "factor": 3}, ValueError, "`partitions` says what the levels are: leave `factor` out"),
        ({"partitions": [THREE], "n_levels": 1}, ValueError, "`partitions` says what the levels are: leave `n_levels` out"),
        ({"partitions": [THREE], "min_vertices": 5}, ValueError, "leave `min_vertices` out"),
        ({"partitions": [THREE], "method": "metis"}, ValueError, "leave `method` out"),
        ({"partitions": [THREE], "seed": 3}, ValueError, "leave `seed` out"),
        ({"partitions": [THREE], "factor": np.ones(2)}, ValueError, "leave `factor` out"),
        ({"partitions": [THREE, TWO], "rank": [1]}, ValueError, "`rank` must have one entry per level, 2 in all, got 1"),
        ({"partitions": [THREE, TWO], "rank": [1, [1, 2, 3]]}, ValueError, "level 1: `rank` must hold one integer per cluster, 2 in all"),
        ({"partitions": [THREE], "rank": [-1]}, ValueError, "`rank[0]` must be at least 0, got -1"),
        ({"rank": -1}, ValueError, "`rank` must be at least 0, got -1"),
        ({"rank": 1.5}, TypeError, "`rank` must be an integer"),
        ({"rank": [2, "kernel"]}, TypeError, "`rank[1]` must be an integer"),
        ({"rank": np.array([2, 3])}, TypeError, "got an array of shape (2,): list(rank) is one rank per level, [rank] the ranks of one"),
        ({"rank": sc.local_modes(F, THREE, 4)}, TypeError, "`rank` must be an integer"),
        ({"rank": [2, 3], "n_levels": 3}, ValueError, "`rank` must have one entry per level, 3 in all, got 2"),
        ({"factor": 1}, ValueError, "`factor` must be above 1 and finite, got 1: it is the number of vertices per cluster"),
        ({"factor": 0.1}, ValueError, "`factor` must be above 1 and finite, got 0.1"),
        ({"factor": np.nan}, ValueError, "`factor` must be above 1 and finite, got nan"),
        ({"factor": np.inf}, ValueError, "`factor` must be above 1 and finite, got inf"),
        ({"factor": "10"}, TypeError, "`factor` must be a real number"),
        ({"n_levels": -1}, ValueError, "`n_levels` must be at least 0, got -1"),
        ({"n_levels": 2.0}, TypeError, "`n_levels` must be an integer"),
        ({"min_vertices": 0}, ValueError, "`min_vertices` must be at least 1, got 0"),
        ({"n_levels": 2, "min_vertices": 5}, ValueError, "`n_levels` = 2 and `min_vertices` = 5 both say when to stop: leave one"),
        ({"method": "best"}, ValueError, "`method` must be one of"),
        ({"local_operator": "best"}, ValueError, "`local_operator` must be one of"),
        ({"loops": "no"}, TypeError, "`loops` must be True or False"),
        ({"compress": 1}, TypeError, "`compress` must be True or False"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        sc.coarsen_levels(F, **{"rank": 1, **options})


def test_errors_name_their_level():
    large = CellularSheaf.constant(nx.path_graph(2000))
    with pytest.raises(
        ValueError, match='level 0: `n_clusters` must be at most 500 for method "spectral"'
    ):
        sc.coarsen_levels(large, 2, rank=1, method="spectral")


def test_maps_of_another_topology_are_refused():
    H = sc.coarsen_levels(F, partitions=[THREE, TWO], rank=2)
    for levels in (H, sc.coarsen_levels(F, partitions=[], rank=2)):
        with pytest.raises(
            ValueError,
            match="its edges differ, there are 4 of them, not 5: use coarsen_levels for another",
        ):
            levels.recoarsen(CellularSheaf.random(nx.path_graph(5), 2, 2))
        with pytest.raises(
            ValueError,
            match="vertex_dims differ, first at index 0, where 1 stands for 2: use coarsen_l",
        ):
            levels.recoarsen(CellularSheaf.random(nx.path_graph(6), 1, 2))
        for junk in (H, None, 3):
            with pytest.raises(TypeError, match="`sheaf` must be a CellularSheaf"):
                levels.recoarsen(junk)


def test_levels_and_cochains_that_do_not_fit_are_refused():
    H = sc.coarsen_levels(F, partitions=[THREE, TWO], rank=2)
    for call in (
        H.prolongation,
        lambda level: H.pool(np.ones(12), level),
        lambda level: H.lift(np.ones(4), level),
    ):
        with pytest.raises(
            ValueError,
            match="`level` must be between 0, the fine sheaf, and 2, the coarsest, got 3",
        ):
            call(3)
        with pytest.raises(ValueError, match="`level` must be at least 0, got -1"):
            call(-1)
        with pytest.raises(TypeError, match="`level` must be an integer"):
            call("coarsest")
    with pytest.raises(
        ValueError, match="`x` must have shape .* with dim_c0 = 12 of the fine sheaf"
    ):
        H.pool(np.ones(4))
    with pytest.raises(
        ValueError, match="`x` must have shape .* with dim_c0 = 12 of the fine sheaf"
    ):
        H.ledger(np.ones(4))
    with pytest.raises(
        ValueError, match="`z` must have shape .* with dim_c0 = 6 of level 1's sheaf"
    ):
        H.lift(np.ones(4), 1)
    with pytest.raises(IndexError):
        H[2]


def test_levels_that_do_not_follow_one_another_are_refused():
    H = sc.coarsen_levels(F, partitions=[THREE, TWO], rank=2)
    for levels, message in (
        ((H[1],), "`levels[0]` must be a coarsening of `fine`"),
        ((H[0], H[0]), "`levels[1]` must be a coarsening of `levels[0].sheaf`"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            dataclasses.replace(H, levels=levels, seconds=None)
    with pytest.raises(
        TypeError, match=re.escape("`levels[1]` must be a Coarsening, got CellularSheaf")
    ):
        sc.Hierarchy(F, (H[0], F))
    with pytest.raises(
        ValueError, match="`seconds` must hold one number per level, 2 in all, got 1"
    ):
        dataclasses.replace(H, seconds=(1.0,))


@pytest.mark.filterwarnings("default::sheafcoarsen.TiedModesWarning")
def test_ties_are_told_where_it_is_called_once_per_level():
    constant = CellularSheaf.constant(nx.complete_graph(8))
    given_ = [Partition([0, 0, 0, 0, 1, 1, 1, 1]), Partition([0, 0])]
    with pytest.warns(sc.TiedModesWarning) as caught:
        H = sc.coarsen_levels(constant, partitions=given_, rank=[2, 1])
    assert [str(w.message)[:52] for w in caught] == [
        "level 0: the cut splits a multiple eigenvalue in 2 o"
    ]
    with pytest.warns(sc.TiedModesWarning, match="level 0: the cut splits") as again:
        H.recoarsen(constant)
    assert {w.filename for w in (*caught, *again)} == {__file__}
