"""Oversampled modes against a dense reference, their accuracy, pilots and patches."""

import networkx as nx
import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from sheafcoarsen.modes import ClusterPatches
from sheafcoarsen.modes import oversampled as oversampled_problems
from sheafcoarsen.partition import clusters_of
from tests.support import reference
from tests.support.helpers import assert_residual, assert_verified, blas_threads, eps_of, size
from tests.support.strategies import sheaves_with_partitions
from tests.theory.test_invariances import image

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

TAME = {
    "kinds": ("integer", "orthogonal", "bundle", "general", "repeated"),
    "scales": (1.0,),
    "spread": False,
}

RINGS = st.integers(0, 2)


def oversampled(F, P, rank, **options):
    return sc.coarsen(F, P, rank, local_operator="oversampled", **options)


def grid(n=6, d=2, noise=0.0):
    F = gallery.bundle(nx.grid_2d_graph(n, n), d, noise=noise, seed=3)
    return F, sc.select(F, 4)


# ---------------------------------------------------------------- against the reference


@given(
    sheaves_with_partitions(**TAME), RINGS, st.sampled_from([0.03, 1.0, 30.0]), st.integers(0, 12)
)
@settings(max_examples=60)
def test_oversampled_modes_match_the_dense_reference(case, rings, target, total):
    F, P = case
    M = sc.local_modes(F, P, sc.ranks.budget(total), "oversampled", rings=rings, target=target)
    expected = [reference.oversampled(F, P, a, target, rings) for a in range(P.n_clusters)]
    dims = [K.shape[1] for K, _, _ in expected]
    assert M.over_budget == max(0, sum(dims) - total)
    assert M.ranks.sum() == max(min(total, F.dim_c0), sum(dims))
    for a, (K, M_a, condition) in enumerate(expected):
        U, k, r = M.basis(a).astype(K.dtype), K.shape[1], int(M.ranks[a])
        n, eps = max(len(U), 1), eps_of(F.dtype)
        assert r >= k
        np.testing.assert_array_equal(M.eigenvalues(a)[:k], 0)
        assert (M.eigenvalues(a)[k:] > 0).all()
        assert (np.diff(M.eigenvalues(a)) >= 0).all()
        assert_residual(U.conj().T @ U - np.eye(r), n=n, eps=eps)
        assert_residual(U[:, :k] @ U[:, :k].conj().T - K @ K.conj().T, n=n, eps=eps)
        if r == k:
            continue
        projected = M_a.conj().T @ M_a
        V, values = U[:, k:], M.eigenvalues(a)[k:].astype(float) ** -2
        exact = np.linalg.eigvalsh(projected)[::-1][: r - k]
        top, own = size(projected), max(eps, condition * np.finfo(float).eps)
        assert_residual(projected @ V - V * values, top, size(V), n=n, eps=own)
        assert_residual(values - exact, top, n=n, eps=own)  # no leading value is missing
        following = float(M.next_eigenvalues[a])
        if r < len(U):
            expected_next = np.linalg.eigvalsh(projected)[::-1][r - k]
            assert_residual(following**-2 - expected_next, top, n=n, eps=own)
        else:
            assert following == np.inf


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SingularProblemWarning")
@given(
    sheaves_with_partitions(),
    RINGS,
    st.sampled_from([1, 3, sc.ranks.kernel(), sc.ranks.budget(5)]),
    st.booleans(),
)
def test_every_statement_holds_on_any_sheaf(case, rings, rank, compress):
    F, P = case
    C = oversampled(F, P, rank, rings=rings, compress=compress)
    V = assert_verified(C)
    theorems = ("eq:galerkin_energy_identity", "thm:galerkin_energy_decomposition")
    for label in (*theorems, "thm:Galerkin_realization", "fact-1", "section-4"):
        assert V[label].skipped_because is None
    losses = ("prop:truncation_loss", "cor:truncation_realization_errors")
    for label in ("thm:local_spectral_optimality", *losses):
        assert V[label].skipped_because == "the modes are oversampled"
    assert C.prolongation.dtype == F.dtype
    assert np.isfinite(C.prolongation.data).all()


# ---------------------------------------------------------------- kernels and sections


def test_kernels_over_budget_are_retained_and_reported():
    F = CellularSheaf.random(nx.grid_2d_graph(5, 5), 3, 1, seed=0)
    P = sc.select(F, 3)
    M = sc.local_modes(F, P, sc.ranks.budget(4), "oversampled")
    whole = sc.local_modes(F, P, sc.ranks.budget(4).whole_multiplets(), "oversampled")
    kernels = sc.local_modes(F, P, sc.ranks.kernel(), "oversampled")
    np.testing.assert_array_equal(M.ranks, kernels.ranks)
    assert M.over_budget == whole.over_budget == M.ranks.sum() - 4 > 0
    assert f"kernels {M.over_budget} over budget" in repr(M)
    assert sc.coarsen(F, P, M).recoarsen(F).modes.over_budget == M.over_budget
    assert kernels.over_budget == 0
    assert not kernels.tied.any()
    assert sc.local_modes(F, P, 1, "oversampled").tied.all()  # the cut splits the kernels
    assert "over budget" not in repr(sc.local_modes(F, P, sc.ranks.budget(60), "oversampled"))


def test_positive_scores_below_rounding_of_strong_edges_are_no_sections():
    """Warnings that they are discarded are errors here."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(8, 8))
    weight = np.where(np.arange(graph.number_of_edges()) % 9, 1.0, 1e14)
    F, P = CellularSheaf.constant(graph, weight=weight), Partition(np.arange(64) // 16)
    M = sc.local_modes(F, P, sc.ranks.budget(12), "oversampled", target=1.0)
    assert (M.next_eigenvalues > 0).all()
    assert (M.next_eigenvalues < 64 * np.finfo(float).eps * M.operator_norms).all()


def test_patch_kernels_of_many_dimensions_and_of_none_match_the_reference():
    """Inverse iteration doubles its block or is replaced by an SVD; the reference uses an SVD."""
    graphs = nx.disjoint_union_all([nx.grid_2d_graph(8, 5), nx.path_graph(20), nx.path_graph(3)])
    options = {"rank": sc.ranks.kernel(), "local_operator": "oversampled", "target": 1.0}
    for d in (1, 2, 3):
        F = gallery.bundle(graphs, d, seed=1)
        M = sc.local_modes(F, Partition([0] * F.n_vertices), **options)
        assert M.ranks.tolist() == [3 * d]
        delta, U = sc.coboundary(F), M.basis(0)
        assert_residual(delta @ U, delta, U, n=F.dim_c0)
    # singular values are about 1e-4 but not zero
    F = gallery.bundle(nx.grid_2d_graph(8, 8), 2, noise=1e-4, seed=1)
    assert sc.local_modes(F, Partition([0] * 64), **options).ranks.tolist() == [0]


def test_every_vector_is_a_section_if_all_maps_are_zero():
    F = CellularSheaf.constant(nx.path_graph(4)).with_maps(np.zeros(3), np.zeros(3))
    P = Partition([0, 0, 1, 1])
    M = sc.local_modes(F, P, 1, "oversampled")
    np.testing.assert_array_equal(M.basis(0), [[1], [0]])
    assert M.target == 0
    assert M.tied.all()
    assert oversampled(F, P, sc.ranks.kernel()).ranks.tolist() == [2, 2]
    assert sc.verify(oversampled(F, P, 2).recoarsen(F)).passed
    levels = [P, Partition([0, 0])]
    H = sc.coarsen_levels(F, partitions=levels, rank=1, local_operator="oversampled")
    assert [C.modes.target for C in H] == [0, 0]


# ---------------------------------------------------------------- invariances


@pytest.mark.parametrize(
    ("dtype", "factor"),
    [(float, 1e100), (complex, 1e-100), (np.float32, 1e12), (np.complex64, 1e-12)],
)
def test_scaling_all_maps_changes_nothing(dtype, factor):
    F = CellularSheaf.random(nx.grid_2d_graph(6, 6), 2, 3, seed=2, dtype=dtype)
    P = sc.select(F, 4)
    real = F.tail_data.real.dtype.type
    scaled = F.with_maps(F.tail_data * real(factor), F.head_data * real(factor))
    one, two = (sc.local_modes(G, P, sc.ranks.budget(20), "oversampled") for G in (F, scaled))
    np.testing.assert_array_equal(one.ranks, two.ranks)
    assert two.target == pytest.approx(one.target * factor**2, rel=1e-5)
    np.testing.assert_allclose(two.scores / real(factor) / real(factor), one.scores, rtol=1e-4)
    difference = (one.prolongation - two.prolongation).toarray()
    assert size(difference) < np.sqrt(eps_of(F.dtype)) * size(one.prolongation.toarray())
    power = F.with_maps(F.tail_data * real(2.0**30), F.head_data * real(2.0**30))
    same = [sc.local_modes(G, P, one.ranks, "oversampled").prolongation.data for G in (F, power)]
    np.testing.assert_array_equal(*same)


def test_relabelling_changes_nothing():
    F = CellularSheaf.random(nx.grid_2d_graph(6, 6), 2, 3, seed=2)
    P = sc.select(F, 4)
    G, Q, T, *_ = image(F, P, 0, {"vertices", "edges", "orientation"})
    one, two = (oversampled(*case, sc.ranks.budget(24), rings=1) for case in ((F, P), (G, Q)))
    np.testing.assert_array_equal(one.ranks, two.ranks)
    for a in range(4):
        lo, hi = one.sheaf.vertex_offsets[a : a + 2]
        U, V = T @ one.prolongation[:, lo:hi].toarray(), two.prolongation[:, lo:hi].toarray()
        assert size(U @ U.T - V @ V.T) < 1e-8


@pytest.mark.parametrize("dtype", [float, complex])
def test_stored_responses_give_the_same_modes_as_recomputed_ones(dtype, monkeypatch):
    F = CellularSheaf.random(nx.grid_2d_graph(6, 6), 2, 2, seed=2, dtype=dtype)
    P = sc.select(F, 4)
    one = sc.local_modes(F, P, sc.ranks.budget(24), "oversampled")
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.STORED_BELOW", 0)
    two = sc.local_modes(F, P, sc.ranks.budget(24), "oversampled")
    three = sc.local_modes(F, P, one.ranks, "oversampled")
    for other in (two, three):
        np.testing.assert_array_equal(one.prolongation.data, other.prolongation.data)
        np.testing.assert_array_equal(one.scores, other.scores)


# ---------------------------------------------------------------- what they gain, and the target


def relative_errors(F, P, total, **options):
    return sc.spectral_quality(
        sc.coarsen(F, P, sc.ranks.budget(total), **options), 10
    ).relative_errors.mean()


@pytest.mark.parametrize("d", [1, 2])
def test_oversampled_modes_approximate_the_low_spectrum_better_than_internal_modes(d):
    F = gallery.bundle(nx.grid_2d_graph(16, 16), d, noise=0.05 * (d > 1), seed=0)
    P = sc.select(F, 8)
    internal = relative_errors(F, P, F.dim_c0 * 3 // 10)
    assert relative_errors(F, P, F.dim_c0 * 3 // 10, local_operator="oversampled") < internal / 5


def eigenvalues_of_pilot(F, P):
    """Return the positive eigenvalues of the pilot by definition (conventions, section 5.7).

    R_a has N_a / 20 internal modes and all modes of the last multiplet.
    """
    L = reference.laplacian(F)
    columns = []
    for a in range(P.n_clusters):
        rows = reference.cluster_coordinates(F, P, a)
        values, vectors = np.linalg.eigh(reference.internal_laplacian(F, P, a))
        least = -(-len(rows) // 20)
        count = int((values <= values[least - 1] + 1e-8 * values[-1]).sum())
        block = np.zeros((F.dim_c0, count))
        block[rows] = vectors[:, :count]
        columns.append(block)
    R = np.concatenate(columns, axis=1)
    values = np.linalg.eigvalsh(R.T @ L @ R)
    return values[values > 1e-12 * values[-1]]


def sections_inside_clusters():
    """Six of twelve dimensions have no energy in a cluster; a twentieth is one mode."""
    rng = np.random.default_rng(7)
    n, inside = 12, np.array([[v, v + 1] for v in range(6)])
    edges = np.concatenate([n * k + inside for k in range(8)])
    across = [(n * k + i, n * ((k + 1) % 8) + j) for k in range(8) for i, j in ((3, 10), (10, 11))]
    edges = np.concatenate([edges, across])
    tail, head = rng.standard_normal((2, len(edges), 1, 1))
    return CellularSheaf(edges, tail, head, vertex_dims=np.ones(8 * n, int))


@pytest.mark.parametrize(
    ("F", "size_of_cluster", "count"),
    [
        (CellularSheaf.random(nx.circulant_graph(360, [1, 2]), 1, 1, seed=5), 36, 20),
        # multiplets have 4 modes, and a twentieth of 120 modes would split one of them
        (gallery.bundle(nx.grid_2d_graph(6, 30), 4, seed=0), 30, 6 * 8 - 4),
        (sections_inside_clusters(), 12, None),
    ],
    ids=["a twentieth of all modes", "whole multiplets", "whole kernels"],
)
def test_the_pilot_retains_a_twentieth_of_all_modes_and_whole_multiplets(F, size_of_cluster, count):
    P = Partition(np.arange(F.n_vertices) // size_of_cluster)
    values = eigenvalues_of_pilot(F, P)
    assert count is None or len(values) == count
    M = sc.local_modes(F, P, 1, "oversampled")
    assert M.pilot
    assert M.target == pytest.approx(values[9], rel=1e-9)


def test_a_large_pilot_is_solved_as_a_sparse_matrix(monkeypatch):
    F = gallery.bundle(nx.grid_2d_graph(20, 20), 2, seed=0)
    P = sc.select(F, 40)
    dense = oversampled_problems.pilot_target(F, P)
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.is_large", lambda m, count: True)
    monkeypatch.setattr("sheafcoarsen.modes.oversampled.np.linalg.eigvalsh", None)
    assert oversampled_problems.pilot_target(F, P) == pytest.approx(dense, rel=1e-8)


def test_a_pilot_with_few_positive_eigenvalues_uses_the_largest():
    F = CellularSheaf.constant(nx.path_graph(4))
    M = sc.local_modes(F, Partition([0, 0, 1, 1]), 1, "oversampled")
    assert M.target == pytest.approx(1.0)  # the coarse Laplacian is 1/2 (1, -1; -1, 1)
    M = sc.local_modes(F, Partition([0, 0, 0, 0]), 1, "oversampled")
    assert M.target == pytest.approx(4.0)  # the only mode is constant: norm(L, inf)


# ---------------------------------------------------------------- again, deeper, on disk


def test_all_levels_use_the_target_of_the_finest_level():
    F, _ = grid(8, 2, noise=0.1)
    options = {"factor": 4, "n_levels": 2, "rank": 3, "local_operator": "oversampled", "rings": 2}
    H = sc.coarsen_levels(F, **options)
    target = sc.local_modes(F, H[0].partition, 3, "oversampled").target
    assert [C.modes.target for C in H] == [target] * 2
    assert [C.modes.rings for C in H] == [2, 2]
    assert all(sc.verify(C).passed for C in H)
    F2 = F.with_maps(3 * F.tail_data, 3 * F.head_data)
    again, fresh = H.recoarsen(F2), sc.coarsen_levels(F2, **options)
    assert [C.modes.target for C in again] == [C.modes.target for C in fresh]
    assert again[1].modes.target == pytest.approx(9 * H[1].modes.target)
    np.testing.assert_array_equal(again.prolongation().toarray(), fresh.prolongation().toarray())
    own = sc.coarsen_levels(F, **options, target=0.25)
    assert [(C.modes.target, C.modes.pilot) for C in own.recoarsen(F2)] == [(0.25, False)] * 2
    C, D = own[0], oversampled(own[0].sheaf, own[1].partition, 3, rings=2)
    mixed = sc.Hierarchy(F, (C, D)).recoarsen(F)
    assert [E.modes.target for E in mixed] == [0.25, D.modes.target]


# ---------------------------------------------------------------- rounding errors


@pytest.mark.parametrize("dim", [1, 2])
def test_scores_are_finite_if_responses_are_at_rounding_level(dim):
    """With weights over six decades, most eigenvalues of the response are rounding errors."""
    F = CellularSheaf.constant(nx.star_graph(30), dim)
    weights = np.repeat(10.0 ** np.random.default_rng(4).uniform(-3, 3, 30), dim**2)
    F = F.with_maps(F.tail_data * weights, F.head_data * weights)
    P = Partition(np.arange(31) * 2 // 31)
    M = sc.local_modes(F, P, 15 * dim, "oversampled", rings=1, target=1.0)
    assert np.isfinite(M.scores).all()
    for scores in np.split(M.scores, np.cumsum(M.ranks)[:-1]):
        assert (np.diff(scores) >= 0).all()


def with_section(edges, x, dtype=float):
    """Return a sheaf with stalks of dimension 1 whose only section is x."""
    maps = 1 / np.asarray(x)[np.asarray(edges)]
    maps = (maps / maps.max(axis=1, keepdims=True)).astype(dtype)
    return CellularSheaf(edges, *maps.T.reshape(2, -1, 1, 1))


PEAK = np.where(np.arange(120) == 40, 1e6, 1)
TOWER = 1e8 ** np.array([0.0, 1, 2, 3, 3, 2, 1, 0])


@pytest.mark.parametrize(
    ("x", "dtype", "size_of_cluster", "rings"), [(PEAK, np.float32, 40, 1), (TOWER, float, 2, 2)]
)
@pytest.mark.parametrize("rank", [sc.ranks.kernel(), 2])
def test_sections_far_larger_outside_the_cluster_are_kept(x, dtype, size_of_cluster, rings, rank):
    n = len(x)
    F = with_section(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), x, dtype)
    P = Partition(np.arange(n) // size_of_cluster)
    C = oversampled(F, P, rank, rings=rings)
    assert sc.global_sections(C.sheaf).h0 == sc.global_sections(F).h0 == 1
    assert_verified(C)


@pytest.mark.parametrize("power", [8, 20, 24, 40])
def test_small_entries_of_sections_are_accurate(power):
    """The sections of both clusters have the entries 1 and 2^-power."""
    t = 2.0**-power
    F = with_section([[0, 2], [0, 1], [1, 3], [2, 3]], [t, 1, 1, t])
    C = oversampled(F, Partition([1, 0, 1, 0]), sc.ranks.kernel())
    for a, (small, large) in enumerate(([1, 0], [0, 1])):
        basis = C.block(a)[:, 0]
        assert_residual(basis[small] - t * basis[large], t, n=4)
    assert sc.global_sections(C.sheaf).h0 == 1


def test_sections_that_vanish_on_the_cluster_are_none_of_it():
    """Vertices 2 and 3 have a section of their own, next to a cluster whose section is 1e6."""
    F = CellularSheaf(
        [[0, 1], [1, 2], [2, 3]],
        np.reshape([1.0, 1e-3, 1e-6], (3, 1, 1)),
        [[[1e-6]], [[0.0]], [[1.0]]],
    )
    C = oversampled(F, Partition([0, 0, 1, 1]), sc.ranks.kernel(), rings=2)
    assert C.ranks.tolist() == [0, 1]
    assert sc.global_sections(C.sheaf).h0 == sc.global_sections(F).h0 == 1


def test_scores_of_responses_that_are_all_rounding_are_not_the_smallest():
    F = CellularSheaf([[0, 1]], [[[1.0]]], [[[0.0625]]])
    C = oversampled(F, Partition([0, 0]), 1, target=1e-9)
    assert C.modes.next_eigenvalues[0] > C.modes.operator_norms[0]
    assert_verified(C)


def test_kernels_of_patches_with_fewer_edges_than_start_vectors():
    """The cluster of isolated vertices comes after one whose singular values are not zero."""
    F = CellularSheaf.constant([[0, 1], [1, 2], [2, 3], [3, 0], [4, 5]], n_vertices=20)
    P = Partition([0] * 4 + [1] * 16)
    C = sc.coarsen(F, P, sc.ranks.kernel(), local_operator="oversampled")
    assert C.ranks.tolist() == [1, 15]
    assert sc.cohomology_dims(C.sheaf)[0] == 16


@pytest.mark.parametrize("target", [None, 1.0])
def test_pilots_and_patches_use_one_blas_thread(target, monkeypatch):
    """With more, bits of the pilot would depend on their number, and calls on patches wait."""
    seen = []

    def recorded(*args):
        seen.extend(blas_threads())
        raise np.linalg.LinAlgError  # after ``lowest_sparse``, a pilot calls ``eigvalsh``

    monkeypatch.setattr(oversampled_problems, "is_large", lambda m, count: True)
    for solver in ("lowest_sparse", "np.linalg.eigvalsh", "kernels.oversampled_modes"):
        monkeypatch.setattr(f"sheafcoarsen.modes.oversampled.{solver}", recorded)
    with threadpoolctl.threadpool_limits(2, "blas"), pytest.raises(np.linalg.LinAlgError):
        oversampled(*grid(12, 2, noise=0.2), 3, target=target)
    assert set(seen) == {1}


# ---------------------------------------------------------------- patches


def patches_of(F, P, rings):
    return ClusterPatches(F, clusters_of(F, P), rings)


def test_patches_of_clusters_beside_a_hub_have_bounded_size():
    G = nx.star_graph(60)
    nx.add_path(G, range(1, 61))
    F = CellularSheaf.constant(G)
    P = Partition(np.minimum(np.arange(61) // 6, 9))
    for rings in (1, 2, 5):
        patches = patches_of(F, P, rings)
        assert (patches.dims <= 2 * np.bincount(P.labels)).all()
        assert (patches.dims > np.bincount(P.labels)).all()
        # edges are listed at the end of lower degree
        assert np.diff(patches.arrays.low_ptr).max() <= 3
    assert sc.verify(oversampled(F, P, 2)).passed


@pytest.mark.parametrize("rings", [0, 1, 2, 30])
def test_patches_have_as_many_rings_as_fit(rings):
    """Stalks have dimension 0 .. 3, so that patches are full within some ring or not at all."""
    G = nx.convert_node_labels_to_integers(nx.circular_ladder_graph(12))
    F = CellularSheaf.random(G, np.random.default_rng(10).integers(0, 4, 24), 2, seed=3)
    P = Partition(np.arange(24) // 8)
    T = patches_of(F, P, rings).arrays
    for a in range(3):
        members = T.members[T.starts[a] : T.starts[a] + T.counts[a]]
        assert members.tolist() == reference.patch(F, P, a, rings)


def test_the_workspace_fits_singular_vectors_of_bases_of_a_patch_with_few_rows():
    """Bases up to N x N are decomposed there, too; LAPACK writes past a shorter array."""
    F = CellularSheaf.random(nx.path_graph(4), 5, 1, seed=0, dtype=complex)
    patches = patches_of(F, Partition([0, 0, 1, 1]), 1)
    N = int(patches.dims.max())
    s = patches.allocate(0, 2, 10, False).kernel.s
    assert s.rwork.size >= 5 * N
    assert s.work.size >= 3 * N
    assert min(s.a.size, s.z.size) >= N * N
