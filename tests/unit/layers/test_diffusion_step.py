import warnings
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, size
from tests.support.strategies import DTYPES, sheaves
from tests.unit.operators.test_normalize import clearly_singular


def identity(y):
    return y


def quietly(*arguments):
    with warnings.catch_warnings(action="ignore", category=sc.SingularDegreeWarning):
        return sc.diffusion_step(*arguments)


@given(
    sheaves(uniform=True),
    st.sampled_from([identity, partial(np.maximum, 0), np.tanh]),
    st.integers(0, 3),
    st.integers(0, 99),
)
def test_a_step_matches_its_definition(F, activation, f, seed):
    clearly_singular(F)
    if F.dtype.kind == "c":
        activation = identity  # other activations need an order or have poles
    rng = np.random.default_rng(seed)
    d = int(F.vertex_dims[0]) if F.n_vertices else 2
    shapes = (F.n_vertices * d, f), (d, d), (f, f)
    x, W1, W2 = (rng.standard_normal(shape).astype(F.dtype) for shape in shapes)
    y = quietly(F, x, W1, W2, activation)
    assert (y.shape, y.dtype) == (x.shape, F.dtype)
    expected = reference.diffusion_step(F, x, W1, W2, activation)
    _, root = reference.normalized(F)
    # the error of D^{-1/2} is eps times its condition number
    roots = [root[v * d : (v + 1) * d, v * d : (v + 1) * d] for v in range(F.n_vertices)]
    pairs = zip(roots, reference.diagonal_blocks(F), strict=True)
    condition = max((size(root_v) ** 2 * size(D) for root_v, D in pairs), default=0)
    factor = 1 + condition * size(W1) * size(W2)
    assert_residual(y - expected, x, factor, n=max(F.dim_c0, f), eps=eps_of(F.dtype))


def test_a_singular_diagonal_block_warns():
    F = CellularSheaf.constant([[0, 1]], n_vertices=3)
    with pytest.warns(sc.SingularDegreeWarning, match="first at vertex 2"):
        y = sc.diffusion_step(F, [[1.0], [0.0], [5.0]], [[1.0]], [[1.0]], identity)
    np.testing.assert_allclose(y, [[0.0], [1.0], [5.0]], rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_have_the_common_scalar_type(dtype):
    F = CellularSheaf.random(nx.path_graph(3), 2, 2, seed=0, dtype=np.float32)
    x, W1, W2 = np.ones((6, 1), np.float32), np.eye(2, dtype=np.float32), np.ones((1, 1), dtype)
    assert sc.diffusion_step(F, x, W1, W2).dtype == np.result_type(np.float32, dtype)
