import itertools
import re
from unittest.mock import MagicMock, Mock

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._support import EPS
from sheafcoarsen.sheaf import trusted_sheaf
from sheafcoarsen.solve import _diffuse
from tests.support import reference
from tests.support.helpers import assert_residual, covering, eps_of, normal, size
from tests.support.strategies import DTYPES, cochains, sheaves
from tests.unit.solve.conftest import unit_laplacian

PATH = CellularSheaf.random(nx.path_graph(4), 2, 2, seed=1)
X = np.arange(16.0).reshape(8, 2)


def time_for(F, reach):
    """Return the time t with t norm(L, inf) = reach."""
    L, unit = unit_laplacian(F)
    norm = float(np.abs(L).sum(axis=1).max(initial=0.0))
    return reach / unit / unit / norm if norm > 0 else reach


@pytest.mark.parametrize(
    ("reach", "name", "dtype"),
    covering([0.5, 30.0, 1e3, 9.9e5], ["cycle", "complete", "star"], DTYPES),
)
def test_long_times_are_as_accurate_as_short_times(reach, dtype, name):
    """Compare with eigenvectors known in closed form; errors may not grow with t norm(L)."""
    n, rng = 60, np.random.default_rng(3)
    x = normal(rng, (n, 2), dtype)
    wide = x.astype(np.complex128)
    graphs = {"cycle": nx.cycle_graph(n), "complete": nx.complete_graph(n)}
    k = np.arange(n)
    rates = {"cycle": 4 * np.sin(np.pi * k / n) ** 2, "complete": np.where(k == 0, 0, n)}
    F = CellularSheaf.constant(graphs.get(name, nx.star_graph(n - 1)))
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    t = time_for(F, reach)
    y = sc.diffuse(F, x, t)
    if name in rates:
        decay = np.exp(-t * rates[name])[:, None]
        expected = np.fft.ifft(decay * np.fft.fft(wide, axis=0), axis=0)
    else:  # eigenvalues: 0 (constants), n (the centre against the leaves), 1 (all others)
        mean = wide.mean(axis=0)
        centre = np.concatenate([[n - 1.0], -np.ones(n - 1)])[:, None] / np.sqrt(n * (n - 1.0))
        against = centre @ (centre.T @ wide)
        expected = mean + np.exp(-n * t) * against + np.exp(-t) * (wide - mean - against)
    assert_residual(y - expected, x, n=3, eps=eps_of(dtype))  # errors may not grow with n = 60
    if eps_of(dtype) > 1e-10:  # computed in double precision
        assert size(y - expected) < eps_of(dtype) * size(x)


def test_complex_maps_near_underflow_give_finite_results():
    """A coarse sheaf may have complex maps whose reciprocals overflow."""
    tiny = np.array([3e-310 + 0j])
    F = trusted_sheaf(np.array([[0, 1]]), np.array([1, 1]), np.array([1]), tiny, tiny)
    np.testing.assert_array_equal(sc.diffuse(F, [1.0, 2.0], 1.0), [1, 2])


# ---------------------------------------------------------------- stubborn vertices
def grounded_flow(F, x, t, mask):
    """Return exp(-t L) x without the rows of L at the vertices of a mask."""
    L, unit = unit_laplacian(F)
    L[np.repeat(mask, F.vertex_dims)] = 0
    return scipy.linalg.expm(-t * unit * unit * L) @ x if len(L) else x


@given(sheaves(), st.sampled_from([0.0, 1e-9, 0.1, 1.0, 7.0, 300.0]), st.data())
def test_diffusion_matches_the_dense_exponential(F, reach, data):
    """Without stubborn vertices or with some, which stay fixed and drive the others."""
    x = data.draw(cochains(F))
    nowhere = [False] * F.n_vertices
    anywhere = st.lists(st.booleans(), min_size=F.n_vertices, max_size=F.n_vertices)
    mask = np.array(data.draw(st.just(nowhere) | anywhere), bool)
    t = time_for(F, reach)
    y = sc.diffuse(F, x, t, mask)
    assert (y.shape, y.dtype) == (x.shape, F.dtype)
    stays = np.repeat(mask, F.vertex_dims)
    np.testing.assert_array_equal(y[stays], x[stays])
    expected = grounded_flow(F, x, t, mask) if mask.any() else reference.diffuse(F, x, t)
    # the effect of a relative change of L by eps grows with t norm(L)
    factor = 1 + (reach if eps_of(F.dtype) < 1e-10 else 0)
    grown = max(size(expected), size(x)) if mask.any() else size(x)
    assert_residual(y - expected, grown, factor, n=F.dim_c0, eps=eps_of(F.dtype))
    np.testing.assert_array_equal(sc.diffuse(F, x, t, np.flatnonzero(mask)), y)
    if not mask.any():
        np.testing.assert_array_equal(sc.diffuse(F, x, t), y)


def test_growing_values_are_accurate_relative_to_their_size():
    """There is no maximum principle: a map of 1e3 drives its neighbour far above the input."""
    F = CellularSheaf([[0, 1], [1, 1]], [[[1e3]], [[1.0]]], [[[1.0]], [[0.0]]])
    for t in (1e-3, 1.0, 1e3, 2e5):
        y = sc.diffuse(F, [1.0, 0.0], t, fixed=[0])
        expected = 1e3 * -np.expm1(-2 * t) / 2
        assert y[0] == 1.0
        assert abs(y[1] - expected) < 30 * eps_of(float) * 1e3 * max(1, np.sqrt(t))


def test_a_heavy_stubborn_vertex_does_not_limit_the_time():
    """The norm is that of L_II, so that a fixed hub does not shorten the allowed time."""
    F = CellularSheaf.constant(nx.star_graph(50))
    x = np.arange(51.0)
    y = sc.diffuse(F, x, 5e5, fixed=[0])  # norm(L, inf) is 100, that of L_II 1
    assert_residual(y, x, n=51)
    with pytest.raises(ValueError, match=r"`t` times norm\(L, inf\) must be at most 1e\+06"):
        sc.diffuse(F, x, 5e5)


# ---------------------------------------------------------------- masses
@pytest.mark.parametrize(("fixed", "dtype", "spread"), covering([[], [2, 5]], DTYPES, [0.5, 4.0]))
def test_diffusion_with_masses_matches_the_dense_exponential(spread, fixed, dtype):
    """M^{-1/2} L M^{-1/2} is the Laplacian of the sheaf whose maps are divided by sqrt(m_v)."""
    F = CellularSheaf.random(nx.gnm_random_graph(9, 20, seed=2), 2, 2, seed=1, dtype=dtype)
    rng = np.random.default_rng(5)
    mass, x = 10 ** rng.uniform(-spread, spread, 9), rng.standard_normal((18, 2)).astype(dtype)
    roots = np.sqrt(np.repeat(mass, 2))[:, None]
    L = reference.laplacian(F.with_maps(*(m.astype(complex) for m in (F.tail_data, F.head_data))))
    generator = L / roots**2
    generator[np.isin(np.repeat(np.arange(9), 2), fixed)] = 0
    t = 3.0 / np.abs(generator).sum(axis=1).max() * np.array([1, 10**spread])
    for time, y in zip(t, sc.diffuse(F, x, t, fixed, mass), strict=True):
        assert y.dtype == dtype
        expected = scipy.linalg.expm(-time * generator) @ x
        reach = time * np.abs(generator).sum(axis=1).max()
        assert_residual(roots * (y - expected), roots * x, 1 + reach, n=18, eps=eps_of(dtype))


@pytest.mark.parametrize("unit", [4.0**-400, 4.0**400])
def test_masses_in_another_unit_change_only_the_unit_of_time(unit):
    mass = np.array([1.0, 2.0, 3.0, 4.0])
    y = sc.diffuse(PATH, X, 2.0 * unit, mass=unit * mass)
    np.testing.assert_array_equal(y, sc.diffuse(PATH, X, 2.0, mass=mass))
    ones = sc.diffuse(PATH, X, 2.0 * unit, mass=np.full(4, unit))
    assert_residual(ones - sc.diffuse(PATH, X, 2.0), X, n=8)


def test_times_without_effect_return_a_copy():
    isolated = CellularSheaf.from_flat([], [], [], [2, 1], [])
    loop = CellularSheaf([[0, 0]], [[[2.0]]], [[[2.0]]])
    empty = CellularSheaf([], [], [], vertex_dims=[])
    cases = (isolated, np.ones(3), 1e308), (loop, np.ones((1, 2)), 1e308), (PATH, X, 0)
    for (F, x, t), with_mass in itertools.product((*cases, (empty, np.zeros(0), 1)), [False, True]):
        y = sc.diffuse(F, x, t, mass=np.ones(F.n_vertices) if with_mass else None)
        np.testing.assert_array_equal(y, x)
        assert not np.shares_memory(x, y)
        y[...] = 1  # the copy is writable


def test_times_above_the_limit_raise():
    F = CellularSheaf.constant(nx.complete_graph(5))  # norm(L, inf) = 8
    np.testing.assert_allclose(sc.diffuse(F, np.arange(5.0), 0.999e6 / 8), 2, rtol=1e-12)
    message = "`t` times norm(L, inf) must be at most 1e+06, got 1e+06: diffuse on a coarse sheaf, "
    message = re.escape(message + "C.lift(diffuse(C.sheaf, C.pool(X), t)), or")
    with pytest.raises(ValueError, match=rf"{message}.* nearest_section\(sheaf, X\)$"):
        sc.diffuse(F, np.arange(5.0), 1.0000001e6 / 8)
    with pytest.raises(ValueError, match=r"diffuse several times .* use the limit, harmonic_ext"):
        sc.diffuse(F, np.arange(5.0), 1e6, fixed=[0])
    limit = r"`t` times norm\(M\^\{-1\} L, inf\) must be .* got 8e\+06: use a smaller `t`"
    with pytest.raises(ValueError, match=limit):
        sc.diffuse(F, np.arange(5.0), 1.0, mass=[1e-6, 1, 1, 1, 1])
    with pytest.raises(ValueError, match=r"got inf: diffuse on a coarse"):
        sc.diffuse(CellularSheaf.constant(nx.path_graph(2), weight=[1e200]), [1.0, 0.0], 1e200)


@pytest.mark.parametrize("tau", [0.0, 1e-300, 1e-8, 0.3, 20.0, 1e3, 5e5])
def test_few_products_give_the_flow_of_a_diagonal_matrix(tau):
    spectrum, products = 1 - np.cos(np.linspace(0, np.pi, 50))[:, None], []
    delta = MagicMock(__matmul__=lambda _, x: products.append(1) or spectrum * x)
    (flow,) = _diffuse._flow(delta, np.eye(50), 2.0, np.ones((50, 1)), np.array([tau]), EPS)
    assert len(products) <= 8.7 * np.sqrt(tau) + 24
    assert_residual(flow - np.exp(-tau * spectrum), np.ones(50), 1 + np.sqrt(tau), n=1)


# ---------------------------------------------------------------- several times
@pytest.mark.parametrize("fixed", [None, [3]])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_several_times_give_a_leading_axis(shape, fixed):
    F = CellularSheaf.random(nx.cycle_graph(8), 2, 2, seed=3)
    X = np.random.default_rng(3).standard_normal((16, *shape))
    times = [3.0, 0.0, time_for(F, 5e2), 1e-3, time_for(F, 9e4), 3.0]
    Y = sc.diffuse(F, X, times, fixed)
    assert Y.shape == (6, 16, *shape)
    for y, t in zip(Y, times, strict=True):
        np.testing.assert_array_equal(y, sc.diffuse(F, X, t, fixed))  # the bits of single calls
    np.testing.assert_array_equal(Y, sc.diffuse(F, X, np.array(times), fixed))
    assert sc.diffuse(F, X, [1.0], fixed).shape == (1, 16, *shape)
    assert sc.diffuse(F, X, [], fixed).shape == (0, 16, *shape)


def test_several_times_share_one_recurrence(monkeypatch):
    F = CellularSheaf.random(nx.cycle_graph(8), 2, 2, seed=3)
    flow = Mock(wraps=_diffuse._flow)
    monkeypatch.setattr(_diffuse, "_flow", flow)
    sc.diffuse(F, np.ones(16), np.linspace(0, time_for(F, 80.0), 11))
    flow.assert_called_once()  # for ten positive times and the end of the stage
    assert len(flow.call_args.args[4]) == 11


@pytest.mark.parametrize(("n", "spread"), [(5000, 0), (250, 3)])
def test_transport_reaches_the_end_of_a_long_path_with_edges_of_very_different_weights(n, spread):
    weight = np.random.default_rng(0).lognormal(0, spread, n - 1)
    F = sc.CellularSheaf.constant(nx.path_graph(n), 2, weight=weight)
    np.testing.assert_allclose(sc.transport(F, 0, [-2.0, 0]), np.tile([-2.0, 0], n), rtol=1e-9)
