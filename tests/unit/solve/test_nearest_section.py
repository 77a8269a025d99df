"""Nearest sections, and least squares accurate to rounding by every method."""

from unittest.mock import Mock

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, gallery
from sheafcoarsen.operators import fills_little
from sheafcoarsen.solve._harmonic_extension import _free_coordinates
from sheafcoarsen.solve._least_squares import NormalEquations, has_many_sections
from sheafcoarsen.solve._solver import grounded
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, size
from tests.support.strategies import cochains, known_sections, sheaves
from tests.unit.solve.conftest import clear_rank, interior, quietly, unit_coboundary

GRID = nx.convert_node_labels_to_integers(nx.grid_2d_graph(9, 8))


def norm_bound(D):
    """Return an upper bound on norm(D) from its largest row and column sums."""
    return np.sqrt(abs(D).sum(axis=0).max() * abs(D).sum(axis=1).max())


def no_factors(monkeypatch, steps):
    """Solve by at most so many iterations, with several levels and without factors."""
    monkeypatch.setattr("sheafcoarsen.solve._solver.fills_little", lambda L: False)
    monkeypatch.setattr("sheafcoarsen.solve._solver.DIRECT_BELOW", 0)
    monkeypatch.setattr("sheafcoarsen.solve._least_squares.DENSE_BELOW", 0)
    monkeypatch.setattr("sheafcoarsen.solve.multigrid.COARSEST", 20)
    monkeypatch.setattr("sheafcoarsen.solve.conjugate_gradients.MOST_STEPS", steps)


@pytest.mark.parametrize("direct", [True, False])
def test_direct_and_iterative_solutions_are_accurate(monkeypatch, direct):
    F = gallery.bundle(GRID, 2, seed=1)
    F = sc.disjoint_union([F, F])[0]
    no_factors(monkeypatch, steps=10_000)
    monkeypatch.setattr("sheafcoarsen.solve._solver.fills_little", lambda L: direct)
    values = np.random.default_rng(0).standard_normal((3, 2, 2))
    x = quietly(F, [5, 60, 30], values)
    assert_residual(x[144:], size(values), 100, n=F.dim_c0)
    delta = sc.coboundary(F)
    inside = interior(F, [5, 60, 30])
    assert_residual((delta.T @ (delta @ x))[inside], delta, delta, x, n=10)
    given_part = delta[:, [10, 11, 120, 121, 60, 61]] @ values.reshape(6, 2)
    expected = -np.linalg.pinv(delta.toarray()[:, inside], rcond=1e-8) @ given_part
    assert_residual(x[inside] - expected, values, 1000, n=10)
    sections = reference.global_sections(F)
    assert sections.shape[1] == 4
    y = np.random.default_rng(0).standard_normal((F.dim_c0, 2))
    assert_residual(sc.nearest_section(F, y) - sections @ (sections.T @ y), y, 100, n=10)


@pytest.mark.large
def test_large_sheaves_are_solved_to_rounding():
    G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(100, 200))
    F = gallery.bundle(G, 2, noise=0.1, seed=1)
    vertices = np.array([3, 19_000, 777])
    x = sc.harmonic_extension(F, vertices, np.eye(3, 2))
    assert size(x) > 5
    delta = sc.coboundary(F)
    D = delta[:, interior(F, vertices)]
    gradients = np.linalg.norm(D.T @ (delta @ x), axis=0)
    assert (gradients < 1e-16 * norm_bound(D) ** 2 * np.linalg.norm(x, axis=0)).all()
    p = sc.nearest_section(F, x)
    assert_residual(delta @ p, 3.0, x, n=1)


@pytest.mark.large
def test_sheaves_with_much_fill_are_solved_iteratively():
    random = CellularSheaf.constant(nx.random_regular_graph(4, 5200, seed=1))
    assert not fills_little(sc.laplacian(random))
    x = sc.harmonic_extension(random, [0, 1], [[0.0], [1.0]])
    delta = sc.coboundary(random)
    assert_residual((delta.T @ (delta @ x))[2:], 8.0, x, n=1)
    assert 0.3 < x[2:].min() < x[2:].max() < 0.7
    assert_residual(sc.nearest_section(random, x) - x.mean(), x, n=10)


def test_factors_are_used_if_the_iteration_fails_unless_they_are_too_large(monkeypatch):
    no_factors(monkeypatch, 1)
    F = CellularSheaf.constant(GRID)
    y = sc.harmonic_extension(F, [0, 71], [[0.0], [1.0]])
    L = sc.laplacian(F).toarray()[1:71]
    assert_residual(L @ y, L, y, n=72)
    F = sc.disjoint_union([F, F])[0]
    with pytest.warns(sc.SingularProblemWarning, match="leave 1 of 142 dimensions free"):
        z = sc.harmonic_extension(F, [0, 71], [[0.0], [1.0]])
    assert_residual(z - np.append(y, np.zeros(72)), y, 100, n=72)
    no_factors(monkeypatch, 0)
    monkeypatch.setattr("sheafcoarsen.solve._least_squares.DIRECT_AT_LAST", 100)
    F = CellularSheaf.constant(nx.path_graph(200))
    message = "the iteration stopped at .* times the allowed residual"
    with pytest.raises(np.linalg.LinAlgError, match=message):
        sc.harmonic_extension(F, [0, 199], [[0.0], [199.0]])


def test_the_iteration_works_without_a_basis_of_sections(monkeypatch):
    stalls = Mock(side_effect=np.linalg.LinAlgError("coarsening stalled"))
    for place in ("_solver.global_sections", "_nearest_section.global_sections"):
        monkeypatch.setattr(f"sheafcoarsen.solve.{place}", stalls)
    F = CellularSheaf.random(nx.random_regular_graph(4, 30, seed=1), 3, 1, seed=2)
    x = np.random.default_rng(3).standard_normal((F.dim_c0, 2))
    sections = reference.global_sections(F)
    assert sections.shape[1] == 30
    p = sc.nearest_section(F, x)
    assert_residual(p - sections @ (sections.T @ x), x, 100, n=F.dim_c0)
    inside = interior(F, [4, 7])
    delta, _ = unit_coboundary(F)
    message = f"leave at least 24 of 84 dimensions free, first at vertex {F.vertex_labels[0]}:"
    with pytest.warns(sc.SingularProblemWarning, match=message):
        y = sc.harmonic_extension(F, [4, 7], np.ones((2, 3)))
    given = np.ones(F.dim_c0)
    given[inside] = 0
    wanted = -np.linalg.pinv(delta[:, inside]) @ (delta @ given)
    assert_residual(y[inside] - wanted, y, 1000, n=F.dim_c0)


@pytest.mark.large
def test_thousands_of_sections_need_no_basis(monkeypatch):
    F = CellularSheaf.random(nx.random_regular_graph(4, 2000, seed=1), 3, 1, seed=2)
    monkeypatch.setattr("sheafcoarsen.solve._nearest_section.global_sections", None)
    x = np.random.default_rng(3).standard_normal(F.dim_c0)
    p = sc.nearest_section(F, x)
    delta = sc.coboundary(F)
    assert_residual(delta @ p, norm_bound(delta), x, n=10)
    z = scipy.sparse.linalg.lsqr(delta.T, x - p, atol=0, btol=0, conlim=0, iter_lim=2000)[0]
    assert_residual(delta.T @ z - (x - p), x, n=F.dim_c0)  # a combination of rows of delta
    assert size(p) > 0.3 * size(x)


def test_the_smallest_singular_value_of_small_problems_is_exact():
    """Inverse iteration with D* D cannot resolve values below the root of eps."""
    w = 10 ** np.random.default_rng(0).uniform(-9, 9, 50)
    F = CellularSheaf([(i, i + 1) for i in range(50)], w.reshape(-1, 1, 1), w.reshape(-1, 1, 1))
    rest = grounded(F, np.isin(np.arange(51), [0, 50]))
    D = sc.coboundary(rest)
    values = np.linalg.svd(D.toarray(), compute_uv=False)
    problem = NormalEquations(D, rest, method="direct")
    assert problem.smallest() == pytest.approx(values[-1] / values[0], rel=1e-6)


def test_progress_is_shown_only_on_request(capsys, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.solve._least_squares.DENSE_BELOW", 0)
    F = CellularSheaf.random(nx.path_graph(4), 2, 2, seed=1)
    x = sc.nearest_section(F, np.ones(8))
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(sc.nearest_section(F, np.ones(8), progress=True), x)
    assert "nearest section" in capsys.readouterr().err
    sc.harmonic_extension(F, [0], [[1.0, 1.0]], progress=True)
    assert "conjugate gradients" in capsys.readouterr().err


def test_probes_reach_every_coordinate_of_a_large_kernel():
    """In one probe 1 of 300,000 coordinates is below 1e-6 times the largest; in two hardly any."""
    n = 1_000_000
    D = scipy.sparse.csr_array(([1.0], ([0], [7])), shape=(1, n))
    count, coordinates = _free_coordinates(NormalEquations(D, CellularSheaf.constant([[0, 1]])))
    assert count == f"at least {n - 1}"
    assert len(coordinates) == n - 1
    assert 7 not in coordinates


@pytest.mark.parametrize(("count", "many"), [(1, False), (11, True)])
def test_sections_of_several_components_can_be_too_many(count, many):
    """The bases of eleven components have as many entries as one of 2000 sections."""
    edges = np.array(nx.random_regular_graph(4, 180, seed=0).edges)
    copies = np.concatenate([edges + 180 * k for k in range(count)])
    maps = np.ones((len(copies), 1, 10))
    F = CellularSheaf(copies, maps, maps)
    assert has_many_sections(F) == many
    assert not has_many_sections(CellularSheaf.constant([], n_vertices=9000))


@given(sheaves(), st.data())
def test_the_nearest_section_is_the_orthogonal_projection(F, data):
    x = data.draw(cochains(F))
    p = sc.nearest_section(F, x)
    assert (p.shape, p.dtype) == (x.shape, F.dtype)
    delta, _ = unit_coboundary(F)
    assert_residual(delta @ p, delta, x, n=F.dim_c0, eps=eps_of(F.dtype))
    rank, smallest = clear_rank(delta, eps_of(F.dtype))
    sections = np.linalg.svd(delta)[2][rank:].conj().T if delta.size else np.eye(F.dim_c0)
    expected = sections @ (sections.conj().T @ x)
    condition = 1 + size(delta) / smallest
    assert_residual(p - expected, x, condition, n=F.dim_c0, eps=eps_of(F.dtype))
    assert_residual(sections.conj().T @ (x - p), x, n=F.dim_c0, eps=eps_of(F.dtype))


@given(known_sections(), st.integers(0, 99))
def test_scaling_edges_does_not_change_the_nearest_section(case, seed):
    F, sections = case
    rng = np.random.default_rng(seed)
    factors = (10.0 ** rng.integers(-6, 7, F.n_edges)).repeat(F.vertex_dims[0] ** 2)
    scaled = F.with_maps(F.tail_data * factors, F.head_data * factors)
    x = rng.standard_normal(F.dim_c0)
    p = sc.nearest_section(scaled, x)
    assert_residual(p - sections @ (sections.conj().T @ x), x, 100, n=F.dim_c0)


def test_sections_of_rounded_maps_count_as_sections():
    F = gallery.bundle(GRID, 3, seed=3)
    sections = reference.global_sections(F)
    single = F.with_maps(F.tail_data.astype(np.float32), F.head_data.astype(np.float32))
    x = np.random.default_rng(0).standard_normal((F.dim_c0, 2)).astype(np.float32)
    p = sc.nearest_section(single, x)
    assert_residual(p - sections @ (sections.T @ x), x, 1, n=100, eps=eps_of(np.float32))
    both, vertices = sc.disjoint_union([single, single])[0], np.arange(72, 144)
    with pytest.warns(sc.SingularProblemWarning, match="leave 3 of 216 dimensions free"):
        sc.harmonic_extension(both, vertices, np.ones((72, 3), np.float32))


def test_a_small_holonomy_leaves_no_section():
    x = np.ones(600)
    assert size(sc.nearest_section(gallery.cycle(300, 1e-6), x)) < 1e-6 * size(x)
    assert size(sc.nearest_section(gallery.cycle(300, 0.0), x)) > 0.1 * size(x)


def test_sections_decided_by_rounding_warn(monkeypatch):
    """Products of random maps along a path decay: up to rounding it has more than one section."""
    # or else the sections of paths are decided exactly
    monkeypatch.setattr("sheafcoarsen.sections._global_sections.forest_sections", lambda F: None)
    rng = np.random.default_rng(5)
    F = sc.CellularSheaf.diagonal(nx.path_graph(3001), *rng.standard_normal((2, 3000, 1)))
    with pytest.warns(sc.SingularProblemWarning, match="rounding errors determine") as caught:
        sc.nearest_section(F, np.ones(3001))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("small", [1e-10, 1e-17])
def test_rows_of_rounding_size_are_ignored(small):
    """The sheaf has thousands of sections; rows above rounding size are not ignored."""
    rows = np.array([1.0, small])[:, None, None] * np.eye(2, 1250)[:, None]
    F = sc.CellularSheaf([[0, 1], [0, 1]], rows, rows)
    x = np.random.default_rng(0).standard_normal(2500)
    wanted = x.copy()
    wanted[[0, 1250]] = x[[0, 1250]].mean()
    if small > 1e-16:
        wanted[[1, 1251]] = x[[1, 1251]].mean()
    assert_residual(sc.nearest_section(F, x) - wanted, x, n=2500)


def test_singular_systems_raise_without_given_values_and_free_directions_stay_zero():
    loop = CellularSheaf([[0, 0]], [np.eye(2)], [-np.eye(2)])
    np.testing.assert_array_equal(sc.harmonic_extension(loop, [], []), np.zeros(2))
    message = "`vertices` is empty and L is singular, first at vertex 0: .*nearest_section"
    with pytest.raises(ValueError, match=message):
        sc.harmonic_extension(CellularSheaf.constant(nx.path_graph(3)), [], [])
    nothing = CellularSheaf.from_flat([], [], [], [], [])
    assert sc.harmonic_extension(nothing, [], []).shape == (0,)
    isolated = CellularSheaf.from_flat([], [], [], [1, 2], [])
    with pytest.warns(sc.SingularProblemWarning, match="leave 2 of 2 dimensions free"):
        x = sc.harmonic_extension(isolated, [0], [[3.0]])
    assert x.tolist() == [3.0, 0.0, 0.0]
    unseen = CellularSheaf([[0, 1]], [[[1.0, 0.0]]], [[[0.0, 3.0]]])
    with pytest.warns(sc.SingularProblemWarning, match="leave 1 of 2 .* free, first at vertex 1"):
        x = sc.harmonic_extension(unseen, [0], [[6.0, 5.0]])
    assert x[2] == 0
    assert_residual(x - [6.0, 5.0, 0.0, 2.0], x, n=4)
