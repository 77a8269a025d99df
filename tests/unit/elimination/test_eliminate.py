"""`eliminate` and its result: known answers, bad input, new maps, counts."""

import dataclasses
import warnings

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.elimination import dim_of_few_edges
from tests.support.errors import raises
from tests.support.helpers import assert_residual
from tests.support.strategies import DTYPES

KARATE = CellularSheaf.constant(nx.karate_club_graph())


def path(n, dim=1, **options):
    return CellularSheaf.constant(nx.path_graph(n), dim=dim, **options)


def test_keep_and_max_neighbors_select_the_vertices():
    F = CellularSheaf.constant(nx.relabel_nodes(nx.path_graph(5), {k: f"v{k}" for k in range(5)}))
    K = sc.eliminate(F, keep=[0])
    assert K.steps.vertices.tolist() == [4, 3, 2, 1]
    assert K.eliminated.tolist() == [1, 2, 3, 4]
    mask = np.arange(5) % 2 == 1
    for keep in (mask, [3, 1]):
        assert sc.eliminate(F, keep).sheaf.vertex_labels == ("v1", "v3")
    F = CellularSheaf.constant([[0, 1], [1, 2], [2, 0], [2, 3]], n_vertices=5)
    kept = [sc.eliminate(F, max_neighbors=k).kept.tolist() for k in (0, 1, 2)]
    assert kept == [[0, 1, 2, 3], [0, 1, 2], []]
    # a workspace for 1e15 neighbours would not fit into memory
    complete = CellularSheaf.constant(nx.complete_graph(5))
    assert sc.eliminate(complete, keep=[0], max_neighbors=10**15).sheaf.n_vertices == 1


def test_all_vertices_may_be_eliminated():
    K = sc.eliminate(path(9, dim=2))
    assert K.sheaf.n_vertices == K.sheaf.dim_c0 == K.sheaf.n_edges == 0
    assert K.extend(np.zeros(0)).tolist() == [0.0] * 18
    assert K.prolongation.shape == (18, 0)
    assert K.reduce(np.ones((18, 2))).shape == (0, 2)
    assert sc.eliminate(CellularSheaf.constant([], n_vertices=0)).kept.size == 0
    for keep in (None, [0, 4]):  # and cochains may have no columns
        K = sc.eliminate(path(9), keep=keep)
        assert K.extend(np.zeros((K.sheaf.dim_c0, 0))).shape == (9, 0)
        assert K.reduce(np.zeros((9, 0))).shape == (K.sheaf.dim_c0, 0)


def test_edges_that_no_elimination_changed_keep_their_maps_up_to_orientation():
    F = CellularSheaf.random(nx.complete_graph(5), 2, 3, seed=3).with_labels(None)
    turned = CellularSheaf.from_flat(
        F.edges[:, ::-1], F.head_data, F.tail_data, F.vertex_dims, F.edge_dims
    )
    assert sc.eliminate(F).sheaf.equals(F)
    assert sc.eliminate(turned).sheaf.equals(F.with_maps(-F.tail_data, -F.head_data))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_scalar_type_is_preserved(dtype):
    F = CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5, dtype=dtype)
    K = sc.eliminate(F, keep=[0, 3])
    z = np.ones(4, dtype)
    assert K.sheaf.dtype == K.extend(z).dtype == K.reduce(np.ones(12, dtype)).dtype == dtype
    assert K.prolongation.dtype == dtype
    assert K.extend(z.astype(complex)).dtype == np.result_type(dtype, complex)
    b = np.full(12, 1j, np.complex64)
    assert K.extend(z, b).dtype == K.reduce(b).dtype == np.result_type(dtype, b)
    x, y = K.extend(z), K.reduce(np.ones(12, dtype))
    eps = np.finfo(np.float32).eps
    assert_residual(K.extend(1j * z, b) - 1j * K.extend(z, np.ones(12, dtype)), x, n=12, eps=eps)
    assert_residual(K.reduce(b) - 1j * y, y, n=12, eps=eps)


@pytest.mark.parametrize("most", [2, 4])
def test_refresh_gives_identical_results(most):
    """Results are bitwise equal to a new elimination, also if loops become zero."""
    graph = nx.MultiGraph(nx.gnm_random_graph(60, 75, seed=4))
    graph.add_edges_from([*list(graph.edges())[:9], (3, 3), (8, 8)])
    F = CellularSheaf.random(graph, 2, 2, kind="orthogonal", seed=5)
    turns = np.random.default_rng(2).permutation(F.tail_data.reshape(-1, 2, 2))
    flat = np.tile(np.eye(2), (F.n_edges, 1, 1))
    maps = [(turns, F.head_data), (flat, flat), (flat, -flat), (F.tail_data, F.head_data)]
    K = sc.eliminate(F, keep=[5], max_neighbors=most)
    for G in (F.with_maps(*each) for each in maps):
        fresh = sc.eliminate(G, keep=K.kept, max_neighbors=most)
        for R in (K.refresh(G), K.refresh(G), K.refresh(F).refresh(G)):
            assert R.max_neighbors == most
            assert np.array_equal(R.kept, fresh.kept)
            assert R.sheaf.equals(fresh.sheaf)
            for one, other in zip(R.steps, fresh.steps, strict=True):
                assert np.array_equal(one, other)


def test_vertices_kept_by_a_refresh_stay_kept():
    """A loop with holonomy keeps the hub of a star, also in later refreshes."""
    F = CellularSheaf.constant([[0, 0], [0, 1], [0, 2], [0, 3]], 3)
    turned = F.tail_data.copy()
    turned[:9] = [0, -1, 0, 1, 0, 0, 0, 0, 1]
    K = sc.eliminate(F, keep=[1, 2, 3], max_neighbors=3)
    R = K.refresh(F.with_maps(turned, F.head_data))
    assert K.kept.tolist() == [1, 2, 3]
    assert R.kept.tolist() == R.refresh(F).kept.tolist() == [0, 1, 2, 3]


def test_an_elimination_is_immutable_and_can_be_constructed_from_its_parts():
    K = sc.eliminate(KARATE)
    P = K.prolongation
    for array in (K.kept, K.eliminated, *K.steps[:5], P.data, P.indices, P.indptr):
        assert not array.flags.writeable
    assert dataclasses.replace(K, max_neighbors=2).sheaf is K.sheaf
    with pytest.raises(ValueError, match="the elimination is inconsistent"):
        dataclasses.replace(K, sheaf=KARATE)
    with pytest.raises(dataclasses.FrozenInstanceError):
        K.kept = None


def test_growth_is_large_if_maps_expand():
    n, one = 40, np.ones((39, 1))
    # x_v = x_u / 2 halves right-hand sides at every step; reversed edges double them
    halves, doubles = (
        sc.eliminate(CellularSheaf.diagonal(nx.path_graph(n), *maps), keep=[0]).growth
        for maps in ((one, 2 * one), (2 * one, one))
    )
    assert halves <= 2 < 2.0 ** (n - 3) < doubles < 2.0**n
    assert sc.eliminate(path(n), keep=[0]).growth <= n
    assert sc.eliminate(KARATE, keep=np.arange(34)).growth == 1


@pytest.mark.large
def test_solvers_do_not_eliminate_if_maps_expand():
    n = 3000
    F = CellularSheaf.random(nx.path_graph(n), 2, 2, seed=3)
    assert sc.eliminate(F).growth == np.inf
    L = sc.laplacian(F)
    b = L @ np.random.default_rng(1).standard_normal(2 * n)
    with warnings.catch_warnings():
        # a small singular value is nearly zero
        warnings.simplefilter("ignore", sc.SingularProblemWarning)
        x = sc.Solver(F)(b)
    assert np.linalg.norm(L @ x - b) < 1e-7 * np.linalg.norm(b)


@pytest.mark.large
def test_long_chains_are_eliminated_accurately():
    n = 100_000
    K = sc.eliminate(path(n), keep=[0, n - 1])
    L = sc.laplacian(K.sheaf).toarray() * (n - 1)
    assert np.abs(L - [[1, -1], [-1, 1]]).max() < 1e-9  # the resistance of the chain
    assert np.abs(K.extend([0.0, 1.0]) - np.linspace(0, 1, n)).max() < 1e-9
    n = 3000  # maps grow by 2^3000 in total, which overflows
    F = CellularSheaf.diagonal(nx.path_graph(n), np.ones((n - 1, 1)), np.full((n - 1, 1), 2.0))
    L = sc.laplacian(sc.eliminate(F, keep=[0, n - 1]).sheaf).toarray()
    assert np.isfinite(L).all()
    assert abs(L[0, 0]) < 1e-300
    assert abs(L[1, 1] - 3.0) < 1e-12  # only the far end contributes energy


def test_counts_before_and_after_an_elimination():
    F = CellularSheaf.constant([[0, 1], [1, 2], [2, 3], [3, 0], [2, 4], [0, 0]], n_vertices=6)
    K = sc.eliminate(F, keep=[0, 2])
    S, nnz = K.sizes, sc.laplacian(F).nnz
    assert (S.vertices, S.edges, S.loops, S.dim_c0) == ((6, 2), (6, 1), (1, 0), (6, 2))
    assert S.by_neighbors == (1, 1, 2)
    assert S.nonzeros == (nnz, 4)
    eliminated = ["1 without neighbours", "1 leaf", "2 in chains"]
    for text in ("in chains", "<caption>Elimination</caption>"):
        assert text in K._repr_html_()
    assert S.rows[:3] == [("vertices", 6, 2), ("edges", 6, 1), ("of them loops", 1, 0)]
    assert S.rows[3:6] == [("dim C^0", 6, 2), ("dim C^1", 6, 1), ("nonzeros of L", nnz, 4)]
    assert [row[0] for row in S.rows[6:]] == [f"eliminated: {each}" for each in eliminated]


def test_the_repr_counts_eliminated_vertices_and_remaining_loops():
    constant, star = CellularSheaf.constant, nx.star_graph(3)
    mixed = CellularSheaf.random(star, [2, 1, 1, 1], 2, seed=3)
    ring = constant(nx.circulant_graph(40, [1, 2, 3]))
    leaves, hub = {"keep": [1, 2, 3], "max_neighbors": 3}, "1 with 3 or more neighbours"
    # short whatever the numbers of neighbours
    many = "1 without neighbours, 1 leaf, 1 in chains, 37 with 3 or more neighbours"
    for F, options, left, dim, what, edges in (
        (constant(nx.complete_graph(4)), {}, 4, 4, "", "6 -> 6 edges + 0 loops"),
        (mixed, {"keep": [0]}, 1, 2, "3 leaves", "3 -> 0 edges + 1 loops"),
        (constant(star), leaves, 3, 3, hub, "3 -> 3 edges + 0 loops"),
        (ring, {"max_neighbors": 20}, 0, 0, many, "120 -> 0 edges + 0 loops"),
    ):
        K, n, dims = sc.eliminate(F, **options), F.n_vertices, f"dim C^0 {F.dim_c0} -> {dim}"
        which = f": {what}" if what else ""
        assert repr(K) == f"Elimination({n} -> {left} vertices{which}; {dims}, {edges})"
        count = f"{n - left} of {n} vertices eliminated exactly"
        assert K.sizes.remark == f"{count} ({what or 'nothing'}); {dims}"


def test_dim_of_few_edges_counts_stalks_with_at_most_two_half_edges():
    F = CellularSheaf.random([[0, 1], [1, 2], [1, 3], [3, 3], [3, 0]], [1, 2, 4, 8], 1, seed=3)
    assert dim_of_few_edges(F) == 1 + 4 + 8  # loops do not count as half-edges


STAR = nx.star_graph(4)


def test_the_error_names_the_edge_whose_map_is_not_an_isometry():
    F = CellularSheaf.random(STAR, 2, 2, kind="orthogonal", seed=3)
    tails = F.tail_data.copy()
    tails[8:12] = [1, 0, 0, 2]
    bad = F.with_maps(tails, F.head_data)
    with raises("ValueError: the tail map A of edge 2 (0 -> 3)") as caught:
        sc.eliminate(bad, max_neighbors=4)
    assert "use `max_neighbors`" in str(caught.value)
    for G, most, left in ((bad, 2, 5), (F, 4, 4), (F, 3, 5)):
        assert sc.eliminate(G, keep=[1, 2, 3, 4], max_neighbors=most).sheaf.n_vertices == left
    edges = [[0, 1], [1, 1]]  # head maps are checked, but loops are not
    eye, slanted = np.eye(2), np.array([[1.0, 1.0], [0.0, 1.0]])
    with raises("ValueError: the head map A of edge 0 (0 -> 1)"):
        sc.eliminate(CellularSheaf(edges, [eye, slanted], [slanted, eye]), max_neighbors=3)
    sc.eliminate(CellularSheaf(edges, [eye, slanted], [eye, eye]), max_neighbors=3)


def test_inconsistent_parts_raise():
    star, other = CellularSheaf.constant(nx.star_graph(3)), sc.eliminate(path(7), keep=[0]).steps
    K, twice = (sc.eliminate(star, keep=keep) for keep in ([0], [0, 1]))
    steps, lists = K.steps, "must be lists of neighbours"
    assert dataclasses.replace(K, steps=steps._replace()).kept.tolist() == [0]
    damages = [
        ({"neighbors": steps.vertices}, "a step refers to a vertex that was eliminated"),
        *(({"starts": np.array(k)}, lists) for k in ([0, 2, 1, 3], [0, 1, 2, 2], [1, 1, 2, 3])),
        ({"blocks": steps.blocks[1:]}, "`steps.inverses` must have sizes"),
        ({"blocks": np.nan * steps.blocks}, "`steps` must be finite"),
        ({"inverses": np.nan * steps.inverses}, "`steps` must be finite"),
    ]
    for whole, parts, error in (
        *(
            (K, {"steps": steps._replace(**wrong)}, f"ValueError: {text}")
            for wrong, text in damages
        ),
        (twice, {"kept": twice.kept[::-1]}, "ValueError: kept ones ascending"),
        (K, {"steps": other}, "ValueError: `steps.vertices` must hold vertex indices in 0 .. 3"),
        (K, {"steps": ()}, "TypeError: `steps` must be the steps"),
    ):
        with raises(error):
            dataclasses.replace(whole, **parts)


@pytest.mark.parametrize(
    ("dtype", "large", "small", "scale"),
    [
        (np.float32, 1e-4, 0, 1.0),
        (np.complex64, 1e-4, 0, 1.0),
        *((float, 1e-10, 4e-16, scale) for scale in (1e-100, 1.0, 1e100)),
    ],
)
def test_isometries_are_checked_to_the_precision_of_their_type_and_scale(
    dtype, large, small, scale
):
    F = CellularSheaf.random(STAR, 3, 3, kind="orthogonal", seed=3, dtype=dtype)
    tails, heads = scale * F.tail_data.reshape(4, 3, 3), 7 * scale * F.head_data
    tails[1, 1] *= 1 + small
    G = F.with_maps(tails, heads)
    assert sc.eliminate(G, keep=[1, 2, 3, 4], max_neighbors=4).kept.tolist() == [1, 2, 3, 4]
    assert sc.eliminate(G, max_neighbors=4).kept.size == 0
    tails[1, 1] *= 1 + large
    with pytest.raises(ValueError, match="the tail map A of edge 1"):
        sc.eliminate(F.with_maps(tails, heads), max_neighbors=4)
