"""Comparison with networkx, Kronecker products, closed forms and hand computation.

Eigenpairs, solutions and fits on random sheaves are compared with dense linear algebra.
"""

import warnings
from math import pi, sqrt

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen.solve import multigrid
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, size, subspace_difference
from tests.support.strategies import DTYPES, graphs, multigraphs, sheaves

pytestmark = pytest.mark.filterwarnings(
    "ignore::sheafcoarsen.TiedModesWarning", "ignore::sheafcoarsen.SingularDegreeWarning"
)


def dense(A):
    return A.toarray().astype(np.result_type(A.dtype, np.float64))


def spectrum(A):
    return np.linalg.eigvalsh(dense(A))


@given(multigraphs(min_vertices=1, min_edges=2), st.integers(0, 3), st.booleans())
def test_laplacian_of_the_constant_sheaf_is_that_of_networkx(G, d, weighted):
    """Use weighted multigraphs with loops and parallel edges, in the node order of the graph."""
    what = {"nodelist": list(G.nodes), "weight": "weight" if weighted else None}
    exact = nx.laplacian_matrix(G, **what).toarray().astype(float)
    F = sc.CellularSheaf.constant(G, d, weight=what["weight"])
    adjacency = scipy.sparse.csr_array(nx.adjacency_matrix(G, **what).astype(float))
    for each in (F, sc.CellularSheaf.constant(adjacency, d)):
        assert_residual(sc.laplacian(each) - np.kron(exact, np.eye(d)), exact, n=len(exact) * d)


@given(multigraphs(min_vertices=1, min_edges=2), st.integers(1, 3))
def test_laplacian_of_the_normalized_sheaf_is_that_of_networkx(G, d):
    """Graphs have no loops, because networkx counts loops in the degree."""
    G.remove_edges_from(list(nx.selfloop_edges(G, keys=True)))
    exact = nx.normalized_laplacian_matrix(G, nodelist=list(G.nodes)).toarray()
    found = sc.laplacian(sc.normalize(sc.CellularSheaf.constant(G, d)))
    assert_residual(found - np.kron(exact, np.eye(d)), exact, n=len(exact) * d)


@given(multigraphs(min_vertices=2, min_edges=4), st.integers(1, 4), st.integers(0, 999))
def test_an_assignment_as_basis_gives_the_scalar_galerkin_operator(G, K, seed):
    """S^T L S (``eq:SLS``) is the Laplacian of the graph of clusters without loops."""
    labels = np.random.default_rng(seed).permutation(np.arange(len(G)) % K)
    P = sc.Partition(np.unique(labels, return_inverse=True)[1])
    C = sc.coarsen(sc.CellularSheaf.constant(G), P, basis=[np.ones((n, 1)) for n in P.sizes])
    L = nx.laplacian_matrix(G, nodelist=list(G.nodes)).toarray().astype(float)
    S = P.assignment_matrix().toarray()
    exact = S.T @ L @ S
    for found in (C.galerkin(), sc.laplacian(C.sheaf)):
        assert_residual(dense(found) - exact, S, S, L, n=len(G))


def kronecker_laplacian(n, edges, weights, transports):
    """Return degrees (x) I minus w E_uv (x) U and its conjugate transpose for every edge.

    A loop counts twice in the degree.
    """
    d = transports.shape[1]
    L = np.zeros((n * d, n * d), np.result_type(transports.dtype, float))
    for (u, v), w, U in zip(edges.tolist(), weights, transports.astype(L.dtype), strict=True):
        E = np.outer(np.eye(n)[u], np.eye(n)[v])
        L += w * np.kron(np.diag(np.eye(n)[u] + np.eye(n)[v]), np.eye(d))
        L -= w * (np.kron(E, U) + np.kron(E.T, U.conj().T))
    return L


@st.composite
def connections(draw):
    """Draw (n, edges, weights, transports).

    Transports are Haar random orthogonal or unitary matrices, not their own inverse for d > 1.
    """
    n, edges = draw(graphs(min_vertices=2, min_edges=3))
    d, dtype = draw(st.integers(1, 4)), np.dtype(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.standard_normal((len(edges), d, 2 * d)).view(complex)
    transports = np.linalg.qr(X if dtype.kind == "c" else X.real)[0]
    return n, edges, rng.choice([0.25, 1.0, 3.0], size=len(edges)), transports.astype(dtype)


def connection_size(n, edges, weights, transports):
    """Return the norm of the degrees, since the Laplacian may be small if a loop cancels."""
    degree = np.bincount(edges.ravel(), np.repeat(weights, 2), minlength=n)
    return size(degree) * sqrt(transports.shape[1])


@given(connections())
def test_laplacian_of_a_connection_is_a_sum_of_kronecker_products(case):
    n, edges, weights, U = case
    weights = weights.astype(U.real.dtype)
    exact = kronecker_laplacian(n, edges, weights, U)
    F = sc.CellularSheaf.connection(edges, U, weight=weights, n_vertices=n)
    assert F.dtype == U.dtype
    what, scale = {"n": exact.shape[0], "eps": eps_of(U.dtype)}, connection_size(*case)
    for L in (sc.laplacian(F), sc.laplacian(F, format="bsr")):
        assert_residual(dense(L) - exact, scale, **what)
    x = np.eye(F.dim_c0, dtype=F.dtype)
    assert_residual(sc.laplacian_operator(F) @ x - exact, scale, sqrt(len(x)), **what)
    delta = dense(sc.coboundary(F))  # row block e: sqrt(w) (I at the tail, -U at the head)
    tails, heads = (np.sqrt(weights)[:, None] * np.eye(n)[edges[:, end]] for end in (0, 1))
    by_hand = np.kron(tails, np.eye(U.shape[1])).astype(delta.dtype)
    for e, rows in enumerate(by_hand.reshape(len(edges), U.shape[1], -1)):
        rows -= np.kron(heads[e], U[e])
    assert_residual(delta - by_hand, np.sqrt(scale), **what)


@given(graphs(min_vertices=1, min_edges=3), st.data())
def test_laplacian_of_a_signed_sheaf_is_degree_minus_signed_adjacency(graph, data):
    """A loop counts twice in D and in A: it adds 4 w to the diagonal if negative, else 0."""
    n, edges = graph
    signs, weights = (
        np.array(data.draw(st.lists(st.sampled_from(of), min_size=len(edges), max_size=len(edges))))
        for of in ([1, -1], [0.0, 0.5, 1.0, 3.0])
    )
    D, A, G = np.zeros((n, n)), np.zeros((n, n)), nx.MultiGraph()
    G.add_nodes_from(range(n))
    for (u, v), s, w in zip(edges.tolist(), signs.tolist(), weights.tolist(), strict=True):
        for a, b in ((u, v), (v, u)):
            D[a, a] += w
            A[a, b] += s * w
        G.add_edge(u, v, s=s, w=w, sign=s, weight=w)
    signed, listed = sc.CellularSheaf.signed, [s for *_, s in G.edges(data="sign")]
    by_arrays = signed(edges, signs, weights, n_vertices=n)
    for F in (by_arrays, signed(G), signed(G, "s", "w"), signed(G, sign=listed)):
        assert_residual(sc.laplacian(F) - (D - A), D, n=n)
        assert (F.tail_data >= 0).all()


# ---------------------------------------------------------------- closed forms


def sums(first, second):
    return np.add.outer(first, second).ravel()


def path(n):
    return 2 - 2 * np.cos(pi * np.arange(n) / n)


def cycle(n, theta=0.0):
    return 2 - 2 * np.cos((2 * pi * np.arange(n) + theta) / n)


CLOSED_FORMS = {
    "path 1": (nx.path_graph(1), [0.0]),
    "path 12": (nx.path_graph(12), path(12)),
    "cycle 4": (nx.cycle_graph(4), [0.0, 2.0, 2.0, 4.0]),
    "cycle 25": (nx.cycle_graph(25), cycle(25)),
    "complete 9": (nx.complete_graph(9), [0.0] + 8 * [9.0]),
    "star 7": (nx.star_graph(7), [0.0, *6 * [1.0], 8.0]),
    "torus 6 6": (nx.grid_2d_graph(6, 6, periodic=True), sums(cycle(6), cycle(6))),
    "two cycles": (nx.disjoint_union(nx.cycle_graph(5), nx.cycle_graph(7)), [*cycle(5), *cycle(7)]),
    "no edge": (nx.empty_graph(4), 4 * [0.0]),
}


@pytest.mark.parametrize(("d", "dtype"), [(3, np.float64), (1, np.float32)])
@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_spectra_of_known_graphs_match_closed_forms(name, d, dtype):
    G, values = CLOSED_FORMS[name]
    F = sc.CellularSheaf.constant(G, d)
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    exact, n, r = np.sort(np.repeat(values, d)), F.dim_c0, F.dim_c0 // 2
    top, what = max(exact[-1], 1.0), {"n": n, "eps": eps_of(dtype)}
    assert_residual(spectrum(sc.laplacian(F)) - exact, top, **what)
    P, whole = sc.Partition([0] * len(G)), sc.ranks.fixed(max(r, 1)).whole_multiplets()
    for operator in ("internal", "principal"):
        M = sc.local_modes(F, P, n, operator)
        assert_residual(M.eigenvalues(0) - exact, top, **what)
        if r:
            M = sc.local_modes(F, P, r, operator)
            assert_residual(M.next_eigenvalues[0] - exact[r], top, **what)
            assert M.tied[0] == bool(exact[r] - exact[r - 1] < 1e-6)
        end = int((exact <= exact[max(r, 1) - 1] + 1e-4).sum())
        assert sc.local_modes(F, P, whole, operator).ranks.tolist() == [end]
    components = nx.number_connected_components(G)
    assert sc.local_modes(F, P, sc.ranks.kernel()).ranks[0] == components * d
    if dtype is np.float64 and len(G) > 1:
        half = sc.Partition(np.arange(len(G)) * 2 // len(G))
        nu = spectrum(sc.laplacian(sc.coarsen(F, half, sc.ranks.fixed(n)).sheaf))
        assert_residual(nu - exact, top, n=n)  # no mode is discarded


@pytest.mark.parametrize(
    ("n", "theta"),
    [
        *((10, theta) for theta in (0.0, 1e-4, 0.3, pi / 2, 2.0, pi, -1.1, 7.0)),
        *((n, theta) for n in (1, 2, 3, 33) for theta in (0.0, 0.3)),
    ],
)
def test_spectrum_of_a_cycle_with_holonomy_matches_its_closed_form(n, theta):
    """Eigenvalues 2 - 2 cos((2 pi k + theta) / n) are double for rotations, simple for phases."""
    one = sc.Partition([0] * n)
    for copies, holonomy in ((2, theta), (1, [[np.exp(1j * theta)]])):
        F, exact = sc.gallery.cycle(n, holonomy), np.sort(np.repeat(cycle(n, theta), copies))
        modes = sc.local_modes(F, one, copies * n).eigenvalues(0)
        for values in (spectrum(sc.laplacian(F)), modes):
            assert_residual(values - exact, 4.0, n=copies * n)
        kernel = sc.local_modes(F, one, sc.ranks.kernel()).ranks[0]
        assert kernel == (copies if theta == 0 else 0)


def test_exact_coarsening_of_a_cycle_keeps_the_holonomy():
    """With one section per arc, K arcs become a K-cycle with weights 1 / arc length."""
    n, K, theta = 12, 4, 0.9
    C = sc.coarsen(sc.gallery.cycle(n, theta), sc.Partition(np.arange(n) // 3), sc.ranks.kernel())
    assert C.sheaf.n_edges == K
    exact = np.sort(np.repeat(cycle(K, theta), 2)) / 3
    assert_residual(spectrum(sc.laplacian(C.sheaf)) - exact, 4 / 3, n=2 * K)


# ---------------------------------------------------------------- by hand


def test_coarsening_a_path_matches_hand_computation():
    F = sc.CellularSheaf.constant(nx.path_graph(8))
    C = sc.coarsen(F, sc.Partition([0, 0, 1, 1, 2, 2, 3, 3]), 2)
    h = 0.7071067811865476
    for a in range(4):
        assert_residual(C.modes.eigenvalues(a) - [0, 2], 2.0, n=2)
        assert_residual(C.modes.basis(a) - [[h, h], [h, -h]], n=2)
    assert C.sheaf.edges.tolist() == [[0, 1], [1, 2], [2, 3], [0, 0], [1, 1], [2, 2], [3, 3]]
    crossing, loop = ([[h, -h]], [[h, h]]), ([[0, h]], [[0, -h]])
    for e, (tail, head) in enumerate([crossing] * 3 + [loop] * 4):
        assert_residual(C.sheaf.tail_map(e) - tail, n=2)
        assert_residual(C.sheaf.head_map(e) - head, n=2)
    exact = [
        [0.5, -0.5, -0.5, -0.5, 0, 0, 0, 0],
        [-0.5, 2.5, 0.5, 0.5, 0, 0, 0, 0],
        [-0.5, 0.5, 1, 0, -0.5, -0.5, 0, 0],
        [-0.5, 0.5, 0, 3, 0.5, 0.5, 0, 0],
        [0, 0, -0.5, 0.5, 1, 0, -0.5, -0.5],
        [0, 0, -0.5, 0.5, 0, 3, 0.5, 0.5],
        [0, 0, 0, 0, -0.5, 0.5, 0.5, 0.5],
        [0, 0, 0, 0, -0.5, 0.5, 0.5, 2.5],
    ]
    for L in (sc.laplacian(C.sheaf), C.galerkin()):
        assert_residual(L - np.array(exact), 4.0, n=8)


def test_ledger_of_a_path_matches_hand_computation():
    """On two pairs x = (0, 1, 3, 6).

    x_ret = (1/2, 1/2, 9/2, 9/2), x_disc = (-1/2, 1/2, -3/2, 3/2), and 14 = 10 + 16 - 16 + 4.
    """
    x = np.array([0.0, 1, 3, 6])
    forward = [[0, 1], [1, 2], [2, 3]], [0, 0, 1, 1], slice(None)
    flipped = [[1, 0], [2, 1], [2, 3]], [1, 1, 0, 0], slice(None, None, -1)
    for edges, labels, order in (forward, flipped):
        C = sc.coarsen(sc.CellularSheaf.constant(edges), sc.Partition(labels), 1)
        E = sc.energy_ledger(C, x)
        per_cluster = {
            "retained_internal": [0, 0],
            "discarded_internal": [1, 9],
            "internal_coupling": [0, 0],
            "discarded_norm2": [0.5, 4.5],
            "truncation_bound": [0.5, 4.5],
        }
        totals = {"retained_crossing": 16, "crossing_coupling": -16, "discarded_crossing": 4}
        totals |= {"fine_energy": 14, "galerkin_energy": 16}
        totals |= {"realization_loss": 0, "truncation_loss": 10}
        exact = {name: np.array(line)[order] for name, line in per_cluster.items()} | totals
        for name, line in exact.items():
            assert_residual(getattr(E, name) - line, 4.0, x, x, n=4)


# ---------------------------------------------------------------- dense solvers


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


def dense_laplacian(F, mass=None):
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
@given(answered(dtypes=DOUBLE), st.data())
def test_no_eigenpair_is_missed_for_any_k(F, data):
    assume(F.dim_c0)
    L, unit = dense_laplacian(F)
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
    scaled, unit = dense_laplacian(F, mass)
    values, k = np.linalg.eigvalsh(scaled), min(3, F.dim_c0)
    E = quietly(sc.eigenmodes, F, k, mass=mass, method="multilevel")
    assert np.abs(E.values / unit**2 - values[:k]).max() <= 1e-7 * (values[-1] or 1)
    M, L = np.repeat(mass, F.vertex_dims)[:, None], reference.laplacian(F)
    assert size(E.vectors.conj().T @ (M * E.vectors) - np.eye(k)) <= 1e-9
    residuals = np.linalg.norm(L @ E.vectors - M * E.vectors * E.values, axis=0)
    norm = float(np.abs(L).sum(axis=1).max(initial=0.0))
    assert (E.residuals <= 1e-8).all()
    assert_residual(E.residuals * norm - residuals, L, E.vectors, n=F.dim_c0, eps=eps_of(F))


@settings(max_examples=60)
@given(answered(dtypes=DOUBLE), st.sampled_from(["direct", "multigrid", "jacobi"]), st.data())
def test_solutions_satisfy_their_equations_and_are_linear(F, method, data):
    assume(F.dim_c0)
    L, unit = dense_laplacian(F)
    rng = np.random.default_rng(data.draw(st.integers(0, 99), label="seed"))
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


@given(answered(dtypes=DOUBLE), st.integers(0, 99))
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
