"""Coarse crossing rows at the rounding level of their fine rows are set to zero."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen import CellularSheaf, Partition
from tests.support.strategies import DTYPES
from tests.unit.distributed.cases import differences

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

P = Partition([0, 0, 1])
CASES = [
    (np.float64, 1.0, False),
    (np.float64, 1e100, True),
    (np.complex128, 1e-100, False),
    (np.float32, 1e12, True),
    (np.complex64, 1.0, True),
    (np.complex64, 1e-12, False),
]


def hidden_section(seed, t, dtype, scale=1.0):
    """Return a sheaf with h0 = 2 whose crossing maps vanish on sections of the clusters.

    The section of the first cluster is orthogonal to the tail map of three parallel crossing edges,
    their head map is 0.
    """
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    Z = rng.standard_normal((3, 3))
    if dtype.kind == "c":
        Z = Z + 1j * rng.standard_normal((3, 3))
    Q = np.linalg.qr(Z)[0].conj().T
    tail = [np.array([[1, 0, 0], [1, t, 0], [0, 0, 1]]) @ Q, *[Q[2:]] * 3]
    head = [np.array([[1.0], [1.0], [0.0]]), *[np.zeros((1, 1))] * 3]
    maps = [[(M * scale).astype(dtype) for M in end] for end in (tail, head)]
    return CellularSheaf([[0, 1], *[[0, 2]] * 3], *maps, vertex_dims=[3, 1, 1])


def coarse_h0(C):
    assert C.sheaf.n_edges == 1
    assert not C.sheaf.tail_data.any()
    assert sc.verify(C).passed
    return sc.global_sections(C.sheaf).h0


@pytest.mark.parametrize(("dtype", "scale", "compress"), CASES)
def test_sections_are_preserved_if_a_crossing_map_is_at_rounding_level(dtype, scale, compress):
    least = 1e-7 if np.zeros(0, dtype).real.itemsize == 8 else 1e-4
    for seed, t in enumerate((1.0, 1e-2, least)):
        F = hidden_section(seed, t, dtype, scale)
        C = sc.coarsen(F, P, sc.ranks.kernel(), compress=compress)
        assert sc.global_sections(F).h0 == coarse_h0(C) == 2
        new = C.recoarsen(hidden_section(77, 2 * t, dtype, scale))
        assert coarse_h0(new) == 2


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("compress", [False, True])
def test_crossing_maps_at_rounding_level_are_zero_in_both_directions(reverse, compress):
    F = hidden_section(0, 1e-3, float)
    data = F.tail_data, F.head_data
    if reverse:
        data = data[::-1]
    edges = F.edges[:, ::-1] if reverse else F.edges
    for labels in ([0, 0, 1], [1, 1, 0]):
        G = CellularSheaf.from_flat(edges, *data, F.vertex_dims, F.edge_dims)
        C = sc.coarsen(G, Partition(labels), sc.ranks.kernel(), compress=compress)
        assert not C.sheaf.tail_data.any()
        assert not C.sheaf.head_data.any()


def test_coarse_rows_are_judged_relative_to_their_own_fine_row():
    """Edges of weight 1e-40 keep their maps beside edges of weight 1; so do rows."""
    weights = np.array([1.0, 1.0, 1e-20])
    F = CellularSheaf.from_flat([[0, 1], [2, 3], [1, 2]], weights, weights, 1, 1)
    C = sc.coarsen(F, Partition([0, 0, 1, 1]), 1)
    np.testing.assert_allclose(C.sheaf.tail_data, [1e-20 / np.sqrt(2)], rtol=1e-14)
    np.testing.assert_allclose(C.sheaf.head_data, [1e-20 / np.sqrt(2)], rtol=1e-14)
    rows = [[1.0, 0.0], [0.0, 1e-20]]
    F = CellularSheaf([[0, 1]], [rows], [rows])
    C = sc.coarsen(F, Partition([0, 1]), 2)
    np.testing.assert_array_equal(C.sheaf.tail_map(0), rows)


@pytest.mark.parametrize(
    ("dtype", "compress"), list(zip(DTYPES, [False, False, True, True], strict=True))
)
def test_rounding_level_is_n_eps_times_the_shortest_column(dtype, compress):
    """The cluster has dimension n = 3, and its columns have entries 1 and 1e-20."""
    eps = float(np.finfo(dtype).eps)
    F = CellularSheaf([[0, 1]] * 4, [np.eye(3, dtype=dtype)[2:]] * 4, [np.eye(1, dtype=dtype)] * 4)
    for factor, zero in ((2.5, True), (3.5, False)):
        for columns in (np.eye(3)[:, :1], np.eye(3)[:, :2] * [1.0, 1e-20]):
            block = columns.copy()
            block[2, -1] = factor * eps * columns.max(axis=0).min()
            basis = [block.astype(dtype), np.eye(1)]
            C = sc.coarsen(F, Partition([0, 1]), basis=basis, compress=compress)
            assert C.sheaf.tail_data.any() != zero
            assert C.sheaf.head_data.any()
            assert sc.verify(C).passed


def test_rounding_level_is_relative_to_the_norm_of_the_fine_row():
    """For a row of 16 ones, 16 eps times its norm is 64 eps, but 16 eps times an entry."""
    eps = np.finfo(float).eps
    F = CellularSheaf([[0, 1]] * 2, [np.ones((1, 16))] * 2, [np.eye(1)] * 2)
    for factor, zero in ((32, True), (80, False)):
        column = np.zeros((16, 1))
        column[:2, 0] = 1, factor * eps - 1
        C = sc.coarsen(F, Partition([0, 1]), basis=[column, np.eye(1)])
        assert C.sheaf.tail_data.any() != zero


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_rounding_is_independent_of_the_norm_of_the_basis(scale):
    F = hidden_section(5, 1e-2, float)
    C = sc.coarsen(F, P, sc.ranks.kernel())
    basis = [scale * C.block(0), C.block(1)]
    assert coarse_h0(sc.coarsen(F, P, basis=basis)) == 2


@pytest.mark.parametrize("local_operator", ["internal", "principal"])
def test_distributed_coarsening_finds_the_same_zeros(local_operator, tmp_path):
    """In a cycle of such sheaves, one end of every crossing edge is at rounding level."""
    n = 12
    parts = [hidden_section(k, 0.1, float) for k in range(n)]
    tail = [M for F in parts for M in (F.tail_map(0), F.tail_map(1))]
    head = [M for F in parts for M in (F.head_map(0), np.ones((1, 1)))]
    edges = [e for k in range(n) for e in ([2 * k, 2 * k + 1], [2 * k, (2 * k + 3) % (2 * n)])]
    F = CellularSheaf(edges, tail, head, vertex_dims=[3, 1] * n)
    cycle = Partition(np.arange(2 * n) // 2)
    options = {"local_operator": local_operator, "compress": False}
    rank = sc.ranks.kernel() if local_operator == "internal" else 3
    C = sc.coarsen(F, cycle, rank, **options)
    if local_operator == "internal":
        assert (C.sheaf.tail_data == 0).sum() + (C.sheaf.head_data == 0).sum() == n
    src = dist.to_store(tmp_path / "src", F, part_bytes=200)
    D = dist.coarsen(src, tmp_path / "out", cycle, rank, n_shards=4, **options)
    assert differences(C, D.load()) == []


def sections_of(C):
    """Return dim H^0 of the coarse sheaf in three ways, the last by all singular values."""
    delta = sc.coboundary(C.sheaf).toarray().astype(np.result_type(C.sheaf.dtype, float))
    sigma = np.linalg.svd(delta, compute_uv=False)
    zeros = C.sheaf.dim_c0 - int((sigma > 1e-4 * sigma[0]).sum())
    return sc.global_sections(C.sheaf).h0, sc.spectral_quality(C, 1).kernel_coarse, zeros


@pytest.mark.parametrize("weight", [1e4, 1e6])
@pytest.mark.parametrize("rank", [1, 3])
def test_sections_of_clusters_with_one_strong_edge_are_found(weight, rank):
    weights = np.ones(39)
    weights[[13, 30]] = weight
    F = CellularSheaf.constant(nx.path_graph(40), weight=weights)
    C = sc.coarsen(F, Partition(np.arange(40) // 10), rank)
    assert sections_of(C) == (1, 1, 1)


@pytest.mark.parametrize(
    ("rank", "dtype"), [(4, np.float32), (6, float), (sc.ranks.below(0.1), complex)], ids=str
)
def test_sections_within_clusters_are_found_for_any_rank(rank, dtype):
    for seed in range(8, 20):
        graph = nx.gnm_random_graph(30, 60, seed=seed)
        F = CellularSheaf.random(graph, 3, 2, seed=seed, dtype=dtype)
        C = sc.coarsen(F, sc.select(F, 5), rank)
        h0, kernel, dense = sections_of(C)
        assert h0 == kernel == dense, seed
