"""Global_sections and cohomology_dims against dense singular values, and dense and sparse bases.

Sheaves are small, or hard: maps, edges and bases of very different size.
"""

import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given

import sheafcoarsen as sc
from sheafcoarsen.sections import _global_sections, clustering
from sheafcoarsen.sections.equilibration import equilibrate
from sheafcoarsen.sections.forests import forest_sections
from tests.support import reference
from tests.support.helpers import (
    assert_residual,
    eps_of,
    same_subspace,
    singular_values,
    size,
)
from tests.support.strategies import DTYPES, known_sections, sheaves
from tests.unit.sections.conftest import check_basis, neighbours


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
    sigma = np.zeros(F.dim_c0)
    found = singular_values(delta)
    sigma[: len(found)] = found
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
    # the same maps in double precision have no sections, because they are off by 1e-7
    double = np.result_type(dtype, np.float64)
    H = G.with_maps(G.tail_data.astype(double), G.head_data.astype(double))
    assert sc.global_sections(H).h0 == 0


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
    assert S.largest_zero == 0
    assert S.levels == (60,)
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
    growths, choose = [], _global_sections.choose_clusters
    monkeypatch.setattr(
        _global_sections,
        "choose_clusters",
        lambda sheaf, growth: growths.append(growth) or choose(sheaf, growth),
    )
    S = sc.global_sections(sc.CellularSheaf.random(nx.grid_2d_graph(30, 30), 3, 1, seed=0))
    assert len(S.levels) == 3
    assert growths == [1, 1]


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
    # sections removed in one cluster; those of the last sheaf may mix components
    mixed = (S.toarray().reshape(20, 50, S.h0) != 0).any(axis=1).sum(axis=0) > 1
    assert mixed.sum() <= S.levels[-1] < S.h0
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
    scale, edges = unit * np.where(np.isin(np.arange(8), [3, 4, 5, 6]), small, 1.0), np.arange(8)
    edges, tail, head = np.stack([edges, (edges + 1) % 8], axis=1), scale, np.roll(scale, -1)
    head[-1] *= holonomy
    if loop is not None:
        edges = np.append(edges, [[4, 4]], axis=0)
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
