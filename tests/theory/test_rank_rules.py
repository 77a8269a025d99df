"""Rank rules against brute force on dense spectra; kernels against dense singular values."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen.ranks import Spectra
from tests.support import reference
from tests.support.helpers import assert_residual, assert_verified, dense_kernel, eps_of
from tests.support.strategies import DTYPES, sheaves_with_partitions

quiet = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
OPERATORS = st.sampled_from(["internal", "principal"])


def spectra(*clusters, ties=0.0):
    """Return Spectra with the scores passed, in which zero scores count as kernels."""
    scores = [np.sort(np.array(c, float)) for c in clusters]
    dims = np.array([len(c) for c in scores], np.int64)
    starts = np.concatenate([[0], np.cumsum(dims)])
    kernels = np.array([int((c == 0).sum()) for c in scores], np.int64)
    flat = np.concatenate(scores) if scores else np.zeros(0)
    return Spectra(dims, starts, flat, kernels, np.full(len(flat), ties))


# small integers, so that ties occur
CLUSTERS = st.lists(st.lists(st.integers(0, 5).map(float), max_size=7), max_size=5)


@given(CLUSTERS, st.integers(0, 6))
def test_below_counts_scores_at_most_tau(clusters, tau):
    expected = [sum(score <= tau for score in c) for c in clusters]
    assert sc.ranks.below(tau).ranks(spectra(*clusters)).tolist() == expected


@given(CLUSTERS, st.integers(0, 40))
def test_budget_takes_the_smallest_scores_and_breaks_ties_by_cluster(clusters, total):
    everything = sorted((score, a) for a, c in enumerate(clusters) for score in c)
    taken = [a for _, a in everything[:total]]
    seen = spectra(*clusters)
    # kernels that are known, as for oversampled modes, are retained
    whole = sc.ranks.budget(total).ranks(seen)
    assert whole.tolist() == [max(taken.count(a), c.count(0)) for a, c in enumerate(clusters)]
    ranks = sc.ranks.budget(total).ranks(seen._replace(kernels=0 * seen.kernels))
    assert ranks.tolist() == [taken.count(a) for a in range(len(clusters))]
    assert ranks.sum() == min(total, len(everything))


@given(CLUSTERS, st.integers(1, 8))
def test_gap_cuts_at_the_first_of_the_widest_gaps(clusters, max_rank):
    def brute(c):
        c = sorted(c)
        if len(c) <= 1:
            return len(c)
        return max(range(1, min(max_rank, len(c) - 1) + 1), key=lambda r: (c[r] - c[r - 1], -r))

    assert sc.ranks.gap(max_rank).ranks(spectra(*clusters)).tolist() == [brute(c) for c in clusters]


@given(CLUSTERS, st.integers(0, 7), st.sampled_from([0.0, 1.0]))
def test_whole_multiplets_extend_ranks_to_the_end_of_a_tie(clusters, r, tie):
    def brute(c):
        c, k = sorted(c), min(r, len(c))
        while 0 < k < len(c) and c[k] - c[k - 1] <= tie:
            k += 1
        return k

    rule = sc.ranks.fixed(r).whole_multiplets()
    assert rule.ranks(spectra(*clusters, ties=tie)).tolist() == [brute(c) for c in clusters]


@given(CLUSTERS, st.integers(0, 20))
def test_whole_multiplets_can_wrap_any_rule(clusters, total):
    seen, rules = spectra(*clusters), sc.ranks
    for rule in (rules.budget(total), rules.below(total), rules.gap(total + 1), rules.kernel()):
        narrow, wide = rule.ranks(seen), rule.whole_multiplets().ranks(seen)
        assert (wide >= narrow).all()
        assert (wide[narrow == 0] == 0).all()
        twice = rule.whole_multiplets().whole_multiplets().ranks(seen)
        np.testing.assert_array_equal(twice, wide)


@quiet
@given(sheaves_with_partitions(spread=False), OPERATORS, st.floats(0.1, 0.9))
def test_below_counts_eigenvalues_of_the_local_operator(case, operator, share):
    F, P = case
    values = [reference.local_modes(F, P, a, 10**6, operator)[0] for a in range(P.n_clusters)]
    top = max((v.max(initial=0) for v in values), default=0)
    tau, level = share * top, 1e3 * eps_of(F.dtype) * top
    if any(np.abs(v - tau).min(initial=np.inf) <= len(v) * level for v in values):
        return  # tau is too close to an eigenvalue
    M = sc.local_modes(F, P, sc.ranks.below(tau), operator)
    assert M.ranks.tolist() == [int((v <= tau).sum()) for v in values]


@pytest.mark.filterwarnings("ignore:.*discards modes of eigenvalue 0")
@quiet
@given(sheaves_with_partitions(), OPERATORS, st.integers(0, 30))
def test_budget_retains_exactly_its_total(case, operator, total):
    F, P = case
    M = sc.local_modes(F, P, sc.ranks.budget(total), operator)
    assert M.ranks.sum() == min(total, F.dim_c0)
    top = max(M.operator_norms.max(initial=0), np.finfo(F.dtype).tiny)
    # no discarded score is smaller than a kept one, up to rounding
    excess = max(M.scores.max(initial=0) - M.next_eigenvalues.min(initial=np.inf), 0)
    assert_residual(excess, top, n=max(F.dim_c0, 1), eps=eps_of(F.dtype))


@given(sheaves_with_partitions(), OPERATORS, st.integers(0, 5))
def test_whole_multiplets_are_never_tied(case, operator, r):
    M = sc.local_modes(*case, sc.ranks.fixed(r).whole_multiplets(), operator)  # without a warning
    assert not M.tied.any()
    assert (M.ranks >= np.minimum(r, M.clusters.dims)).all()


def local_stack(F, P, a, operator):
    """Return delta_a, for "principal" with the near maps of crossing edges."""
    delta = reference.internal_coboundary(F, P, a)
    if operator == "internal":
        return delta
    whole = reference.coboundary(F)[:, reference.cluster_coordinates(F, P, a)]
    crossing = [whole[reference.edge_coordinates(F, e)] for e in reference.crossing_edges(F, P)]
    return np.concatenate([delta, *crossing])


@given(sheaves_with_partitions(), OPERATORS)
def test_kernel_rank_is_the_nullity_of_the_local_coboundary(case, operator):
    F, P = case
    M = sc.local_modes(F, P, sc.ranks.kernel(), operator)
    for a in range(P.n_clusters):
        G = local_stack(F, P, a, operator)
        exact = dense_kernel(G)
        assert M.ranks[a] == exact.shape[1]
        U = M.basis(a)
        assert_residual(G @ U, G, U, n=max(G.shape), eps=eps_of(F.dtype))
        assert_residual(U.conj().T @ U - np.eye(U.shape[1]), n=max(len(U), 1), eps=eps_of(F.dtype))


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SingularProblemWarning")
@given(sheaves_with_partitions(spread=False))
def test_kernel_modes_need_no_loops_and_preserve_global_sections(case):
    C = sc.coarsen(*case, sc.ranks.kernel())
    assert C.sheaf.n_edges == C.n_crossing_edges
    V = assert_verified(C)
    for label in ("eq:loopless_exact_realization", "prop:kernel_preservation_loopless", "fact-2"):
        assert V[label].skipped_because is None


def test_kernel_resolves_singular_values_below_the_root_of_eps():
    """Maps that differ by 1e-10 have an eigenvalue of 1e-20, which is below rounding."""
    F = sc.CellularSheaf([[0, 1], [0, 1]], [[[1.0]], [[1.0]]], [[[1.0]], [[1.0 + 1e-10]]])
    P = sc.Partition([0, 0])
    assert sc.local_modes(F, P, sc.ranks.kernel()).ranks.tolist() == [0]
    same = F.with_maps(F.tail_data, F.tail_data)
    assert sc.local_modes(same, P, sc.ranks.kernel()).ranks.tolist() == [1]


@pytest.mark.parametrize("weight", [1e-15, 1e-30, 1e-200])
def test_kernel_counts_edges_of_any_weight(weight):
    F = sc.CellularSheaf.constant(nx.path_graph(4), weight=[1, weight, 1])
    C = sc.coarsen(F, sc.Partition([0, 0, 0, 0]), sc.ranks.kernel())
    assert C.ranks.tolist() == [1]
    assert_residual(C.modes.basis(0) - 0.5, 1.0, n=4)
    halves = sc.Partition([0, 0, 1, 1])  # the principal operators also contain the middle edge
    assert sc.local_modes(F, halves, sc.ranks.kernel(), "principal").ranks.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("dim", "digits", "rank", "operator", "dtype"),
    [(2, 12, sc.ranks.kernel(), "internal", np.float64),
     (2, 8, sc.ranks.kernel(), "internal", np.complex64),
     (2, 12, sc.ranks.kernel(), "oversampled", np.float64),
     *(pytest.param(*case, marks=quiet) for case in (
        (1, 3, 1, "internal", np.float64), (2, 12, 2, "internal", np.float64),
        (2, 12, 5, "internal", np.complex128), (2, 8, 2, "internal", np.float32),
        (2, 12, 5, "oversampled", np.complex128), (2, 5, 5, "oversampled", np.float32)))],
)  # fmt: skip
def test_no_section_is_lost_where_weights_differ_by_many_digits(dim, digits, rank, operator, dtype):
    for seed in range(3):
        grid = sc.gallery.bundle(nx.grid_2d_graph(9, 9), dim, seed=seed)
        rng = np.random.default_rng(seed)
        roots = np.repeat(10 ** (rng.uniform(-digits, digits, grid.n_edges) / 4), dim * dim)
        F = grid.with_maps(*((roots * X).astype(dtype) for X in (grid.tail_data, grid.head_data)))
        C = sc.coarsen(F, sc.select(F, 4), rank, local_operator=operator)
        assert sc.cohomology_dims(C.sheaf)[0] == dim
        if C.modes.singular:
            for result in (C, C.recoarsen(F.with_maps(2 * F.tail_data, 2 * F.head_data))):
                assert not result.modes.tied.any()
                assert sc.verify(result)["section-2"].passed
        gram = C.prolongation.conj().T @ C.prolongation
        assert_residual(gram - np.eye(C.ranks.sum()), n=81 * dim, eps=eps_of(dtype))


@pytest.mark.parametrize(
    ("graph", "dim", "digits", "operator", "dtype"),
    [(nx.grid_2d_graph(8, 8), 3, 10, "internal", np.float64),
     (nx.path_graph(60), 1, 10, "internal", np.complex128),
     (nx.random_labeled_tree(60, seed=2), 2, 4, "internal", np.float32),
     (nx.grid_2d_graph(8, 8), 3, 10, "oversampled", np.float64),
     (nx.path_graph(60), 1, 10, "oversampled", np.complex128),
     (nx.random_labeled_tree(60, seed=2), 2, 4, "oversampled", np.float32)],
)  # fmt: skip
def test_no_section_is_lost_where_scales_of_vertices_differ_by_many_digits(
    graph, dim, digits, operator, dtype
):
    """F_v s_v has the sections x_v / s_v; the basis of every cluster fits each of its edges."""
    for seed in range(3):
        bundle = sc.gallery.bundle(graph, dim, seed=seed)
        rng, (u, v) = np.random.default_rng(seed), bundle.edges.T
        scale = 10 ** (rng.uniform(-digits, digits, bundle.n_vertices) / 2)
        ends = (u, bundle.tail_data), (v, bundle.head_data)
        maps = [(np.repeat(scale[end], dim * dim) * data).astype(dtype) for end, data in ends]
        F = bundle.with_maps(*maps)
        P, rule = sc.select(F, 4), sc.ranks.kernel()
        C = sc.coarsen(F, P, rule, local_operator=operator)
        assert C.ranks.tolist() == [dim] * 4
        assert not sc.local_modes(F, P, rule, "principal").ranks.any()
        assert sc.cohomology_dims(C.sheaf)[0] == dim
        inside = P.labels[u] == P.labels[v]
        sizes = np.linalg.norm(C.prolongation.toarray().reshape(-1, dim * 4 * dim), axis=1) * scale
        misfit = (sc.coboundary(F) @ C.prolongation).toarray().reshape(-1, dim, 4 * dim)[inside]
        misfit /= np.maximum(sizes[u], sizes[v])[inside, None, None]
        assert_residual(misfit, n=F.dim_c0, eps=eps_of(dtype))


@pytest.mark.parametrize(
    ("operator", "n", "scale"),
    [("internal", 4, 1e100), ("internal", 40, 1e-100), ("oversampled", 4, 1.0),
     ("oversampled", 40, 1e100)],
)  # fmt: skip
def test_rounding_errors_of_a_cancelling_loop_do_not_count_as_rank(operator, n, scale):
    """The maps differ by a few units in the last place, more than n eps times the other maps."""
    A, P = 1e3 * np.random.default_rng(3).standard_normal((2, 2)), sc.Partition(np.zeros(n, int))
    edges, eyes = [*nx.path_graph(n).edges, (0, 0)], [np.eye(2)] * (n - 1)
    for head, s, rank in ((np.nextafter(A, np.inf), scale, 2), (A + 1e-9, 1.0, 1)):
        F = sc.CellularSheaf(edges, *([s * M for M in (*eyes, loop)] for loop in (A, head)))
        M = sc.local_modes(F, P, sc.ranks.kernel(), operator)
        assert M.ranks.tolist() == [rank]
        constants = M.prolongation.toarray().reshape(n, 2, rank)
        assert_residual(constants - constants[0], 1.0, n=2 * n)


@pytest.mark.parametrize("operator", ["internal", "oversampled", "basis"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_errors_of_cancelling_loops_do_not_become_coarse_loops(dtype, operator):
    """The loops are all internal edges; L_a consists of their rounding errors."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((8, 3, 3)) + 1j * rng.standard_normal((8, 3, 3)))[0]
    Q = (Q if np.dtype(dtype).kind == "c" else np.linalg.qr(Q.real)[0]).astype(dtype)
    turns = [*Q @ Q.conj().transpose(0, 2, 1), *[np.eye(3, dtype=dtype)] * 4]
    edges = [*zip(range(8), range(8), strict=True), (0, 1), (1, 2), (5, 6), (6, 7)]
    F = sc.CellularSheaf.connection(edges, turns)
    options = {"rank": sc.ranks.kernel(), "local_operator": operator}
    if operator == "basis":
        options = {"basis": [np.eye(3, dtype=dtype)] * 8}
    C = sc.coarsen(F, sc.Partition(np.arange(8)), **options)
    assert C.ranks.tolist() == [3] * 8
    assert C.sheaf.n_edges == 4
    assert sc.cohomology_dims(F)[0] == sc.cohomology_dims(C.sheaf)[0] == 12
    assert_verified(C)


@pytest.mark.parametrize("operator", ["internal", "oversampled"])
@pytest.mark.parametrize(("d", "dtype"), [(1, np.complex128), (3, np.float64)])
def test_loops_of_isolated_vertices_that_cancel_up_to_rounding_keep_all_sections(
    operator, d, dtype
):
    """The difference of their maps, a few eps, is the whole operator of a cluster."""
    x = np.random.default_rng(0).standard_normal((2, 200, d, d))
    Q = np.linalg.qr(x[0] + 1j * x[1] if dtype is np.complex128 else x[0])[0]
    for vertices in (np.arange(200), np.arange(200) // 100):  # one loop, and 100 at a vertex
        loops = vertices[:, None].repeat(2, axis=1)
        F = sc.CellularSheaf.connection(loops, Q @ Q.conj().transpose(0, 2, 1))
        M = sc.local_modes(F, sc.Partition(np.arange(F.n_vertices)), sc.ranks.kernel(), operator)
        assert (M.ranks == d).all()


def test_a_kernel_that_grows_under_new_maps_is_tied():
    """With rank 1 of two sections, the retained one is not unique."""
    F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 2]], 2)
    loop = np.diag([1.0, 2.0])
    G = F.with_maps(F.tail_data, [*np.tile(np.eye(2), (2, 1, 1)), loop])
    C = sc.coarsen(G, sc.Partition([0, 0, 0]), sc.ranks.kernel())
    assert C.ranks.tolist() == [1]
    assert not C.modes.tied.any()
    with pytest.warns(sc.TiedModesWarning):
        assert C.recoarsen(F).modes.tied.tolist() == [True]
