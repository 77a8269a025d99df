"""`eliminate` and its result: known answers, bad input, new maps, sizes."""

import dataclasses
import warnings

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support.helpers import assert_residual
from tests.support.kernels import JIT_IS_OFF

KARATE = CellularSheaf.constant(nx.karate_club_graph())


def path(n, dim=1, **options):
    return CellularSheaf.constant(nx.path_graph(n), dim=dim, **options)


def test_eliminated_vertices_are_sorted():
    K = sc.eliminate(path(5), keep=[0])
    assert K.steps.vertices.tolist() == [4, 3, 2, 1]
    assert K.eliminated.tolist() == [1, 2, 3, 4]


def test_a_mask_and_indices_select_the_same_vertices():
    mask = np.zeros(34, bool)
    mask[[0, 11]] = True
    assert np.array_equal(sc.eliminate(KARATE, keep=mask).kept, sc.eliminate(KARATE, [11, 0]).kept)


def test_max_neighbors_0_and_1_and_2_eliminate_the_expected_vertices():
    F = CellularSheaf.constant([[0, 1], [1, 2], [2, 0], [2, 3]], n_vertices=5)
    kept = [sc.eliminate(F, max_neighbors=k).kept.tolist() for k in (0, 1, 2)]
    assert kept == [[0, 1, 2, 3], [0, 1, 2], []]


def test_all_vertices_may_be_eliminated():
    K = sc.eliminate(path(9, dim=2))
    assert K.sheaf.n_vertices == K.sheaf.dim_c0 == K.sheaf.n_edges == 0
    assert K.extend(np.zeros(0)).tolist() == [0.0] * 18
    assert K.prolongation.shape == (18, 0)
    assert K.reduce(np.ones((18, 2))).shape == (0, 2)
    assert sc.eliminate(CellularSheaf.constant([], n_vertices=0)).kept.size == 0


def test_edges_that_no_elimination_changed_keep_their_maps():
    F = CellularSheaf.random(nx.complete_graph(5), 2, 3, seed=3)
    K = sc.eliminate(F)
    assert K.sheaf.tail_data.tolist() == F.tail_data.tolist()
    assert K.sheaf.head_data.tolist() == F.head_data.tolist()
    assert K.sheaf.edges.tolist() == F.edges.tolist()


def test_reversed_edges_change_sign():
    F = CellularSheaf.random(nx.complete_graph(4), 2, 3, seed=3)
    turned = CellularSheaf.from_flat(
        F.edges[:, ::-1], F.head_data, F.tail_data, F.vertex_dims, F.edge_dims
    )
    K = sc.eliminate(turned)
    assert K.sheaf.edges.tolist() == F.edges.tolist()
    assert np.array_equal(sc.laplacian(K.sheaf).toarray(), sc.laplacian(F).toarray())
    assert np.array_equal(K.sheaf.tail_data, -F.tail_data)


@pytest.mark.parametrize("keep", [None, [0, 4]])
def test_cochains_without_columns_are_accepted(keep):
    K = sc.eliminate(path(9), keep=keep)
    assert K.extend(np.zeros((K.sheaf.dim_c0, 0))).shape == (9, 0)
    assert K.reduce(np.zeros((9, 0))).shape == (K.sheaf.dim_c0, 0)


def test_kept_vertices_keep_their_names():
    F = CellularSheaf.constant(nx.relabel_nodes(nx.path_graph(4), {k: f"v{k}" for k in range(4)}))
    assert sc.eliminate(F, keep=[1, 3]).sheaf.vertex_labels == ("v1", "v3")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_rounding_of_a_flat_bundle_does_not_count_as_rank(dtype):
    """Around a cycle, products of rotations are the identity only up to the scalar type."""
    F = sc.gallery.bundle(nx.cycle_graph(40), 3, seed=0)
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    K = sc.eliminate(F, keep=[0])
    assert (K.sheaf.n_edges, sc.global_sections(K.sheaf).h0) == (0, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_the_scalar_type_is_preserved(dtype):
    F = CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5, dtype=dtype)
    K = sc.eliminate(F, keep=[0, 3])
    z = np.ones(4, dtype)
    assert K.sheaf.dtype == K.extend(z).dtype == K.reduce(np.ones(12, dtype)).dtype == dtype
    assert K.prolongation.dtype == dtype
    assert K.extend(z.astype(complex)).dtype == np.result_type(dtype, complex)
    b = np.full(12, 1j, np.complex64)  # a complex right-hand side gives a complex solution
    x, unit = K.extend(z, b), K.extend(0 * z, np.ones(12, dtype))
    assert x.dtype == np.result_type(dtype, np.complex64)
    assert_residual(x - K.extend(z) - 1j * unit, 1.0, x, n=12, eps=np.finfo(np.float32).eps)


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
    for tail, head in maps:
        G = F.with_maps(tail, head)
        for R in (K.refresh(G), K.refresh(G), K.refresh(F).refresh(G)):
            assert R.max_neighbors == most
            fresh = sc.eliminate(G, keep=K.kept, max_neighbors=most)
            assert np.array_equal(R.kept, fresh.kept)
            for name in ("edges", "edge_dims", "tail_data", "head_data"):
                assert np.array_equal(getattr(R.sheaf, name), getattr(fresh.sheaf, name))
            for one, other in zip(R.steps, fresh.steps, strict=True):
                assert np.array_equal(one, other)


def test_vertices_kept_by_a_refresh_stay_kept():
    """A loop with holonomy keeps the hub of a star, also in later refreshes."""
    edges = [[0, 0], [0, 1], [0, 2], [0, 3]]
    F = CellularSheaf.constant(edges, 3)
    turned = F.tail_data.reshape(-1, 3, 3).copy()
    turned[0] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
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


@pytest.mark.parametrize("call", ["extend", "reduce", "both"])
def test_cochains_of_another_shape_raise(call):
    K = sc.eliminate(KARATE)
    n = K.sheaf.dim_c0
    if call == "extend":
        with pytest.raises(ValueError, match=rf"dim_c0 = {n} of the reduced sheaf"):
            K.extend(np.zeros(34))
    elif call == "reduce":
        with pytest.raises(ValueError, match="dim_c0 = 34 of the fine sheaf"):
            K.reduce(np.zeros(n))
    else:
        with pytest.raises(ValueError, match=r"`b` must have as many columns as `z`"):
            K.extend(np.zeros((n, 2)), np.zeros((34, 3)))


def test_growth_is_large_if_maps_expand():
    n, one = 40, np.ones((39, 1, 1))
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    assert sc.eliminate(path(n), keep=[0]).growth <= n
    # x_v = x_u / 2 halves right-hand sides at every step; reversed edges double them
    halves = sc.eliminate(CellularSheaf(edges, one, 2 * one), keep=[0])
    doubles = sc.eliminate(CellularSheaf(edges, 2 * one, one), keep=[0])
    assert halves.growth <= 2 < 2.0 ** (n - 3) < doubles.growth < 2.0**n
    assert sc.eliminate(KARATE, keep=np.arange(34)).growth == 1


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
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


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_elimination_preserves_the_resistance_of_a_long_chain():
    n = 100_000
    K = sc.eliminate(path(n), keep=[0, n - 1])
    L = sc.laplacian(K.sheaf).toarray() * (n - 1)
    assert np.abs(L - [[1, -1], [-1, 1]]).max() < 1e-9
    x = K.extend([0.0, 1.0])
    assert np.abs(x - np.linspace(0, 1, n)).max() < 1e-9


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_maps_that_grow_and_decay_along_a_chain_are_eliminated_accurately():
    n = 3000  # maps grow by 2^3000 in total, which overflows
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    F = CellularSheaf(edges, np.ones((n - 1, 1, 1)), np.full((n - 1, 1, 1), 2.0))
    K = sc.eliminate(F, keep=[0, n - 1])
    L = sc.laplacian(K.sheaf).toarray()
    assert np.isfinite(L).all()
    assert abs(L[0, 0]) < 1e-300
    assert abs(L[1, 1] - 3.0) < 1e-12  # only the far end contributes energy


def test_a_huge_number_of_neighbors_takes_no_memory():
    F = CellularSheaf.constant(nx.complete_graph(5))
    assert sc.eliminate(F, keep=[0], max_neighbors=10**15).sheaf.n_vertices == 1
