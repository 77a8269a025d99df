import dataclasses
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from sheafcoarsen._support import threads as threads_module
from sheafcoarsen.modes import problems
from tests.support import reference
from tests.support.helpers import (
    assert_residual,
    eps_of,
    residual,
    same_subspace,
    size,
    ties_allowed,
)
from tests.support.strategies import DTYPES, mode_counts, sheaves_with_partitions

OPERATORS = ("internal", "principal")


@pytest.fixture(scope="module", autouse=True)
def _one_thread_for_the_dense_solver():
    with threadpool_limits(
        1, user_api="blas"
    ):  # more threads only wait for each other at these sizes
        yield


def one_cluster(F):
    return Partition(np.zeros(F.n_vertices, int))


def modes_of(F, P, rank, local_operator="internal"):
    with ties_allowed():
        return sc.local_modes(F, P, rank, local_operator)


def local_operator_of(F, P, a, local_operator):
    """L_a or L[C_a, C_a], and the factor it is the square of: the size by which errors are judged."""
    c = reference.cluster_coordinates(F, P, a)
    if local_operator == "internal":
        return reference.internal_laplacian(F, P, a), reference.internal_coboundary(F, P, a)
    return reference.principal_block(F, P, a), reference.coboundary(F)[:, c]


def inf_norm(A):
    return float(np.abs(A).sum(axis=1).max(initial=0))


def assert_lowest_eigenpairs(M, a, local=None):
    """Values and next value against a dense solver; residual and orthonormality; the space where it is unique."""
    A, factor = local or local_operator_of(M.sheaf, M.partition, a, M.local_operator)
    N, r, eps = len(A), int(M.ranks[a]), eps_of(M.sheaf.dtype)
    expected, vectors = np.linalg.eigh(A)
    values, U = M.eigenvalues(a), M.basis(a)
    assert values.shape == (r,)
    assert U.shape == (N, r)
    assert U.dtype == M.sheaf.dtype
    assert values.dtype == M.next_eigenvalues.dtype == U.real.dtype
    assert (np.diff(values) >= 0).all()
    assert (values >= 0).all()
    for i in range(r):
        assert_residual(values[i] - expected[i], factor, factor, n=N, eps=eps)
    if r == N:
        assert M.next_eigenvalues[a] == np.inf
    else:
        assert_residual(M.next_eigenvalues[a] - expected[r], factor, factor, n=N, eps=eps)
        assert r == 0 or M.next_eigenvalues[a] >= values[-1]
    assert_residual(A @ U - U * values, factor, factor, U, n=N, eps=eps)
    assert_residual(U.conj().T @ U - np.eye(r), n=N, eps=eps)
    if 0 < r < N and expected[r] > expected[r - 1]:
        assert same_subspace(
            U, vectors[:, :r], condition=size(A) / (expected[r] - expected[r - 1]), eps=eps
        )


# ---------------------------------------------------------------- against the dense solver


@given(sheaves_with_partitions(), st.sampled_from(OPERATORS), st.data())
def test_modes_are_the_lowest_eigenpairs_of_each_cluster(case, local_operator, data):
    F, P = case
    rank = data.draw(mode_counts(P))
    M = modes_of(F, P, rank, local_operator)
    assert M.sheaf is F
    assert M.partition is P
    assert M.local_operator == local_operator
    dims = [len(reference.cluster_coordinates(F, P, a)) for a in range(P.n_clusters)]
    assert M.ranks.tolist() == np.minimum(rank, dims).tolist()
    assert M.rank_offsets.tolist() == [0, *np.cumsum(M.ranks).tolist()]
    for a in range(P.n_clusters):
        assert_lowest_eigenpairs(M, a)
        A, factor = local_operator_of(F, P, a, local_operator)
        assert_residual(
            M.operator_norms[a] - inf_norm(A), factor, factor, n=len(A), eps=eps_of(F.dtype)
        )


@given(sheaves_with_partitions(), st.sampled_from(OPERATORS), st.data())
def test_a_tie_is_reported_exactly_where_the_cut_splits_a_multiple_eigenvalue(
    case, local_operator, data
):
    F, P = case
    rank = data.draw(mode_counts(P))
    tied = []
    for a in range(P.n_clusters):
        A, _ = local_operator_of(F, P, a, local_operator)
        values = np.linalg.eigvalsh(A)
        r = min(rank if np.ndim(rank) == 0 else rank[a], len(A))
        if not 0 < r < len(A):
            tied.append(False)
            continue
        gap, level = values[r] - values[r - 1], np.sqrt(eps_of(F.dtype)) * inf_norm(A)
        assume(not 0.9 * level < gap < 1.1 * level)  # no rounding decides
        tied.append(bool(gap <= level))
    if any(tied):
        a = tied.index(True)
        text = (
            f"multiple eigenvalue in {sum(tied)} of {P.n_clusters} clusters, first in cluster {a} "
        )
        with pytest.warns(sc.TiedModesWarning, match=text):
            M = sc.local_modes(F, P, rank, local_operator)
    else:
        M = sc.local_modes(F, P, rank, local_operator)  # a warning would be an error
    assert M.tied.tolist() == tied


@given(sheaves_with_partitions(), st.sampled_from(OPERATORS))
def test_the_first_large_entry_of_a_mode_is_real_and_positive(case, local_operator):
    F, P = case
    M = modes_of(F, P, 8, local_operator)
    for a in range(P.n_clusters):
        for u in M.basis(a).T:
            moduli = np.abs(u)
            margin = 4 * eps_of(F.dtype)  # the library saw the moduli before the phase was turned
            limit = (1 - np.sqrt(eps_of(F.dtype))) * moduli.max()
            assume(not ((moduli > limit * (1 - margin)) & (moduli < limit * (1 + margin))).any())
            first = u[np.flatnonzero(moduli >= limit)[0]]
            assert first.real > 0
            assert first.imag == 0


@given(sheaves_with_partitions(), st.sampled_from(OPERATORS), st.data())
def test_runs_repeat_to_the_last_bit(case, local_operator, data):
    F, P = case
    rank = data.draw(mode_counts(P))
    one, two = (modes_of(F, P, rank, local_operator) for _ in range(2))
    for name in ("scores", "next_eigenvalues", "tied", "operator_norms"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.prolongation.data, two.prolongation.data)


def test_principal_modes_see_the_crossing_edges():
    F, P = CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1])
    internal, principal = (
        sc.local_modes(F, P, 1),
        sc.local_modes(F, P, 1, local_operator="principal"),
    )
    assert_residual(internal.eigenvalues(0), 1.0, n=2)  # the constant
    assert_residual(internal.next_eigenvalues - 2, 2.0, n=2)
    golden = (3 - np.sqrt(5)) / 2  # of [[1, -1], [-1, 2]]
    assert_residual(principal.eigenvalues(0)[0] - golden, 2.0, n=2)
    assert_residual(principal.next_eigenvalues - (3 - golden), 2.0, n=2)
    assert not same_subspace(internal.basis(0), principal.basis(0))


# ---------------------------------------------------------------- large clusters: LAPACK by index


def large_sheaf(kind, dtype, seed):
    """One sheaf with clusters of about 60, 90 and 150 dimensions, more than divide and conquer takes."""
    rng = np.random.default_rng(seed)
    sizes = [20, 30, 50]
    P = Partition(rng.permutation(np.repeat(np.arange(3), sizes)))
    graph = nx.gnm_random_graph(100, 300, seed=seed)
    if kind == "general":
        F = CellularSheaf.random(
            graph, rng.integers(0, 6, size=100), rng.integers(1, 5, size=300), seed=rng, dtype=dtype
        )
    elif kind == "orthogonal":
        F = CellularSheaf.random(graph, 3, 3, kind="orthogonal", seed=rng, dtype=dtype)
    elif kind == "few edges":  # most of L_a vanishes
        graph = nx.gnm_random_graph(100, 90, seed=seed)
        F = CellularSheaf.random(graph, 3, 2, seed=rng, dtype=dtype)
    else:  # "graded": edges of very different size
        F = CellularSheaf.random(graph, 3, 2, seed=rng, dtype=dtype)
        sizes = 10.0 ** rng.integers(-4, 1, size=300)
        factors = np.repeat(sizes, 6).astype(F.tail_data.real.dtype)
        F = F.with_maps(F.tail_data * factors, F.head_data * factors)
    return F, P


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("local_operator", OPERATORS)
@pytest.mark.parametrize("kind", ["general", "orthogonal", "few edges", "graded"])
def test_large_clusters(kind, local_operator, dtype):
    F, P = large_sheaf(kind, dtype, seed=13)
    M = modes_of(F, P, [7, 1, 23], local_operator)
    assert min(len(M.basis(a)) for a in range(3)) > 12
    for a in range(3):
        assert_lowest_eigenpairs(M, a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1.0, "small", "large"])
def test_large_clusters_at_any_scale_and_rank(dtype, scale):
    eight = np.finfo(dtype).eps < 1e-10
    scale = {1.0: 1.0, "small": 1e-100 if eight else 1e-12, "large": 1e100 if eight else 1e12}[
        scale
    ]
    F = CellularSheaf.random(nx.gnm_random_graph(20, 60, seed=5), 3, 2, seed=7, dtype=dtype)
    factor = F.tail_data.dtype.type(scale)
    F = F.with_maps(F.tail_data * factor, F.head_data * factor)
    local = local_operator_of(F, one_cluster(F), 0, "internal")
    for r in (0, 1, 24, 57, 58, 59, 60, 70):
        assert_lowest_eigenpairs(modes_of(F, one_cluster(F), r), 0, local)


def every_value_twice(dtype):
    """Return a bundle of planes over a random graph: consistent rotations, so every eigenvalue is double."""
    F = gallery.bundle(nx.gnm_random_graph(45, 120, seed=3), 2, seed=5)
    maps = [data.astype(dtype) for data in (F.tail_data, F.head_data)]
    if F.with_maps(*maps).dtype.kind == "c":
        phases = np.exp(1j * np.arange(F.n_edges))
        maps = [data * np.repeat(phases, 4).astype(dtype) for data in maps]
    return F.with_maps(*maps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_consistent_rotations_have_double_eigenvalues(dtype):
    F = every_value_twice(dtype)
    local = L, delta = local_operator_of(F, one_cluster(F), 0, "internal")
    values = np.linalg.eigvalsh(L).reshape(-1, 2)
    assert_residual(values[:, 1] - values[:, 0], delta, delta, n=90, eps=eps_of(F.dtype))
    for r in (1, 2, 3, 4, 17, 88, 89):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            M = sc.local_modes(F, one_cluster(F), r)
        assert [w.category for w in caught] == [sc.TiedModesWarning] * (r % 2)
        assert M.tied.tolist() == [r % 2 == 1]
        assert_lowest_eigenpairs(M, 0, local)


DEGENERATE = {
    "complete": CellularSheaf.constant(nx.complete_graph(40)),  # 0 once, 40 for the rest
    "star": CellularSheaf.constant(nx.star_graph(59)),  # 1, 58 times
    "cycle of planes": gallery.bundle(nx.cycle_graph(40), 2, seed=3),
    "identity": CellularSheaf(
        np.repeat(np.arange(30), 2).reshape(-1, 2), [np.eye(2)] * 30, [np.zeros((2, 2))] * 30
    ),
    "three edges": CellularSheaf.random(
        [[0, 1], [5, 9], [7, 7]], [3] * 20, 2, seed=5
    ),  # a kernel of 54
    "kernel of 3": gallery.bundle(nx.gnm_random_graph(40, 100, seed=5), 3, seed=7),
    "disconnected": CellularSheaf.constant(
        nx.disjoint_union_all([nx.path_graph(2)] * 30)
    ),  # 0 and 2, 30 times each
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DEGENERATE)
def test_large_multiplicities(name, dtype):
    F = DEGENERATE[name]
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    P = one_cluster(F)
    local = local_operator_of(F, P, 0, "internal")
    for r in (1, 4, 5, 31):
        assert_lowest_eigenpairs(modes_of(F, P, r), 0, local)


# ---------------------------------------------------------------- ties


def test_a_cycle_of_planes_is_tied_at_odd_ranks():
    F = gallery.cycle(5, [[0.0, -1.0], [1.0, 0.0]])
    P = one_cluster(F)
    for r in range(11):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            M = sc.local_modes(F, P, r)
        assert M.tied.tolist() == [r % 2 == 1]
        assert len(caught) == r % 2


def test_the_warning_names_the_first_tied_cluster():
    triangle_and_path = [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [6, 7], [7, 8], [8, 6]]
    F = CellularSheaf.constant(triangle_and_path)
    P = Partition([1, 1, 1, 0, 0, 0, 2, 2, 2])
    text = r"in 2 of 3 clusters, first in cluster 1 \(r = 2, eigenvalue 3\)"
    with pytest.warns(sc.TiedModesWarning, match=text) as caught:
        M = sc.local_modes(F, P, 2)
    assert len(caught) == 1
    assert caught[0].filename == __file__  # where the user stands
    assert M.tied.tolist() == [False, True, True]
    with pytest.warns(sc.TiedModesWarning, match=text) as caught:
        sc.coarsen(F, P, 2)
    assert len(caught) == 1


def test_a_cluster_without_edges_keeps_its_first_coordinates():
    F, P = CellularSheaf.random([[0, 1], [1, 2]], [2, 3, 1], 2, seed=5), Partition([0, 1, 0])
    for r, tied in ((0, False), (1, True), (2, True), (3, False)):
        M = modes_of(F, P, r)
        assert M.tied.tolist() == [tied, tied]
        assert M.next_eigenvalues.tolist() == ([np.inf] * 2 if r == 3 else [0, 0])
        for a in range(2):
            assert M.eigenvalues(a).tolist() == [0] * r
            assert M.basis(a).tolist() == np.eye(3, r).tolist()


def test_ties_are_judged_at_sqrt_eps():
    for exponent, tied in ((-9.5, True), (-6.5, False)):  # sqrt(eps) = 1.5e-8
        weights = [1.0, 1.0 + 10.0**exponent]
        F = CellularSheaf.diagonal([[0, 0]], [np.sqrt(weights)], [[0.0, 0.0]])
        assert modes_of(F, one_cluster(F), 1).tied.tolist() == [tied]
        F = F.with_maps(F.tail_data.astype(np.float32), F.head_data.astype(np.float32))
        assert modes_of(F, one_cluster(F), 1).tied.tolist() == [True]  # sqrt(eps) = 3.5e-4


@pytest.mark.parametrize(("gap", "tied"), [(5e-7, True), (1.5e-6, False)])
def test_ties_are_judged_by_the_inf_norm_of_the_operator(gap, tied):
    rows = np.zeros((3, 64))
    rows[0, :62] = 1  # 62 once and 0 61 times, entries 1: norm(L, inf) = 62
    rows[1, 62], rows[2, 63] = 1, np.sqrt(1 + gap)
    F = CellularSheaf([[0, 0]], [rows], [np.zeros((3, 64))])
    assert modes_of(F, one_cluster(F), 62).tied.tolist() == [tied]  # sqrt(eps) 62 = 9e-7


@pytest.mark.parametrize(
    ("first", "second"),
    [(1 - 1e-9, -1), (-1 + 1e-9, 1), (1, -1 + 1e-9)],
)
def test_the_phase_is_that_of_the_first_entry_of_nearly_the_largest_modulus(first, second):
    F = CellularSheaf(
        [[0, 0]], [[[second, -first]]], [[[0.0, 0.0]]]
    )  # (first, second) spans the kernel
    u = sc.local_modes(F, one_cluster(F), 1).basis(0)[:, 0]
    assert u[0] > 0 > u[1]


def test_an_entry_that_is_merely_large_does_not_decide_the_phase():
    F = CellularSheaf([[0, 0]], [[[1.0, 0.95]]], [[[0.0, 0.0]]])
    u = sc.local_modes(F, one_cluster(F), 1).basis(0)[:, 0]
    assert u[0] < 0 < u[1]


# ---------------------------------------------------------------- threads


def watch_threads(monkeypatch):
    started = []
    pool = threads_module.ThreadPoolExecutor
    monkeypatch.setattr(
        "sheafcoarsen._support.threads.ThreadPoolExecutor",
        lambda threads: started.append(threads) or pool(threads),
    )
    return started


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("local_operator", OPERATORS)
def test_the_number_of_threads_does_not_change_a_bit(dtype, local_operator, monkeypatch):
    F = CellularSheaf.random(nx.gnm_random_graph(120, 4000, seed=3), 3, 2, seed=5, dtype=dtype)
    P = Partition(np.arange(120) // 15)  # N_a = 45, more than 60 internal rows
    started = watch_threads(monkeypatch)
    monkeypatch.setattr("sheafcoarsen.modes.problems.SERIAL_BELOW", 0.0)
    results = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(
            "sheafcoarsen._support.threads.thread_count", lambda threads=threads: threads
        )
        results.append(sc.local_modes(F, P, 5, local_operator))
    assert started == [2, 3]
    for other in results[1:]:
        for name in ("scores", "next_eigenvalues", "tied", "operator_norms"):
            np.testing.assert_array_equal(getattr(results[0], name), getattr(other, name))
        np.testing.assert_array_equal(results[0].prolongation.data, other.prolongation.data)


def test_small_problems_stay_in_one_thread(monkeypatch):
    started = watch_threads(monkeypatch)
    monkeypatch.setattr("sheafcoarsen._support.threads.thread_count", lambda: 2)
    F = CellularSheaf.random(nx.path_graph(40), 2, 2, seed=3)
    modes_of(F, Partition(np.arange(40) // 4), 2)
    assert started == []


def test_progress_is_shown_on_request_and_changes_nothing(capfd):
    F, P = CellularSheaf.random(nx.path_graph(40), 2, 2, seed=3), Partition(np.arange(40) // 4)
    quiet = sc.local_modes(F, P, 2)
    assert "local modes" not in "".join(capfd.readouterr())
    shown = sc.local_modes(F, P, 2, progress=True)
    assert "local modes" in capfd.readouterr().err
    np.testing.assert_array_equal(quiet.prolongation.data, shown.prolongation.data)


# ---------------------------------------------------------------- the result, and arguments


def test_the_result_cannot_be_changed_but_replaced():
    F, P = CellularSheaf.random(nx.path_graph(6), 2, 3, seed=3), Partition([0, 0, 0, 1, 1, 1])
    M = sc.local_modes(F, P, 2)
    for array in (
        M.ranks,
        M.scores,
        M.next_eigenvalues,
        M.tied,
        M.operator_norms,
        M.rank_offsets,
        M.prolongation.data,
    ):
        assert not array.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        M.ranks = M.ranks
    M.basis(0)[:] = 0  # a copy
    assert residual(M.basis(0).conj().T @ M.basis(0) - np.eye(2), n=6) < 30

    other = dataclasses.replace(M, ranks=np.array([1, 2]), scores=np.array([1.0, 2.0, 3.0]))
    assert other.eigenvalues(1).tolist() == [
        2,
        3,
    ]  # nothing derived from the old ranks is carried over
    Q = Partition([1, 1, 1, 0, 0, 0])
    assert dataclasses.replace(M, partition=Q).clusters.labels.tolist() == Q.labels.tolist()
    assert M.clusters.labels.tolist() == P.labels.tolist()


def test_clusters_count_from_the_end_too_but_not_beyond():
    M = sc.local_modes(
        CellularSheaf.random(nx.path_graph(5), 2, 3, seed=3), Partition([0, 0, 0, 1, 1]), [1, 2]
    )
    np.testing.assert_array_equal(M.eigenvalues(-1), M.eigenvalues(1))
    np.testing.assert_array_equal(M.basis(-2), M.basis(0))
    for a in (2, -3):
        for get in (M.eigenvalues, M.basis):
            with pytest.raises(IndexError):
                get(a)


def test_the_result_says_what_it_holds():
    F = CellularSheaf.constant(nx.path_graph(4))
    M = sc.local_modes(F, Partition([0, 0, 0, 1]), [2, 1], "principal")
    assert repr(M) == "LocalModes('principal', n_clusters=2, ranks 1 .. 2, dim 3 of 4, tied=0)"


def test_empty_sheaves_have_no_modes():
    nothing = np.zeros((0, 1, 1), np.float32)
    M = sc.local_modes(CellularSheaf([], nothing, nothing), Partition(np.zeros(0, int)), 3)
    assert M.prolongation.shape == (0, 0)
    assert M.ranks.shape == M.tied.shape == (0,)
    assert "ranks none" in repr(M)
    M = sc.local_modes(
        CellularSheaf([], nothing, nothing, vertex_dims=[0, 0]), Partition([0, 1]), 3
    )
    assert M.basis(1).shape == (0, 0)
    assert M.ranks.tolist() == [0, 0]
    assert M.next_eigenvalues.tolist() == [np.inf, np.inf]


def test_wrong_arguments_are_refused(monkeypatch):
    F, P = CellularSheaf.constant(nx.path_graph(3)), Partition([0, 0, 1])
    with pytest.raises(
        ValueError,
        match=r"`local_operator` must be one of 'internal', 'principal'.*got 'dirichlet'",
    ):
        sc.local_modes(F, P, 1, "dirichlet")
    with pytest.raises(ValueError, match="`rank` must be at least 0, got -1"):
        sc.local_modes(F, P, -1)
    with pytest.raises(
        ValueError, match="`rank` must hold one integer per cluster, 2 in all, got 3"
    ):
        sc.local_modes(F, P, [1, 1, 1])
    with pytest.raises(TypeError, match=r"`rank` must be an integer.*, got .*1\.5"):
        sc.local_modes(F, P, 1.5)
    with pytest.raises(TypeError, match="`P` must be a Partition, got list"):
        sc.local_modes(F, [0, 0, 1], 1)
    with pytest.raises(
        ValueError, match="`P` must label the sheaf's 3 vertices, got a partition of 2"
    ):
        sc.local_modes(F, Partition([0, 1]), 1)
    with pytest.raises(TypeError, match="must be a CellularSheaf, got Graph"):
        sc.local_modes(nx.path_graph(3), P, 1)
    monkeypatch.setattr("sheafcoarsen.modes.problems.MAX_DENSE", 1)
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.MAX_DENSE", 1)
    with pytest.raises(
        ValueError, match=r"cluster 0 has dimension 2.*limited to dimension 1: use more clusters"
    ):
        sc.local_modes(F, P, 1)


SPARSE = {
    "general": CellularSheaf.random(nx.gnm_random_graph(60, 150, seed=3), 2, 2, seed=5),
    "ragged": CellularSheaf.random(
        nx.gnm_random_graph(60, 150, seed=3), np.arange(60) % 5, 1 + np.arange(150) % 3, seed=5
    ),
    "triple": CellularSheaf.constant(
        nx.grid_2d_graph(6, 7), 3
    ),  # every eigenvalue at least three times
    "components": CellularSheaf.constant(nx.gnm_random_graph(80, 70, seed=3), 1),  # a large kernel
    "star": CellularSheaf.constant(nx.star_graph(80)),  # 1, 79 times
    "loops": CellularSheaf.random(
        [*nx.cycle_graph(40).edges, (3, 3), (7, 7), (3, 4)], 2, 3, seed=5
    ),
    "nothing": CellularSheaf.constant(np.zeros((0, 2), int), 2, n_vertices=50),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("local_operator", OPERATORS)
@pytest.mark.parametrize("name", SPARSE)
def test_clusters_too_large_for_a_dense_matrix(name, local_operator, dtype, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_SHARE", 4)
    called = []
    solver = problems.lowest_sparse
    monkeypatch.setattr(
        "sheafcoarsen.modes.problems|sheafcoarsen.modes.oversampled.lowest_sparse",
        lambda *args: called.append(1) or solver(*args),
    )
    F = SPARSE[name]
    turn = np.exp(1j * np.arange(F.dim_c1)) if np.dtype(dtype).kind == "c" else np.ones(F.dim_c1)
    tails, heads = (
        np.repeat(turn, F.vertex_dims[F.edges[np.repeat(np.arange(F.n_edges), F.edge_dims), end]])
        for end in (0, 1)
    )
    F = F.with_maps((F.tail_data * tails).astype(dtype), (F.head_data * heads).astype(dtype))
    labels = np.zeros(F.n_vertices, int)
    labels[-5:] = 1  # a small cluster is computed densely beside the large one
    P = Partition(labels)
    for rank in (0, 1, 4, 7):
        M = modes_of(F, P, rank, local_operator)
        for a in range(2):
            assert_lowest_eigenpairs(M, a)
    assert len(called) == (0 if name == "nothing" else 4)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_large_clusters_by_the_sparse_method_at_any_scale(scale, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)
    F = CellularSheaf.random(nx.gnm_random_graph(60, 150, seed=3), 2, 2, seed=5)
    unscaled = sc.local_modes(F, one_cluster(F), 3)
    M = sc.local_modes(F.with_maps(F.tail_data * scale, F.head_data * scale), one_cluster(F), 3)
    assert_residual(
        M.scores / scale / scale - unscaled.scores, *[unscaled.operator_norms.max()], n=120
    )
    assert_lowest_eigenpairs(M, 0)


@pytest.mark.parametrize(
    "graph", [nx.path_graph(100), nx.star_graph(100), nx.grid_2d_graph(10, 10)]
)
@pytest.mark.parametrize("decades", [4, 8])
def test_large_clusters_of_graded_maps(graph, decades, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)
    monkeypatch.setattr(
        "sheafcoarsen.modes.problems|sheafcoarsen.modes.oversampled.MAX_DENSE", 35
    )  # nothing to fall back on
    F = CellularSheaf.constant(graph)
    weights = 10.0 ** -np.random.default_rng(1).uniform(0, decades, F.n_edges)
    M = modes_of(F.with_maps(weights, weights), one_cluster(F), 3, "internal")
    assert_lowest_eigenpairs(M, 0)


def test_a_large_cluster_at_which_the_sparse_method_fails_is_computed_densely(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 35)

    def fails(*args):
        raise np.linalg.LinAlgError("no")

    monkeypatch.setattr("sheafcoarsen.modes.problems.lowest_sparse", fails)
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.lowest_sparse", fails)
    F = CellularSheaf.constant(nx.path_graph(100))
    assert_lowest_eigenpairs(modes_of(F, one_cluster(F), 3, "internal"), 0)
    monkeypatch.setattr("sheafcoarsen.modes.problems.MAX_DENSE", 35)
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.MAX_DENSE", 35)
    with pytest.raises(np.linalg.LinAlgError, match="cluster 0 .dimension 100.: no"):
        sc.local_modes(F, one_cluster(F), 3)


def test_rules_that_look_at_whole_spectra_refuse_a_huge_cluster(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.modes.problems.MAX_DENSE", 30)
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.MAX_DENSE", 30)
    F = CellularSheaf.constant(nx.path_graph(40))
    for rank in (sc.ranks.below(0.1), sc.ranks.kernel(), 35):
        with pytest.raises(
            ValueError,
            match="cluster 0 has dimension 40.*limited to dimension 30: use more clusters",
        ):
            sc.local_modes(F, one_cluster(F), rank)


@pytest.mark.parametrize("method", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("dtype", "big", "small"), [(float, 1e100, 1e-100), (np.float32, 1e12, 1e-12)]
)
def test_a_loop_whose_maps_cancel_hides_nothing(dtype, big, small, method, monkeypatch):
    if method == "sparse":
        monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_ABOVE", 1)
        monkeypatch.setattr("sheafcoarsen.modes.problems.SPARSE_SHARE", 1)
    n = 12
    edges = [(0, 0), *((i, i + 1) for i in range(n - 1))]
    maps = np.array([big, *[small] * (n - 1)], dtype).reshape(-1, 1, 1)
    F = CellularSheaf(edges, maps, maps)
    alone = CellularSheaf.constant(nx.path_graph(n))
    M = sc.local_modes(F, one_cluster(F), 4)
    expected = np.linalg.eigvalsh(sc.laplacian(alone).toarray())
    for found, value in zip([*M.scores, M.next_eigenvalues[0]], expected[:5], strict=True):
        assert_residual(float(found) / small / small - value, 4.0, n=n, eps=eps_of(F.dtype))
