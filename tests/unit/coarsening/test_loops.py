"""Loop-cells hold the retained energy, without rows of zero energy."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, residual
from tests.support.strategies import DTYPES, bases, mode_counts, sheaves_with_partitions
from tests.theory.test_theorems import coarsenings

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@given(coarsenings())
def test_loops_hold_half_a_factor_of_the_retained_energy_at_either_end(case):
    C, bases_ = case
    F, P = C.fine, C.partition
    loops = {int(C.sheaf.edges[e, 0]): e for e in range(C.n_crossing_edges, C.sheaf.n_edges)}
    for a, R_a in enumerate(bases_):
        B = np.zeros((0, R_a.shape[1]), C.sheaf.dtype)
        if a in loops:
            tail, head = C.sheaf.tail_map(loops[a]), C.sheaf.head_map(loops[a])
            assert len(tail) > 0
            np.testing.assert_array_equal(tail, -head)  # B / 2 and -B / 2, to the last bit
            B = tail - head
        error = B.conj().T @ B - reference.retained_internal_operator(F, P, bases_, a)
        factors = [*[reference.internal_coboundary(F, P, a)] * 2, R_a, R_a]
        assert_residual(error, *factors, n=max(R_a.shape), eps=eps_of(C.sheaf.dtype))


@given(sheaves_with_partitions(), st.data())
def test_loops_of_internal_modes_are_diagonal_without_rows_of_zero_energy(case, data):
    F, P = case
    M = sc.local_modes(F, P, data.draw(mode_counts(P)))
    C = sc.coarsen(F, P, M)
    e = C.n_crossing_edges
    for a in range(P.n_clusters):
        values, N = M.eigenvalues(a), len(M.basis(a))
        level = 4 * N * eps_of(F.dtype) * float(M.operator_norms[a])
        kept = np.flatnonzero(values.astype(float) > level)
        if kept.size == 0:
            continue
        assert C.sheaf.edges[e].tolist() == [a, a]
        half = np.zeros((kept.size, values.size), F.dtype)
        half[np.arange(kept.size), kept] = np.sqrt(values[kept]) / 2
        np.testing.assert_array_equal(C.sheaf.tail_map(e), half)
        e += 1
    assert e == C.sheaf.n_edges


@given(sheaves_with_partitions(), st.data())
def test_loops_have_no_row_of_zero_energy(case, data):
    F, P = case
    basis = data.draw(bases(F, P))
    C = sc.coarsen(F, P, basis=basis)
    for e in range(C.n_crossing_edges, C.sheaf.n_edges):
        a = int(C.sheaf.edges[e, 0])
        delta_a = reference.internal_coboundary(F, P, a)
        B = C.sheaf.tail_map(e) - C.sheaf.head_map(e)
        assert len(B) <= min(basis[a].shape)
        for row in B:  # the square of each row exceeds the rounding errors of H_a
            square = np.abs(row).astype(float).max() ** 2
            assert residual(row, n=1) > 0
            assert residual(square, delta_a, delta_a, basis[a], basis[a], n=1) > 1e-3


@pytest.mark.parametrize(
    ("n", "scale", "column"), [(2, 1.0, 2.0**20), (128, 1e-100, 1.0), (2, 1e100, 2.0**-20)]
)
def test_zero_energy_is_relative_to_the_trace_at_a_vertex_and_the_columns(n, scale, column):
    """A half-edge gives energy to the constant, which a thousand parallel edges preserve.

    The energy counts as zero up to 4 n eps times the trace at a vertex, which is about 1000.
    """
    m = 1000
    zero = 4 * n * eps_of(np.float64) * m
    for energy, rows in ((0.1 * zero, 0), (10 * zero, 1)):
        ends = np.array([[0, 1]] * (m + 1))
        tail, head = np.full((m + 1, 1, 1), scale), np.full((m + 1, 1, 1), scale)
        tail[m], head[m] = scale * np.sqrt(n * energy), 0.0
        F = CellularSheaf(ends, tail, head, vertex_dims=[1] * n)
        C = sc.coarsen(F, Partition([0] * n), basis=[np.full((n, 1), column / np.sqrt(n))])
        assert C.sheaf.edge_dims.sum() == rows, (energy, rows)


@pytest.mark.parametrize(
    ("dtype", "scale"), list(zip(DTYPES, [1e-12, 1e12, 1.0, 1e-12], strict=True))
)
def test_dependent_columns_give_a_single_loop_row(dtype, scale):
    """All columns are multiples of the vector of maximum energy, so H_a is maximal."""
    rng, n = np.random.default_rng(0), 16
    F = CellularSheaf.constant(nx.complete_bipartite_graph(n, n))
    F = F.with_maps((scale * F.tail_data).astype(dtype), (scale * F.head_data).astype(dtype))
    factors = rng.uniform(0.5, 1.0, 2 * n) * np.exp(1j * rng.uniform(0, np.pi, 2 * n))
    factors = factors if np.dtype(dtype).kind == "c" else factors.real
    block = np.outer(np.repeat([1, -1], n), factors).astype(dtype)
    assert sc.coarsen(F, Partition([0] * 2 * n), basis=[block]).sheaf.edge_dims.tolist() == [1]


def test_loops_are_not_judged_relative_to_crossing_edges():
    """Squares of the maps 1e-70 would underflow relative to the map 1e100 of a crossing edge."""
    tail = np.reshape([1e-70, 1e-70, 1e100, 1e-70], (4, 1, 1))
    F = CellularSheaf(np.array(nx.path_graph(5).edges), tail, 2 * tail)
    C = sc.coarsen(F, Partition([0, 0, 0, 1, 1]), 2, local_operator="principal")
    H, delta = C.internal_operator(0), 1e-70 * np.array([[1, -2, 0], [0, 1, -2]])
    assert np.linalg.matrix_rank(H) == 2
    assert_residual(sc.laplacian(C.sheaf).toarray()[:2, :2] - H, delta, delta, n=3)


@pytest.mark.parametrize("operator", ["internal", "principal", "oversampled", "basis"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_loops_of_maps_in_single_precision_keep_low_modes(dtype, operator):
    """The lowest have 6e-5 of the norm of L_a, less than 4 n eps, but more than its square."""
    F, P = CellularSheaf.constant(nx.path_graph(400)), Partition(np.arange(400) // 200)
    double, single = (
        F.with_maps(F.tail_data.astype(kind), F.head_data.astype(kind))
        for kind in (np.result_type(dtype, np.float64), dtype)
    )
    options = {"rank": 3, "local_operator": operator}
    if operator == "basis":
        M = sc.local_modes(double, P, 3)
        options = {"basis": [M.basis(a) for a in range(2)]}
    exact, C = (sc.coarsen(each, P, **options) for each in (double, single))
    assert C.sheaf.dtype == dtype
    assert C.sheaf.dim_c1 == exact.sheaf.dim_c1
    L, wanted = (sc.laplacian(each.sheaf).toarray() for each in (C, exact))
    values, low = np.linalg.eigvalsh(L.astype(wanted.dtype)), np.linalg.eigvalsh(wanted)
    np.testing.assert_allclose(values[1:3], low[1:3], rtol=1e-4)
