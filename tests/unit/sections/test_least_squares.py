import re
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, gallery
from sheafcoarsen.sections import least_squares
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, size
from tests.support.strategies import DTYPES, cochains, known_sections, sheaves

PATH = CellularSheaf.random(nx.path_graph(4), 2, 2, seed=1)
GRID = nx.convert_node_labels_to_integers(nx.grid_2d_graph(9, 8))


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.SingularProblemWarning)
        return sc.harmonic_extension(*arguments, **options)


@st.composite
def boundaries(draw, F):
    """Some vertices in any order, at least one, with values of the sheaf's scalar type."""
    count = draw(st.integers(1, F.n_vertices))
    vertices = draw(st.permutations(range(F.n_vertices)))[:count]
    x = draw(cochains(F))
    note(f"vertices = {vertices}")
    return vertices, [x[reference.vertex_coordinates(F, v)] for v in vertices]


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


def clear_rank(D, eps):
    """The rank of D and its smallest positive singular value, where no doubt is possible; others are put aside."""
    sigma = np.linalg.svd(D, compute_uv=False)
    largest = sigma.max(initial=0.0)
    assume(not ((sigma > 1e-2 * eps * largest) & (sigma < 1e-2 * largest)).any() or largest == 0)
    rank = int((sigma > 1e-3 * largest).sum()) if largest else 0
    return rank, float(sigma[rank - 1]) if rank else 1.0


# ---------------------------------------------------------------- harmonic extension


@given(sheaves(), st.data())
def test_an_extension_keeps_the_values_and_has_no_gradient_inside(F, data):
    assume(F.n_vertices)
    vertices, values = data.draw(boundaries(F))
    x = quietly(F, vertices, values)
    assert x.dtype == F.dtype
    assert x.shape == (F.dim_c0, *values[0].shape[1:])
    for v, value in zip(vertices, values, strict=True):
        np.testing.assert_array_equal(x[reference.vertex_coordinates(F, v)], value)
    delta, _ = exact(F)
    inside = interior(F, vertices)
    gradient = delta[:, inside].conj().T @ (delta @ x)
    assert_residual(gradient, delta, delta, x, n=F.dim_c0, eps=eps_of(F.dtype))


@given(sheaves(spread=False), st.data())
def test_an_extension_is_the_least_squares_solution_of_least_norm(F, data):
    assume(F.n_vertices)
    vertices, values = data.draw(boundaries(F))
    inside, (delta, _) = interior(F, vertices), exact(F)
    eps = eps_of(F.dtype)
    rank, smallest = clear_rank(delta[:, inside], eps)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = sc.harmonic_extension(F, vertices, values)
    given_part = x.copy()
    given_part[inside] = 0
    D = delta[:, inside]
    expected = (
        -np.linalg.pinv(D, rcond=1e-3) @ (delta @ given_part)
        if D.size
        else np.zeros_like(x[inside])
    )
    condition = (size(delta) / smallest) ** 2
    assert_residual(x[inside] - expected, given_part, condition, n=F.dim_c0, eps=eps)
    free = len(inside) - rank
    assert len(caught) == (free > 0)
    if free:
        assert caught[0].category is sc.SingularProblemWarning
        assert f"leave {free} of {len(inside)} dimensions free" in str(caught[0].message)
        assert caught[0].filename == __file__
        projector = np.eye(len(inside)) - np.linalg.pinv(D, rcond=1e-3) @ D
        touched = inside[np.flatnonzero(np.diag(projector).real > 1e-4)]
        first = int(re.search(r"first at vertex (\d+):", str(caught[0].message))[1])
        assert first == min(
            v for v in range(F.n_vertices) if set(reference.vertex_coordinates(F, v)) & set(touched)
        )


@given(sheaves(dtypes=(np.float64, np.complex128), spread=False), st.data())
def test_any_other_extension_has_more_energy(F, data):
    assume(F.n_vertices)
    vertices, values = data.draw(boundaries(F))
    inside, (delta, _) = interior(F, vertices), exact(F)
    assume(len(inside))
    clear_rank(delta[:, inside], eps_of(F.dtype))
    x = quietly(F, vertices, values)
    rng = np.random.default_rng(5)
    d = np.zeros_like(x)
    d[inside] = rng.standard_normal((len(inside), *x.shape[1:]))
    energy, raised = (np.linalg.norm(delta @ y) ** 2 for y in (x, x + d))
    # exactly norm(delta d)^2 more: no term of first order
    scale = size(delta) ** 2 * (size(x) + size(d)) ** 2
    assert_residual(raised - energy - np.linalg.norm(delta @ d) ** 2, scale, n=F.dim_c0)


def test_a_path_is_interpolated():
    F = CellularSheaf.constant(nx.path_graph(101))
    x = sc.harmonic_extension(F, [100, 0], [[1.0], [0.0]])
    assert_residual(x - np.linspace(0, 1, 101), x, n=101)
    resistances = np.array([1.0, 4.0, 2.0, 1.0])
    F = CellularSheaf.constant([[0, 1], [2, 1], [2, 3], [3, 4]], weight=1 / resistances)
    x = sc.harmonic_extension(F, [0, 4], [[0.0], [8.0]])
    np.testing.assert_allclose(x, [0, 1, 5, 7, 8], rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("size_of_values", [1e-150, 1.0, 1e30])
def test_scales_do_not_matter(scale, size_of_values):
    G = nx.random_regular_graph(3, 30, seed=1)
    F = CellularSheaf.random(G, 2, 2, seed=2)
    x = sc.harmonic_extension(F, [3, 7], np.ones((2, 2, 1)))
    scaled = F.with_maps(F.tail_data * scale, F.head_data * scale)
    y = sc.harmonic_extension(scaled, [3, 7], np.full((2, 2, 1), size_of_values)) / size_of_values
    np.testing.assert_allclose(y, x, rtol=1e-9)


def test_sections_are_extended_to_sections():
    F = gallery.bundle(GRID, 3, seed=3)
    sections = reference.global_sections(F)
    x, residual = sc.harmonic_extension(F, [40], [sections[120:123]], return_residual=True)
    assert_residual(x - sections, sections, 100, n=F.dim_c0)
    assert residual.shape == (3,)
    assert (residual < 1e-14).all()


def test_the_residual_is_that_of_the_normal_equations():
    x, residual = sc.harmonic_extension(PATH, [0], [[1.0, 2.0]], return_residual=True)
    assert 0 <= residual < 1e-14
    assert isinstance(residual, float)
    np.testing.assert_array_equal(x, sc.harmonic_extension(PATH, [0], [[1.0, 2.0]]))
    p, residual = sc.nearest_section(PATH, x, return_residual=True)
    assert isinstance(residual, float)
    assert 0 < residual < 1e-14
    np.testing.assert_array_equal(p, sc.nearest_section(PATH, x))


def test_values_come_in_many_forms():
    F = CellularSheaf.random(nx.path_graph(3), 2, 2, seed=1)
    x = sc.harmonic_extension(F, [0, 2], [[1, 2], [3, 4]])
    for values in (
        np.array([[1, 2], [3, 4]]),
        ((1, 2), [3.0, 4.0]),
        [np.array([1, 2], np.int8), np.array([3.0, 4.0])],
    ):
        np.testing.assert_array_equal(sc.harmonic_extension(F, np.array([0, 2]), values), x)
    y = sc.harmonic_extension(F, [0, 2], np.array([[1, 2], [3, 4]])[:, :, None])
    np.testing.assert_array_equal(y, x[:, None])
    for values in (np.ones((2, 2, 0)), [np.ones((2, 0))] * 2):
        assert sc.harmonic_extension(F, [0, 2], values).shape == (6, 0)
    ragged = CellularSheaf.random(nx.path_graph(3), [2, 0, 1], 2, seed=1)
    x = sc.harmonic_extension(ragged, [1, 2, 0], [np.zeros(0), [3.0], [1.0, 2.0]])
    np.testing.assert_array_equal(x, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalar_types_are_the_common_ones(dtype):
    F = CellularSheaf.random(nx.path_graph(3), 2, 2, seed=0, dtype=np.float32)
    for values in ([np.ones(2, dtype)], np.ones((1, 2), dtype)):
        assert sc.harmonic_extension(F, [1], values).dtype == np.result_type(np.float32, dtype)
    assert sc.nearest_section(F, np.ones(6, dtype)).dtype == np.result_type(np.float32, dtype)
    empty = CellularSheaf.random(nx.path_graph(2), [0, 2], 2, seed=0, dtype=np.float32)
    assert sc.harmonic_extension(empty, [0, 1], [[], np.ones(2, np.float32)]).dtype == np.float32


def test_a_component_without_values_is_told_and_stays_zero():
    F = CellularSheaf.constant(nx.disjoint_union(nx.path_graph(3), nx.path_graph(3)))
    message = (
        r"leave 1 of 5 dimensions free, first at vertex 3: the extension of least norm was taken"
    )
    with pytest.warns(sc.SingularProblemWarning, match=message):
        x = sc.harmonic_extension(F, [0], [[2.0]])
    np.testing.assert_allclose(x, [2, 2, 2, 0, 0, 0], rtol=1e-14, atol=0)


def test_a_direction_that_no_map_sees_is_told_and_stays_zero():
    F = CellularSheaf([[0, 1]], [[[1.0, 0.0]]], [[[0.0, 3.0]]])
    with pytest.warns(
        sc.SingularProblemWarning, match=r"leave 1 of 2 dimensions free, first at vertex 1"
    ):
        x = sc.harmonic_extension(F, [0], [[6.0, 5.0]])
    np.testing.assert_allclose(x, [6.0, 5.0, 0.0, 2.0], rtol=1e-14, atol=0)


def test_without_given_values():
    loop = CellularSheaf([[0, 0]], [np.eye(2)], [-np.eye(2)])
    np.testing.assert_array_equal(sc.harmonic_extension(loop, [], []), np.zeros(2))
    with pytest.raises(
        ValueError,
        match=r"`vertices` is empty and L is singular, first at vertex 0: .*nearest_section",
    ):
        sc.harmonic_extension(CellularSheaf.constant(nx.path_graph(3)), [], [])
    nothing = CellularSheaf.from_flat([], [], [], [], [])
    assert sc.harmonic_extension(nothing, [], []).shape == (0,)
    isolated = CellularSheaf.from_flat([], [], [], [1, 2], [])
    with pytest.warns(
        sc.SingularProblemWarning, match="leave 2 of 2 dimensions free, first at vertex 1"
    ):
        np.testing.assert_array_equal(
            sc.harmonic_extension(isolated, [0], [[3.0]]), [3.0, 0.0, 0.0]
        )


# ---------------------------------------------------------------- the nearest section


@given(sheaves(), st.data())
def test_the_nearest_section_is_a_section_and_projecting_again_changes_nothing(F, data):
    x = data.draw(cochains(F))
    p = sc.nearest_section(F, x)
    assert p.shape == x.shape
    assert p.dtype == F.dtype
    delta, _ = exact(F)
    assert_residual(delta @ p, delta, x, n=F.dim_c0, eps=eps_of(F.dtype))


@given(sheaves(spread=False), st.data())
def test_the_nearest_section_is_the_orthogonal_projection(F, data):
    x = data.draw(cochains(F))
    delta, _ = exact(F)
    rank, smallest = clear_rank(delta, eps_of(F.dtype))
    p = sc.nearest_section(F, x)
    sections = np.linalg.svd(delta)[2][rank:].conj().T if delta.size else np.eye(F.dim_c0)
    expected = sections @ (sections.conj().T @ x)
    condition = 1 + size(delta) / smallest
    assert_residual(p - expected, x, condition, n=F.dim_c0, eps=eps_of(F.dtype))
    assert_residual(sc.nearest_section(F, p) - p, x, condition, n=F.dim_c0, eps=eps_of(F.dtype))
    assert_residual(sections.conj().T @ (x - p), x, n=F.dim_c0, eps=eps_of(F.dtype))


@given(known_sections(), st.integers(0, 99))
def test_known_sections_are_found(case, seed):
    F, sections = case
    x = np.random.default_rng(seed).standard_normal((F.dim_c0, 2))
    p = sc.nearest_section(F, x)
    assert_residual(p - sections @ (sections.conj().T @ x), x, 100, n=F.dim_c0)


@given(known_sections(), st.integers(0, 99))
def test_edges_of_very_different_size_have_the_same_sections(case, seed):
    F, sections = case
    rng = np.random.default_rng(seed)
    factors = np.repeat(
        10.0 ** rng.integers(-6, 7, F.n_edges),
        F.edge_dims[0] * F.vertex_dims[0] if F.n_edges else 0,
    )
    scaled = F.with_maps(F.tail_data * factors, F.head_data * factors)
    x = rng.standard_normal(F.dim_c0)
    p = sc.nearest_section(scaled, x)
    assert_residual(p - sections @ (sections.conj().T @ x), x, 100, n=F.dim_c0)


def test_sections_of_single_precision_are_sections():
    F = gallery.bundle(GRID, 3, seed=3)
    sections = reference.global_sections(F)
    single = F.with_maps(F.tail_data.astype(np.float32), F.head_data.astype(np.float32))
    x = np.random.default_rng(0).standard_normal((F.dim_c0, 2)).astype(np.float32)
    p = sc.nearest_section(single, x)
    assert_residual(p - sections @ (sections.T @ x), x, 1, n=100, eps=eps_of(np.float32))
    with pytest.warns(sc.SingularProblemWarning, match="leave 3 of 216 dimensions free"):
        sc.harmonic_extension(
            sc.disjoint_union([single, single])[0], np.arange(72, 144), np.ones((72, 3), np.float32)
        )


def test_a_small_holonomy_leaves_no_section():
    x = np.ones(2000)
    assert size(sc.nearest_section(gallery.cycle(1000, 1e-6), x)) < 1e-6 * size(x)
    assert size(sc.nearest_section(gallery.cycle(1000, 0.0), x)) > 0.1 * size(x)


# ---------------------------------------------------------------- large problems


def connection(n_rows, n_columns):
    G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(n_rows, n_columns))
    return gallery.bundle(G, 2, noise=0.1, seed=1)


@pytest.mark.parametrize("direct", [True, False])
def test_both_methods_meet_their_residuals(monkeypatch, direct):
    F = gallery.bundle(GRID, 2, seed=1)
    F = sc.disjoint_union([F, F])[0]
    monkeypatch.setattr("sheafcoarsen.sections.least_squares._fills_little", lambda L: direct)
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


def test_twenty_thousand_vertices():
    F = connection(100, 200)
    vertices = np.array([3, 19_000, 777])
    x, residual = sc.harmonic_extension(F, vertices, np.eye(3, 2), return_residual=True)
    assert size(x) > 5
    delta = sc.coboundary(F)
    inside = interior(F, vertices)
    assert_residual((delta.T @ (delta @ x))[inside], 8.0, x, n=1)
    assert residual < 1e-16
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
        assert least_squares._fills_little(sc.laplacian(F)) == little
    x = sc.harmonic_extension(random, [0, 1], [[0.0], [1.0]])
    delta = sc.coboundary(random)
    assert_residual((delta.T @ (delta @ x))[2:], 8.0, x, n=1)
    assert 0.3 < x[2:].min() < x[2:].max() < 0.7
    assert_residual(sc.nearest_section(random, x) - x.mean(), x, n=10)


def test_an_iteration_that_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.least_squares._fills_little", lambda L: False)
    monkeypatch.setattr("sheafcoarsen.sections.least_squares.MOST_STEPS", 5)
    monkeypatch.setattr("sheafcoarsen.sections.least_squares.DIRECT_AT_LAST", 199)
    F = CellularSheaf.constant(nx.path_graph(200))
    with pytest.raises(
        np.linalg.LinAlgError, match="the iteration stopped at .* times the residual allowed"
    ):
        sc.nearest_section(F, np.random.default_rng(0).standard_normal(200))


def test_where_iterating_does_not_get_there_factors_do(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.sections.least_squares._fills_little", lambda L: False)
    monkeypatch.setattr("sheafcoarsen.sections.least_squares.MOST_STEPS", 5)
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


# ---------------------------------------------------------------- what is refused

ONES = [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            ([0, 0], ONES),
            ValueError,
            "`vertices` must not repeat, got vertex 0 at index 0 and again at 1",
        ),
        (([0, 4], ONES), ValueError, "`vertices` must be numbers from 0 to 3, got 4 at index 1"),
        (([-1, 2], ONES), ValueError, "`vertices` must be numbers from 0 to 3, got -1 at index 0"),
        (([0.5, 2], ONES), ValueError, "`vertices` must hold whole numbers, got 0.5 at index 0"),
        (([[0, 1]], ONES), ValueError, "`vertices` must be 1-dimensional, got shape (1, 2)"),
        ((0, [[1.0, 1.0]]), ValueError, "`vertices` must be 1-dimensional, got shape ()"),
        (([True, False], ONES), TypeError, "`vertices` must hold integers, got dtype bool"),
        (
            ([0, 1, 2], ONES),
            ValueError,
            "`values` must hold one array for each of the 3 vertices, got 2 of them",
        ),
        (
            ([0, 1], [[1.0, 1.0], [1.0]]),
            ValueError,
            "`values[1]` must have shape (2,) or (2, h), the dimension of vertex 1",
        ),
        (
            ([0, 1], np.ones((2, 3))),
            ValueError,
            "`values[0]` must have shape (2,) or (2, h), the dimension of vertex 0",
        ),
        (([0, 1], [1.0, 2.0]), ValueError, "`values[0]` must have shape (2,) or (2, h)"),
        (([0, 1], np.ones((2, 2, 1, 1))), ValueError, "`values[0]` must have shape (2,) or (2, h)"),
        (
            ([0, 1], [np.ones(2), np.ones((2, 1))]),
            ValueError,
            "`values` must all have one number of columns, got shape (2,) at index 0 and (2, 1) at 1",
        ),
        (
            ([0, 1], [[1.0, 1.0], [1.0, np.nan]]),
            ValueError,
            "`values[1]` must be finite, got nan for vertex 1",
        ),
        (
            ([2, 1], np.array([[1.0, np.inf], [1, 1]])),
            ValueError,
            "`values[0]` must be finite, got inf for vertex 2",
        ),
        (([0], [["a", "b"]]), TypeError, "`values[0]` must hold float32, float64"),
        (([0], [[True, False]]), TypeError, "`values[0]` must hold float32, float64"),
        (([0], [[None, 1.0]]), TypeError, "`values[0]` must hold float32, float64"),
        (
            ([0], [[[1.0], [1.0, 2.0]]]),
            ValueError,
            "`values` must hold rectangular arrays of numbers",
        ),
        (([0], np.ones((1, 2), np.float16)), TypeError, "`values` must hold float32, float64"),
        (
            ([0], 1.0),
            TypeError,
            "`values` must be a sequence of arrays, one for each vertex, got float",
        ),
        (
            ([0], "ab"),
            TypeError,
            "`values` must be a sequence of arrays, one for each vertex, got str",
        ),
        (([0], [[1e200, 1.0]]), ValueError, "`values` has entries up to 1e+200"),
        (([], []), ValueError, "`vertices` is empty and L is singular, first at vertex 0"),
    ],
)
def test_values_that_do_not_fit_are_refused(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        sc.harmonic_extension(PATH, *arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (PATH, np.ones(7)),
            ValueError,
            "`x` must have shape (dim_c0,) or (dim_c0, h) with dim_c0 = 8, got shape (7,)",
        ),
        ((PATH, [np.nan] * 8), ValueError, "`x` must be finite, got nan in row 0"),
        ((PATH, ["a"] * 8), TypeError, "`x` must hold float32, float64"),
        ((nx.path_graph(4), np.ones(8)), TypeError, "`sheaf` must be a CellularSheaf, got Graph"),
    ],
)
def test_cochains_that_do_not_fit_are_refused(arguments, error, message):
    with pytest.raises(error, match=re.escape(message)):
        sc.nearest_section(*arguments)
