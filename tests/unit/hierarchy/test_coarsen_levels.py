"""Number of levels, and their partitions, ranks and options."""

import dataclasses
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from tests.support import reference
from tests.support.helpers import assert_residual, assert_verified
from tests.support.strategies import mode_counts, partitions, sheaves
from tests.unit.coarsening.test_coarsen import blocks_of

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@st.composite
def hierarchies(draw, loops=(True, False), **options):
    """Draw hierarchies of up to three levels by partitions, ranks and options of any kind."""
    F = draw(sheaves(**options))
    given_, ranks, n = [], [], F.n_vertices
    for _ in range(draw(st.integers(0, 3))):
        given_.append(draw(partitions(n)))
        rules = st.sampled_from([sc.ranks.kernel(), sc.ranks.budget(4)])
        ranks.append(draw(mode_counts(given_[-1]) | rules))
        n = given_[-1].n_clusters
    options = {"local_operator": draw(st.sampled_from(["internal", "principal", "oversampled"]))}
    options |= {"loops": draw(st.sampled_from(loops)), "compress": draw(st.booleans())}
    with warnings.catch_warnings():  # ignore warnings about empty kernels
        warnings.simplefilter("ignore", sc.SingularProblemWarning)
        return sc.coarsen_levels(F, partitions=given_, rank=ranks, **options)


def composite(H):
    """Return R_0 R_1 ... as blocks, with the partition of the fine vertices."""
    labels, R = np.arange(H.fine.n_vertices), np.eye(H.fine.dim_c0)
    for C in H:
        labels = C.partition.labels[labels]
        R = R @ C.prolongation.toarray()
    P, columns = Partition(labels), H.sheaves[-1].vertex_offsets
    rows = [reference.cluster_coordinates(H.fine, P, a) for a in range(P.n_clusters)]
    return P, R, [R[own, columns[a] : columns[a + 1]] for a, own in enumerate(rows)]


def block_size(H):
    """Return the largest block size times the number of levels, whose errors add up."""
    return sum(max((max(R_a.shape) for R_a in blocks_of(C)), default=1) for C in H) + 1


def grid(n=20, **options):
    return gallery.bundle(nx.grid_2d_graph(n, n), 2, noise=0.3, seed=3, **options)


GRID = grid()
STUCK, FEW = "level {} cannot shrink: {}", "{} vertices are at most `min_vertices` = {}"
ALONE, NO_MODE = "none of its 3 vertices is linked to another", "would keep no mode of any cluster"
SHARE, START = "`factor` = 1.001 makes 400 clusters of 400 vertices", "it starts from {} vertices"
THREE_GRIDS, NOTHING = sc.disjoint_union([GRID] * 3)[0], CellularSheaf.from_flat([], [], [], [], [])
LOOP = CellularSheaf.constant([[0, 0]], n_vertices=3)
LEVELS = [  # a sheaf, options, the numbers of vertices, and why the levels end
    (GRID, {"factor": 3.5, "min_vertices": 33}, [400, 115, 33], FEW.format(33, 33)),
    (GRID, {"factor": 3.5, "min_vertices": 32}, [400, 115, 33, 10], FEW.format(10, 32)),
    (GRID, {}, [400, 40], FEW.format(40, 100)),
    (grid(10), {}, [100], FEW.format(100, 100)),
    (GRID, {"factor": 4, "n_levels": 0}, [400], "`n_levels` = 0"),
    (GRID, {"factor": 4, "n_levels": 1}, [400, 100], "`n_levels` = 1"),
    (GRID, {"factor": 4, "n_levels": 2}, [400, 100, 25], "`n_levels` = 2"),
    (GRID, {"factor": 4, "n_levels": 3}, [400, 100, 25, 7], "`n_levels` = 3"),
    (GRID, {"factor": 4, "n_levels": 9}, [400, 100, 25, 7, 2, 1], STUCK.format(5, START.format(1))),
    (THREE_GRIDS, {"factor": 20, "n_levels": 9}, [1200, 60, 3], STUCK.format(2, ALONE)),
    (LOOP, {"n_levels": 1}, [3], STUCK.format(0, ALONE)),
    (GRID, {"factor": 1.001}, [400], STUCK.format(0, SHARE)),
    (NOTHING, {"n_levels": 1}, [0], STUCK.format(0, START.format(0))),
    (GRID, {"rank": 0}, [400], f"level 0 {NO_MODE}"),
]


@pytest.mark.parametrize(("F", "options", "sizes", "stopped"), LEVELS)
def test_levels_are_added_until_an_option_or_the_sheaf_ends_them(F, options, sizes, stopped):
    H = sc.coarsen_levels(F, **{"rank": 3, **options})
    assert [G.n_vertices for G in H.sheaves] == sizes
    assert H.stopped_because == stopped


def test_only_first_levels_that_keep_no_mode_warn():
    noisy = CellularSheaf.random(nx.complete_graph(200), 2, 2, seed=3)
    with pytest.warns(sc.SingularProblemWarning, match="level 0: no local operator has") as caught:
        H = sc.coarsen_levels(noisy, rank=sc.ranks.kernel())
    assert [w.filename for w in caught] == [__file__]
    assert (len(H), H.stopped_because) == (0, f"level 0 {NO_MODE}")
    cycle = gallery.cycle(60, np.array([[0.6, -0.8], [0.8, 0.6]]))
    H = sc.coarsen_levels(cycle, 10, min_vertices=1, rank=sc.ranks.kernel())
    assert (len(H), H.stopped_because) == (1, f"level 1 {NO_MODE}")


@pytest.mark.parametrize("operator", ["internal", "oversampled"])
def test_a_user_supplied_partition_without_retained_modes_warns(operator):
    noisy, P = grid(6), Partition(np.arange(36) // 9)
    Q, rank = Partition([0, 0, 1, 1]), [sc.ranks.kernel()] * 2
    with pytest.warns(sc.SingularProblemWarning, match="level 0: ") as caught:
        H = sc.coarsen_levels(noisy, partitions=[P, Q], rank=rank, local_operator=operator)
    assert [w.filename for w in caught] == [__file__]  # level 1 does not warn, because it is empty
    assert [G.dim_c0 for G in H.sheaves] == [72, 0, 0]


@pytest.mark.parametrize("small", [1, 10])
def test_large_components_are_cut_as_if_alone(small):
    """Hundreds of small components are one cluster each."""
    parts = [nx.random_regular_graph(4, 700, seed=1), *[nx.path_graph(small)] * 140]
    F = CellularSheaf.constant(nx.disjoint_union_all(parts))
    H = sc.coarsen_levels(F, factor=10, n_levels=2, rank=1)
    assert [G.n_vertices for G in H.sheaves] == [700 + 140 * small, 140 + 70, 140 + 7]
    P = H[0].partition
    sizes = P.sizes[np.unique(P.labels[:700])]
    assert abs(len(sizes) - 70) <= 3  # if all components are alike, a small one may be cut
    assert sizes.max() <= 25
    assert len(np.unique(P.labels[700:])) + len(sizes) == 210
    exactly = [CellularSheaf.constant(nx.path_graph(k)) for k in (10, 11)]
    # components of 16 vertices are larger than `factor`
    for components, count in ((exactly, 1 + 2), ([grid(4)] * 40, 64)):
        union = sc.disjoint_union(components)[0]
        assert sc.coarsen_levels(union, 10, 1, rank=1)[0].partition.n_clusters == count


def test_every_option_applies_to_all_levels():
    for options, applies in (
        ({}, lambda C: C.modes.local_operator == "internal" and C.loops),
        ({}, lambda C: C.crossing_rows is None),
        ({"local_operator": "principal"}, lambda C: C.modes.local_operator == "principal"),
        ({"loops": False}, lambda C: not C.loops),
        ({"compress": False}, lambda C: C.crossing_rows is not None),
    ):
        assert all(applies(C) for C in sc.coarsen_levels(GRID, 4, 2, rank=3, **options))
    for options in ({}, {"seed": 5}, {"method": "matching"}):
        for C in sc.coarsen_levels(GRID, 4, 2, rank=3, **options):
            n = C.partition.n_clusters
            usual, expected = (sc.select(C.fine, n, **each).labels for each in ({}, options))
            np.testing.assert_array_equal(C.partition.labels, expected)
            assert (expected != usual).any() == bool(options)


def test_a_progress_bar_is_shown_on_request(capsys):
    for progress in (False, True):
        P = Partition(np.arange(400) // 100)
        for coarsen, clusters in ((sc.coarsen_levels, 4), (sc.coarsen, P)):
            coarsen(GRID, clusters, rank=3, progress=progress)
            shown = capsys.readouterr().err
            assert "local modes" in shown if progress else shown == ""


def test_user_supplied_partitions_determine_the_levels():
    given_ = Partition(np.arange(400) % 7), Partition([0, 0, 1, 1, 2, 2, 2])
    message = "level 1: no local operator has eigenvalue 0"
    with pytest.warns(sc.SingularProblemWarning, match=message):
        H = sc.coarsen_levels(GRID, partitions=iter(given_), rank=[3, sc.ranks.kernel()])
    assert [C.partition for C in H] == [*given_]
    assert H.stopped_because == "`partitions` holds 2"
    everything = [Partition(np.arange(400)), Partition(np.zeros(400, int)), Partition([0])]
    H = sc.coarsen_levels(GRID, partitions=everything, rank=5)
    assert [G.n_vertices for G in H.sheaves] == [400, 400, 1, 1]
    assert [G.dim_c0 for G in H.sheaves] == [800, 800, 5, 5]
    assert sc.coarsen_levels(GRID, partitions=everything, rank=0).sheaves[-1].dim_c0 == 0
    assert len(sc.coarsen_levels(GRID, partitions=[], rank=5)) == 0


def test_each_level_uses_its_entry_of_rank():
    P, Q = Partition(np.arange(400) // 100), Partition([0, 0, 1, 1])
    H = sc.coarsen_levels(GRID, partitions=[P, Q], rank=(2, [1, 3]))
    assert [C.ranks.tolist() for C in H] == [[2] * 4, [1, 3]]
    each = np.array([4, 3, 2, 1])
    H = sc.coarsen_levels(GRID, partitions=[P, Q], rank=[each, sc.ranks.budget(3)])
    assert (H[0].ranks.tolist(), H[1].ranks.sum()) == ([4, 3, 2, 1], 3)
    H = sc.coarsen_levels(GRID, 4, min_vertices=10, rank=[3, 4])
    assert [set(C.ranks.tolist()) for C in H] == [{3}, {4}]
    assert H.stopped_because == "`rank` has entries for 2 levels"
    H = sc.coarsen_levels(GRID, 10, rank=[3, 4, 5])  # `min_vertices` ends the levels before
    assert (len(H), H.stopped_because) == (1, FEW.format(40, 100))


def test_eliminate_adds_an_exact_first_level(tmp_path):
    """On a grid with chains, the coarsest Laplacian is P* L P for the product P of all levels."""
    graph = nx.disjoint_union(nx.grid_2d_graph(6, 6), nx.path_graph(30))
    graph.add_edges_from([(0, 40), (35, 65), (7, 50)])
    F = sc.CellularSheaf.random(graph, 2, 2, kind="orthogonal", seed=3)
    H = sc.coarsen_levels(F, factor=3, n_levels=2, rank=3, eliminate=True)
    left, x = sc.eliminate(F).kept.size, np.ones(F.dim_c0)
    assert isinstance(H[0], sc.Elimination)
    assert len(H) == 3
    assert [G.n_vertices for G in H.sheaves][:2] == [66, left]
    assert H[1].fine is H[0].sheaf
    maps = np.random.default_rng(3).standard_normal(F.tail_data.shape)
    for each in (H, H.recoarsen(F.with_maps(maps, F.head_data))):
        P = each.prolongation()
        difference = P.T @ sc.laplacian(each.fine) @ P - sc.laplacian(each.sheaves[-1])
        assert abs(difference).max() < (1e-12 if each is H else 1e-11)
        assert np.allclose(each.pool(x), P.T @ x)
        assert np.allclose(each.lift(each.pool(x)), P @ (P.T @ x))
    wanted = (
        f"level 0: {66 - left} of 66 vertices eliminated exactly "
        f"(4 leaves, {62 - left} in chains); dim C^0 132 -> {2 * left}"
    )
    assert repr(H).splitlines()[-1] == f"  {wanted}"
    assert f"<p>{wanted.replace('>', '&gt;')}</p>" in H._repr_html_()
    with pytest.raises(ValueError, match="an energy ledger requires isometric"):
        H.ledger(x)
    sc.save(tmp_path / "h.npz", H)
    loaded = sc.load(tmp_path / "h.npz")
    assert wanted in repr(loaded)
    assert abs(loaded.prolongation() - H.prolongation()).max() == 0
    tree = sc.CellularSheaf.constant(nx.balanced_tree(2, 7))  # all of its vertices are eliminated
    H = sc.coarsen_levels(tree, rank=2, eliminate=True)
    assert [G.n_vertices for G in H.sheaves] == [255, 0]
    assert H.prolongation().shape == (255, 0)


@pytest.mark.large
def test_only_levels_whose_laplacian_grew_are_sparsified(tmp_path):
    graph = nx.random_regular_graph(12, 1500, seed=0)
    F = sc.gallery.bundle(graph, 1, noise=0.3, seed=0)
    options = {"factor": 15, "rank": 3, "n_levels": 2}
    H = sc.coarsen_levels(F, sparsify=0.6, seed=4, **options)
    assert [type(C).__name__ for C in H] == ["Coarsening", "Sparsification", "Coarsening"]
    Z, again = H[1], sc.sparsify(H[0].sheaf, 0.6, seed=4)
    assert Z.fine is H[0].sheaf
    assert H[2].fine is Z.sheaf
    assert np.array_equal(Z.edges, again.edges)
    assert Z.sheaf.n_edges < 0.9 * Z.fine.n_edges
    strict = sc.coarsen_levels(F, sparsify=1e-3, **{**options, "n_levels": 1})
    assert [type(C) for C in strict] == [sc.Coarsening]  # no edge can be left out
    complete = sc.CellularSheaf.constant(nx.complete_graph(120))
    shrunk = sc.coarsen_levels(complete, factor=3, rank=1, n_levels=2, sparsify=0.6)
    assert [type(C) for C in shrunk] == [sc.Coarsening] * 2
    assert_verified(Z)
    lo, hi = Z.bounds()
    edges = f"level 1: {Z.fine.n_edges} -> {Z.sheaf.n_edges} edges"
    assert f"  {edges}, {lo:.3g} L <= L' <= {hi:.3g} L" in repr(H)

    P, Q = H.prolongation(), H.prolongation(level=2)
    assert (H[0].prolongation != Q).nnz == 0
    x = np.random.default_rng(0).standard_normal((F.dim_c0, 2))
    z = H[0].prolongation.T @ x
    assert np.array_equal(H.pool(x, level=2), z)
    E = H.ledger(x)
    energies = [np.einsum("ih,ih->h", z, sc.laplacian(G) @ z) for G in (Z.fine, Z.sheaf)]
    gap = E.lines["level 1: edges left out"] - (energies[0] - energies[1])
    assert_residual(gap, energies[0], n=Z.fine.dim_c1)
    assert_residual(np.max(np.abs(E.closure)), n=F.dim_c1)
    fine = (P.T @ sc.laplacian(F) @ P).toarray()
    coarse = sc.laplacian(H.sheaves[-1]).toarray()
    slack = 1e-5 * np.linalg.norm(fine, 2)  # accuracy of computed bounds
    assert np.linalg.eigvalsh(coarse - lo * fine)[0] > -slack
    assert np.linalg.eigvalsh(hi * fine - coarse)[0] > -slack

    sc.save(tmp_path / "h.npz", H)
    loaded = sc.load(tmp_path / "h.npz")
    assert edges in repr(loaded)
    heads = F.head_data * np.linspace(1, 2, F.head_data.size)
    for start in (H, loaded):
        R = start.recoarsen(F.with_maps(F.tail_data, heads))
        assert R[1].fine is R[0].sheaf
        repeated = sc.sparsify(R[0].sheaf, 0.6)
        assert np.array_equal(R[1].edges, repeated.edges)
        assert np.array_equal(R[1].weights, repeated.weights)
        assert np.array_equal(R[2].partition.labels, H[2].partition.labels)
        assert R[1].eps == 0.6
        assert np.array_equal(R.recoarsen(R.fine)[1].edges, R[1].edges)
    unknown = sc.Hierarchy(F, (H[0], dataclasses.replace(Z, eps=None)))
    with pytest.raises(ValueError, match="level 1: the sparsification has no `eps`"):
        unknown.recoarsen(F)


def test_sparsifications_that_omit_only_zero_maps_are_repeated():
    F, maps = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3], [0, 3]]), np.array([1.0, 1, 1, 0])
    C = sc.coarsen(F, sc.Partition([0, 1, 2, 3]), rank=1).recoarsen(F.with_maps(maps, maps))
    H = sc.Hierarchy(C.fine, (C, sc.sparsify(C.sheaf, 0.5)))
    assert H[1].edges.tolist() == H.recoarsen(C.fine)[1].edges.tolist() == [0, 2, 3]
