"""Extension and reduction of cochains, the prolongation, and free sections.

Free sections vanish on kept vertices; extensions by L_ee^+ are orthogonal to them.
"""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.elimination import substitution
from sheafcoarsen.elimination.substitution import free_sections
from tests.support import reference
from tests.support.helpers import assert_residual


def test_prolongation_rows_of_a_chain_depend_only_on_its_two_ends():
    P = sc.eliminate(CellularSheaf.constant(nx.path_graph(50)), keep=[0, 25, 49]).prolongation
    assert (np.diff(P.indptr) <= 2).all()
    assert P.has_canonical_format


def test_single_precision_is_computed_in_double():
    n = 400
    edges, ones = np.array(nx.path_graph(n).edges), np.ones((n - 1, 1, 1), np.float32)
    F = CellularSheaf(edges, ones, ones)
    right = sc.eliminate(F, keep=[0, n - 1]).reduce(np.ones(n, np.float32))
    assert right.dtype == np.float32
    assert np.abs(right - n / 2).max() <= 2 * np.spacing(np.float32(n / 2))


@pytest.mark.parametrize("dim", [1, 2])
def test_one_right_hand_side_gives_the_same_bits_as_several(dim):
    F = CellularSheaf.random(nx.karate_club_graph(), dim, dim, seed=3, dtype=complex)
    K, rng = sc.eliminate(F, keep=[0]), np.random.default_rng(3)
    b = rng.standard_normal((F.dim_c0, 4)).view(complex)
    z = rng.standard_normal((K.sheaf.dim_c0, 2)) * (1 + 1j)
    both = K.extend(z, b)
    assert abs(both - K.extend(z)).max() > 0.1
    for j in range(2):
        assert np.array_equal(K.extend(z[:, j], b[:, j]), both[:, j])
        assert np.array_equal(K.extend(z[:, j]), K.extend(z)[:, j])


def test_prolongation_does_not_overflow_where_the_values_do_not():
    """Maps of the second part alone amplify by 1e320."""
    ratios = np.repeat([1e-10, 1e10], [20, 32])[:, None]
    chain = CellularSheaf.diagonal(nx.path_graph(53), ratios, np.ones((52, 1)))
    P = sc.eliminate(chain, keep=[0]).prolongation
    values = np.append(1.0, np.cumprod(ratios))
    np.testing.assert_allclose(P.toarray().ravel(), values, rtol=1e-12)


def norm2(matrix):
    return np.linalg.norm(matrix, 2) if matrix.size else 0.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("dtype", "scale"), [(float, 1.0), (complex, 1e60), (np.float32, 1e-6), (np.complex64, 1.0)]
)
def test_extensions_match_the_dense_pseudo_inverse(seed, dtype, scale):
    """They do so only if all free sections are known, on trees, chains and a few cycles."""
    rng, unit = np.random.default_rng(seed), dtype(scale)
    dims, heights = rng.integers(0, 4, 40), rng.integers(0, 3, 42)
    graph = nx.gnm_random_graph(40, 42, seed=seed)
    F = CellularSheaf.random(graph, dims, heights, seed=seed, dtype=dtype)
    F = F.with_maps(F.tail_data * unit, F.head_data * unit)
    K = sc.eliminate(F, keep=[1, 7])
    S = reference.schur_complement(F, K.kept.tolist())
    assert not K.is_determined
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((K.sheaf.dim_c0, 2)).astype(dtype)
    b = rng.standard_normal((F.dim_c0, 2)).astype(dtype) * unit * unit
    x = K.extend(z, b)
    wanted = S.inverse @ b[S.eliminated] + S.extension @ z
    # perturbations are amplified by the condition number of L_ee on its range
    what = {"n": F.dim_c0, "eps": np.finfo(dtype).eps}
    coupling = reference.laplacian(F)[np.ix_(S.eliminated, S.kept)]
    bound = norm2(S.inverse) * norm2(coupling) + 1
    size = norm2(S.inverse) * np.linalg.norm(b) + bound * np.linalg.norm(z)
    assert np.array_equal(x[S.kept], z)
    assert_residual(x[S.eliminated] - wanted, bound, size, **what)
    down = b[S.kept] + S.extension.conj().T @ b[S.eliminated]
    size = bound * np.linalg.norm(b) / scale**2
    assert_residual((K.reduce(b) - down) / scale**2, bound, size, **what)
    assert_residual(K.prolongation @ z - K.extend(z), bound, x, **what)


def test_free_sections_that_are_all_zero_or_overflow_are_not_used():
    determined = sc.eliminate(CellularSheaf.constant(nx.path_graph(5)), keep=[0])
    overflowing = sc.eliminate(CellularSheaf.random(nx.path_graph(3000), 2, 2, seed=0))
    for K in (determined, overflowing):
        assert free_sections(K._plain) is None


@pytest.mark.parametrize("seed", range(12))
def test_solutions_on_a_tree_are_orthogonal_to_global_sections(seed):
    """Maps expand and contract by 1e4 to 1e13, so only rounding errors reach the root."""
    F = CellularSheaf.random(nx.random_labeled_tree(60, seed=seed), 2, 2, seed=seed)
    K = sc.eliminate(F)
    L = sc.laplacian(F).toarray()
    b = L @ np.random.default_rng(0).standard_normal(F.dim_c0)
    x = K.extend(np.zeros(0), b)
    assert K.growth > 1e3
    assert_residual(L @ x - b, L, x, n=F.dim_c0)
    kernel = sc.global_sections(F).toarray()
    if seed not in (1, 3, 10, 11):
        assert_residual(kernel.T @ x, kernel, x, n=F.dim_c0)
    assert np.linalg.norm(kernel.T @ x) < K.growth * np.finfo(float).eps * np.linalg.norm(x)


@pytest.mark.parametrize("dtype", [float, complex])
def test_overlapping_sections_are_orthonormalized(dtype):
    """A path with one row per edge has one section more than vertices; all overlap."""
    counts = [3, 6, 6, substitution.TOGETHER, substitution.TOGETHER + 1]
    graph = nx.disjoint_union_all([nx.path_graph(k - 1) for k in counts])
    F = CellularSheaf.random(graph, 2, 1, seed=1, dtype=dtype)
    K = sc.eliminate(F)
    N = free_sections(K._plain).basis.toarray()
    delta = sc.coboundary(F).toarray()
    gram = N.conj().T @ N
    assert len(gram) == sum(counts)
    assert_residual(delta @ N, delta, N, n=F.dim_c0)
    of_path = np.repeat(np.arange(5), [2 * (k - 1) for k in counts])
    last = abs(N[of_path == 4]).sum(axis=0) > 0
    assert last.sum() == substitution.TOGETHER + 1  # too many sections are not orthonormalized
    assert_residual(gram[~last][:, ~last] - np.eye(sum(counts[:4])), n=F.dim_c0)
    assert np.abs(gram - np.eye(len(gram))).max() > 1e-3
    assert_residual(np.diag(gram) - 1, 1.0, n=F.dim_c0)


@pytest.mark.parametrize(("n", "apart"), [(20, True), (50, True), (70, False)])
def test_sections_that_are_parallel_up_to_rounding_are_not_used(n, apart):
    """Two directions expand by 1.9 and by 1 per edge, so sections differ by 1.9^-n.

    At n = 50 sections are used, but too inaccurate to be subtracted from the solution.
    """
    slanted = np.array([[1.0, 1.0], [0.0, 1.0]])
    M = slanted @ np.diag([1.9, 1.0]) @ np.linalg.inv(slanted)
    edges = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)
    F = CellularSheaf(edges, np.tile(np.eye(2), (n, 1, 1)), np.tile(M, (n, 1, 1)))
    K = sc.eliminate(F)
    assert K.steps.vertices[-1] == n  # the sections start at the last vertex
    assert (free_sections(K._plain) is not None) == apart
    L = sc.laplacian(F)
    b = L @ np.random.default_rng(0).standard_normal(F.dim_c0)
    x = K.extend(np.zeros(0), b)
    assert_residual(L @ x - b, L.toarray(), x, n=F.dim_c0)
    kernel = sc.global_sections(F).toarray()
    assert np.linalg.norm(kernel.T @ x) < 1e-9 * np.linalg.norm(x) or n > 20


def test_prolongations_solve_for_more_coordinates_than_32_bits_count():
    """Each of the 4 leaves has a free section, and the right-hand sides are 2^30 columns."""
    F = CellularSheaf.random(nx.star_graph(4), 2, 1, seed=0)
    S = free_sections(sc.eliminate(F, keep=[0])._plain)
    columns = 2**30 - np.array([4, 3, 2, 1])
    B = scipy.sparse.csr_array((np.ones(4), (range(4), columns)), shape=(4, 2**30))
    X = S._solve_sparse(B, np.arange(4, dtype=np.int32))
    assert np.array_equal(X.indices, columns)
    assert_residual(S.gram.diagonal() * X.data - 1, n=1)


def test_many_leaves_with_free_sections_are_extended_by_pseudo_inverses():
    F = CellularSheaf.random(nx.star_graph(3000), 3, 1, seed=0)
    K = sc.eliminate(F, keep=[0])
    P = K.prolongation
    assert free_sections(K._plain).basis.shape[1] == 6000
    delta = sc.coboundary(F)
    assert_residual((delta @ P).toarray(), delta.toarray(), P.toarray(), n=3)
    for v in (1, 2999):  # x_v = M^+ A x_0 for the only map M at v
        rows, M = slice(3 * v, 3 * v + 3), F.head_map(v - 1)
        assert_residual(P[rows].toarray() - np.linalg.pinv(M) @ F.tail_map(v - 1), 1.0, P, n=3)
