"""The nearest section, compared with dense projections."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import gallery
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, size
from tests.support.strategies import cochains, known_sections, sheaves
from tests.unit.solve.test_normal_equations import GRID, clear_rank, exact

# ---------------------------------------------------------------- the nearest section


@given(sheaves(), st.data())
def test_the_nearest_section_is_a_section(F, data):
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
def test_scaling_edges_does_not_change_the_nearest_section(case, seed):
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


def test_sections_of_rounded_maps_count_as_sections():
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
    x = np.ones(600)
    assert size(sc.nearest_section(gallery.cycle(300, 1e-6), x)) < 1e-6 * size(x)
    assert size(sc.nearest_section(gallery.cycle(300, 0.0), x)) > 0.1 * size(x)


def test_sections_decided_by_rounding_warn(monkeypatch):
    """A path with random maps has one section, and more up to rounding: products of maps decay.

    The sections of paths are usually decided exactly, which is disabled here.
    """
    monkeypatch.setattr("sheafcoarsen.sections._global_sections.forest_sections", lambda F: None)
    rng = np.random.default_rng(5)
    F = sc.CellularSheaf.diagonal(nx.path_graph(3001), *rng.standard_normal((2, 3000, 1)))
    with pytest.warns(sc.SingularProblemWarning, match="rounding errors determine") as caught:
        sc.nearest_section(F, np.ones(3001))
    assert caught[0].filename == __file__


# ---------------------------------------------------------------- invalid input


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
