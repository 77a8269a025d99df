import contextlib
import itertools

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from tests.support.exact import dot, fractions, solved
from tests.support.helpers import assert_residual, covering
from tests.unit.solve.conftest import SHEAVES, unit_coboundary

METHODS = ("direct", "multigrid", "jacobi")


@pytest.mark.parametrize(("method", "name"), covering(METHODS, SHEAVES))
@pytest.mark.usefixtures("several_levels")
def test_solutions_match_dense_least_squares(name, method):
    """The second of two columns is a coboundary, which is fitted exactly."""
    F = SHEAVES[name]
    delta, unit = unit_coboundary(F)
    rng = np.random.default_rng(1)
    b = np.stack([rng.standard_normal(F.dim_c1), delta @ rng.standard_normal(F.dim_c0)], axis=1)
    R = sc.least_squares(F, b, tol=1e-12, method=method)
    wanted, _, rank, singular = np.linalg.lstsq(delta, b, rcond=1e-10)
    condition = (singular[0] / singular[rank - 1]) ** 2
    assert np.linalg.norm(R.x * unit - wanted) <= 1e-11 * condition * np.linalg.norm(wanted)
    squares = np.abs(delta @ (R.x * unit) - b) ** 2
    assert R.edge_residuals.shape == (F.n_edges, 2)
    for e, (lo, hi) in enumerate(itertools.pairwise(F.edge_offsets)):
        assert_residual(R.edge_residuals[e] - squares[lo:hi].sum(axis=0), b, b, n=F.dim_c1)
    assert R.edge_residuals[:, 1].max() <= 1e-15
    assert R.residual <= 1e-11
    assert f"method={method!r}" in repr(R)
    assert "LeastSquares" in R._repr_html_()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("sections", [0, 2])
def test_maps_in_single_precision_fit_data_in_double_precision(sections, dtype, method):
    """Sections of the rounded maps count as zeros, although these maps do not send them to zero."""
    F = sc.gallery.bundle(nx.cycle_graph(6), 2, seed=1)
    if not sections:
        F = sc.CellularSheaf.random(nx.cycle_graph(6), 2, 3, seed=1)
    phases = np.exp(1j * np.arange(F.n_edges)) if np.dtype(dtype).kind == "c" else np.ones(6)
    phases = np.repeat(phases, np.diff(F.tail_offsets))
    F = F.with_maps(*((phases * data).astype(dtype) for data in (F.tail_data, F.head_data)))
    delta = sc.coboundary(F).toarray().astype(np.result_type(dtype, np.float64))
    b = np.random.default_rng(0).standard_normal(F.dim_c1)
    wanted, _, rank, _ = np.linalg.lstsq(delta, b, rcond=1e-5)
    assert rank == F.dim_c0 - sections
    x = sc.least_squares(F, b, method=method).x
    eps = np.finfo(dtype if sections else np.float64).eps
    assert np.linalg.norm(x - wanted) <= 1e3 * eps * np.linalg.norm(wanted)
    single = sc.least_squares(F, b.astype(np.float32), method=method)
    assert (single.x.dtype, single.edge_residuals.dtype) == (dtype, np.float32)
    error = np.linalg.norm(single.x - wanted)
    assert error <= 1e3 * np.finfo(dtype).eps * np.linalg.norm(wanted)


def test_sheaves_with_many_sections_are_fitted_without_a_basis(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.solve._least_squares.has_many_sections", lambda F: True)
    monkeypatch.setattr("sheafcoarsen.solve._solver.global_sections", None)
    F = SHEAVES["large kernel"]
    b = np.random.default_rng(3).standard_normal(F.dim_c1)
    wanted = np.linalg.lstsq(sc.coboundary(F).toarray(), b, rcond=1e-10)[0]
    R = sc.least_squares(F, b, tol=1e-12)
    assert R.method == "plain"
    assert np.linalg.norm(R.x - wanted) <= 1e-8 * np.linalg.norm(wanted)


def test_a_basis_of_many_sections_is_computed_if_it_is_needed(monkeypatch):
    """On a long path the iteration does not converge without a preconditioner."""
    monkeypatch.setattr("sheafcoarsen.solve._least_squares.has_many_sections", lambda F: True)
    F = sc.CellularSheaf.constant(nx.path_graph(2000))
    weights = 10.0 ** np.random.default_rng(0).uniform(-3, 3, F.n_edges)
    F = F.with_maps(weights * F.tail_data, weights * F.head_data)
    b = sc.coboundary(F) @ np.arange(2000.0)
    for method in ("auto", "direct"):
        R = sc.least_squares(F, b, method=method)
        assert R.method == "direct"
        assert np.linalg.norm(R.x - np.arange(2000.0) + 999.5) <= 1e-6 * np.linalg.norm(R.x)


@pytest.mark.parametrize("method", METHODS)
def test_empty_data_values_and_stalks_are_accepted(method):
    F = sc.CellularSheaf.constant([[0, 1], [1, 2]])
    R = sc.least_squares(F, np.ones((2, 0)), method=method)
    assert (R.x.shape, R.edge_residuals.shape) == ((3, 0), (2, 0))
    R = sc.least_squares(F, [1.0, 1.0], vertices=[], values=[], method=method)
    assert_residual(R.x - [1.0, 0.0, -1.0], 1.0, n=3)
    empty = sc.CellularSheaf([[0, 1]], [np.zeros((2, 0))], [np.zeros((2, 0))])
    assert sc.least_squares(empty, np.ones((2, 3)), method=method).x.shape == (0, 3)
    fixed = sc.least_squares(empty, np.ones(2), vertices=[0], values=[[]], method=method)
    assert fixed.edge_residuals.tolist() == [2.0]


@pytest.mark.parametrize("large", [1e6, 1e7, 1e8, 1e12])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("edge", range(4))
def test_qr_is_accurate_if_one_map_is_far_larger(edge, both, large):
    """The error of QR is eps times the condition number of delta, which L would square."""
    tails, heads = np.ones((2, 4, 1, 1))
    tails[(edge + 1) % 3] = 2.0  # so that there is no section
    tails[edge] = large
    heads[edge] = large if both else 1.0
    F = sc.CellularSheaf([(0, 1), (1, 2), (2, 0), (2, 3)], tails, heads)
    delta = sc.coboundary(F).toarray()
    b = np.array([1.0, 2.0, 3.0, 4.0])
    columns, right = fractions(delta.T), fractions([b])[0]  # the normal equations are rational
    gram = [[dot(a, c) for c in columns] for a in columns]
    fit = solved(gram, [[dot(a, right)] for a in columns])
    wanted = np.array([float(entry) for (entry,) in fit])
    condition = np.linalg.cond(delta / np.linalg.norm(delta, axis=0))
    assert_residual(sc.least_squares(F, b).x - wanted, wanted, condition, n=4)


@pytest.mark.parametrize("method", ["multigrid", "jacobi"])
def test_fits_of_large_data_to_tiny_maps_are_as_accurate_as_others(method):
    F = sc.gallery.bundle(nx.grid_2d_graph(14, 14), 3, noise=0.2, seed=0)
    b = np.random.default_rng(0).standard_normal(F.dim_c1)
    tiny = F.with_maps(1e-140 * F.tail_data, 1e-140 * F.head_data)
    x, scaled = (sc.least_squares(G, s * b, method=method).x for G, s in ((F, 1), (tiny, 1e30)))
    assert np.linalg.norm(scaled / 1e170 - x) <= 1e-8 * np.linalg.norm(x)


@pytest.mark.parametrize("method", ["multigrid", "jacobi"])
def test_iterative_methods_are_accurate_if_one_map_is_far_larger(method):
    tails = np.ones((400, 1, 1))
    tails[7] = 1e7
    F = sc.CellularSheaf([(i, (i + 1) % 400) for i in range(400)], tails, np.full((400, 1, 1), 0.5))
    b = np.random.default_rng(0).standard_normal(400)
    wanted = np.linalg.solve(sc.coboundary(F).toarray(), b)
    x = sc.least_squares(F, b, method=method).x
    assert np.linalg.norm(x - wanted) <= 1e-8 * np.linalg.norm(wanted)


def test_residuals_above_the_tolerance_raise(monkeypatch):
    F, reached = SHEAVES["noisy bundle"], []
    for steps in range(1, 40):
        monkeypatch.setattr("sheafcoarsen.solve.conjugate_gradients.MOST_STEPS", steps)
        with contextlib.suppress(sc.NotConverged):
            found = sc.least_squares(F, np.ones(F.dim_c1), method="jacobi", tol=1e-6)
            reached.append(found.residual)
    assert 0 < len(reached) < 39
    assert max(reached) <= 1e-6


def test_not_converged_holds_the_best_fit(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.solve.conjugate_gradients.MOST_STEPS", 1)
    F = SHEAVES["noisy bundle"]
    messages, fits = [], []
    for unit in (1.0, 2.0**60):
        with pytest.raises(sc.NotConverged, match="the residual is .* with `tol` = 1e-10") as error:
            sc.least_squares(F, np.full(F.dim_c1, unit), method="jacobi")
        messages.append(str(error.value))
        fits.append(error.value.result.x / unit)
        assert f"residual is {error.value.result.residual:.2g}" in messages[-1]
        assert error.value.result.x.any()
    assert messages[0] == messages[1]
    np.testing.assert_array_equal(*fits)


@pytest.mark.parametrize("method", METHODS)
def test_complex_values_with_real_data_solve_real_and_imaginary_parts(method):
    F = SHEAVES["noisy bundle"]
    b = np.random.default_rng(5).standard_normal(F.dim_c1)
    values = np.array([[1.0 + 2.0j, 0.5j]])
    x = sc.least_squares(F, b, vertices=[3], values=values, method=method).x
    assert np.array_equal(x[6:8], values[0])
    real, imaginary = (
        sc.least_squares(F, data, vertices=[3], values=part, method=method).x
        for data, part in ((b, values.real), (0 * b, values.imag))
    )
    assert np.linalg.norm(x - real - 1j * imaginary) <= 1e-8 * np.linalg.norm(x)


@pytest.mark.parametrize("seed", range(6))
def test_refinement_is_accurate_if_some_edges_weigh_far_more(seed):
    """It must go on when the gradient is at rounding level: the error is up to 4e-7 then."""
    edges = np.array(nx.convert_node_labels_to_integers(nx.grid_2d_graph(25, 25)).edges)
    weights = np.ones((len(edges), 1))
    weights[::97] = 1e6
    F = sc.CellularSheaf.diagonal(edges, weights, weights)
    b = np.random.default_rng(seed).standard_normal(len(edges))
    x = sc.least_squares(F, b, vertices=[0], values=[[0.0]]).x[1:]
    wanted = np.linalg.lstsq(sc.coboundary(F).toarray()[:, 1:], b, rcond=None)[0]
    assert np.linalg.norm(x - wanted) <= 1e-8 * np.linalg.norm(wanted)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spread", [2, 3])
@pytest.mark.usefixtures("several_levels")
def test_tolerances_near_rounding_never_give_nan(spread, method, monkeypatch):
    """The first of two columns is zero, and the second takes several rounds."""
    monkeypatch.setattr("sheafcoarsen.solve._least_squares.DENSE_BELOW", 0)
    F = SHEAVES["graph"]
    weights = 10.0 ** np.random.default_rng(1).uniform(-spread, spread, F.n_edges)
    F = F.with_maps(F.tail_data * weights, F.head_data * weights)
    b = np.random.default_rng(2).standard_normal((F.dim_c1, 2)) * [0, 1]
    wanted = np.linalg.lstsq(sc.coboundary(F).toarray(), b, rcond=1e-12)[0]
    both, alone = (sc.least_squares(F, B, method=method, tol=1e-13) for B in (b, b[:, 1]))
    assert np.linalg.norm(both.x - wanted) <= 1e-5 * np.linalg.norm(wanted)
    assert both.residual <= max(10 * alone.residual, 1e-13)
