"""Global_sections and cohomology_dims against dense singular values; sparse bases; forests."""

import warnings
from pathlib import Path
from unittest.mock import Mock

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.sections import _global_sections, clustering
from sheafcoarsen.sections.equilibration import equilibrate
from sheafcoarsen.sections.forests import forest_sections
from tests.support import reference
from tests.support.exact import dot, fractions, solved
from tests.support.helpers import (
    assert_residual,
    covering,
    dense_rank,
    eps_of,
    maps_of,
    same_subspace,
    singular_values,
    size,
)
from tests.support.kernels import JIT_IS_OFF
from tests.support.strategies import DTYPES, known_sections, sheaves
from tests.unit.sections.conftest import check_basis, gaussian, neighbours


def equilibrated(F):
    """Return the coboundary with every [A | -B] scaled to norm 1, which has the same kernel."""
    delta = reference.coboundary(F).astype(np.result_type(F.dtype, float))
    for e in range(F.n_edges):
        rows = reference.edge_coordinates(F, e)
        scale = size(np.concatenate([F.tail_map(e).ravel(), F.head_map(e).ravel()]))
        if scale:
            delta[rows] = delta[rows] / scale
    return delta


def clear_kernel(F):
    """Return the kernel of the equilibrated coboundary; reject examples without a clear gap."""
    delta = equilibrated(F)
    found = singular_values(delta)
    sigma = np.append(found, np.zeros(F.dim_c0))[: F.dim_c0]
    level = 1e4 * max(F.dim_c0, 1) * eps_of(F.dtype)
    assume(not ((sigma > level * 1e-3) & (sigma < min(1e6 * level, 1e-2))).any())
    assume(not ((sigma > 1e-3 * eps_of(F.dtype) ** 0.5) & (sigma < 1e3 * level)).any())
    vh = np.linalg.svd(delta)[2] if delta.size else np.eye(F.dim_c0)
    zeros = int((sigma <= level).sum())
    return vh[F.dim_c0 - zeros :].conj().T


def test_sections_match_a_dense_decomposition(levels, sparse):
    @given(sheaves())
    def check(F):
        Z = clear_kernel(F)
        S = sc.global_sections(F)
        assert S.h0 == Z.shape[1]
        assert scipy.sparse.issparse(S.basis) == (sparse and S.h0 > 0 and F.dim_c0 > 0)
        assert ("<td>sparse, " in S._repr_html_()) == scipy.sparse.issparse(S.basis)
        B = check_basis(F, S)
        assert same_subspace(B, Z, condition=1e4, eps=eps_of(F.dtype))
        assert sc.cohomology_dims(F) == (S.h0, S.h0 - F.dim_c0 + F.dim_c1)

    check()


def test_known_sections_are_found(levels):
    @given(known_sections(max_vertices=20 if levels else 9))
    def check(case):
        F, Z = case
        S = sc.global_sections(F)
        assert S.h0 == Z.shape[1]
        forest = forest_sections(F) is not None  # forests have no levels
        assert len(S.levels) > 1 or S.levels[0] <= clustering.LAST or forest
        assert same_subspace(check_basis(F, S), Z, condition=1e3)

    check()


@pytest.mark.parametrize(
    ("holonomy", "h0", "clear"),
    [
        (0.0, 2, True),
        (1e-4, 0, True),
        (1e-7, 0, False),
        (1e-8, 0, False),
        (np.diag([1.0, -1.0, 1.0]), 2, True),
    ],
)
def test_a_tiny_holonomy_of_a_long_cycle_is_detected_with_a_warning(holonomy, h0, clear):
    """A holonomy of 1e-8 has a singular value of 8e-11."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        S = sc.global_sections(sc.gallery.cycle(500, holonomy))
    assert S.h0 == h0
    assert S.residual < 1e-13
    assert len(S.levels) > 1
    assert [w.category for w in caught] == [sc.SingularProblemWarning] * (not clear)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_zeros_are_judged_by_the_eps_of_single_precision(dtype):
    F = sc.gallery.bundle(neighbours(300), 2, seed=1)
    G = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    S = sc.global_sections(G)
    assert S.h0 == 2
    assert len(S.levels) > 1
    assert S.largest_zero > 1e-10  # due to rounding of the maps
    check_basis(G, S)
    double = np.result_type(dtype, np.float64)
    H = G.with_maps(G.tail_data.astype(double), G.head_data.astype(double))
    assert sc.global_sections(H).h0 == 0  # because maps are off by 1e-7


def regular_graph(n: int) -> np.ndarray:
    """Return edges of a random 4-regular graph that is the same for all networkx versions."""
    with np.load(Path(__file__).parents[2] / "data" / "graphs" / "regular.npz") as file:
        return file[f"{n} vertices"].astype(np.int64)


def test_small_singular_values_are_positive_in_single_precision():
    """Errors from rounding the maps do not grow with the dimension, so 1e-4 is positive."""
    F = sc.CellularSheaf.random(regular_graph(260), 4, 2, seed=2, dtype=np.float32)
    assert 5e-5 < singular_values(reference.coboundary(F).astype(float)).min() < 2e-4
    S = sc.global_sections(F)
    assert len(S.levels) > 1
    assert (S.h0, S.largest_zero) == (0, 0)
    assert 5e-5 < S.smallest_nonzero < 2e-4


def test_largest_zero_and_smallest_nonzero_are_reported_and_printed():
    S = sc.global_sections(sc.gallery.cycle(30, 0.1))
    delta = sc.coboundary(sc.normalize(sc.gallery.cycle(30, 0.1))).toarray()
    np.testing.assert_allclose(S.smallest_nonzero, np.linalg.svd(delta)[1][-1], rtol=1e-10)
    assert (S.largest_zero, S.levels) == (0, (60,))
    S = sc.global_sections(sc.gallery.cycle(30, 0.0))
    assert 0 <= S.largest_zero < 1e-14
    assert S.smallest_nonzero > 0.1
    assert repr(S).startswith("GlobalSections(h0=2, dense basis, largest_zero=")
    none = sc.global_sections(sc.gallery.cycle(3, 1e-8))
    assert "h0=0, dense basis, largest_zero=0, smallest_nonzero=2.4e-09" in repr(none)


def test_small_singular_values_of_clusters_that_contain_sections_are_found(cluster_sizes):
    """A triangle has a section that vanishes outside, and a holonomy of 1e-4 in the other entry."""
    sides = np.array([[0, 1], [1, 2], [0, 2], [2, 3]])
    edges = (sides[:, None] + 3 * np.arange(20)[:, None]).reshape(-1, 2) % 60
    tails, heads = np.ones((2, 80, 2))
    heads[40:60, 1] += 1e-4
    tails[60:, 0] = heads[60:, 0] = 0.0  # the edges between triangles
    F = sc.CellularSheaf.diagonal(edges, tails, heads)
    exact = sc.global_sections(F).smallest_nonzero
    cluster_sizes(6, 12, 30)
    S = sc.global_sections(F)
    assert (S.h0, len(S.levels)) == (20, 2)
    assert 0.5 * exact < S.smallest_nonzero < 3 * exact


@pytest.mark.parametrize("function", [sc.global_sections, sc.cohomology_dims])
def test_a_small_gap_warns(function):
    """The holonomies of two cycles are just below and just above working accuracy."""
    F, _, _ = sc.disjoint_union([sc.gallery.cycle(12, 3e-13), sc.gallery.cycle(12, 1e-11)])
    with pytest.warns(sc.SingularProblemWarning, match="rounding errors determine") as caught:
        function(F)
    assert caught[0].filename == __file__
    function(sc.gallery.cycle(12, 1e-6))  # without a warning


def test_a_large_zero_without_other_singular_values_warns(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.clustering.LAST", 100)
    F = sc.CellularSheaf.random(regular_graph(100), 4, 2, seed=1, dtype=np.float32)
    with pytest.warns(sc.SingularProblemWarning, match="counted as zero is .*; the decision"):
        S = sc.global_sections(F)
    # as large as the true smallest singular value, which single precision cannot resolve
    assert S.largest_zero > 1e-5


@pytest.mark.large
def test_clusters_grow_only_after_a_level_that_stalls(monkeypatch):
    """Levels of 2696, 542 and 242 dimensions use clusters of the usual size."""
    choose = Mock(wraps=_global_sections.choose_clusters)
    monkeypatch.setattr(_global_sections, "choose_clusters", choose)
    S = sc.global_sections(sc.CellularSheaf.random(nx.grid_2d_graph(30, 30), 3, 1, seed=0))
    assert len(S.levels) == 3
    assert [growth for (_, growth), _ in choose.call_args_list] == [1, 1]


@pytest.mark.large
def test_the_threshold_is_lowered_if_large_clusters_stall(monkeypatch, cluster_sizes):
    """With a threshold of 2, nothing is eliminated until the threshold is a tenth of it."""
    monkeypatch.setattr(_global_sections, "KEEP", {64: 2.0})
    cluster_sizes(8, 24, 60)
    S = sc.global_sections(sc.gallery.bundle(nx.grid_2d_graph(9, 9), 2, seed=0))
    assert S.h0 == 2
    assert S.levels[:3] == (162,) * 3
    assert S.levels[-1] <= clustering.LAST


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("triangle", [False, True])
def test_rounding_errors_of_loops_alone_at_a_vertex_do_not_count_as_rank(triangle, dtype):
    """They form a matrix of full rank, which is often well-conditioned."""
    edges = [[0, 0], [0, 0], *([[1, 2], [2, 3], [3, 1]] if triangle else [])]
    rng = np.random.default_rng(0)
    for n in rng.integers(1, 4, 10).tolist():
        tail = rng.standard_normal((len(edges), n, n)).astype(dtype)
        head, up = tail.copy(), rng.random(tail.shape) < 0.5
        head[up] = np.nextafter(tail.real, np.inf)[up]
        F = sc.CellularSheaf(edges, tail, head)
        assert sc.global_sections(F).h0 == n * (1 + triangle)


@pytest.mark.parametrize("condition", [1e4, 1e6, 1e8])
def test_sections_do_not_depend_on_the_condition_number_of_vertex_bases(condition):
    edges = neighbours(400)
    frames = np.linalg.qr(np.random.default_rng(1).standard_normal((800 + len(edges), 3, 3)))[0]
    gauge = frames[:400] * np.array([1, condition**-0.5, 1 / condition]) @ frames[400:800]
    turns = frames[800:]
    F = sc.CellularSheaf(edges, turns @ gauge[edges[:, 0]], turns @ gauge[edges[:, 1]])
    S = sc.global_sections(F)
    assert S.h0 == 3
    assert S.smallest_nonzero > 1e-2
    assert S.residual < 1e-13
    check_basis(F, S)


def test_a_failure_of_lapack_raises_with_the_cluster(monkeypatch):
    monkeypatch.setattr(clustering.kernels, "reduce_clusters", lambda *_: 3)
    with pytest.raises(np.linalg.LinAlgError, match="LAPACK failed on cluster 3"):
        sc.global_sections(sc.CellularSheaf.constant(nx.cycle_graph(500)))


def test_weights_are_1_if_maps_are_isometries():
    """Weights are the sensitivity of equilibrated coordinates to errors of the maps."""
    _, stalks = equilibrate(sc.gallery.bundle(neighbours(50), 3, seed=1), 2.0**-52)
    y = np.random.default_rng(0).standard_normal(150)
    x = stalks.W @ y
    assert_residual(stalks.weights @ x**2 - y @ y, y, y, n=150)


def test_sections_of_small_components_are_zero_elsewhere(monkeypatch, cluster_sizes):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 0)
    cluster_sizes(4, 12, 30)
    parts = [sc.gallery.bundle(nx.grid_2d_graph(5, 5), 2, seed=seed) for seed in range(20)]
    F = sc.disjoint_union(parts)[0]
    S = sc.global_sections(F)
    assert len(S.levels) > 3
    mixed = (S.toarray().reshape(20, 50, S.h0) != 0).any(axis=1).sum(axis=0) > 1
    assert mixed.sum() <= S.levels[-1] < S.h0  # sections of the last sheaf may mix components
    check_basis(F, S)


@pytest.mark.parametrize(("components", "sparse"), [(16, False), (17, True)])
def test_few_sections_have_a_dense_basis_at_any_length(components, sparse, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 0)
    F = sc.CellularSheaf.constant(nx.disjoint_union_all([nx.path_graph(3)] * components))
    assert scipy.sparse.issparse(sc.global_sections(F).basis) == sparse


@pytest.mark.large
@pytest.mark.parametrize(("size", "sparse"), [(20, False), (40, True)])
def test_a_basis_with_more_than_4_million_entries_is_sparse(size, sparse):
    """There are 440 sections of 1200 coordinates, and 1680 of 4800."""
    F = sc.CellularSheaf.random(nx.grid_2d_graph(size, size), 3, 1, seed=0)
    S = sc.global_sections(F)
    assert scipy.sparse.issparse(S.basis) == sparse
    assert S.h0 * F.dim_c0 == (8_064_000 if sparse else 528_000)
    assert not sparse or S.basis.nnz < S.h0 * F.dim_c0 / 2


def test_sparse_bases_are_orthonormal_for_scaled_vertices(monkeypatch):
    """Products of levels in coordinates that are not orthonormal would lose several digits."""
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", 0)
    F = sc.CellularSheaf.random(nx.grid_2d_graph(12, 12), 4, 1, seed=0)
    scale = 10.0 ** np.random.default_rng(0).uniform(-5, 5, F.n_vertices)
    tail, head = scale[F.edges].repeat(4, axis=0).T
    F = F.with_maps(F.tail_data * tail, F.head_data * head)
    S = sc.global_sections(F)
    assert scipy.sparse.issparse(S.basis)
    gram = (S.basis.T @ S.basis).toarray()
    assert_residual(gram - np.eye(S.h0), n=F.dim_c0)


@pytest.mark.parametrize("function", [sc.global_sections, sc.cohomology_dims])
@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("scales", ["vertices", "edges"])
def test_scales_over_12_digits_do_not_change_the_number_of_sections(scales, dim, function):
    rng, edges = np.random.default_rng(0), np.array(nx.cycle_graph(400).edges)
    scale = 10.0 ** rng.uniform(-6, 6, (400, 1, 1))
    frames = np.linalg.qr(rng.standard_normal((400, dim, dim)))[0]
    maps = frames[edges.T] * (scale[edges.T] if scales == "vertices" else scale)
    found = function(sc.CellularSheaf(edges, *maps))  # without a warning
    assert (found.h0 if function is sc.global_sections else found[0]) == dim
    if function is sc.global_sections:
        assert found.residual < 1e-15


def ring(unit, small, holonomy=1.0, loop=None):
    """Return a cycle of 8 stalks, some of them small, and with a loop at one of these."""
    scale = unit * np.where(np.isin(np.arange(8), [3, 4, 5, 6]), small, 1.0)
    edges, tail, head = [[v, (v + 1) % 8] for v in range(8)], scale, np.roll(scale, -1)
    head[-1] *= holonomy
    if loop is not None:
        edges.append([4, 4])
        tail, head = np.append(tail, loop[0] * scale[4]), np.append(head, loop[1] * scale[4])
    return sc.CellularSheaf(edges, tail[:, None, None], head[:, None, None])


@pytest.mark.parametrize(
    ("arguments", "h0"),
    [
        ((1.0, 1e-6, 1.0, (2.0, 1.0)), 0),
        ((1e-20, 1e-6, 1.0, (2.0, 1.0)), 0),
        ((1e-20, 1e-6, 1.0, (1.0, 1.0)), 1),
        ((1.0, 1e-9, 1.0, (1 + 1e-5, 1.0)), 0),
        ((1e-147, 1e-9), 1),
        ((1e-147, 1e-9, 2.0), 0),
    ],
)
def test_loops_at_small_stalks_and_holonomies_count_at_any_scale(arguments, h0):
    S = sc.global_sections(ring(*arguments))  # without a warning
    assert (S.h0, S.residual < 1e-15) == (h0, True)


@pytest.mark.parametrize(
    ("edge", "unit", "holonomy"),
    [([0, 1], 1.0, 1.0), ([0, 1], 1.0, 2.0), ([0, 0], 1.0, 2.0), ([0, 1], 1e-120, 2.0)],
)
def test_scales_of_a_component_do_not_depend_on_others(edge, unit, holonomy):
    """The other component has no section, and the map 1e-60 at one end of an edge or a loop."""
    edges, head = [[1, 2], [2, 3], [3, 0], [0, 1], edge], [2.0, 1.0, 1.0, 1.0, 1e-60]
    other = sc.CellularSheaf(edges, np.ones((5, 1, 1)), np.reshape(head, (5, 1, 1)))
    F = ring(unit, 1e-14, holonomy)
    h0 = sc.global_sections(F).h0
    assert h0 == int(holonomy == 1.0)
    assert sc.global_sections(sc.disjoint_union([F, other])[0]).h0 == h0


@pytest.mark.parametrize("dtype", [float, complex])
def test_an_edge_of_subnormal_maps_counts_like_any_other(dtype):
    F = sc.CellularSheaf.constant(nx.cycle_graph(5), dim=2)
    maps = F.tail_data.astype(dtype)
    maps[:4] *= 2.0**-1030
    S = sc.global_sections(F.with_maps(maps, maps))
    assert S.h0 == 2
    assert_residual(np.linalg.norm(S.basis[:2]) - np.sqrt(2 / 5), 1.0, n=10)


@pytest.mark.large
@pytest.mark.parametrize(("seed", "dim"), [(0, 2), (1, 3)])
def test_every_component_has_sections_of_its_own(seed, dim):
    """Some components are a single vertex or a single edge."""
    core = nx.random_regular_graph(4, 900, seed=seed)
    for rest in (nx.empty_graph(400), nx.gnm_random_graph(900, 300, seed=seed)):
        graph = nx.disjoint_union(core, rest)
        F = sc.CellularSheaf.constant(graph, dim=dim)
        S = sc.global_sections(F)
        assert S.h0 == dim * nx.number_connected_components(graph)
        check_basis(F, S, locally=True)
        assert S.residual < 1e-15
        assert sc.cohomology_dims(sc.gallery.bundle(graph, dim, seed=seed))[0] == S.h0


# ---------------------------------------------------------------- forests
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
    rng, n = np.random.default_rng(seed), 12
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
    thin = np.random.default_rng(8).standard_normal((2, 2, 8, dim, rank))
    maps = (thin[0] @ thin[1].swapaxes(2, 3)).astype(dtype)
    F = CellularSheaf(ends_of("tree", 9, 4), *maps)
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
    tails[-1] = np.eye(2)
    for last, h0 in ((1 - 2.0**-53, 2), ([1.0, 1 + 1e-9], 1)):  # first across a power of two
        heads[-1] = tails[-1] * last
        assert sc.global_sections(F.with_maps(tails, heads)).h0 == h0


@pytest.mark.large
def test_hubs_with_large_stalks_are_left_to_coarsening():
    """Each of 2,000 leaves would take a decomposition of dimension 101."""
    rng, edges = np.random.default_rng(0), np.stack([np.zeros(2000, int), 1 + np.arange(2000)], 1)
    maps = rng.standard_normal(2000 * 100), rng.standard_normal(2000)
    ones = np.ones(2000, int)
    F = CellularSheaf.from_flat(edges, *maps, np.append(100, ones), ones)
    assert forest_sections(F) is None
    few = edges[:50], maps[0][:5000], maps[1][:50], F.vertex_dims[:51], ones[:50]
    G = CellularSheaf.from_flat(*few)
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
