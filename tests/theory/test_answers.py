"""Eigenpairs, solutions and fits on random sheaves against dense linear algebra."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen.solve import multigrid
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, size, subspace_difference
from tests.support.strategies import graphs, sheaves

SCALES = (1.0, 1e-100, 1e100)
DOUBLE = (np.float64, np.complex128)


@pytest.fixture(autouse=True, scope="module")
def _several_levels():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multigrid, "COARSEST", 12)
        yield


def answered(**options):
    """Draw sheaves on connected or disconnected graphs of 8 to 14 vertices."""
    options = {"spread": False, "dims": (0, 4)} | options
    return sheaves(graphs(min_vertices=8, max_vertices=14, min_edges=3, max_edges=24), **options)


def dense(F, mass=None):
    """Return L or M^-1/2 L M^-1/2 in units of the squared largest entry, and that entry."""
    delta = reference.coboundary(F).astype(np.result_type(F.dtype, np.float64))
    unit = float(np.abs(delta).max(initial=0.0)) or 1.0
    delta = delta / unit
    if mass is not None:
        delta = delta / np.sqrt(np.repeat(mass, F.vertex_dims))
    return delta.conj().T @ delta, unit


def quietly(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.SingularProblemWarning)
        return function(*args, **options)


@settings(max_examples=60)
@given(answered(scales=SCALES, dtypes=DOUBLE), st.data())
def test_no_eigenpair_is_missed_for_any_k(F, data):
    assume(F.dim_c0)
    L, unit = dense(F)
    values, vectors = np.linalg.eigh(L)
    top = values[-1] or 1.0
    cuts = np.flatnonzero(np.diff(values) <= 1e-9 * top) + 1
    anywhere = st.integers(1, F.dim_c0)
    k = data.draw(st.sampled_from(cuts.tolist()) | anywhere if len(cuts) else anywhere, label="k")
    method = data.draw(st.sampled_from(["direct", "multilevel"]), label="method")
    start = None
    if data.draw(st.booleans(), label="a start that lacks a vector"):
        start = np.delete(vectors[:, : k + 5], data.draw(st.integers(0, k - 1)), axis=1)
        start = start if start.shape[1] else None
    E = quietly(sc.eigenmodes, F, k, method=method, start=start)
    assert np.abs(E.values / unit / unit - values[:k]).max() <= 1e-7 * top
    assert size(E.vectors.conj().T @ E.vectors - np.eye(k)) <= 1e-10
    assert E.n_zero == min(k, quietly(sc.global_sections, F).h0)
    gap = (values[k] - values[k - 1]) / top if k < len(values) else 1.0
    if gap > 1e-3:
        assert subspace_difference(E.vectors, vectors[:, :k]) <= 1e-6 / gap


@given(answered(scales=(1.0,), dtypes=DOUBLE), st.integers(0, 99))
def test_eigenmodes_for_any_vertex_masses_match_a_dense_solver(F, seed):
    assume(F.dim_c0)
    mass = np.random.default_rng(seed).uniform(1e-3, 10.0, F.n_vertices)
    L, unit = dense(F, mass)
    values = np.linalg.eigvalsh(L)
    k = min(3, F.dim_c0)
    E = quietly(sc.eigenmodes, F, k, mass=mass, method="multilevel")
    assert np.abs(E.values / unit**2 - values[:k]).max() <= 1e-7 * (values[-1] or 1)
    M = np.repeat(mass, F.vertex_dims)[:, None]
    assert size(E.vectors.conj().T @ (M * E.vectors) - np.eye(k)) <= 1e-9
    residuals = np.linalg.norm(
        reference.laplacian(F) @ E.vectors - M * E.vectors * E.values, axis=0
    )
    norm = float(np.abs(reference.laplacian(F)).sum(axis=1).max(initial=0.0))
    assert (E.residuals <= 1e-8).all()
    error = E.residuals * norm - residuals
    assert_residual(error, reference.laplacian(F), E.vectors, n=F.dim_c0, eps=eps_of(F))


@settings(max_examples=60)
@given(answered(), st.sampled_from(["direct", "multigrid", "jacobi"]), st.data())
def test_solutions_satisfy_their_equations_and_are_linear(F, method, data):
    assume(F.dim_c0)
    F = F.with_maps(
        *(maps.astype(np.result_type(maps, np.float64)) for maps in (F.tail_data, F.head_data))
    )
    L, unit = dense(F)
    seed = data.draw(st.integers(0, 99), label="seed")
    rng = np.random.default_rng(seed)
    shift = data.draw(st.sampled_from([0.0, 0.1]), label="shift")
    A = L + shift * np.eye(len(L))
    values = np.linalg.eigvalsh(A)
    positive = values[values > 1e-10 * (values[-1] or 1)]
    assume(not len(positive) or positive[0] > 1e-4 * positive[-1])
    b = A @ rng.standard_normal((F.dim_c0, 2))
    solve = quietly(sc.Solver, F, method=method, shift=shift * unit * unit)
    x = solve(b, tol=1e-11) * unit * unit
    assert size(A @ x - b) <= 1e-10 * size(b)
    both = solve(b @ [1.0, -2.0], tol=1e-11) * unit * unit
    assert size(both - x @ [1.0, -2.0]) <= 1e-5 * max(size(x), 1e-300)
    wanted = np.linalg.pinv(A, hermitian=True, rcond=1e-10) @ b  # the solution of minimum norm
    assert size(x - wanted) <= 1e-5 * max(size(wanted), 1e-300)


@given(answered(scales=SCALES, dtypes=DOUBLE), st.integers(0, 99))
def test_least_squares_fits_match_a_dense_solver(F, seed):
    assume(F.dim_c0 and F.dim_c1)
    delta = reference.coboundary(F)
    unit = float(np.abs(delta).max(initial=0.0)) or 1.0
    delta = delta / unit
    sigma = np.linalg.svd(delta, compute_uv=False)
    positive = sigma[sigma > 1e-9 * (sigma[0] or 1)]
    assume(not len(positive) or positive[-1] > 1e-2 * positive[0])
    b = np.random.default_rng(seed).standard_normal(F.dim_c1)
    R = quietly(sc.least_squares, F, b, tol=1e-11)
    wanted = np.linalg.pinv(delta, rcond=1e-9) @ b
    assert size(R.x * unit - wanted) <= 1e-5 * max(size(wanted), 1e-300)
    edges = np.add.reduceat(np.append(np.abs(delta @ wanted - b) ** 2, 0), F.edge_offsets[:-1])
    edges[F.edge_dims == 0] = 0
    assert np.abs(R.edge_residuals - edges).max() <= 1e-5 * size(b) ** 2


def test_fully_prescribed_values_are_returned():
    F = sc.CellularSheaf.constant([[0, 1], [1, 2]])
    R = sc.least_squares(F, [1.0, 2.0], vertices=[0, 1, 2], values=[[0.0], [0.0], [5.0]])
    assert R.x.tolist() == [0, 0, 5]
    assert R.edge_residuals.tolist() == [1, 49]
    x = sc.harmonic_extension(F, [0, 1, 2], [[1.0], [2.0], [5.0]])
    assert x.tolist() == [1, 2, 5]
