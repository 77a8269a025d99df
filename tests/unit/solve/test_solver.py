import copy
import pickle
import re
from unittest.mock import Mock

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, gallery
from sheafcoarsen.solve import _solver
from tests.support.errors import raises
from tests.support.helpers import assert_residual, covering, eps_of
from tests.unit.solve.conftest import GRID, SHEAVES, unit_laplacian

METHODS = ("direct", "multigrid", "jacobi")
TOL = 1e-12

pytestmark = pytest.mark.usefixtures("several_levels")


def solution(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the solution of least norm, and the condition number of A on its range."""
    values = np.linalg.eigvalsh(A)
    positive = values[values > 1e-10 * values[-1]]
    wanted = np.linalg.pinv(A, hermitian=True, rcond=1e-10) @ b
    return wanted, float(positive[-1] / positive[0])


def assert_solves(x: np.ndarray, wanted: np.ndarray, condition: float) -> None:
    """Check that the relative error is at most TOL times the condition number, up to a factor 2."""
    assert np.linalg.norm(x - wanted) <= 2 * TOL * condition * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("scale", "name", "method"), covering([1.0, 1e-100, 1e100], SHEAVES, METHODS)
)
def test_solutions_match_dense_least_norm_solutions(name, method, scale):
    """For several columns, and for one complex column of their size or of the size of L."""
    F = SHEAVES[name]
    F = F.with_maps(scale * F.tail_data, scale * F.head_data)
    L, unit = unit_laplacian(F)
    b = L @ np.random.default_rng(1).standard_normal((len(L), 3))
    wanted, condition = solution(L, b)
    solve = sc.Solver(F, method=method)
    assert_solves(solve(b, tol=TOL) * unit**2, wanted, condition)
    assert solve.method == method
    assert solve.residual <= 2 * TOL
    weights = np.array([1.0, 1j, 0.0])
    for size in (1.0, unit**2):
        x = solve(size * (b @ weights), tol=TOL) * (unit**2 / size)
        assert_solves(x, wanted @ weights, condition)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["graph", "consistent bundle", "complex mixed stalks"])
def test_solutions_with_fixed_vertices_and_a_shift_match_dense_ones(name, method):
    F = SHEAVES[name]
    L, unit = unit_laplacian(F)
    mask = np.isin(np.arange(F.n_vertices), [3, 17, 30])
    free = np.repeat(~mask, F.vertex_dims)
    A = L[np.ix_(free, free)] + 0.01 * np.eye(free.sum())
    b = np.full(len(L), np.nan, L.dtype)  # entries at fixed vertices must be ignored
    b[free] = np.random.default_rng(2).standard_normal(free.sum())
    for fixed in ([3, 17, 30], mask):
        solve = sc.Solver(F, method=method, shift=0.01 * unit**2, fixed=fixed)
        for x in (solve(b, tol=TOL), solve(b, tol=TOL, x0=b)):
            assert_solves(x[free] * unit**2, *solution(A, b[free]))
            assert not x[~free].any()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["bundle", "singular maps", "chain", "regular", "complex"])
def test_single_precision_solutions_are_accurate_and_without_sections(name, method, monkeypatch):
    """If only rounding of the maps makes L regular, x has no component in the sections."""
    monkeypatch.setattr(_solver, "DIRECT_BELOW", 0)
    rng = np.random.default_rng(3)
    if name in ("regular", "complex"):
        dtype = np.complex64 if name == "complex" else np.float32
        F = CellularSheaf.random(GRID, 2, 2, kind="orthogonal", seed=3, dtype=dtype)
    else:
        graphs = {"singular maps": nx.balanced_tree(2, 4), "chain": nx.cycle_graph(30)}
        F = gallery.bundle(graphs.get(name, GRID), 2, seed=3)
        maps = F.tail_data, F.head_data
        if name == "singular maps":
            thin = rng.standard_normal((2, 2, F.n_edges, 2, 1))
            maps = thin[0] @ thin[1].swapaxes(2, 3)
        F = F.with_maps(*(data.astype(np.float32) for data in maps))
    delta = sc.coboundary(F).toarray().astype(np.result_type(F.dtype, float))
    sigma, V = np.linalg.svd(delta)[1:]
    rank = int((sigma > 1e-5 * sigma[0]).sum())
    assert (rank < min(delta.shape)) == (name not in ("regular", "complex"))
    V, sigma = V[:rank], sigma[:rank]
    b = (V.conj().T @ rng.standard_normal((rank, 2))).astype(F.dtype)
    wanted = V.conj().T @ ((V @ b) / sigma[:, None] ** 2)
    condition = (sigma[0] / sigma[-1]) ** 2
    x = sc.Solver(F, method=method)(b, tol=1e-6)
    assert x.dtype == F.dtype
    allowed = 30 * eps_of(np.float32) * condition
    assert np.linalg.norm(x - wanted) <= allowed * np.linalg.norm(wanted)


@pytest.mark.parametrize("seed", [307, 515])
def test_sections_of_maps_that_were_rounded_to_single_precision_do_no_harm(seed):
    """Factors of L amplify the errors of these sections by up to 1e16."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 20))
    m = int(rng.integers(n, 2 * n))
    dims, heights, edges = rng.integers(1, 6, n), rng.integers(1, 5, m), rng.integers(0, n, (m, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    section = [rng.standard_normal((d, 1)) for d in dims]
    maps = []
    for (u, v), height in zip(edges, heights[: len(edges)], strict=True):
        rows = rng.standard_normal((height, dims[u] + dims[v]))
        ends = np.concatenate([section[u], section[v]])
        maps.append((rows - (rows @ ends) @ np.linalg.pinv(ends)).astype(np.float32))
    parts = [np.split(rows, [dims[u]], axis=1) for (u, _), rows in zip(edges, maps, strict=True)]
    F = CellularSheaf(edges, [a for a, _ in parts], [-b for _, b in parts], dims)
    delta = sc.coboundary(F).toarray()
    b = delta.T @ (delta @ rng.standard_normal(F.dim_c0))
    assert np.linalg.norm(delta.T @ (delta @ sc.Solver(F)(b)) - b) <= 1e-8 * np.linalg.norm(b)


def test_a_pivot_that_cancels_to_zero_is_shifted_further(monkeypatch):
    shifts, factors = [], _solver.Factors

    def cancelling(A, shift, *options):
        shifts.append(shift)
        if len(shifts) == 1:
            raise np.linalg.LinAlgError("a pivot is zero")
        return factors(A, shift, *options)

    monkeypatch.setattr(_solver, "Factors", cancelling)
    F = SHEAVES["consistent bundle"]
    L, unit = unit_laplacian(F)
    b = L @ np.random.default_rng(0).standard_normal(F.dim_c0)
    assert_solves(sc.Solver(F, method="direct")(b, tol=TOL) * unit**2, *solution(L, b))
    assert shifts[1] > 2 * shifts[0]


@pytest.mark.parametrize("method", METHODS)
def test_sections_in_the_initial_guess_do_no_harm(method):
    """The solution of a zero right-hand side is zero for any initial guess."""
    F, rng = SHEAVES["graph"], np.random.default_rng(5)
    b = sc.laplacian(F) @ rng.standard_normal((F.dim_c0, 2)) * [1, 0]
    sections = sc.global_sections(F).basis.sum(axis=1, keepdims=True)
    solve = sc.Solver(F, method=method)
    expected = solve(b, tol=1e-10)
    guess = rng.standard_normal(b.shape)
    for x0 in (guess, guess + 1e13 * np.linalg.norm(expected) * sections):
        found = solve(b, tol=1e-10, x0=x0)
        assert np.linalg.norm(found - expected) <= 1e-8 * np.linalg.norm(expected)
        assert not found[:, 1].any()
        assert solve.residual <= 1e-8


def test_imaginary_parts_of_rounding_size_pass_the_range_check():
    """The imaginary part is outside the range, but negligible relative to the real part."""
    F, rng = SHEAVES["graph"], np.random.default_rng(9)
    L = sc.laplacian(F)
    rounding = 1e-15j * abs(L).max() * rng.standard_normal(F.dim_c0)
    b = L @ rng.standard_normal(F.dim_c0) + rounding
    solve = sc.Solver(F)
    residual = np.linalg.norm(L @ solve(b, tol=1e-10) - b) / np.linalg.norm(b)
    assert residual <= 1e-10
    both = np.stack([b, 1j * np.ones(F.dim_c0)], axis=1)
    with pytest.raises(ValueError, match=r"`b` \(column 1\) must lie in the range"):
        solve(both)


def test_initial_guesses_may_be_larger_than_b_but_complex_only_if_b_is():
    F = SHEAVES["noisy bundle"]
    solve = sc.Solver(F.with_maps(1e-100 * F.tail_data, 1e-100 * F.head_data))
    b = sc.laplacian(F) @ np.ones(112)
    solve(b, x0=solve(b))
    assert solve.iterations == 0
    assert np.isfinite(solve(b + 0j, x0=1j * b)).all()


def test_update_solves_with_new_maps_on_the_same_levels():
    """Those of a bundle without holonomy need no loops, those of a bundle with noise do."""
    grid = nx.grid_2d_graph(12, 12)  # of three levels
    F, G = (gallery.bundle(grid, 2, noise=noise, seed=9) for noise in (0.0, 0.2))
    b = np.random.default_rng(6).standard_normal(F.dim_c0)
    L, unit = unit_laplacian(G)
    for method in METHODS:
        solve = sc.Solver(F, method=method)
        levels = solve.levels
        solve.update(G)
        assert_solves(solve(b, tol=TOL) * unit**2, *solution(L, b))
        assert solve.levels == levels


def test_update_converges_as_fast_as_a_new_multigrid():
    F, G = (gallery.bundle(nx.grid_2d_graph(40, 40), 2, noise=0.1, seed=s) for s in (1, 2))
    b = np.random.default_rng(6).standard_normal(F.dim_c0)
    solve, fresh = sc.Solver(F, method="multigrid"), sc.Solver(G, method="multigrid")
    solve.update(G)
    solve(b)
    fresh(b)
    assert solve.iterations <= fresh.iterations + 2


@pytest.mark.parametrize(
    ("scale", "name", "method"),
    covering([1e-20, 1.0, 1e20], ["graph", "noisy bundle", "complex mixed stalks"], METHODS),
)
def test_the_preconditioner_is_hermitian_and_close_to_the_inverse(name, method, scale):
    F = SHEAVES[name]
    F = F.with_maps(scale * F.tail_data, scale * F.head_data)
    L, unit = unit_laplacian(F)
    L = L + 0.01 * np.eye(len(L))
    solve = sc.Solver(F, method=method, shift=0.01 * unit**2)
    M = solve.as_preconditioner() @ np.eye(len(L)) * unit**2
    assert np.abs(M - M.conj().T).max() <= 100 * eps_of(np.float32) * np.abs(M).max()
    values = np.linalg.eigvals(M @ L).real
    assert 0.2 < values.max() < 4
    assert values.min() > (0 if method == "jacobi" else 0.2)


SINGULAR = ["graph", "two components", "consistent bundle", "isolated vertices", "large kernel"]


@pytest.mark.parametrize(
    ("name", "coarsest"), [*((name, 20) for name in SINGULAR), ("consistent bundle", 400)]
)
def test_the_preconditioner_of_a_singular_operator_is_hermitian(name, coarsest, monkeypatch):
    """The kernel on the coarsest level is not amplified."""
    monkeypatch.setattr("sheafcoarsen.solve.multigrid.COARSEST", coarsest)
    F = SHEAVES[name]
    solve = sc.Solver(F, method="multigrid")
    M = solve.as_preconditioner() @ np.eye(F.dim_c0)
    single = eps_of(np.float32)
    coarse = np.linalg.eigvalsh(solve._multigrid.operators[-1].toarray())
    size = max(np.abs(M).max(), 1 / coarse[coarse > 1e-5 * coarse[-1]][0])
    assert np.abs(M - M.T).max() <= 30 * single * size
    values = np.linalg.eigvalsh((M + M.T) / 2)
    assert values[0] >= -30 * single * values[-1]


def test_auto_is_direct_if_factors_are_sparse(monkeypatch):
    F = SHEAVES["consistent bundle"]
    assert sc.Solver(F).method == "direct"
    monkeypatch.setattr("sheafcoarsen.solve._solver.DIRECT_BELOW", 10)
    assert sc.Solver(CellularSheaf.constant(nx.path_graph(50))).method == "direct"  # little fill
    monkeypatch.setattr("sheafcoarsen.solve._solver.fills_little", lambda L: False)
    assert sc.Solver(F).method == "multigrid"


@pytest.mark.parametrize("method", METHODS)
def test_right_hand_sides_outside_the_range_raise(method):
    solve = sc.Solver(SHEAVES["graph"], method=method)
    b = np.ones((56, 2)) * [0, 1]
    with raises("ValueError: `b` (column 1) must lie in the range of L, but a fraction of 1 "):
        solve(b)
    assert not solve(b[:, 0]).any()
    b = SHEAVES["graph"].edges[:, 0] @ sc.coboundary(SHEAVES["graph"])
    b = b / np.linalg.norm(b) + 1e-5 / np.sqrt(56)
    with pytest.raises(ValueError, match="a fraction of 1e-05 of its norm lies in ker L"):
        solve(b)
    assert np.linalg.norm(sc.laplacian(SHEAVES["graph"]) @ solve(b, tol=1e-4) - b) <= 1e-4


@pytest.mark.parametrize("names", [None, ["ground", "a", "b", "c", "d"]])
def test_the_first_vertex_of_a_component_without_a_solution_is_named(names):
    F = CellularSheaf.constant([[0, 1], [2, 3], [3, 4]], 2).with_labels(names)
    b = np.repeat([1.0, -1, 1, 1, 0], 2)
    name = 2 if names is None else repr(names[2])
    where = f"first at vertex {name}: subtract"
    with pytest.raises(ValueError, match=rf"{where} nearest_section"):
        sc.Solver(F)(b)
    with pytest.raises(ValueError, match=rf"that vanish at the fixed ones, {where} the part"):
        sc.Solver(F, fixed=[0])(b)
    sc.Solver(F, fixed=[2])(b)


def test_right_hand_sides_outside_the_range_at_eliminated_leaves_raise():
    """Leaves with stalks of dimension 2 on edges of dimension 1 have sections."""
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(45, 45))
    n, leaves = len(grid), 150
    edges = [*grid.edges, *((3 * k, n + k) for k in range(leaves))]
    F = CellularSheaf.random(edges, [1] * n + [2] * leaves, 1, seed=1)
    with pytest.raises(ValueError, match="lies in ker L .dimension 150."):
        sc.Solver(F)(np.ones(F.dim_c0))


def test_regular_systems_need_no_global_sections(monkeypatch):
    """Clusters have more sections than they keep, but none of them extends to the full sheaf."""
    monkeypatch.setattr(_solver, "global_sections", None)
    F = CellularSheaf.random(nx.random_regular_graph(5, 100, seed=0), 2, 1, seed=0)
    b = np.random.default_rng(1).standard_normal(F.dim_c0)
    L, unit = unit_laplacian(F)
    assert_solves(sc.Solver(F, method="multigrid")(b, tol=TOL) * unit**2, *solution(L, b))


def test_not_converged_holds_the_best_solution(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.solve.conjugate_gradients.MOST_STEPS", 2)
    solve = sc.Solver(SHEAVES["noisy bundle"], method="jacobi")
    message = "0 of 1 right-hand sides reached `tol` = 1e-08 in 2"
    with pytest.raises(sc.NotConverged, match=message) as error:
        solve(np.ones(112))
    assert error.value.result.shape == (112,)
    assert error.value.result.any()


@pytest.mark.parametrize(
    ("method", "where"), covering(METHODS, ["unit_sheaf", "laplacian", "unit_roots"])
)
def test_an_interrupted_update_leaves_the_solver_unchanged(method, where, monkeypatch):
    F = SHEAVES["noisy bundle"]
    G = F.with_maps(3 * F.tail_data, 3 * F.head_data)
    b = np.ones(F.dim_c0)
    solve = sc.Solver(F, method=method)
    x = solve(b)
    with monkeypatch.context() as patch:
        patch.setattr(_solver, where, Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            solve.update(G)
    assert solve.sheaf is F
    np.testing.assert_array_equal(solve(b), x)
    solve.update(G)
    assert np.linalg.norm(9 * solve(b) - x) <= 1e-6 * np.linalg.norm(x)


@pytest.mark.large
@pytest.mark.parametrize("method", ["auto", "jacobi"])
def test_leaves_and_chains_are_eliminated_first(method, monkeypatch):
    """Of a ring of 500 vertices with five leaves each, enough for elimination."""
    ring, leaves = np.arange(500), np.arange(500, 3000)
    ends = np.append(ring, np.repeat(ring, 5)), np.append((ring + 1) % 500, leaves)
    F = sc.CellularSheaf.constant(np.transpose(ends))
    L, b = sc.laplacian(F)[1:, 1:], np.random.default_rng(3).standard_normal(3000)
    solve = sc.Solver(F, method=method, fixed=[0])
    x = solve(b)
    assert (solve.levels, solve.iterations) == ((2999, 0), 0)
    assert np.linalg.norm(L @ x[1:] - b[1:]) < 1e-8 * np.linalg.norm(b)
    solve.update(F.with_maps(2 * F.tail_data, 2 * F.head_data))
    assert np.linalg.norm(4 * L @ solve(b)[1:] - b[1:]) < 1e-8 * np.linalg.norm(b)
    monkeypatch.setattr("sheafcoarsen.solve._solver.LEAST_REMOVED", 2.0)
    assert sc.Solver(F, method="direct", fixed=[0]).levels == (2999,)


def test_update_stops_eliminating_chains_that_amplify_rounding(monkeypatch):
    """The path of 20 vertices attached to the grid is eliminated with the first maps only."""
    monkeypatch.setattr(_solver, "DIRECT_BELOW", 0)
    F = CellularSheaf.constant([*GRID.edges, *((i, i + 1) for i in range(55, 75))])
    G = F.with_maps(np.where(F.edges[:, 1] > 55, 10.0, 1.0) * F.tail_data, F.head_data)
    solve = sc.Solver(F, method="multigrid", fixed=[0])
    before = solve.levels
    solve.update(G)
    assert solve.levels == sc.Solver(G, method="multigrid", fixed=[0]).levels != before


@pytest.mark.parametrize("method", METHODS)
def test_residuals_at_rounding_level_count_as_converged(method):
    """The solution is 1e9 times as large as b, so that rounding of L x exceeds the tolerance."""
    F = SHEAVES["consistent bundle"]
    b = np.random.default_rng(0).standard_normal(F.dim_c0)
    L, unit = unit_laplacian(F)
    solve = sc.Solver(F, method=method, shift=1e-9)
    x = solve(b, tol=1e-12)
    assert 1e-12 < solve.residual < 1e-6
    wanted = np.linalg.solve(unit**2 * L + 1e-9 * np.eye(len(L)), b)
    assert np.linalg.norm(x - wanted) <= 1e-6 * np.linalg.norm(wanted)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("angle", [1e-6, None])
def test_residuals_as_large_as_the_right_hand_side_do_not_count_as_converged(angle, method):
    """Not even where rounding permits no smaller ones: L + shift I is singular up to rounding."""
    F = CellularSheaf.constant(nx.path_graph(50)) if angle is None else gallery.cycle(100, angle)
    for shift in (0.0,) if angle else (1e-17, 1e-15):
        with pytest.raises(sc.NotConverged, match=r"0 of 1 .* is singular up to rounding"):
            sc.Solver(F, shift=shift, method=method)(np.ones(F.dim_c0))
    if angle is None:  # the solution is ones / shift
        x = sc.Solver(F, shift=1e-12, method=method)(np.ones(50))
        assert np.abs(1e-12 * x - 1).max() < 0.01


@pytest.mark.parametrize("maps", [np.float32, np.complex64, np.float64])
@pytest.mark.parametrize("method", METHODS)
def test_right_hand_sides_rounded_to_single_precision_pass_the_range_check(method, maps):
    graph = nx.random_labeled_tree(6, seed=1)
    F = CellularSheaf.random(graph, 2, 2, kind="orthogonal", seed=1, dtype=maps)
    L = sc.laplacian(F)
    dtype = np.complex64 if np.dtype(maps).kind == "c" else np.float32
    for seed in range(10):
        b = (L @ np.random.default_rng(seed).standard_normal(12)).astype(dtype)
        x = sc.Solver(F, method=method)(b)
        assert_residual(L @ x - b, L.toarray(), x, n=12, eps=np.finfo(np.float32).eps)
    with pytest.raises(ValueError, match=re.escape("must lie in the range of L")):
        sc.Solver(F, method=method)(sc.global_sections(F).toarray()[:, 0])


@pytest.mark.parametrize("method", METHODS)
def test_systems_without_unknowns_or_energy_have_zero_solutions(method):
    G = CellularSheaf.constant(nx.path_graph(4))
    assert sc.Solver(G, method=method)(np.ones((4, 0))).shape == (4, 0)
    assert not sc.Solver(G, method=method, fixed=range(4))(np.ones(4)).any()
    empty = CellularSheaf([[0, 1]], [np.zeros((2, 0))], [np.zeros((2, 0))])
    assert sc.Solver(empty, method=method)(np.ones((0, 3))).shape == (0, 3)
    solve = sc.Solver(CellularSheaf([[0, 1]], *np.zeros((2, 1, 2, 2))), method=method)
    assert not solve(np.zeros(4)).any()
    with pytest.raises(ValueError, match="must lie in the range"):
        solve(np.ones(4))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("large", [1e4, 1e7])
def test_residuals_are_small_relative_to_the_scale_of_every_stalk(method, large):
    """Neither a large right-hand side there nor a guess accurate there hides errors at others."""
    maps = np.ones((2, 4, 1, 1))
    maps[0, 0] = large
    F = CellularSheaf([(0, 1), (1, 2), (2, 0), (2, 3)], *maps)
    wanted = np.array([1.0 / large, -2.0, 3.0, 1.5])
    L = sc.laplacian(F).toarray()
    b = L @ wanted
    solve = sc.Solver(F, method=method)
    x = solve(b, tol=TOL)
    assert np.linalg.norm((x - wanted) / wanted) <= 1e-10
    S = 1 / np.sqrt(L.diagonal())
    scaled = np.linalg.norm(S * (b - L @ x)) / np.linalg.norm(S * b)
    assert scaled <= 2 * solve.residual + 30 * 4 * eps_of(float)
    start = np.array([b[0] / L[0, 0], 0.0, 0.0, 0.0])
    assert np.linalg.norm(b - L @ start) < 10 / large * np.linalg.norm(b)
    x = solve(b, tol=10 / large, x0=start)
    assert solve.iterations > 0
    assert np.linalg.norm(x - wanted) <= 1000 / large * np.linalg.norm(wanted)


@pytest.mark.parametrize("method", ["auto", "multigrid", "jacobi"])
def test_pickled_solvers_give_the_same_solutions(method):
    F = SHEAVES["noisy bundle"]
    b = np.random.default_rng(6).standard_normal((F.dim_c0, 2))
    solve = sc.Solver(F, method=method, shift=0.1, fixed=[3])
    x = solve(b)
    again = pickle.loads(pickle.dumps(solve))
    assert (again.method, again.levels, again.shift) == (solve.method, solve.levels, 0.1)
    assert (again.iterations, again.residual) == (solve.iterations, solve.residual)
    assert np.array_equal(again(b), x)
    M = solve.as_preconditioner()
    for operator in (M, M.H):
        assert np.array_equal(pickle.loads(pickle.dumps(operator)) @ b, M @ b)
        assert operator.matvec(b[:, 0]).shape == (F.dim_c0,)
    again.update(F.with_maps(2 * F.tail_data, 2 * F.head_data))
    assert np.array_equal(copy.deepcopy(solve)(b), x)


def test_a_singular_sheaf_whose_pivots_are_far_from_zero_is_recognized():
    """Its smallest pivot is 2e-6 of the largest, its smallest eigenvalue is zero."""
    tails = [[[1.0]], [[1e-3], [-1e-3]], [[-0.1, 0], [-0.1, 0]]]
    heads = [[[1.0]], [[0, 1e-3], [-1e-3, -1e-3]], [[0], [0.1]]]
    F = sc.CellularSheaf([[0, 1], [1, 2], [2, 3]], tails, heads)
    section, delta = sc.global_sections(F).basis[:, 0], sc.coboundary(F).toarray()
    solve = sc.Solver(F)
    with pytest.raises(ValueError, match="must lie in the range of L"):
        solve(section)
    b = np.array([1.0, 0, -1, 0, -1])
    exact = np.linalg.pinv(delta) @ b
    assert np.linalg.norm(solve(delta.T @ b) - exact) < 1e-6 * np.linalg.norm(exact)
    assert np.linalg.norm(sc.least_squares(F, b).x - exact) < 1e-6 * np.linalg.norm(exact)
    with pytest.raises(ValueError, match="L is singular"):
        sc.harmonic_extension(F, [], [])
