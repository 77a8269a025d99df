"""The normalized sheaf compared with its definition, for all options and scales."""

import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, residual, singular_values
from tests.support.strategies import DTYPES, sheaves


def clearly_singular(F):
    """Return whether each D_v is singular; discard sheaves in which rounding decides."""
    found = []
    delta = reference.coboundary(F).astype(np.result_type(F.dtype, np.float64))
    for v, d in enumerate(F.vertex_dims):
        values = np.zeros(d)
        sigma = singular_values(delta[:, reference.vertex_coordinates(F, v)])
        values[: len(sigma)] = sigma
        level = 4 * d * eps_of(F.dtype) * values.max(initial=0)
        assume(not ((values > level / 4) & (values < 100 * level)).any())
        found.append(bool((values <= level).any()))
    return found


@given(sheaves())
def test_singular_blocks_warn_exactly_with_the_pseudo_inverse(F):
    singular = np.flatnonzero(clearly_singular(F))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sc.normalize(F, "regularize", eps=1e-2)
        sc.normalize(F, "augment")
        if singular.size == 0:
            sc.normalize(F)
            return
    text = (
        f"singular at {singular.size} of {F.n_vertices} vertices, first at vertex "
        f"{singular[0]}: the pseudo-inverse"
    )
    with pytest.warns(sc.SingularDegreeWarning, match=text):
        sc.normalize(F, singular="pinv")


@pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("t", [1.0, 1e-4, 1e-6, 1e-7, 3e-8, 1e-10])
def test_maps_of_very_different_sizes_are_normalized_accurately(t, dtype):
    """D_v contains the squared ratio, so it would lose directions below sqrt(eps)."""
    rng = np.random.default_rng(7)
    basis = rng.standard_normal((2, 3, 3))
    basis = basis[0] + 1j * basis[1] if dtype is complex else basis[0]
    rows = np.linalg.qr(basis)[0] * np.array([[1.0], [t], [np.sqrt(t)]])
    F = CellularSheaf(
        [[0, 1], [2, 0], [0, 3]], [rows[:1], [[1.0]], rows[2:]], [[[1.0]], rows[1:2], [[1.0]]]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no block is singular
        N = sc.normalize(F)
    maps = np.vstack([N.tail_map(0), N.head_map(1), N.tail_map(2)])
    assert_residual(maps.conj().T @ maps - np.eye(3), 1 / t, n=3)
    assert_residual(maps @ maps.conj().T - np.eye(3), 1 / t, n=3)
    assert sc.verify(sc.coarsen(F, sc.Partition([0, 0, 1, 1]), 2)).passed


@pytest.mark.parametrize("extra", [1.0, 1e-140])
def test_hub_with_many_edges_is_normalized(extra):
    """The hub has more rows than are stacked at a time, with one and with several columns."""
    rng = np.random.default_rng(3)
    n = 1000
    edges = np.column_stack([np.zeros(n, int), np.arange(1, n + 1)])
    maps = rng.standard_normal((n, 2, 3)) * extra
    N = sc.normalize(CellularSheaf(edges, maps, np.ones((n, 2, 1)) * extra))
    stack = N.tail_data.reshape(-1, 3)
    assert_residual(stack.T @ stack - np.eye(3), 10, n=10)


@pytest.mark.parametrize("other", [0.0, 1.0])  # at 0 the loop alone says what rounding is
def test_loops_that_cancel_up_to_rounding_add_no_rank(other):
    head = np.diag([1 / 3, 1.0])
    tail = head + np.diag([2.0**-54, other])
    with pytest.warns(sc.SingularDegreeWarning):
        N = sc.normalize(CellularSheaf([[0, 0]], [tail], [head]))
    assert_residual((N.tail_map(0) - N.head_map(0)) - np.diag([0.0, other]), n=2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e5, 1e14])
@pytest.mark.parametrize("singular", ["augment", "regularize"])
def test_shift_below_rounding_does_not_amplify_errors(dtype, scale, singular):
    """Every block is singular, and eigenvalues of a normalized Laplacian are at most 2."""
    F = CellularSheaf.random(nx.cycle_graph(12), 3, 1, seed=4, dtype=dtype)
    F = F.with_maps(*(data * dtype(scale) for data in (F.tail_data, F.head_data)))
    N = sc.normalize(F, singular, eps=1e-40)
    values = np.linalg.eigvalsh(sc.laplacian(N).toarray())
    magnified = scale if singular == "augment" and scale == 1e5 else 1.0  # D + I is not D there
    assert values[-1] <= 2 + 30 * 36 * eps_of(dtype) * magnified
    if scale >= 1.0 or singular == "regularize":
        assert values[-1] > 0.1


def test_eps_defaults_to_1e_8_and_affects_only_regularize():
    F = CellularSheaf.random(nx.cycle_graph(list("dbca")), 2, 3, seed=9)
    default, given_eps = sc.normalize(F, "regularize"), sc.normalize(F, "regularize", eps=1e-8)
    np.testing.assert_array_equal(default.tail_data, given_eps.tail_data)
    assert residual(default.tail_data - sc.normalize(F).tail_data, default.tail_data, n=2) > 1e3
    for singular in ("pinv", "augment"):
        one, other = sc.normalize(F, singular, eps=1e-8), sc.normalize(F, singular, eps=0.5)
        np.testing.assert_array_equal(one.tail_data, other.tail_data)
        assert one.vertex_labels == ("d", "b", "c", "a")


@pytest.mark.parametrize("dtype", DTYPES)
def test_block_that_is_singular_up_to_rounding_is_singular(dtype):
    """The rows of two edges are multiples of each other, up to rounding errors."""
    F = CellularSheaf.random(np.arange(80).reshape(40, 2), 3, 1, seed=3, dtype=dtype)
    edges = np.concatenate([F.edges, F.edges])
    maps = [np.concatenate([d, dtype(0.3) * d]) for d in (F.tail_data, F.head_data)]
    F = CellularSheaf.from_flat(edges, *maps, 3, 1)
    with pytest.warns(sc.SingularDegreeWarning, match="singular at 80 of 80 vertices"):
        N = sc.normalize(F)
    both = N.head_data.reshape(2, 40, 3)
    assert_residual((abs(both) ** 2).sum(axis=(0, 2)) - 1, n=3, eps=eps_of(dtype))


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SingularDegreeWarning")
def test_ranges_of_vertices_do_not_change_the_factors(monkeypatch):
    """A wide stalk and a tall edge elsewhere do not change how rows of a vertex are grouped."""
    edges = [*nx.star_graph(40).edges, (1, 2), (3, 4)]
    dims, edge_dims = np.full(41, 3), np.full(42, 2)
    dims[2], edge_dims[41] = 20, 90
    F = CellularSheaf.random(np.array(edges), dims, edge_dims, seed=0)
    wanted = sc.normalize(F).tail_data
    monkeypatch.setattr("sheafcoarsen.operators._normalize.SERIAL_BELOW", 0)
    monkeypatch.setattr("sheafcoarsen._support.threads.thread_count", lambda: 4)
    np.testing.assert_array_equal(sc.normalize(F).tail_data, wanted)
