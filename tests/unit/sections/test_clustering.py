"""Clusters of the next level, split hubs, levels that stall, and removal of local sections."""

import warnings
from unittest.mock import Mock

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import assume, given

import sheafcoarsen as sc
from sheafcoarsen.sections import _global_sections, clustering, rank_decision
from sheafcoarsen.sections.rank_decision import section_bound, sections_of_full_rank
from tests.support import reference
from tests.support.helpers import (
    assert_residual,
    dense_kernel,
    dense_rank,
    eps_of,
    maps_of,
    same_subspace,
)
from tests.support.strategies import sheaves
from tests.unit.sections.conftest import check_basis, gaussian


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SmallComponentsWarning")
def test_clusters_have_about_40_vertices_or_120_dimensions_and_a_single_component():
    constant, grid = sc.CellularSheaf.constant, nx.grid_2d_graph(40, 40)
    F, wide = constant(nx.path_graph(400)), constant(nx.path_graph(40), dim=100)
    many, _, _ = sc.disjoint_union([F, F, sc.CellularSheaf([], [], [], vertex_dims=[1] * 30)])
    for G, growth, count in (
        (F, 1, 10),
        (many, 1, 31 + 21),
        (many, 4, 31 + 6),
        (wide, 1, 10),  # with at least four vertices each
        *((constant(grid, dim), 1, count) for dim, count in ((1, 40), (3, 40), (6, 80))),
        *((constant(grid, dim), 2, count) for dim, count in ((1, 20), (3, 20), (6, 40))),
    ):
        sheaf, partition, split, is_cut = clustering.choose_clusters(G, growth)
        assert (sheaf, split, is_cut) == (G, None, False)
        assert partition.n_clusters == count
        np.testing.assert_array_equal(partition.labels, sc.select(G, count, "balls").labels)


def test_clusters_that_are_too_large_are_shrunk():
    F = sc.CellularSheaf.constant(nx.star_graph(99), dim=2)
    labels = np.repeat([0, 1], 50)
    partition, is_cut = clustering.shrink_clusters(F, sc.Partition(labels), 60)
    assert is_cut
    weights = np.bincount(partition.labels, F.vertex_dims)
    assert (weights[:2].tolist(), set(weights[2:].tolist())) == ([60, 60], {2})
    assert partition.labels[0] == 0  # the hub has the highest degree
    same, is_cut = clustering.shrink_clusters(F, sc.Partition(labels), 100)
    assert not is_cut
    assert (same.labels == labels).all()


def test_shrunk_clusters_keep_the_vertices_with_most_edges_inside():
    """The last two vertices of a path have many edges, but to the other cluster."""
    graph = nx.path_graph(6)
    graph.add_edges_from((v, leaf) for v in (4, 5) for leaf in range(6, 30))
    graph.add_edges_from([(0, 2), (1, 3), (0, 3)])
    F = sc.CellularSheaf.constant(graph)
    clusters = sc.Partition(np.repeat([0, 1], [6, 24]))
    labels = clustering.shrink_clusters(F, clusters, 4)[0].labels
    assert labels[:4].tolist() == [0, 0, 0, 0]
    assert labels[4] != labels[5] != 0 != labels[4]


def test_coarsening_stops_at_the_size_of_the_last_level():
    F = sc.gallery.bundle(nx.convert_node_labels_to_integers(nx.grid_2d_graph(18, 18)), 2, seed=0)
    S = sc.global_sections(F)
    assert S.levels[0] == 648
    assert len(S.levels) == 2
    assert S.levels[1] <= clustering.LAST
    small = sc.gallery.bundle(nx.path_graph(200), 2, seed=0)
    assert sc.global_sections(small).levels == (clustering.LAST,)


def test_the_dimension_of_dense_decompositions_is_bounded(monkeypatch, cluster_sizes):
    assert clustering.LARGEST_LAST == 6000
    monkeypatch.setattr(_global_sections, "sections_of_full_rank", lambda sheaf: None)
    cluster_sizes(1 / 8, 120, 10)  # a vertex each, even if clusters are enlarged
    monkeypatch.setattr(clustering, "LARGEST_LAST", 19)
    F = sc.CellularSheaf.random(nx.random_regular_graph(4, 20, seed=1), 1, 1, seed=1)
    with pytest.raises(np.linalg.LinAlgError, match="stalled at dimension 20, .* to dimension 19"):
        sc.global_sections(F)
    monkeypatch.setattr(clustering, "LARGEST_LAST", 20)
    assert sc.global_sections(F).h0 == 0


@pytest.mark.usefixtures("no_forests")
def test_clusters_are_enlarged_if_coarsening_stalls(monkeypatch, cluster_sizes):
    """Clusters of two vertices of a long path retain nearly all dimensions."""
    monkeypatch.setattr(_global_sections, "sections_of_full_rank", lambda F: None)
    cluster_sizes(1, 120, 10)
    F = sc.CellularSheaf.constant(nx.path_graph(60))
    S = sc.global_sections(F)
    assert S.h0 == 1
    assert S.levels[-1] <= 10
    assert_residual(abs(S.basis) - 1 / np.sqrt(60), n=60)


@pytest.mark.usefixtures("no_forests")
def test_a_stalk_that_is_too_large_raises(monkeypatch):
    monkeypatch.setattr(clustering, "LAST", 20)
    monkeypatch.setattr(clustering, "LARGEST_LAST", 30)
    F = sc.CellularSheaf.random(nx.path_graph(4), [40, 1, 1, 1], 45, seed=0)
    with pytest.raises(np.linalg.LinAlgError, match="a single stalk .* dimension 40, but dense"):
        sc.global_sections(F)


def test_a_holonomy_that_counts_as_zero_inside_a_cluster_warns():
    """Each component is a triangle in a single cluster without crossing maps."""
    turn = np.eye(2) + 1e-13 * np.array([[0, -1], [1, 0]])
    edges = np.arange(900).reshape(-1, 3)[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    maps = np.tile(np.eye(2), (2, 900, 1, 1))
    maps[0, ::3] = turn
    with pytest.warns(sc.SingularProblemWarning, match="rounding errors determine"):
        S = sc.global_sections(sc.CellularSheaf(edges, *maps))
    assert S.h0 == 600
    assert len(S.levels) > 1
    assert 1e-14 < S.largest_zero < 1e-12


def test_sections_are_removed_in_spite_of_errors_from_eliminated_directions():
    """Sections contain eps / g of an eliminated direction with singular value g = 2e-3."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Q, U = (np.linalg.qr(rng.standard_normal((d, d)))[0] for d in (3, 2))
        inner, crossing = U @ np.diag([1, 2e-3]) @ Q[:2], (Q[0] + Q[1])[None]
        F = sc.CellularSheaf([[0, 0], [0, 1]], [inner, crossing], [0 * inner, np.ones((1, 1))])
        level = clustering.reduce_level(F, sc.Partition([0, 1]), (1e-3, 2.0**-52))[0]
        assert level.P.ranks.tolist() == [1, 0]


# ---------------------------------------------------------------- hubs
@pytest.fixture
def small(cluster_sizes):
    """Force splitting of hubs with a few dozen leaves."""
    cluster_sizes(10, 30, 30)


def two_hubs():
    graph = nx.disjoint_union(nx.star_graph(150), nx.star_graph(150))
    graph.add_edge(0, 151)
    return graph


def tangled(dtype=float):
    """Return hubs with loops, parallel edges, zero maps, and leaves of any dimension."""
    rng, star = np.random.default_rng(5), [[0, v] for v in range(2, 92)]
    other = [[v, 1] for v in range(60, 100)]
    edges = [*star, *other, *star[:5], [0, 0], [0, 1], [1, 1], [2, 3]]
    dims = np.array([3, 2, *rng.integers(0, 4, 98)])
    F = sc.CellularSheaf.random(edges, dims, rng.integers(0, 3, len(edges)), seed=1, dtype=dtype)
    zero = np.ones(len(F.tail_data))
    zero[F.tail_offsets[7] : F.tail_offsets[9]] = 0
    return F.with_maps(F.tail_data * zero, F.head_data)


@pytest.mark.usefixtures("small", "sparse", "no_forests")
def test_a_hub_with_many_leaves_is_split_into_small_clusters(monkeypatch):
    """Leaves of a star cannot be divided among connected clusters without copies of the hub."""
    level = Mock(wraps=clustering.reduce_level)
    monkeypatch.setattr(_global_sections, "reduce_level", level)
    for F, h0 in (
        (sc.gallery.bundle(two_hubs(), 2, seed=0), 2),
        (sc.CellularSheaf.random(nx.star_graph(200), 3, 1, seed=0), 403),
        (sc.CellularSheaf.random(nx.star_graph(200), 2, 3, seed=0, dtype=complex), 0),
    ):
        S = sc.global_sections(F)
        assert S.h0 == h0
        assert 2 <= len(S.levels) <= 4  # without copies there would be up to 14
        assert S.residual < 1e-13
        check_basis(F, S)
    assert max(_heaviest(*call.args[:2]) for call in level.call_args_list) <= 120


def _heaviest(F, P):
    return np.bincount(P.labels, F.vertex_dims).max()


@pytest.mark.usefixtures("small", "sparse", "no_forests")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_splitting_hubs_preserves_sections_for_any_neighbours(dtype):
    F = tangled(dtype)
    expected = dense_kernel(reference.coboundary(F))
    S = sc.global_sections(F)
    assert len(S.levels) > 1
    assert S.h0 == expected.shape[1]
    assert same_subspace(check_basis(F, S), expected, condition=1e4, eps=eps_of(dtype))


def test_only_heavy_clusters_with_hubs_are_split():
    F = sc.gallery.bundle(two_hubs(), 2, seed=0)
    P = sc.Partition(np.repeat([0, 1], 151))
    assert clustering.split_hubs(F, P, largest=302, capacity=50) is None
    assert set(clustering.split_hubs(F, P, largest=300, capacity=50).owners[302:]) == {0, 151}
    F, _, _ = sc.disjoint_union([F, sc.gallery.bundle(nx.star_graph(100), 2, seed=0)])
    P = sc.Partition(np.repeat([0, 1, 2], [151, 151, 101]))
    assert set(clustering.split_hubs(F, P, largest=300, capacity=50).owners[403:]) == {0, 151}
    clique = sc.gallery.bundle(nx.complete_graph(40), 2, seed=0)
    assert clustering.split_hubs(clique, sc.Partition(np.zeros(40, int)), 20, 10) is None


def test_groups_of_different_clusters_are_separate():
    """One cluster has two hubs, and the other one."""
    graph = nx.disjoint_union(nx.complete_bipartite_graph(2, 120), nx.star_graph(120))
    F = sc.gallery.bundle(graph, 2, seed=0)
    P = sc.Partition(np.repeat([0, 1], [122, 121]))
    split = clustering.split_hubs(F, P, largest=100, capacity=40)
    assert {0, 1, 122} <= set(split.owners[F.n_vertices :].tolist())
    before = P.labels[split.owners]
    for group in range(split.partition.n_clusters):
        assert len(set(before[split.partition.labels == group])) == 1


def test_copies_are_joined_by_trees():
    F = sc.CellularSheaf.constant(nx.star_graph(1000))
    split = clustering.split_hubs(F, sc.Partition(np.zeros(1001, int)), 100, 10)
    n_copies = len(split.owners) - 1001
    assert n_copies == 99
    tree = nx.Graph(split.sheaf.edges[F.n_edges :].tolist())
    assert nx.is_tree(tree)
    assert tree.number_of_nodes() == n_copies + 1
    assert max(dict(tree.degree).values()) == 9
    assert nx.eccentricity(tree, 0) <= 3


def test_groups_of_large_hubs_are_larger():
    """A hub of dimension 10 is copied for groups of dimension 40, not 20."""
    F = sc.CellularSheaf.random(nx.star_graph(400), [10, *[1] * 400], 1, seed=0)
    split = clustering.split_hubs(F, sc.Partition(np.zeros(401, int)), 100, 20)
    weights = np.bincount(split.partition.labels, split.sheaf.vertex_dims)
    assert weights.tolist() == [50] * 10


@pytest.mark.usefixtures("small", "no_forests")
def test_leaves_of_a_hub_too_large_to_copy_become_single_clusters():
    """The stalk of the hub is as large as a cluster."""
    dims = [40, *[2] * 120]
    F = sc.CellularSheaf.random(nx.star_graph(120), dims, 2, seed=0)
    _, partition, split, is_cut = clustering.choose_clusters(F, 1)
    assert (is_cut, split) == (True, None)
    assert _heaviest(F, partition) <= 104  # at most four times the mean
    S = sc.global_sections(F)
    assert S.h0 == 40
    check_basis(F, S)


@pytest.mark.large
@pytest.mark.usefixtures("no_forests")
def test_a_star_of_30000_leaves_takes_three_levels():
    """Without splitting, there would be 114 levels."""
    S = sc.global_sections(gaussian(np.array(nx.star_graph(30_000).edges), 3, seed=0))
    assert (S.h0, len(S.levels)) == (3, 3)
    assert S.levels[1] < S.levels[0] / 15
    assert S.residual < 1e-15


# ---------------------------------------------------------------- ranks
DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.complex64)


@pytest.mark.parametrize("rows", [5, 1024, 1025, 5000])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("whole", [False, True])
def test_singular_pairs_on_a_subspace_are_resolved_below_the_root_of_eps(whole, rows, dtype):
    rng = np.random.default_rng(rows)
    X = np.linalg.qr(rng.standard_normal((40, 7)).astype(dtype))[0]
    D = rng.standard_normal((rows, 40)).astype(dtype)
    if dtype is complex:
        D, X = D + 1j * rng.standard_normal(D.shape), X * 1j
    D = D - (1 - 1e-11) * (D @ X[:, :1]) @ X[:, :1].conj().T
    sigma, V = rank_decision.singular_pairs(scipy.sparse.csr_array(D), None if whole else X)
    X = np.eye(40) if whole else X
    exact = np.linalg.svd(D @ X, compute_uv=False)[::-1]
    exact = np.append(np.zeros(X.shape[1] - len(exact)), exact)
    assert np.abs(sigma - exact).max() <= 30 * np.finfo(float).eps * exact[-1]
    assert_residual(np.linalg.norm(D @ V, axis=0) - sigma, exact[-1], n=rows)
    assert_residual(V.conj().T @ V - np.eye(X.shape[1]), n=40)
    assert_residual(V - X @ (X.conj().T @ V), n=40)


def test_the_threshold_grows_if_small_singular_values_were_eliminated():
    eps = 2.0**-52
    for cut in (1.0, 0.01):
        assert rank_decision.zero_threshold(400, eps, cut) == 10 * 400 * eps / cut
    # errors of single precision do not grow with the dimension
    assert rank_decision.zero_threshold(400, 2.0**-23, 1.0) == 10 * 2.0**-23


@pytest.mark.parametrize(
    ("zero", "nonzero", "threshold", "weight", "dtype", "rows", "clear"),
    [
        (0.0, np.inf, 1e-12, 1.0, DOUBLE, 1, True),
        (1e-15, 0.1, 1e-12, 1.0, DOUBLE, 1, True),
        (1.9e-14, 1.1e-9, 1e-12, 1.0, DOUBLE, 1, True),
        (2.5e-14, 0.1, 1e-12, 1.0, DOUBLE, 1, False),  # above 100 eps
        (1e-15, 0.9e-9, 1e-12, 1.0, DOUBLE, 1, False),  # below 1000 times the threshold
        (2.5e-14, np.inf, 1e-12, 1.0, DOUBLE, 1, False),
        # zeros may be larger if the threshold is far above rounding
        (0.9e-13, 1.0, 1e-10, 1.0, DOUBLE, 1, True),
        (1.1e-13, 1.0, 1e-10, 1.0, DOUBLE, 1, False),
        # zeros above the threshold, due to errors of maps of large weight, also need a gap
        (0.9e-14, 1.1e-11, 1e-15, 1.0, DOUBLE, 1, True),
        (0.9e-14, 0.8e-11, 1e-15, 1.0, DOUBLE, 1, False),
        # single precision needs a smaller gap
        (0.0, 3.1e-5, 1e-5, 1.0, SINGLE, 1, True),
        (0.0, 2.9e-5, 1e-5, 1.0, SINGLE, 1, False),
        (1.1e-5, 1.0, 1e-5, 1.0, SINGLE, 1, True),
        (1.3e-5, 1.0, 1e-5, 1.0, SINGLE, 1, False),
        # zeros of ill-conditioned maps may be larger
        (1e-11, 1.0, 1e-12, 1.0, DOUBLE, 1, False),
        (1e-11, 1.0, 1e-12, 1e3, DOUBLE, 1, True),
        (1e-11, 0.9e-8, 1e-12, 1e3, DOUBLE, 1, False),
        # zeros may be larger if many rows are rounded
        (1e-13, 1.0, 1e-12, 1.0, DOUBLE, 190_000, False),
        (1e-13, 1.0, 1e-12, 1.0, DOUBLE, 210_000, True),
    ],
)
def test_singular_values_near_the_threshold_are_doubtful(
    zero, nonzero, threshold, weight, dtype, rows, clear
):
    reason = rank_decision.doubt(zero, nonzero, threshold, weight, dtype, rows)
    assert (reason is None) == clear
    assert clear or f"counted as zero is {zero:.2g}" in reason


@pytest.mark.large
def test_the_sections_of_a_large_complete_graph_are_clear():
    F = sc.CellularSheaf.constant(nx.complete_graph(700))
    assert sc.global_sections(F).h0 == 1  # without a warning


EXPANDER = nx.random_regular_graph(4, 60, seed=1)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(("edge_dim", "h0"), [(1, 60), (2, 0), (3, 0)])
def test_sections_of_full_rank_match_a_dense_decomposition(dtype, edge_dim, h0):
    F = sc.normalize(sc.CellularSheaf.random(EXPANDER, 3, edge_dim, seed=2, dtype=dtype))
    found = sections_of_full_rank(F)
    basis = found.basis()
    assert basis.shape == found.shape == (180, h0)
    delta = reference.coboundary(F)
    assert_residual(delta @ basis, delta, n=180)
    assert_residual(basis.conj().T @ basis - np.eye(h0), n=180)
    sigma = np.linalg.svd(delta, compute_uv=False)
    assert 0.1 * sigma[-1] < found.smallest < 10 * sigma[-1]


def test_unclear_ranks_are_left_to_coarsening(monkeypatch):
    constant = sc.CellularSheaf.constant(EXPANDER)  # one section more than the full rank gives
    G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(8, 8))
    nearly = sc.gallery.bundle(G, 2, noise=1e-5, seed=3)
    nothing = sc.CellularSheaf([[0, 1]], np.zeros((1, 1, 2)), np.zeros((1, 1, 2)))
    for F in (constant, nearly, nothing):
        assert sections_of_full_rank(F) is None
    clearly = sc.normalize(sc.gallery.bundle(G, 2, noise=0.01, seed=3))
    sigma = np.linalg.svd(reference.coboundary(clearly), compute_uv=False)
    assert 0.1 * sigma[-1] < sections_of_full_rank(clearly).smallest < 10 * sigma[-1] < 0.1
    unseen = sc.CellularSheaf([[0, 1]], [[[1.0, 0.0]]], [[[1.0, 0.0]]])
    assert sections_of_full_rank(unseen).basis().shape == (4, 3)
    monkeypatch.setattr(rank_decision, "LARGEST", 100)
    assert sections_of_full_rank(sc.CellularSheaf.random(EXPANDER, 3, 2, seed=2)) is None


def test_matrices_that_look_nearly_singular_are_not_factored(monkeypatch):
    """The smallest eigenvalues are 1e-6 and 1e-2 at sizes where factors take seconds."""
    factored = Mock(wraps=scipy.linalg.cholesky)
    monkeypatch.setattr("scipy.linalg.cholesky", factored)
    assert sections_of_full_rank(sc.CellularSheaf.constant(nx.path_graph(2100))) is None
    factored.assert_not_called()
    ones = np.ones((2100, 1, 1))
    star = sc.CellularSheaf([[k, k] for k in range(2100)], 2 * ones, ones)
    assert sections_of_full_rank(star).shape == (2100, 0)
    factored.assert_called_once()


def test_the_rank_is_checked_again_after_a_level_too_large_to_factor(monkeypatch, cluster_sizes):
    cluster_sizes(2, 6, 100)
    F = sc.CellularSheaf.random(EXPANDER, 3, 1, seed=2)
    monkeypatch.setattr(rank_decision, "LARGEST", 80)  # the matrices have 90 rows first, then 70
    S = sc.global_sections(F)
    assert (S.h0, S.levels[0], len(S.levels)) == (60, 180, 3)  # others depend on rounding
    assert 180 > S.levels[1] > S.levels[2] > 120


def test_rows_at_rounding_level_do_not_count_as_rank(cluster_sizes):
    """One of two rows of each edge is 1e-16 times the other: there are 240 sections, not 120."""
    cluster_sizes(2, 6, 100)
    maps = np.random.default_rng(3).standard_normal((2, 120, 2, 6))
    maps[:, :, 1] *= 1e-16
    S = sc.global_sections(sc.CellularSheaf(np.array(EXPANDER.edges), *maps))
    assert S.h0 == 240
    assert S.largest_zero < 1e-13 < 0.1 < S.smallest_nonzero


@pytest.mark.parametrize("entries", [0, 1 << 22], ids=["sparse", "dense"])
@pytest.mark.parametrize("condition", [1.0, 1e6])
@pytest.mark.parametrize("dtype", [float, complex])
def test_full_rank_is_used_if_coarsening_stalls(
    monkeypatch, cluster_sizes, dtype, condition, entries
):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", entries)
    cluster_sizes(2, 6, 100)
    full_rank = Mock(wraps=sections_of_full_rank)
    monkeypatch.setattr(_global_sections, "sections_of_full_rank", full_rank)
    F = sc.CellularSheaf.random(EXPANDER, 3, 1, seed=2, dtype=dtype)
    # the scales are the same for all edges at a vertex
    frames = np.random.default_rng(7).standard_normal((60, 3, 3)) * np.geomspace(1, condition, 3)
    F = F.with_maps(*(maps @ frames[v] for maps, v in zip(maps_of(F), F.edges.T, strict=True)))
    S = sc.global_sections(F)
    assert scipy.sparse.issparse(S.basis) == (entries == 0)
    full_rank.assert_called_once()
    after = full_rank.call_args.args[0].dim_c0  # the dimension after one level
    assert (S.h0, S.levels) == (60, (180, after))
    assert 60 < after < 180
    wanted = reference.global_sections(F)
    B = S.toarray()
    assert_residual(B.conj().T @ B - np.eye(60), n=180)
    assert_residual(B @ B.conj().T - wanted @ wanted.conj().T, 100 * condition, n=180)
    assert S.residual < 1e-14
    assert S.largest_zero < 1e-13 < 1e-3 < S.smallest_nonzero


def chain(n, dim, seed):
    """Return random square maps on a path of n edges, with h0 = dim."""
    return gaussian(np.array(nx.path_graph(n + 1).edges), dim, seed=seed)


@given(sheaves(dtypes=(np.float64, np.complex128)))
def test_the_bound_holds_on_any_sheaf(F):
    sigma = np.linalg.svd(reference.coboundary(F), compute_uv=False)
    largest = sigma.max(initial=0.0)
    assume(not ((sigma > 1e-15 * largest) & (sigma < 1e-6 * largest)).any() or largest == 0)
    h0 = F.dim_c0 - dense_rank(reference.coboundary(F))
    least = max(F.dim_c0 - F.dim_c1, F.vertex_dims.min(initial=0))  # known without it
    assert max(h0, least) <= section_bound(F)


def test_the_bound_matches_known_values():
    F = chain(20, 3, seed=0)
    for scale in (1e-149, 1.0, 1e100):
        assert section_bound(F.with_maps(F.tail_data * scale, F.head_data * scale)) == 3
    scales = np.geomspace(1e-18, 1, 20).repeat(9)  # one for each edge
    assert section_bound(F.with_maps(F.tail_data * scales, F.head_data * scales)) == 3
    assert section_bound(sc.CellularSheaf.constant([[0, 1], [2, 3]], dim=2)) == 4
    # roots have minimum dimension; one map on a stalk of dimension 3 has rank 1
    low = np.ones((2, 3))
    F = sc.CellularSheaf([[0, 1], [1, 0]], [low, np.eye(2)], [np.eye(2), low])
    assert section_bound(F) == 2 + 2
    assert section_bound(sc.CellularSheaf([[0, 1]], *np.zeros((2, 1, 2, 2)))) == 4
    assert section_bound(sc.CellularSheaf([], [], [], vertex_dims=[2, 0, 1])) == 3
    assert section_bound(sc.CellularSheaf([[0, 0]], [np.eye(2)], [-np.eye(2)])) == 2
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    for small, bound in ((1e-10, 3), (1e-15, 4)):  # the second is singular up to rounding
        A = turn @ np.diag([1.0, 1.0, small]) @ turn.T
        assert section_bound(sc.CellularSheaf([[0, 1]], [A], [A])) == bound


@pytest.mark.large
@pytest.mark.usefixtures("no_forests")
@pytest.mark.parametrize("function", [sc.global_sections, sc.cohomology_dims])
def test_a_wrong_h0_on_a_long_chain_always_warns(function):
    """Coarsening decides most of these chains by rounding; forests are decided exactly."""
    wrong = 0
    for n, dim in ((600, 1), (1000, 1), (3000, 1), (300, 3), (1000, 3)):
        for seed in range(2):
            with warnings.catch_warnings(record=True, action="always") as caught:
                found = function(chain(n, dim, seed))
            if (found.h0 if function is sc.global_sections else found[0]) == dim:
                continue
            wrong += 1
            assert [w.category for w in caught] == [sc.SingularProblemWarning]
            assert caught[0].filename == __file__
            assert "rounding errors determine" in str(caught[0].message)
    assert wrong >= 4


def valley():
    """Return a path whose maps decay to 1e-40 and grow again, with clear singular values."""
    slope = np.repeat([0.5, 2.0], 200)[:, None]
    return sc.CellularSheaf.diagonal(nx.path_graph(401), slope, np.ones((400, 1)))


def test_h0_above_the_bound_warns_even_if_singular_values_are_clear(monkeypatch):
    S = sc.global_sections(valley())  # by substitution along the tree
    assert S.h0 == 1
    assert S.residual < 1e-15
    monkeypatch.setattr(_global_sections, "forest_sections", lambda F: None)
    with pytest.warns(sc.SingularProblemWarning, match="a spanning tree bounds h0 by 1") as caught:
        S = sc.global_sections(valley())
    assert S.h0 == 2
    assert caught[0].filename == __file__
