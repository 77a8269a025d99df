"""Both methods for least squares, and the way from one to the other."""

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, gallery
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.sections import normal_equations
from tests.support import reference
from tests.support.helpers import assert_residual, size

PATH = CellularSheaf.random(nx.path_graph(4), 2, 2, seed=1)


GRID = nx.convert_node_labels_to_integers(nx.grid_2d_graph(9, 8))


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.SingularProblemWarning)
        return sc.harmonic_extension(*arguments, **options)


def interior(F, vertices):
    inside = np.ones(F.dim_c0, bool)
    for v in vertices:
        inside[reference.vertex_coordinates(F, v)] = False
    return np.flatnonzero(inside)


def exact(F):
    """Delta in double precision divided by its largest entry, and that entry."""
    delta = reference.coboundary(F).astype(np.result_type(F.dtype, np.float64))
    unit = float(np.abs(delta).max(initial=0.0)) or 1.0
    return delta / unit, unit


def norm_bound(D):
    """An upper bound of norm(D), by its largest row and column sums."""
    return np.sqrt(abs(D).sum(axis=0).max() * abs(D).sum(axis=1).max())


def gradient_ratio(F, vertices, x):
    """norm(delta_I* delta x) in units of a bound of norm(delta_I)^2 norm(x), column by column."""
    delta = sc.coboundary(F) / F.largest_entry
    D = delta[:, interior(F, vertices)]
    gradient = D.conj().T @ (delta @ x)
    return np.linalg.norm(gradient, axis=0) / (norm_bound(D) ** 2 * np.linalg.norm(x, axis=0))


def clear_rank(D, eps):
    """The rank of D and its smallest positive singular value.

    Where there may be doubt about them the sheaf is put aside.
    """
    sigma = np.linalg.svd(D, compute_uv=False)
    largest = sigma.max(initial=0.0)
    assume(not ((sigma > 1e-2 * eps * largest) & (sigma < 1e-2 * largest)).any() or largest == 0)
    rank = int((sigma > 1e-3 * largest).sum()) if largest else 0
    return rank, float(sigma[rank - 1]) if rank else 1.0


def connection(n_rows, n_columns):
    G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(n_rows, n_columns))
    return gallery.bundle(G, 2, noise=0.1, seed=1)


@pytest.mark.parametrize("direct", [True, False])
def test_both_methods_meet_their_residuals(monkeypatch, direct):
    F = gallery.bundle(GRID, 2, seed=1)
    F = sc.disjoint_union([F, F])[0]
    monkeypatch.setattr("sheafcoarsen.sections.normal_equations.fills_little", lambda L: direct)
    values = np.random.default_rng(0).standard_normal((3, 2, 2))
    x = quietly(F, [5, 60, 30], values)
    assert_residual(x[144:], size(values), 100, n=F.dim_c0)
    delta = sc.coboundary(F)
    inside = interior(F, [5, 60, 30])
    assert_residual((delta.T @ (delta @ x))[inside], delta, delta, x, n=10)
    expected = -np.linalg.pinv(delta.toarray()[:, inside], rcond=1e-8) @ (
        delta[:, [10, 11, 120, 121, 60, 61]] @ values.reshape(6, 2)
    )
    assert_residual(x[inside] - expected, values, 1000, n=10)
    sections = reference.global_sections(F)
    assert sections.shape[1] == 4
    y = np.random.default_rng(0).standard_normal((F.dim_c0, 2))
    assert_residual(sc.nearest_section(F, y) - sections @ (sections.T @ y), y, 100, n=10)


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_twenty_thousand_vertices():
    F = connection(100, 200)
    vertices = np.array([3, 19_000, 777])
    x = sc.harmonic_extension(F, vertices, np.eye(3, 2))
    assert size(x) > 5
    delta = sc.coboundary(F)
    inside = interior(F, vertices)
    assert_residual((delta.T @ (delta @ x))[inside], 8.0, x, n=1)
    assert (gradient_ratio(F, vertices, x) < 1e-16).all()
    p = sc.nearest_section(F, x)
    assert_residual(delta @ p, 3.0, x, n=1)


def test_what_fills_up_is_iterated():
    G = nx.convert_node_labels_to_integers(nx.grid_graph((9, 9, 9)))
    random = CellularSheaf.constant(nx.random_regular_graph(4, 8000, seed=1))
    for F, little in (
        (CellularSheaf.constant(G), True),
        (connection(70, 70), True),
        (random, False),
        (CellularSheaf.constant(nx.star_graph(8000)), True),
        (CellularSheaf.constant(nx.path_graph(8000)), True),
    ):
        assert normal_equations.fills_little(sc.laplacian(F)) == little
    x = sc.harmonic_extension(random, [0, 1], [[0.0], [1.0]])
    delta = sc.coboundary(random)
    assert_residual((delta.T @ (delta @ x))[2:], 8.0, x, n=1)
    assert 0.3 < x[2:].min() < x[2:].max() < 0.7
    assert_residual(sc.nearest_section(random, x) - x.mean(), x, n=10)


def test_an_iteration_that_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.normal_equations.fills_little", lambda L: False)
    monkeypatch.setattr("sheafcoarsen.sections.iteration.MOST_STEPS", 5)
    monkeypatch.setattr("sheafcoarsen.sections.normal_equations.DIRECT_AT_LAST", 199)
    F = CellularSheaf.constant(nx.path_graph(200))
    with pytest.raises(
        np.linalg.LinAlgError, match="the iteration stopped at .* times the residual allowed"
    ):
        sc.nearest_section(F, np.random.default_rng(0).standard_normal(200))


def test_where_iterating_does_not_get_there_factors_do(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.normal_equations.fills_little", lambda L: False)
    monkeypatch.setattr("sheafcoarsen.sections.iteration.MOST_STEPS", 5)
    F = CellularSheaf.constant(nx.path_graph(200))
    x = np.random.default_rng(0).standard_normal(200)
    assert_residual(sc.nearest_section(F, x) - x.mean(), x, n=200)
    y = sc.harmonic_extension(F, [0, 199], [[0.0], [199.0]])
    assert_residual(y - np.arange(200), y, 100, n=200)
    # what is free must have been warned of
    F = sc.disjoint_union([F, F])[0]
    with pytest.raises(np.linalg.LinAlgError, match="the iteration stopped at"):
        sc.harmonic_extension(F, [0, 199], [[0.0], [199.0]])


def test_progress_is_shown_only_when_asked_for(capsys):
    x = sc.nearest_section(PATH, np.ones(8))
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(sc.nearest_section(PATH, np.ones(8), progress=True), x)
    assert "digits" in capsys.readouterr().err
    sc.harmonic_extension(PATH, [0], [[1.0, 1.0]], progress=True)
    assert "digits" in capsys.readouterr().err


# ---------------------------------------------------------------- what is free


def equations(D, eps=2.0**-52):
    return normal_equations.NormalEquations(scipy.sparse.csr_array(D), eps, False)


@pytest.mark.parametrize(("ratio", "free"), [(1e-2, [0, 1]), (1e-5, [0, 1]), (1e-8, [0])])
def test_free_coordinates_of_any_size_above_rounding_are_named(ratio, free):
    """The kernel is spanned by (1, ratio, 0)."""
    coordinates, smallest = equations([[ratio, -1.0, 0.0], [0.0, 0.0, 1.0]]).free_coordinates()
    assert coordinates.tolist() == free
    assert smallest < 1e-15


def test_two_probes_leave_no_coordinate_of_a_large_kernel_out():
    """One in 300,000 is below a millionth of the largest in a probe, and hardly in both."""
    n = 1_000_000
    D = scipy.sparse.csr_array(([1.0], ([0], [7])), shape=(1, n))
    coordinates = equations(D).free_coordinates()[0]
    assert len(coordinates) == n - 1
    assert 7 not in coordinates


def test_a_projection_that_takes_all_but_a_millionth_is_repeated(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.normal_equations.fills_little", lambda L: False)
    monkeypatch.setattr("sheafcoarsen.sections.normal_equations.DIRECT_AT_LAST", 0)
    D = sc.coboundary(CellularSheaf.constant(nx.path_graph(30)))
    solver, inverse, calls = equations(D), np.linalg.pinv(D.toarray()), []

    def iterate(r, precondition):
        calls.append(1)
        return (1 - 1e-6) * (inverse @ r)

    monkeypatch.setattr(solver, "_iterate", iterate)
    x = np.random.default_rng(0).standard_normal((30, 2))
    assert_residual(solver.kernel_part(x) - x.mean(axis=0), x, n=30)
    assert 2 <= len(calls) <= 4
