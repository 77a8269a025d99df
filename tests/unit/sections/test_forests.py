"""Sections of forests of any length, with maps that grow and decay."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.sections.forests import forest_sections
from tests.support.exact import dot, fractions, solved
from tests.support.helpers import assert_residual, covering, dense_rank, eps_of, maps_of
from tests.support.kernels import JIT_IS_OFF
from tests.support.strategies import DTYPES
from tests.unit.sections.conftest import check_basis, gaussian

SIZE = 300 if JIT_IS_OFF else 30_000


def ends_of(kind, n, seed=3):
    """Return edges of a tree with shuffled vertices and random orientations."""
    rng = np.random.default_rng(seed)
    before = {
        "path": np.arange(n - 1),
        "star": np.zeros(n - 1, int),
        "tree": (rng.random(n - 1) * np.arange(1, n)).astype(int),
        "caterpillar": np.arange(n - 1) // 2 * 2,
    }[kind]
    edges = rng.permutation(n)[np.stack([before, np.arange(1, n)], axis=1)]
    turned = rng.random(n - 1) < 0.5
    edges[turned] = edges[turned, ::-1]
    return edges


def assert_sections(F, h0):
    """Assert an orthonormal basis with residuals at the rounding level of each edge."""
    S = sc.global_sections(F)
    assert S.h0 == h0
    check_basis(F, S, locally=True)
    return S


@pytest.mark.parametrize(
    ("dtype", "kind", "size"),
    covering(
        DTYPES, ["path", "star", "tree", "caterpillar"], [(10, 3), (1000, 2), (SIZE, 1), (SIZE, 2)]
    ),
)
def test_a_tree_with_invertible_maps_has_as_many_sections_as_stalk_dimensions(kind, dtype, size):
    n, dim = min(size[0], SIZE), size[1]
    low, high = (1e-15, 1e12) if np.finfo(dtype).bits == 32 else (1e-120, 1e120)
    scale = {10: low, 1000: high}.get(n, 1.0)
    F = gaussian(ends_of(kind, n), dim, dtype, scale)
    assert_sections(F, dim)


def exact_sections(edges, tails, heads, n):
    """Return orthogonal sections of a tree with integer maps, computed by fractions."""
    dim = tails.shape[1]
    T = nx.Graph()
    for e, (u, v) in enumerate(edges.tolist()):
        T.add_edge(u, v, at=(e, u))
    x = {0: fractions(np.eye(dim))}
    for u, v in nx.bfs_edges(T, 0):
        e, tail = T.edges[u, v]["at"]
        A, B = (tails[e], heads[e]) if tail == u else (heads[e], tails[e])
        right = [[dot(row, column) for column in zip(*x[u], strict=True)] for row in fractions(A)]
        x[v] = solved(fractions(B), right)
    columns = [[x[v][i][j] for v in range(n) for i in range(dim)] for j in range(dim)]
    for j in range(dim):
        for k in range(j):
            share = dot(columns[k], columns[j]) / dot(columns[k], columns[k])
            columns[j] = [a - share * b for a, b in zip(columns[j], columns[k], strict=True)]
    out = np.empty((n * dim, dim))
    for j, column in enumerate(columns):
        size = dot(column, column)
        out[:, j] = [np.sign(a) * float(a * a / size) ** 0.5 for a in column]
    return out


@pytest.mark.parametrize("kind", ["path", "tree", "caterpillar"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_sections_of_trees_match_exact_arithmetic(kind, dim):
    """The spaces are compared, because many spaces have small residuals."""
    n, rng = {1: 200, 2: 100, 3: 40}[dim], np.random.default_rng(3)
    edges = ends_of(kind, n)
    maps = rng.integers(-9, 10, (2, n - 1, dim, dim))
    while (singular := abs(np.linalg.det(maps)) < 0.5).any():
        maps[singular] = rng.integers(-9, 10, (int(singular.sum()), dim, dim))
    S = sc.global_sections(CellularSheaf(edges, *maps.astype(float)))
    wanted = exact_sections(edges, *maps, n)
    assert_residual(S.basis - wanted @ (wanted.T @ S.basis), 1.0, n=n)
    assert S.h0 == dim


@pytest.mark.parametrize("seed", range(3))
def test_sections_of_trees_do_not_depend_on_the_root(seed):
    n = min(SIZE, 3000)
    edges = ends_of("path", n, seed)
    F = gaussian(edges, 2, seed=seed)
    order = np.random.default_rng(seed).permutation(n)
    G = CellularSheaf(order[edges], *maps_of(F))
    x, y = (sc.global_sections(sheaf).basis for sheaf in (F, G))
    y = y.reshape(n, 2, 2)[order].reshape(2 * n, 2)
    assert_residual(y - x @ (x.T @ y), 1.0, n=n)


@pytest.mark.parametrize("seed", range(40))
def test_h0_of_integer_maps_matches_dense_singular_values(seed):
    """Stalks have 0 to 3 dimensions; there are singular maps and loops."""
    rng = np.random.default_rng(seed)
    n = 12
    edges = np.vstack([ends_of("tree", n, seed), rng.integers(0, n, (seed % 3, 1)) * [1, 1]])
    low = 0 if seed % 4 == 0 else 1
    dims, heights = rng.integers(low, 4, n), rng.integers(low, 4, len(edges))
    maps = [
        [rng.integers(-1, 2, (h, dims[v])).astype(float) for h, v in zip(heights, at, strict=True)]
        for at in edges.T
    ]
    F = CellularSheaf(edges, *maps, vertex_dims=dims)
    h0 = F.dim_c0 - dense_rank(sc.coboundary(F))
    S = sc.global_sections(F)
    assert S.h0 == h0
    if forest_sections(F) is not None:
        check_basis(F, S, locally=True)
        assert S.levels == (F.dim_c0,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize(("dim", "rank"), [(2, 1), (3, 2)])
def test_rounding_errors_of_singular_maps_do_not_count_as_rank(dim, rank, dtype):
    """Maps are products of thin factors, whose small singular values are rounding errors."""
    edges = ends_of("tree", 9, 4)
    rng = np.random.default_rng(8)
    thin = rng.standard_normal((2, 2, 8, dim, rank))
    maps = (thin[0] @ thin[1].swapaxes(2, 3)).astype(dtype)
    F = CellularSheaf(edges, *maps)
    sigma = np.linalg.svd(sc.coboundary(F).toarray(), compute_uv=False)
    h0 = F.dim_c0 - int((sigma > 1e3 * eps_of(dtype) * sigma[0]).sum())
    assert sc.global_sections(F).h0 == h0 > dim


def test_nearly_singular_maps_make_the_rank_of_an_edge_unclear_only_at_both_ends():
    F = gaussian(ends_of("path", SIZE), 2)
    tails, heads = maps_of(F)
    tails[np.random.default_rng(3).random(SIZE - 1) < 0.5, 1] *= 1e-14
    assert_sections(F.with_maps(tails, heads), 2)
    F = gaussian(ends_of("path", 30), 2)
    for small in (0.0, 1e-15, 1e-14):
        tails, heads = maps_of(F)
        tails[7, 1] *= small
        heads[7, 1] *= small
        assert forest_sections(F.with_maps(tails, heads)) is None  # left to coarsening


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_sections_may_decay_by_any_factor_towards_a_branching_vertex(factor):
    """At the centre of a star of paths, one of two sections is 1e+330 times smaller or larger."""
    graph = nx.Graph()
    for k in range(3):
        nx.add_path(graph, [0, *range(110 * k + 1, 110 * k + 111)])
    edges = list(nx.bfs_edges(graph, 0))
    one = np.ones((len(edges), 2))
    assert_sections(CellularSheaf.diagonal(edges, one * [1, factor], one), 2)


def test_sections_of_several_trees_with_a_grounded_one():
    graph = nx.disjoint_union(nx.star_graph(SIZE // 4), nx.path_graph(SIZE))
    F = CellularSheaf.constant(graph, dim=2)
    assert_sections(F, 4)
    edges = np.concatenate([F.edges, [[0, 0]]])
    for rank, ground in enumerate([np.zeros((2, 2)), np.diag([1.0, 0.0]), np.eye(2)]):
        loops = [1e-20 * ground], [0 * ground]
        maps = (np.concatenate(pair) for pair in zip(maps_of(F), loops, strict=True))
        assert_sections(CellularSheaf(edges, *maps), 4 - rank)


def test_loops_that_cancel_do_not_constrain_sections():
    F = gaussian(np.vstack([ends_of("path", 50), [[3, 3], [9, 9]]]), 2)
    tails, heads = maps_of(F)
    heads[-2:] = tails[-2:] * (1 + 2e-16)
    assert_sections(F.with_maps(tails, heads), 2)
    # the maps lie on both sides of a power of two
    tails[-1], heads[-1] = np.eye(2), np.eye(2) * (1 - 2.0**-53)
    assert sc.global_sections(F.with_maps(tails, heads)).h0 == 2
    heads[-1] = tails[-1] * [1.0, 1 + 1e-9]
    assert sc.global_sections(F.with_maps(tails, heads)).h0 == 1


@pytest.mark.large
def test_hubs_with_large_stalks_are_left_to_coarsening():
    """Each of 2,000 leaves would take a decomposition of dimension 101."""
    rng, edges = np.random.default_rng(0), np.stack([np.zeros(2000, int), 1 + np.arange(2000)], 1)
    maps = rng.standard_normal(2000 * 100), rng.standard_normal(2000)
    ones = np.ones(2000, int)
    F = CellularSheaf.from_flat(edges, *maps, np.append(100, ones), ones)
    assert forest_sections(F) is None
    G = CellularSheaf.from_flat(
        edges[:50], maps[0][:5000], maps[1][:50], F.vertex_dims[:51], ones[:50]
    )
    assert_sections(G, 100)


def test_many_trees_have_a_sparse_basis(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 0)
    F = CellularSheaf.random(nx.disjoint_union_all([nx.path_graph(5)] * 20), 2, 2, seed=3)
    S = assert_sections(F, 40)
    assert scipy.sparse.issparse(S.basis)
    assert S.basis.nnz == F.dim_c0 * 2


def test_cycles_and_underdetermined_trees_are_left_to_coarsening():
    assert forest_sections(CellularSheaf.constant(nx.cycle_graph(600))) is None
    assert forest_sections(CellularSheaf.constant([[0, 1], [0, 1], [2, 3]])) is None
    assert forest_sections(CellularSheaf.random(nx.path_graph(600), 2, 1, seed=3)) is None
    empty = CellularSheaf.constant([], n_vertices=0)
    assert forest_sections(empty).shape == (0, 0)
