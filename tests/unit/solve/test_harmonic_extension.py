"""Harmonic extensions, compared with dense least squares, and invalid values."""

import itertools
import re
import warnings
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, gallery
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, size
from tests.support.strategies import DTYPES, cochains, sheaves
from tests.unit.solve.conftest import clear_rank, interior, quietly, unit_coboundary


@st.composite
def boundaries(draw, F):
    """Draw at least one vertex, in any order, with values of the sheaf's scalar type."""
    count = draw(st.integers(1, F.n_vertices))
    vertices = draw(st.permutations(range(F.n_vertices)))[:count]
    x = draw(cochains(F))
    note(f"vertices = {vertices}")
    return vertices, [x[reference.vertex_coordinates(F, v)] for v in vertices]


@given(sheaves(), st.data())
def test_extensions_are_least_squares_solutions_of_least_norm(F, data):
    """They keep the values and have zero gradient elsewhere, even if the rank is not clear."""
    assume(F.n_vertices)
    vertices, values = data.draw(boundaries(F))
    inside, (delta, _) = interior(F, vertices), unit_coboundary(F)
    eps = eps_of(F.dtype)
    with warnings.catch_warnings(record=True, action="always") as caught:
        x = sc.harmonic_extension(F, vertices, values)
    assert (x.shape, x.dtype) == ((F.dim_c0, *values[0].shape[1:]), F.dtype)
    for v, value in zip(vertices, values, strict=True):
        np.testing.assert_array_equal(x[reference.vertex_coordinates(F, v)], value)
    D = delta[:, inside]
    assert_residual(D.conj().T @ (delta @ x), delta, delta, x, n=F.dim_c0, eps=eps)
    rank, smallest = clear_rank(D, eps)
    given_part = x.copy()
    given_part[inside] = 0
    inverse = np.linalg.pinv(D, rcond=1e-3) if D.size else np.zeros(D.T.shape)
    expected = -inverse @ (delta @ given_part)
    condition = (size(delta) / smallest) ** 2
    assert_residual(x[inside] - expected, given_part, condition, n=F.dim_c0, eps=eps)
    free = len(inside) - rank
    assert len(caught) == (free > 0)
    if free:
        assert caught[0].category is sc.SingularProblemWarning
        assert caught[0].filename == __file__
        wanted = rf"leave {free} of {len(inside)} dimensions free, first at vertex (\d+): "
        wanted += "the extension of least norm is returned"
        found = re.search(wanted, str(caught[0].message))
        projector = np.eye(len(inside)) - inverse @ D
        touched = inside[np.flatnonzero(np.diag(projector).real > 1e-4)]
        first = np.searchsorted(F.vertex_offsets, touched[0], side="right") - 1
        assert int(found[1]) == first


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("size_of_values", [1e-250, 1.0, 1e30])
def test_extensions_do_not_depend_on_the_scale_of_maps_and_values(scale, size_of_values):
    F = CellularSheaf.random(nx.random_regular_graph(3, 30, seed=1), 2, 2, seed=2)
    x = sc.harmonic_extension(F, [3, 7], np.ones((2, 2, 1)))
    scaled = F.with_maps(F.tail_data * scale, F.head_data * scale)
    values = np.ones((2, 2, 2)) * [1, size_of_values]
    y = sc.harmonic_extension(scaled, [3, 7], values) / [1, size_of_values]
    np.testing.assert_allclose(y, np.hstack([x, x]), rtol=1e-9)


def test_values_may_be_lists_or_arrays_and_numbers_at_stalks_of_dimension_1():
    F = CellularSheaf.random(nx.path_graph(3), 2, 2, seed=1)
    x = sc.harmonic_extension(F, [0, 2], [[1, 2], [3, 4]])
    integers = np.array([[1, 2], [3, 4]])
    for values in (integers, ((1, 2), [3.0, 4.0]), [np.int8([1, 2]), np.array([3.0, 4.0])]):
        np.testing.assert_array_equal(sc.harmonic_extension(F, np.array([0, 2]), values), x)
    y = sc.harmonic_extension(F, [0, 2], integers[:, :, None])
    np.testing.assert_array_equal(y, x[:, None])
    for values in (np.ones((2, 2, 0)), [np.ones((2, 0))] * 2):
        assert sc.harmonic_extension(F, [0, 2], values).shape == (6, 0)
    ragged = CellularSheaf.random(nx.path_graph(3), [2, 0, 1], 2, seed=1)
    for value in ([3.0], 3.0, np.float32(3)):
        x = sc.harmonic_extension(ragged, [1, 2, 0], [np.zeros(0), value, [1.0, 2.0]])
        np.testing.assert_array_equal(x, [1.0, 2.0, 3.0])
    F = CellularSheaf.constant(nx.path_graph(3))
    for values in ([3, 5], (3.0, 5.0), np.array([3.0, 5.0]), [np.array(3.0), [5.0]]):
        x = sc.harmonic_extension(F, [2, 0], values)
        np.testing.assert_allclose(x, [5.0, 4.0, 3.0], rtol=1e-14)
        y = sc.least_squares(F, [0.0, 0.0], vertices=[2, 0], values=values).x
        np.testing.assert_allclose(y, x, rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_have_the_common_scalar_type(dtype):
    F = CellularSheaf.random(nx.path_graph(3), 2, 2, seed=0, dtype=np.float32)
    for values in ([np.ones(2, dtype)], np.ones((1, 2), dtype)):
        assert sc.harmonic_extension(F, [1], values).dtype == np.result_type(np.float32, dtype)
    for y in (sc.nearest_section(F, np.ones(6, dtype)), sc.diffuse(F, np.ones(6, dtype), 1.0)):
        assert y.dtype == np.result_type(np.float32, dtype)
    empty = CellularSheaf.random(nx.path_graph(2), [0, 2], 2, seed=0, dtype=np.float32)
    assert sc.harmonic_extension(empty, [0, 1], [[], np.ones(2, np.float32)]).dtype == np.float32


@pytest.mark.parametrize("digits", [3, 6, 9])
@pytest.mark.parametrize("seed", range(3))
def test_small_extensions_are_exact_even_if_weights_differ_by_many_digits(seed, digits):
    """On a path, the value at i is the resistance up to i, a sum of 1 / w^2, over that of all."""
    w = 10 ** np.random.default_rng(seed).uniform(-digits, digits, 50)
    F = CellularSheaf([(i, i + 1) for i in range(50)], w.reshape(-1, 1, 1), w.reshape(-1, 1, 1))
    ohms = list(itertools.accumulate((1 / Fraction(each) ** 2 for each in w), initial=Fraction(0)))
    wanted = np.array([float(each / ohms[-1]) for each in ohms])
    x = quietly(F, [0, 50], [0.0, 1.0])
    assert_residual(x - wanted, 1.0, n=51)
    fit = sc.least_squares(F, np.zeros(50), vertices=[0, 50], values=[0.0, 1.0])
    assert_residual(fit.x - wanted, 1.0, n=51)


@pytest.mark.parametrize(("large", "small"), [(1e4, 1e2), (1e6, 1e3), (1e8, 1e4)])
def test_values_that_contradict_each_other_do_not_disturb_weaker_parts(large, small):
    """Vertices 3 and 4 are tied to vertex 0 alone; 2 is between the values 1 and -2."""
    maps = [[[large]], [[large]], [[small]], [[1.0]]]
    F = CellularSheaf([[0, 2], [2, 1], [3, 4], [3, 0]], maps, maps)
    x = quietly(F, [0, 1], [[1.0], [-2.0]])
    assert_residual(x - [1, -2, -0.5, 1, 1], x, n=5)
    fit = sc.least_squares(F, np.zeros(4), vertices=[0, 1], values=[[1.0], [-2.0]])
    assert_residual(fit.x - [1, -2, -0.5, 1, 1], x, n=5)


@pytest.mark.filterwarnings("ignore:the given values hardly determine the others")
def test_large_extensions_are_accurate_even_if_weights_differ_by_eight_digits():
    """Too large for QR, and a condition of 1e11: refinement must not end by the gradient alone."""
    weights = np.ones(1999)
    weights[10::20] = 1e8
    F = CellularSheaf.diagonal(nx.path_graph(2000), weights[:, None], weights[:, None])
    x = sc.harmonic_extension(F, [0, 1999], [[0.0], [1.0]])
    lengths = np.append(0, np.cumsum(1 / weights**2))
    wanted = lengths / lengths[-1]
    assert np.linalg.norm(x - wanted) <= 1e-6 * np.linalg.norm(wanted)


@pytest.mark.parametrize("weight", [None, 1.0])
def test_not_converged_holds_the_best_extension(weight, monkeypatch):
    """With the given values, in their scale, and without the vertices added for weights."""
    monkeypatch.setattr("sheafcoarsen.solve.conjugate_gradients.MOST_STEPS", 1)
    monkeypatch.setattr("sheafcoarsen.solve._least_squares.DIRECT_AT_LAST", 0)
    monkeypatch.setattr("sheafcoarsen.solve._least_squares.has_many_sections", lambda F: True)
    F = sc.gallery.bundle(nx.grid_2d_graph(20, 20), 2, noise=0.3, seed=0)
    values, found = np.array([[1.0, 2.0], [3.0, 4.0]]), []
    for unit in (1.0, 2.0**60):
        with pytest.raises(sc.NotConverged, match="the iteration stopped") as error:
            sc.harmonic_extension(F, [0, 399], unit * values, weight=weight)
        found.append(error.value.result / unit)
        assert found[-1].shape == (F.dim_c0,)
    np.testing.assert_array_equal(*found)
    if weight is None:
        np.testing.assert_array_equal(found[0].reshape(400, 2)[[0, 399]], values)


def test_free_directions_are_found_if_the_maps_of_one_stalk_differ_by_six_digits():
    """The kernel is spanned by (1, 1) at vertex 0 and 2 at vertex 1; L holds it to 1e-4 only."""
    s = 2.0**-13
    tails, heads = [[[128.0]], [[s, 0], [s, s]]], [[[-128.0, 128.0]], [[s / 2], [s]]]
    F = CellularSheaf([[2, 0], [0, 1]], tails, heads)
    with pytest.warns(sc.SingularProblemWarning, match="leave 1 of 3 dimensions free"):
        x = sc.harmonic_extension(F, [2], [[1.0]])
    fit = sc.least_squares(F, np.zeros(3), vertices=[2], values=[[1.0]])
    for found in (x, fit.x):
        # relative to the ratio of the maps, 2^20, by which data of the edges are amplified
        assert_residual(found - [-13 / 30, 17 / 30, -1 / 15, 1.0], 2.0**20, n=4)


@pytest.mark.parametrize(("ratio", "first"), [(1e-8, 2), (1e-5, 1), (1e-3, 1)])
def test_the_warning_names_the_first_free_vertex_even_with_small_entries(ratio, first):
    """The kernel has the entries (ratio, 1) at vertices 1 and 2; up to 1e-6 they are rounding."""
    F = CellularSheaf([[0, 0], [1, 2]], [[[1.0]], [[1.0]]], [[[0.0]], [[ratio]]])
    with pytest.warns(sc.SingularProblemWarning, match=f"leave 1 of 2 .* first at vertex {first}:"):
        sc.harmonic_extension(F, [0], [[1.0]])
    names = ["slack", "load", "line"]
    for weight in (None, 2.0):
        with pytest.warns(sc.SingularProblemWarning, match=f"first at vertex '{names[first]}':"):
            sc.harmonic_extension(F.with_labels(names), ["slack"], [[1.0]], weight=weight)


def warnings_of(F):
    """Return the warnings if one value is given at vertex 0."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        sc.harmonic_extension(F, [0], [[2.0]])
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("small", "leaves", "warns"),
    [(1e-5, 0, False), (1e-8, 0, True), (5e-7, 0, False), (5e-7, 800, True)],
)
def test_nearly_undetermined_directions_warn(small, leaves, warns):
    """Singular values, exact in small problems, are relative to norm(delta), large next to hubs."""
    edges = [[0, 1], [1, 2], *([1, 3 + i] for i in range(leaves))]
    maps = np.array([1, small, *np.ones(leaves)]).reshape(-1, 1, 1)
    F = CellularSheaf(edges, maps, maps)
    found = [float(re.search("has only (.*) of its norm", text)[1]) for text in warnings_of(F)]
    assert len(found) == warns
    sigma = np.linalg.svd(sc.coboundary(F).toarray()[:, 1:], compute_uv=False)
    exact = sigma[-1] / sigma[0]
    low, high = (0.3, 3.0) if leaves else (0.99, 1.01)
    assert all(low < each / exact < high for each in found)


@pytest.mark.parametrize(("turn", "warns"), [(1e-5, True), (1e-3, False)])
def test_kernels_decided_by_rounding_of_the_maps_warn(turn, warns):
    """The rounding of single precision may make the holonomy of the triangle 1."""
    maps = np.array([[[0.0]], [[1.0]], [[1.0]], [[1.0 + turn]]], np.float32)
    F = CellularSheaf([[0, 0], [1, 2], [2, 3], [3, 1]], np.ones_like(maps), maps)
    assert ["rounding errors determine" in text for text in warnings_of(F)] == [True] * warns


@given(sheaves(spread=False), st.booleans(), st.data())
def test_weighted_values_minimize_energy_plus_penalty(F, shared, data):
    """The result solves (L + W) x = W g if that has a unique solution."""
    assume(F.n_vertices)
    vertices, values = data.draw(boundaries(F))
    count = 1 if shared else len(vertices)
    weights = data.draw(st.lists(st.sampled_from([0.25, 1.0, 7.0]), min_size=count, max_size=count))
    delta, unit = unit_coboundary(F)
    weight = weights[0] * unit**2 if shared else np.array(weights) * unit**2
    x = quietly(F, vertices, values, weight=weight)
    gradient = delta.conj().T @ (delta @ x)
    for v, w, value in zip(vertices, weights * len(vertices), values, strict=False):
        at = reference.vertex_coordinates(F, v)
        gradient[at] += w * (x[at] - value)
    largest = max(size(delta) ** 2, *weights) * max(size(x), *(size(value) for value in values))
    assert x.dtype == F.dtype
    assert_residual(gradient, largest, n=F.dim_c0 + 1, eps=eps_of(F.dtype))


def test_infinite_weights_are_constraints():
    F = gallery.bundle(nx.grid_2d_graph(6, 6), 2, 0.3, seed=8)
    vertices = [3, 20, 31]
    values = np.random.default_rng(21).standard_normal((3, 2, 4)) + 1j
    held = sc.harmonic_extension(F, vertices, values)
    infinite = sc.harmonic_extension(F, vertices, values, weight=np.inf)
    np.testing.assert_array_equal(infinite, held)
    mixed = sc.harmonic_extension(F, vertices, values, weight=[np.inf, 1e-6, np.inf])
    np.testing.assert_array_equal(mixed[6:8], values[0])
    without = sc.harmonic_extension(F, vertices[::2], values[::2])
    assert np.abs(mixed - without).max() < 1e-4
    near = sc.harmonic_extension(F, vertices, values, weight=1e6)
    assert 0 < np.abs(near - held).max() < 1e-4
    assert sc.harmonic_extension(F, [], [], weight=3.0).shape == (72,)


@pytest.mark.parametrize("weight", [1e16, 1e20, 1e100, 1e290])
def test_weights_far_above_the_maps_act_as_constraints(weight):
    F = CellularSheaf.constant(nx.path_graph(5))
    for other, last in ((np.inf, 3.0), (1.0, 2.6)):
        x = sc.harmonic_extension(F, [0, 4], [[1.0], [3.0]], weight=[weight, other])
        np.testing.assert_allclose(x, np.linspace(1, last, 5), rtol=1e-15)


def test_free_dimensions_of_thousands_of_small_components_are_counted():
    """A basis of the sections is computed: no component has many of them."""
    pairs = 4 + np.arange(200).reshape(100, 2).repeat(2, axis=0)
    edges = np.concatenate([[[0, 1], [1, 2], [2, 3]], pairs])
    F = sc.CellularSheaf.constant(edges, n_vertices=2304)
    with pytest.warns(sc.SingularProblemWarning, match="leave 2200 of 2302 dimensions free"):
        x = sc.harmonic_extension(F, [0, 3], [0.0, 3.0])
    assert_residual(x - np.pad([0.0, 1, 2, 3], (0, 2300)), x, n=4)
