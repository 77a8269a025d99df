import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from sheafcoarsen._support import threads as threads_module
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, residual, ties_allowed
from tests.support.strategies import DTYPES, bases, mode_counts, sheaves_with_partitions


@st.composite
def coarsenings(draw, **options):
    """Draw a coarsening of any kind: internal or principal modes, or own blocks."""
    F, P = draw(sheaves_with_partitions())
    kind = draw(st.sampled_from(["internal", "principal", "basis"]))
    if kind == "basis":
        return sc.coarsen(F, P, basis=draw(bases(F, P)), **options)
    with ties_allowed():
        return sc.coarsen(F, P, draw(mode_counts(P)), local_operator=kind, **options)


def blocks_of(C):
    return [C.block(a) for a in range(C.partition.n_clusters)]


def rows_of_pairs(C):
    """Return the rows of the coarse C^1 that belong to each crossing edge."""
    ends = C.sheaf.edge_offsets
    return [slice(int(ends[p]), int(ends[p + 1])) for p in range(C.n_crossing_edges)]


def dims_of(C):
    """N_a and r_a, whichever is larger: the size of a cluster's block."""
    return [max(R_a.shape) for R_a in blocks_of(C)]


# ---------------------------------------------------------------- crossing edges


@given(coarsenings())
def test_crossing_edges_are_sorted_pairs_then_come_loops_sorted_too(C):
    F, P = C.fine, C.partition
    groups = reference.crossing_groups(F, P)
    crossing, loops = (
        C.sheaf.edges[: C.n_crossing_edges].tolist(),
        C.sheaf.edges[C.n_crossing_edges :].tolist(),
    )
    assert [tuple(edge) for edge in crossing] == list(groups)  # sorted, a < b
    assert all(a == b for a, b in loops)
    assert loops == sorted(loops)
    assert len({a for a, _ in loops}) == len(loops)  # at most one at a cluster
    dims = [sum(int(F.edge_dims[e]) for e in group) for group in groups.values()]
    assert C.sheaf.edge_dims[: C.n_crossing_edges].tolist() == dims
    assert C.sheaf.vertex_dims.tolist() == [R_a.shape[1] for R_a in blocks_of(C)]
    assert C.crossing_rows.tolist() == reference.crossing_rows(F, P)
    assert not C.crossing_rows.flags.writeable


@given(coarsenings())
def test_maps_of_crossing_edges_are_those_of_the_definition(C):
    F, P, bases_ = C.fine, C.partition, blocks_of(C)
    delta, R, n = reference.coboundary(F), C.prolongation.toarray(), dims_of(C)
    expected = reference.crossing_maps(F, P, bases_)
    for p, (a, b) in enumerate(expected):
        rows = delta[C.crossing_rows[rows_of_pairs(C)[p]]]
        for ours, theirs, at in (
            (C.sheaf.tail_map(p), expected[a, b][0], a),
            (C.sheaf.head_map(p), expected[a, b][1], b),
        ):
            rows_at = rows[:, reference.cluster_coordinates(F, P, at)]
            assert_residual(ours - theirs, rows_at, bases_[at], n=n[at], eps=eps_of(R.dtype))


@given(coarsenings())
def test_crossing_rows_of_the_coarse_coboundary_are_rows_of_the_fine_one_sign_included(C):
    F, P = C.fine, C.partition
    coarse = sc.coboundary(C.sheaf).toarray()
    delta, R = reference.coboundary(F), C.prolongation.toarray()
    n = dims_of(C)
    for (a, b), rows in zip(reference.crossing_groups(F, P), rows_of_pairs(C), strict=True):
        fine = delta[C.crossing_rows[rows]]
        lifted = [C.block(a), C.block(b)]
        size = np.sqrt(
            sum(np.abs(U).astype(float).ravel() @ np.abs(U).astype(float).ravel() for U in lifted)
        )
        assert_residual(coarse[rows] - fine @ R, fine, size, n=max(n[a], n[b]), eps=eps_of(R.dtype))


@pytest.mark.parametrize("ends", [(0, 1), (1, 0)], ids=["tail in a", "tail in b"])
def test_a_coarse_edge_by_hand(ends):
    F = CellularSheaf([ends, (0, 1)], [[[2.0]], [[5.0]]], [[[3.0]], [[7.0]]])
    C = sc.coarsen(F, Partition([0, 1]), 1)
    tail, head = C.sheaf.tail_map(0), C.sheaf.head_map(0)
    if ends == (0, 1):
        assert (tail.tolist(), head.tolist()) == ([[2], [5]], [[3], [7]])
    else:  # both rows negated: delta stays 2 x_1 - 3 x_0
        assert (tail.tolist(), head.tolist()) == ([[-3], [5]], [[-2], [7]])
    assert sc.coboundary(C.sheaf).toarray().tolist() == sc.coboundary(F).toarray().tolist()
    assert C.n_crossing_edges == C.sheaf.n_edges == 1


# ---------------------------------------------------------------- loops


@given(coarsenings())
def test_loops_hold_half_a_factor_of_the_retained_energy_at_either_end(C):
    F, P, bases_ = C.fine, C.partition, blocks_of(C)
    loops = {int(C.sheaf.edges[e, 0]): e for e in range(C.n_crossing_edges, C.sheaf.n_edges)}
    for a, R_a in enumerate(bases_):
        B = np.zeros((0, R_a.shape[1]), C.sheaf.dtype)
        if a in loops:
            tail, head = C.sheaf.tail_map(loops[a]), C.sheaf.head_map(loops[a])
            assert len(tail) > 0
            np.testing.assert_array_equal(tail, -head)  # B / 2 and -B / 2, to the last bit
            B = tail - head
        delta_a = reference.internal_coboundary(F, P, a)
        H = reference.retained_internal_operator(F, P, bases_, a)
        error = B.conj().T @ B - H
        assert_residual(
            error, delta_a, delta_a, R_a, R_a, n=max(R_a.shape), eps=eps_of(C.sheaf.dtype)
        )


@given(sheaves_with_partitions(), st.data())
def test_loops_of_spectral_modes_are_diagonal_without_rows_of_zero_energy(case, data):
    F, P = case
    with ties_allowed():
        M = sc.local_modes(F, P, data.draw(mode_counts(P)))
    C = sc.coarsen(F, P, M)
    e = C.n_crossing_edges
    for a in range(P.n_clusters):
        values, N = M.eigenvalues(a), len(M.basis(a))
        level = 4 * N * eps_of(F.dtype) * float(M.operator_norms[a])
        kept = np.flatnonzero(values.astype(float) > level)
        if kept.size == 0:
            continue
        assert C.sheaf.edges[e].tolist() == [a, a]
        half = np.zeros((kept.size, values.size), F.dtype)
        half[np.arange(kept.size), kept] = np.sqrt(values[kept]) / 2
        np.testing.assert_array_equal(C.sheaf.tail_map(e), half)
        e += 1
    assert e == C.sheaf.n_edges


@given(sheaves_with_partitions(), st.data())
def test_loops_have_no_row_of_zero_energy(case, data):
    F, P = case
    basis = data.draw(bases(F, P))
    C = sc.coarsen(F, P, basis=basis)
    for e in range(C.n_crossing_edges, C.sheaf.n_edges):
        a = int(C.sheaf.edges[e, 0])
        delta_a = reference.internal_coboundary(F, P, a)
        B = C.sheaf.tail_map(e) - C.sheaf.head_map(e)
        assert len(B) <= min(basis[a].shape)
        for row in B:  # each would be seen: its square is above the rounding of H_a
            assert residual(row, n=1) > 0
            assert (
                residual(
                    np.abs(row).astype(float).max() ** 2, delta_a, delta_a, basis[a], basis[a], n=1
                )
                > 1e-3
            )


BUNDLE = gallery.bundle(nx.connected_watts_strogatz_graph(30, 4, 0.3, seed=5), 3, seed=7)
THREE_BALLS = Partition(np.arange(30) // 10)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_a_bundle_at_the_rank_of_its_sections_needs_no_loops(scale):
    F = BUNDLE.with_maps(BUNDLE.tail_data * scale, BUNDLE.head_data * scale)
    for extra, n_loops in ((0, 0), (1, 3)):
        with ties_allowed():
            C = sc.coarsen(F, THREE_BALLS, 3 + extra)
        assert C.sheaf.n_edges - C.n_crossing_edges == n_loops
        assert C.sheaf.edge_dims[C.n_crossing_edges :].tolist() == [extra] * n_loops
        by_hand = sc.coarsen(F, THREE_BALLS, basis=[C.block(a) for a in range(3)])
        assert by_hand.sheaf.edge_dims.tolist() == C.sheaf.edge_dims.tolist()


@given(coarsenings(loops=False))
def test_without_loops_the_coarse_sheaf_is_that_of_the_crossing_edges(C):
    F, P, bases_ = C.fine, C.partition, blocks_of(C)
    assert C.loops is False
    assert C.sheaf.n_edges == C.n_crossing_edges == len(reference.crossing_groups(F, P))
    delta_x = reference.crossing_coboundary(F, P, bases_)
    L, expected = sc.laplacian(C.sheaf).toarray(), delta_x.conj().T @ delta_x
    delta_X, n = reference.fine_crossing_coboundary(F, P), dims_of(C)
    for a, R_a in enumerate(bases_):
        for b, R_b in enumerate(bases_):
            here = np.ix_(
                reference.coarse_coordinates(bases_, a), reference.coarse_coordinates(bases_, b)
            )
            at_a, at_b = (delta_X[:, reference.cluster_coordinates(F, P, c)] for c in (a, b))
            error = L[here] - expected[here]
            assert_residual(
                error, R_a, R_b, at_a, at_b, n=max(n[a], n[b]), eps=eps_of(C.sheaf.dtype)
            )


# ---------------------------------------------------------------- threads


@pytest.mark.parametrize("kind", ["internal", "principal", "basis"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_number_of_threads_does_not_change_a_bit(kind, dtype, monkeypatch):
    F = CellularSheaf.random(nx.gnm_random_graph(120, 4000, seed=3), 3, 2, seed=5, dtype=dtype)
    P = Partition(np.arange(120) // 8)
    options = {"rank": 5, "local_operator": kind}
    if kind == "basis":
        rng = np.random.default_rng(7)
        options = {"basis": [rng.standard_normal((24, 5)).astype(dtype) for _ in range(15)]}
    started = []
    pool = threads_module.ThreadPoolExecutor
    monkeypatch.setattr(
        "sheafcoarsen._support.threads.ThreadPoolExecutor",
        lambda threads: started.append(threads) or pool(threads),
    )
    for module in ("modes.problems", "coarsening.crossing", "coarsening.loops"):
        monkeypatch.setattr(f"sheafcoarsen.{module}.SERIAL_BELOW", 0.0)
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(
            "sheafcoarsen._support.threads.thread_count", lambda threads=threads: threads
        )
        results.append(sc.coarsen(F, P, **options))
    assert len(started) >= 2
    one, two = results
    np.testing.assert_array_equal(one.prolongation.data, two.prolongation.data)
    for name in ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data"):
        np.testing.assert_array_equal(getattr(one.sheaf, name), getattr(two.sheaf, name))


def test_own_blocks_on_a_bundle_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        basis = [np.eye(30, 2)] * 3
        assert sc.coarsen(BUNDLE, THREE_BALLS, basis=basis).sheaf.vertex_dims.tolist() == [2, 2, 2]
