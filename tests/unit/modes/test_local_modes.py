"""Modes against the dense solver, their ties, operators as objects, and the result."""

import dataclasses
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from sheafcoarsen._support.threads import thread_limit
from sheafcoarsen.modes import OPERATORS as BY_NAME
from sheafcoarsen.modes import Internal, Oversampled, Principal
from sheafcoarsen.modes.problems import balance
from sheafcoarsen.partition import clusters_of
from tests.support import reference
from tests.support.helpers import (
    assert_residual,
    eps_of,
    residual,
    same_subspace,
    size,
    ties_allowed,
)
from tests.support.strategies import mode_counts, sheaves_with_partitions
from tests.unit.coarsening.test_coarsen import assert_prolongation

OPERATORS = ("internal", "principal")


def one_cluster(F):
    return Partition(np.zeros(F.n_vertices, int))


def modes_of(F, P, rank, local_operator="internal"):
    with ties_allowed():
        return sc.local_modes(F, P, rank, local_operator)


def local_operator_of(F, P, a, local_operator):
    """Return L_a or L[C_a, C_a], and its factor, to whose norm errors are compared."""
    c = reference.cluster_coordinates(F, P, a)
    if local_operator == "internal":
        return reference.internal_laplacian(F, P, a), reference.internal_coboundary(F, P, a)
    return reference.principal_block(F, P, a), reference.coboundary(F)[:, c]


def assert_lowest_eigenpairs(M, a, local=None):
    """Compare modes with a dense solver: values, residuals, orthonormality and unique spaces."""
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
    norm = np.abs(A).sum(axis=1).max(initial=0.0)
    assert_residual(M.operator_norms[a] - norm, norm, n=N, eps=eps)
    gap = M.next_eigenvalues[a] - values[-1] if r else np.inf
    level = np.sqrt(eps) * M.operator_norms[a]
    assert M.tied[a] == (gap <= level) or np.isclose(gap, level, rtol=1e-2)
    assert_residual(A @ U - U * values, factor, factor, U, n=N, eps=eps)
    assert_residual(U.conj().T @ U - np.eye(r), n=N, eps=eps)
    if 0 < r < N and expected[r] > expected[r - 1]:
        assert same_subspace(
            U, vectors[:, :r], condition=size(A) / (expected[r] - expected[r - 1]), eps=eps
        )


# ---------------------------------------------------------------- against the dense solver


def assert_first_large_entry_is_positive(u, eps):
    moduli = np.abs(u)
    margin = 4 * eps  # moduli were compared before the phase changed
    limit = (1 - np.sqrt(eps)) * moduli.max()
    if not ((moduli > limit * (1 - margin)) & (moduli < limit * (1 + margin))).any():
        first = u[np.flatnonzero(moduli >= limit)[0]]
        assert first.real > 0
        assert first.imag == 0


@given(sheaves_with_partitions(), st.sampled_from(OPERATORS), st.data())
def test_modes_are_the_lowest_eigenpairs_of_each_cluster(case, local_operator, data):
    F, P = case
    rank = data.draw(mode_counts(P))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        M = sc.local_modes(F, P, rank, local_operator)
    assert [w.category for w in caught] == [sc.TiedModesWarning] * int(M.tied.any())
    assert all("the cut splits a multiple eigenvalue" in str(w.message) for w in caught)
    assert M.sheaf is F
    assert M.partition is P
    assert M.local_operator == local_operator
    dims = [len(reference.cluster_coordinates(F, P, a)) for a in range(P.n_clusters)]
    assert M.ranks.tolist() == np.minimum(rank, dims).tolist()
    assert M.rank_offsets.tolist() == [0, *np.cumsum(M.ranks).tolist()]
    assert_prolongation(M.prolongation, F, int(M.ranks.sum()), F.dtype)
    blocks = [M.basis(a) for a in range(P.n_clusters)]
    expected = reference.prolongation(F, P, blocks)
    np.testing.assert_array_equal(M.prolongation.toarray(), expected)
    for a in range(P.n_clusters):
        assert_lowest_eigenpairs(M, a)
        np.testing.assert_array_equal(M.eigenvalues(a - P.n_clusters), M.eigenvalues(a))
        np.testing.assert_array_equal(M.basis(a - P.n_clusters), blocks[a])
        for u in blocks[a].T:
            assert_first_large_entry_is_positive(u, eps_of(F.dtype))


# ---------------------------------------------------------------- ties


@pytest.mark.parametrize("n", [8, 15, 26, 410])
@pytest.mark.parametrize("rank", [2, sc.ranks.kernel()])
def test_sections_that_grow_at_different_rates_are_kept(n, rank):
    """One grows 16 times along each of 25 edges, one is constant; each stalk has its own basis.

    A cluster of 410 vertices is solved by the sparse method.
    """
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((n, 2, 2)))[0]
    growth = [np.diag([16.0 if i < 25 else 1.0, 1.0]) for i in range(n - 1)]
    F = CellularSheaf([[i, i + 1] for i in range(n - 1)], Q[:-1], growth @ Q[1:])
    C = sc.coarsen(F, Partition([0] * n), rank)
    delta, R = sc.coboundary(F), C.prolongation
    assert_residual(delta @ R, delta, R, n=2 * n)
    assert sc.verify(C).passed


def test_modes_stay_eigenvectors_where_edges_differ_and_sections_grow():
    """The scaled kernel has smaller norm(delta x) here, and larger norm(L x)."""
    rng, n = np.random.default_rng(2), 15
    Q = np.linalg.qr(rng.standard_normal((n, 2, 2)))[0]
    weights = 10.0 ** rng.uniform(-3, 3, (n - 1, 1, 1)) * rng.standard_normal((n - 1, 2, 2))
    edges = [[i, i + 1] for i in range(n - 1)]
    F = CellularSheaf(edges, weights @ Q[:-1], weights @ np.diag([16.0, 1.0]) @ Q[1:])
    with ties_allowed():
        C = sc.coarsen(F, Partition([0] * n), 2)
    L, R = sc.laplacian(F).toarray(), C.prolongation.toarray()
    assert_residual(L @ R - R * C.modes.scores, L, R, n=2 * n)
    assert sc.verify(C).passed


def test_the_section_is_kept_if_another_vector_is_one_up_to_rounding():
    """Trees with constant section, and two parallel edges whose maps differ by some eps."""
    rng, one = np.random.default_rng(1), [1.0]
    for _ in range(20):
        n = int(rng.integers(6, 40))
        weights = 10.0 ** rng.uniform(-2, 2, n - 1)
        edges = [[int(rng.integers(0, i)), i] for i in range(1, n)] + [[n, n + 1]] * 2
        difference = 2.0**-52 * np.round(10 ** rng.uniform(0, 3))
        tail = np.concatenate([weights, one, one])
        head = np.concatenate([weights, one, [1 + difference]])
        F = CellularSheaf(edges, tail[:, None, None], head[:, None, None])
        with ties_allowed():
            M = sc.local_modes(F, Partition([0] * (n + 2)), sc.ranks.kernel())
        section = np.append(np.full(n, n**-0.5), [0, 0])
        assert np.linalg.norm(M.prolongation.T @ section) > 0.9


def test_the_scaling_of_a_cluster_does_not_depend_on_others():
    """Sizes of sections are fitted by least squares, here to maps that contradict each other."""
    rng = np.random.default_rng(0)
    ladder = [[i, i + k] for k in (1, 3) for i in range(300 - k)]
    tail = 2.0 ** rng.integers(-5, 6, len(ladder))
    alone = CellularSheaf.from_flat(
        ladder, tail, np.ones(len(ladder)), [1] * 300, [1] * len(ladder)
    )
    star = CellularSheaf([[0, i] for i in range(1, 4000)], [[[1.0]]] * 3999, [[[16.0]]] * 3999)
    both, _, _ = sc.disjoint_union([alone, star])
    units = []
    for F in (alone, both):
        P = Partition((np.arange(F.n_vertices) >= 300).astype(int))
        units.append(balance(F, clusters_of(F, P))[1].units[:300])
    np.testing.assert_array_equal(*units)


def test_kernels_are_accurate_in_all_of_many_clusters_with_uneven_maps():
    """60 paths with constant sections; eigenvectors alone have errors of about 1e-7.

    Kernels are computed for some of the clusters at a time, and none may be left out.
    """
    n, K = 6, 60
    path = np.array([[i, i + 1] for i in range(n - 1)])
    edges = np.concatenate([path + n * a for a in range(K)])
    maps = np.tile(16.0 ** -np.arange(n - 1), K)[:, None, None]
    M = modes_of(CellularSheaf(edges, maps, maps), Partition(np.repeat(np.arange(K), n)), 1)
    np.testing.assert_allclose(M.prolongation.data, n**-0.5, rtol=1e-14)


def test_modes_do_not_depend_on_the_number_of_threads():
    """LAPACK's workspace, which depends on a cluster's neighbours in a range, must not count."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(10, 40, 60)
    n = int(sizes.sum())
    edges = [[i, i + k] for k in (1, 3) for i in range(n - k)]
    F = CellularSheaf.random(edges, 2, 2, seed=0)
    P = Partition(np.repeat(np.arange(60), sizes))
    for rank in (3, 18):
        results = []
        for threads in (1, 2):
            with thread_limit(threads):
                results.append(modes_of(F, P, rank).prolongation.data)
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("grounded", [0, 2])
def test_modes_are_orthonormal_if_the_kernel_is_smaller_than_rounding_shows(grounded):
    """A vertex with a loop of 1e-9 has eigenvalue 0 up to rounding, and no section."""
    tail = [1.0, 0.05, 1e-9]
    head = [1.0, 0.05, 0.0]
    F = CellularSheaf.from_flat(
        [[0, 1], [2, 3], [grounded, grounded]], tail, head, [1] * 4, [1] * 3
    )
    M = modes_of(F, Partition([0, 0, 0, 0]), 2)
    U = M.basis(0)
    assert_residual(U.T @ U - np.eye(2), n=4)
    both = np.kron(np.eye(2), np.ones((2, 1)))
    assert same_subspace(U, both, condition=1.0)


def test_the_warning_about_ties_says_whether_sections_may_be_lost():
    """Of the callers in turn, for a cut at eigenvalue 0 and for one at a positive eigenvalue."""
    text = "is not unique there, and global sections may be lost, because the eigenvalue is 0 in"
    P = Partition([0, 0, 0, 1, 1, 1])
    for lost, graph in ((True, [[0, 1], [3, 4]]), (False, [[0, 1], [1, 2], [2, 0], [3, 4]])):
        F = CellularSheaf.constant(graph, n_vertices=6)
        rank = [1, 1] if lost else [2, 3]
        calls = [
            lambda F=F, rank=rank: sc.local_modes(F, P, rank),
            lambda F=F, rank=rank: sc.coarsen(F, P, rank),
            lambda F=F, rank=rank: sc.coarsen_levels(F, rank=[rank], partitions=[P]),
        ]
        with ties_allowed():
            C = sc.coarsen(F, P, rank)
            H = sc.coarsen_levels(F, rank=[rank], partitions=[P])
        for call in (*calls, lambda C=C, F=F: C.recoarsen(F), lambda H=H, F=F: H.recoarsen(F)):
            with pytest.warns(sc.TiedModesWarning) as caught:
                call()
            assert [text in str(warning.message) for warning in caught] == [lost]
            assert caught[0].filename == __file__
    path_triangle_edge = [[0, 1], [1, 2], [3, 4], [4, 5], [5, 3], [6, 7]]
    mixed, P = CellularSheaf.constant(path_triangle_edge, n_vertices=9), np.repeat([0, 1, 2], 3)
    text = r"where `tied` of the modes is True, first in cluster 1\. The coarse .* 0 in cluster 2: "
    with pytest.warns(sc.TiedModesWarning, match=text):
        M = sc.local_modes(mixed, Partition(P), [2, 2, 1])
    assert M.tied.tolist() == [False, True, True]
    assert "tied=2" in repr(M)


def test_a_cluster_without_edges_keeps_its_first_coordinates():
    F, P = CellularSheaf.random([[0, 1], [1, 2]], [2, 3, 1], 2, seed=5), Partition([0, 1, 0])
    for r, tied in ((0, False), (1, True), (2, True), (3, False)):
        M = modes_of(F, P, r)
        assert M.tied.tolist() == [tied, tied]
        assert M.next_eigenvalues.tolist() == ([np.inf] * 2 if r == 3 else [0, 0])
        for a in range(2):
            assert M.eigenvalues(a).tolist() == [0] * r
            assert M.basis(a).tolist() == np.eye(3, r).tolist()


@pytest.mark.parametrize(("gap", "tied"), [(5e-7, True), (1.5e-6, False)])
def test_ties_are_relative_to_the_inf_norm_of_the_operator(gap, tied):
    rows = np.zeros((3, 64))
    rows[0, :62] = 1  # eigenvalues 62 and 0, norm(L, inf) = 62
    rows[1, 62], rows[2, 63] = 1, np.sqrt(1 + gap)
    F = CellularSheaf([[0, 0]], [rows], [np.zeros((3, 64))])
    assert modes_of(F, one_cluster(F), 62).tied.tolist() == [tied]  # sqrt(eps) 62 = 9e-7


@pytest.mark.parametrize(
    ("first", "second", "sign"),
    [(1 - 1e-9, -1, 1), (-1 + 1e-9, 1, 1), (1, -1 + 1e-9, 1), (0.95, -1, -1)],
)
def test_the_first_entry_of_nearly_maximum_modulus_determines_the_phase(first, second, sign):
    # (first, second) spans the kernel
    F = CellularSheaf([[0, 0]], [[[second, -first]]], [[[0.0, 0.0]]])
    u = sign * sc.local_modes(F, one_cluster(F), 1).basis(0)[:, 0]
    assert u[0] > 0 > u[1]


GRID = CellularSheaf.random(nx.grid_2d_graph(6, 6), 2, 3, seed=3)
FOUR = sc.select(GRID, 4)

# ---------------------------------------------------------------- local operators


def test_operators_are_immutable_and_have_names_and_bounded_rings():
    names = [operator.name for operator in BY_NAME.values()]
    assert names == list(BY_NAME) == ["internal", "principal", "oversampled"]
    assert [operator.spectral for operator in BY_NAME.values()] == [True, False, False]
    assert Oversampled(rings=30).rings == 30
    assert Oversampled(rings=10**30).rings < 2**63
    with pytest.raises(dataclasses.FrozenInstanceError):
        Oversampled().rings = 2


@pytest.mark.parametrize(
    ("operator", "name", "settings"),
    [
        (Internal(), "internal", {}),
        (Principal(), "principal", {}),
        (Oversampled(), "oversampled", {}),
        (Oversampled(rings=2, target=0.5), "oversampled", {"rings": 2, "target": 0.5}),
    ],
    ids=repr,
)
def test_an_operator_object_gives_the_same_modes_as_its_name(operator, name, settings):
    def pooled(local_operator):
        pool = sc.HiSP(3, 4, local_operator=local_operator)
        return pool(GRID, np.ones((36, 2)), partition=FOUR).coarsening.modes

    for make in (
        lambda **kind: sc.local_modes(GRID, FOUR, 3, **kind),
        lambda **kind: sc.coarsen(GRID, FOUR, 3, **kind).modes,
        lambda **kind: sc.coarsen_levels(GRID, 4, n_levels=1, rank=3, **kind)[0].modes,
        *([] if settings else [pooled]),
    ):
        one, two = make(local_operator=operator), make(local_operator=name, **settings)
        assert one.local_operator == two.local_operator == name
        assert one.operator == two.operator == operator
        assert (one.rings, one.target, one.pilot) == (two.rings, two.target, two.pilot)
        np.testing.assert_array_equal(one.prolongation.data, two.prolongation.data)
        np.testing.assert_array_equal(one.scores, two.scores)


# ---------------------------------------------------------------- the result


def test_oversampled_modes_without_all_sections_cause_no_warning_about_them():
    """A warning that there is no local section would be wrong; warnings are errors here."""
    edges = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)]
    for sign in (1, -1):  # an unbalanced triangle has no section
        F = CellularSheaf.signed(edges, [sign, 1, 1, 1, 1, 1, 1])
        P = Partition([0, 0, 0, 1, 1, 1])
        none = sc.local_modes(F, P, 0, "oversampled", rings=0)
        assert sc.coarsen(F, P, none).sheaf.dim_c0 == 0


def test_local_modes_are_immutable_but_fields_can_be_replaced():
    F, P = CellularSheaf.random(nx.path_graph(6), 2, 3, seed=3), Partition([0, 0, 0, 1, 1, 1])
    M = sc.local_modes(F, P, 2)
    for name in ("ranks", "scores", "next_eigenvalues", "tied", "operator_norms", "rank_offsets"):
        assert not getattr(M, name).flags.writeable
    assert not M.prolongation.data.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        M.ranks = M.ranks
    M.basis(0)[:] = 0  # a copy
    assert residual(M.basis(0).conj().T @ M.basis(0) - np.eye(2), n=6) < 30

    fewer = sc.local_modes(F, P, [1, 2])
    ranks, scores = np.array([1, 2]), np.array([1.0, 2.0, 3.0])
    other = dataclasses.replace(M, ranks=ranks, scores=scores, prolongation=fewer.prolongation)
    assert other.eigenvalues(1).tolist() == [2, 3]  # no cached value of the old modes remains
    np.testing.assert_array_equal(other.basis(0), fewer.basis(0))
    assert ranks.flags.writeable  # the array passed by the caller
    assert not other.ranks.flags.writeable
    Q = Partition([1, 1, 1, 0, 0, 0])
    swapped = sc.local_modes(F, Q, 2)
    other = dataclasses.replace(M, partition=Q, prolongation=swapped.prolongation)
    assert other.clusters.labels.tolist() == Q.labels.tolist()
    assert M.clusters.labels.tolist() == P.labels.tolist()


def test_the_repr_of_local_modes_lists_their_sizes():
    F = CellularSheaf.constant(nx.path_graph(4))
    M = sc.local_modes(F, Partition([0, 0, 0, 1]), [2, 1], "principal")
    assert repr(M) == "LocalModes('principal', n_clusters=2, ranks 1 .. 2, dim 3 of 4, tied=0)"
    M = sc.local_modes(CellularSheaf.constant([]), Partition([]), 3)
    assert repr(M) == "LocalModes('internal', n_clusters=0, ranks none, dim 0 of 0, tied=0)"


def test_the_warning_about_ties_contains_no_values():
    """Otherwise Python would not show it only once per line."""
    texts = set()
    for graph, scale, rank in ((nx.cycle_graph(4), 1.0, 2), (nx.complete_graph(7), 1.7, 3)):
        F = CellularSheaf.constant(graph)
        F = F.with_maps(F.tail_data * scale, F.head_data * scale)
        P = one_cluster(F)
        with pytest.warns(sc.TiedModesWarning) as caught:
            M = sc.local_modes(F, P, rank)
        assert M.tied.all()
        texts |= {str(warning.message) for warning in caught}
    (text,) = texts
    assert "`tied`" in text
    assert ".whole_multiplets()" in text
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for scale in (1.0, 1.1, 1.3):
            sc.local_modes(F.with_maps(F.tail_data * scale, F.head_data * scale), P, 3)
    assert len(caught) == 1
