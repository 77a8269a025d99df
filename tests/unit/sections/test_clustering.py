"""Clusters of the next level, split hubs, levels that stall, and removal of local sections."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.sections import _global_sections, clustering
from tests.support import reference
from tests.support.helpers import assert_residual, dense_kernel, eps_of, same_subspace
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
    assert weights[:2].tolist() == [60, 60]
    assert set(weights[2:].tolist()) == {2}
    assert partition.labels[0] == 0  # the hub has the highest degree
    same, is_cut = clustering.shrink_clusters(F, sc.Partition(labels), 100)
    assert not is_cut
    assert (same.labels == labels).all()


def test_shrunk_clusters_keep_the_vertices_with_most_edges_inside():
    """The last two vertices of a path have many edges, but to the other cluster."""
    path, leaves = list(range(6)), list(range(6, 30))
    graph = nx.path_graph(path)
    graph.add_edges_from((v, leaf) for v in (4, 5) for leaf in leaves)
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
    rng = np.random.default_rng(5)
    star = np.stack([np.zeros(90, int), np.arange(2, 92)], axis=1)
    both = np.stack([np.ones(40, int), np.arange(60, 100)], axis=1)
    edges = np.concatenate([star, both[:, ::-1], star[:5], [[0, 0], [0, 1], [1, 1], [2, 3]]])
    dims = np.array([3, 2, *rng.integers(0, 4, 98)])
    F = sc.CellularSheaf.random(edges, dims, rng.integers(0, 3, len(edges)), seed=1, dtype=dtype)
    zero = np.ones(len(F.tail_data))
    zero[F.tail_offsets[7] : F.tail_offsets[9]] = 0
    return F.with_maps(F.tail_data * zero, F.head_data)


@pytest.mark.usefixtures("small", "sparse", "no_forests")
def test_a_hub_with_many_leaves_is_split_into_small_clusters(monkeypatch):
    """Leaves of a star cannot be divided among connected clusters without copies of the hub."""
    largest, reduced = [], clustering.reduce_level
    monkeypatch.setattr(
        _global_sections,
        "reduce_level",
        lambda F, P, *rest: largest.append(_heaviest(F, P)) or reduced(F, P, *rest),
    )
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
    assert max(largest) <= 120


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
    split = clustering.split_hubs(F, P, largest=300, capacity=50)
    assert set(split.owners[302:]) == {0, 151}
    F, _, _ = sc.disjoint_union([F, sc.gallery.bundle(nx.star_graph(100), 2, seed=0)])
    P = sc.Partition(np.concatenate([P.labels, np.full(101, 2)]))
    split = clustering.split_hubs(F, P, largest=300, capacity=50)
    assert set(split.owners[403:]) == {0, 151}
    clique = sc.gallery.bundle(nx.complete_graph(40), 2, seed=0)
    assert clustering.split_hubs(clique, sc.Partition(np.zeros(40, int)), 20, 10) is None


def test_groups_of_different_clusters_are_separate():
    """One cluster has two hubs, and the other one."""
    star = nx.star_graph(120)
    double = nx.complete_bipartite_graph(2, 120)
    F = sc.gallery.bundle(nx.disjoint_union(double, star), 2, seed=0)
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
    joins = split.sheaf.edges[F.n_edges :]
    tree = nx.Graph(joins.tolist())
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
    assert is_cut
    assert split is None
    assert _heaviest(F, partition) <= 104  # at most four times the mean
    S = sc.global_sections(F)
    assert S.h0 == 40
    check_basis(F, S)


@pytest.mark.large
@pytest.mark.usefixtures("no_forests")
def test_a_star_of_30000_leaves_takes_three_levels():
    """Without splitting, there would be 114 levels."""
    S = sc.global_sections(gaussian(np.array(nx.star_graph(30_000).edges), 3, seed=0))
    assert S.h0 == 3
    assert len(S.levels) == 3
    assert S.levels[1] < S.levels[0] / 15
    assert S.residual < 1e-15
