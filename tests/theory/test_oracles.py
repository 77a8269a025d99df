"""Comparison with networkx, Kronecker products, EigenPool, closed forms and hand computation."""

from math import pi, sqrt

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support.helpers import assert_residual, eps_of, same_subspace, size
from tests.support.strategies import graphs, multigraphs, partitions

pytestmark = pytest.mark.filterwarnings(
    "ignore::sheafcoarsen.TiedModesWarning", "ignore::sheafcoarsen.SingularDegreeWarning"
)

DTYPES = (np.float64, np.float32, np.complex128, np.complex64)


def dense(A):
    return A.toarray().astype(np.result_type(A.dtype, np.float64))


def spectrum(A):
    return np.linalg.eigvalsh(dense(A))


# ---------------------------------------------------------------- networkx


@given(multigraphs(min_vertices=1, min_edges=2), st.integers(1, 3), st.booleans())
def test_laplacian_of_the_constant_sheaf_is_that_of_networkx(G, d, weighted):
    """Use weighted multigraphs with loops and parallel edges, in the node order of the graph."""
    weight = "weight" if weighted else None
    exact = nx.laplacian_matrix(G, nodelist=list(G.nodes), weight=weight).toarray().astype(float)
    F = sc.CellularSheaf.constant(G, d, weight=weight)
    assert F.vertex_labels == tuple(G.nodes)
    assert_residual(sc.laplacian(F) - np.kron(exact, np.eye(d)), exact, n=len(exact) * d)
    adjacency = scipy.sparse.csr_array(
        nx.adjacency_matrix(G, nodelist=list(G.nodes), weight=weight).astype(float)
    )
    F = sc.CellularSheaf.constant(adjacency, d)
    assert_residual(sc.laplacian(F) - np.kron(exact, np.eye(d)), exact, n=len(exact) * d)


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


@given(multigraphs(min_vertices=2, min_edges=4))
def test_energy_of_the_constant_sheaf_is_a_sum_over_edges(G):
    """Sum w (x_u - x_v)^2 over edges, or w (x_u / sqrt d_u - x_v / sqrt d_v)^2 if normalized."""
    x = dict(zip(G.nodes, np.random.default_rng(5).standard_normal(len(G)), strict=True))
    values = np.array(list(x.values()))
    terms = [(u, v, data.get("weight", 1)) for u, v, data in G.edges(data=True)]
    F = sc.CellularSheaf.constant(G)
    exact = sum(w * (x[u] - x[v]) ** 2 for u, v, w in terms)
    assert_residual(
        sc.energy(F, values) - exact, sum(w for *_, w in terms), values, values, n=len(G)
    )
    G.remove_edges_from(list(nx.selfloop_edges(G, keys=True)))
    degree = dict(G.degree(weight="weight"))
    flat = {v: x[v] / sqrt(degree[v]) if degree[v] else 0.0 for v in G}
    terms = [(u, v, data.get("weight", 1)) for u, v, data in G.edges(data=True)]
    exact = sum(w * (flat[u] - flat[v]) ** 2 for u, v, w in terms)
    found = sc.energy(sc.normalize(sc.CellularSheaf.constant(G)), values)
    assert_residual(found - exact, values, values, n=len(G))


# ---------------------------------------------------------------- Kronecker products


def unit(n, i, j):
    return scipy.sparse.coo_array(([1.0], ([i], [j])), shape=(n, n))


def kronecker_laplacian(n, edges, weights, transports):
    """Return degrees (x) I minus w E_uv (x) U and its conjugate transpose for every edge.

    A loop counts twice in the degree.
    """
    d = transports.shape[1]
    L = scipy.sparse.csr_array((n * d, n * d), dtype=np.result_type(transports.dtype, float))
    for (u, v), w, U in zip(edges.tolist(), weights, transports.astype(L.dtype), strict=True):
        L = L + w * scipy.sparse.kron(unit(n, u, u) + unit(n, v, v), scipy.sparse.eye_array(d))
        L = L - w * (
            scipy.sparse.kron(unit(n, u, v), U) + scipy.sparse.kron(unit(n, v, u), U.conj().T)
        )
    return scipy.sparse.csr_array(L)


@st.composite
def connections(draw, *, loops=True, kinds=DTYPES):
    """Draw (n, edges, weights, transports).

    Transports are Haar random orthogonal or unitary matrices, not their own inverse for d > 1.
    """
    n, edges = draw(graphs(min_vertices=2, min_edges=3))
    if not loops:
        edges = edges[edges[:, 0] != edges[:, 1]]
    d = draw(st.integers(1, 4))
    dtype = np.dtype(draw(st.sampled_from(kinds)))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.standard_normal((len(edges), d, d))
    if dtype.kind == "c":
        X = X + 1j * rng.standard_normal(X.shape)
    transports = np.linalg.qr(X)[0] if len(edges) else X
    return n, edges, rng.choice([0.25, 1.0, 3.0], size=len(edges)), transports.astype(dtype)


def connection_size(n, edges, weights, transports):
    """Return the norm of the degrees, since the Laplacian may be small if a loop cancels."""
    degree = np.bincount(edges.ravel(), np.repeat(weights, 2), minlength=n)
    return size(degree) * sqrt(transports.shape[1])


@given(connections())
def test_laplacian_of_a_connection_is_a_sum_of_kronecker_products(case):
    """Graphs have loops, parallel edges and both orientations."""
    n, edges, weights, U = case
    weights = weights.astype(U.real.dtype)
    exact = kronecker_laplacian(n, edges, weights, U)
    F = sc.CellularSheaf.connection(edges, U, weight=weights, n_vertices=n)
    assert F.dtype == U.dtype
    what, scale = {"n": exact.shape[0], "eps": eps_of(U.dtype)}, connection_size(*case)
    assert_residual(dense(sc.laplacian(F)) - exact, scale, **what)
    x = np.eye(F.dim_c0, dtype=F.dtype)
    assert_residual(sc.laplacian_operator(F) @ x - exact, scale, sqrt(len(x)), **what)
    assert_residual(dense(sc.laplacian(F, format="bsr")) - exact, scale, **what)
    delta = dense(sc.coboundary(F))  # row block e: sqrt(w) (I at the tail, -U at the head)
    ends = [np.eye(n)[edges[:, end]] for end in (0, 1)]
    roots = np.sqrt(weights)[:, None]
    by_hand = np.kron(roots * ends[0], np.eye(U.shape[1])).astype(delta.dtype)
    for e in range(len(edges)):
        by_hand[e * U.shape[1] : (e + 1) * U.shape[1]] -= np.kron(roots[e] * ends[1][e], U[e])
    assert_residual(delta - by_hand, np.sqrt(scale), **what)


def test_reversing_transports_changes_the_section_of_a_tree():
    """On a tree the section follows from x_u = U x_v; with inverse transports it differs."""
    tree = nx.random_labeled_tree(9, seed=3)
    edges = np.array([(u, v) if (u + v) % 2 else (v, u) for u, v in tree.edges])
    rng = np.random.default_rng(4)
    for U in (
        np.linalg.qr(rng.standard_normal((8, 3, 3)))[0],
        np.linalg.qr(rng.standard_normal((8, 2, 2)) + 1j * rng.standard_normal((8, 2, 2)))[0],
    ):
        x = {0: np.arange(1.0, U.shape[1] + 1).astype(U.dtype)}
        for parent, child in nx.bfs_edges(tree, 0):
            (e,) = np.flatnonzero((np.sort(edges, axis=1) == sorted((parent, child))).all(axis=1))
            x[child] = U[e] @ x[parent] if edges[e, 0] == child else U[e].conj().T @ x[parent]
        section = np.concatenate([x[v] for v in range(9)])
        F = sc.CellularSheaf.connection(edges, U)
        assert_residual(
            sc.energy(F, section), size(section), size(section), n=9, eps=eps_of(float) ** 2 * 9
        )
        for wrong in (
            sc.CellularSheaf.connection(edges, U.conj().swapaxes(1, 2)),
            sc.CellularSheaf.connection(edges[:, ::-1], U),
        ):
            assert sc.energy(wrong, section) > size(section) ** 2 / 10
        if U.dtype.kind == "c":
            assert (
                sc.energy(sc.CellularSheaf.connection(edges, U.conj()), section)
                > size(section) ** 2 / 10
            )


def test_networkx_edges_are_oriented_as_listed_by_the_graph():
    """The attribute of ("b", "a"), listed as ("a", "b"), maps the stalk of b to that of a."""
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
    G = nx.Graph()
    G.add_nodes_from("ab")
    G.add_edge("b", "a", turn=quarter)
    F = sc.CellularSheaf.connection(G, "turn")
    exact = np.block([[np.eye(2), -quarter], [-quarter.T, np.eye(2)]])
    np.testing.assert_array_equal(sc.laplacian(F).toarray(), exact)


@given(connections(), st.data())
def test_coarsening_of_a_connection_matches_kronecker_products(case, data):
    """Compare local spectra of both operators and R* L R with Kronecker products."""
    n, edges, weights, U = case
    weights = weights.astype(U.real.dtype)
    P = data.draw(partitions(n))
    F = sc.CellularSheaf.connection(edges, U, weight=weights, n_vertices=n)
    inside = P.labels[edges[:, 0]] == P.labels[edges[:, 1]]
    d = U.shape[1]
    whole = kronecker_laplacian(n, edges, weights, U).toarray()
    inner = kronecker_laplacian(n, edges[inside], weights[inside], U[inside]).toarray()
    eps, scale = eps_of(U.dtype), connection_size(*case)
    for operator, matrix in (("internal", inner), ("principal", whole)):
        C = sc.coarsen(F, P, 3, local_operator=operator)
        for a in range(P.n_clusters):
            where = np.concatenate([np.arange(v * d, (v + 1) * d) for v in P.cluster(a)])
            values = np.linalg.eigvalsh(matrix[np.ix_(where, where)])
            r = min(3, len(where))
            assert_residual(C.modes.eigenvalues(a) - values[:r], scale, n=len(where), eps=eps)
            if r < len(where):
                assert_residual(
                    C.modes.next_eigenvalues[a] - values[r], scale, n=len(where), eps=eps
                )
            else:
                assert np.isinf(C.modes.next_eigenvalues[a])
        R = dense(C.prolongation)
        assert_residual(
            dense(sc.laplacian(C.sheaf)) - R.conj().T @ whole @ R, scale, R, R, n=n * d, eps=eps
        )


# ---------------------------------------------------------------- signed graphs


@given(graphs(min_vertices=1, min_edges=3), st.data())
def test_laplacian_of_a_signed_sheaf_is_degree_minus_signed_adjacency(graph, data):
    """A loop counts twice in D and in A: it adds 4 w to the diagonal if negative, else 0."""
    n, edges = graph
    m = len(edges)
    signs = np.array(data.draw(st.lists(st.sampled_from([1, -1]), min_size=m, max_size=m)))
    weights = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=m, max_size=m))
    )
    D, A = np.zeros((n, n)), np.zeros((n, n))
    for (u, v), s, w in zip(edges, signs, weights, strict=True):
        D[u, u] += w
        D[v, v] += w
        A[u, v] += s * w
        A[v, u] += s * w
    L = sc.laplacian(sc.CellularSheaf.signed(edges, signs, weights, n_vertices=n))
    assert_residual(L - (D - A), D, n=n)
    G = nx.MultiGraph()
    G.add_nodes_from(range(n))
    G.add_edges_from(
        [
            (int(u), int(v), {"s": int(s), "w": float(w)})
            for (u, v), s, w in zip(edges, signs, weights, strict=True)
        ]
    )
    assert_residual(sc.laplacian(sc.CellularSheaf.signed(G, "s", "w")) - (D - A), D, n=n)


def test_signed_graphs_have_a_section_only_if_balanced():
    """Entries of the adjacency matrix have a sign and a weight."""
    A = np.array([[0, 2, -3], [2, 0, 1], [-3, 1, 0]], float)
    L = sc.laplacian(sc.CellularSheaf.signed(scipy.sparse.csr_array(A))).toarray()
    assert_residual(L - (np.diag(np.abs(A).sum(axis=1)) - A), A, n=3)
    assert np.linalg.eigvalsh(L)[0] > 0.1
    A[1, 2] = A[2, 1] = -1  # two negative edges: balanced
    L = sc.laplacian(sc.CellularSheaf.signed(scipy.sparse.csr_array(A))).toarray()
    assert_residual(L @ np.array([1.0, 1.0, -1.0]), A, n=3)


# ---------------------------------------------------------------- EigenPool


def multiplets(values, scale):
    """Yield ranges of eigenvalues that are equal up to sqrt(eps) times the norm."""
    cuts = np.flatnonzero(np.diff(values) > 1e-7 * max(scale, 1e-300)) + 1
    return list(zip([0, *cuts], [*cuts, len(values)], strict=True))


@given(
    st.integers(6, 24), st.integers(0, 2**16), st.integers(1, 5), st.integers(1, 4), st.booleans()
)
def test_pooling_with_internal_modes_is_eigenpool(n, seed, K, h, weighted):
    """Pooling of the constant sheaf is U_j^T X_j.

    U_j holds the eigenvectors of nx.laplacian_matrix of the induced subgraph.
    """
    rng = np.random.default_rng(seed)
    G = nx.gnp_random_graph(n, 0.4, seed=seed)
    if weighted:
        nx.set_edge_attributes(G, {e: float(rng.uniform(0.5, 2)) for e in G.edges}, "weight")
    labels = rng.permutation(np.arange(n) % K)
    P = sc.Partition(labels)
    X = rng.standard_normal((n, h))
    # all modes; multiplets are treated separately below
    C = sc.coarsen(sc.CellularSheaf.constant(G), P, n)
    Z = C.pool(X)
    for j in range(K):
        members = np.flatnonzero(labels == j)
        L = (
            nx.laplacian_matrix(G.subgraph(members.tolist()), nodelist=members.tolist())
            .toarray()
            .astype(float)
        )
        values, vectors = np.linalg.eigh(L)
        U, pooled = C.modes.basis(j), Z[C.sheaf.vertex_offsets[j] : C.sheaf.vertex_offsets[j + 1]]
        assert_residual(C.modes.eigenvalues(j) - values, L, n=len(L))
        assert_residual(pooled - U.T @ X[members], X, n=len(L))
        spans = multiplets(values, size(L))
        for lo, hi in spans:
            around = np.concatenate([[-np.inf], values, [np.inf]])
            gap = min(around[lo + 1] - around[lo], around[hi + 1] - around[hi])
            condition = max(size(L) / gap, 1.0)
            V = vectors[:, lo:hi]
            assert same_subspace(U[:, lo:hi], V, condition=condition)
            # pooled signals of a multiplet are unique up to an orthogonal transformation
            gram, exact = pooled[lo:hi].T @ pooled[lo:hi], X[members].T @ V @ V.T @ X[members]
            assert_residual(gram - exact, X[members], X[members], condition, n=len(L))
            if hi == lo + 1:  # the vector of a simple eigenvalue is unique up to its sign
                sign = np.sign(U[:, lo] @ V[:, 0])
                assert_residual(
                    pooled[lo] - sign * (V[:, 0] @ X[members]), X[members], condition, n=len(L)
                )


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
    """The spectra of `laplacian` and of the modes of one cluster are compared."""
    G, values = CLOSED_FORMS[name]
    F = sc.CellularSheaf.constant(G, d)
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    exact = np.sort(np.repeat(values, d))
    top = max(exact[-1], 1.0)
    what = {"n": F.dim_c0, "eps": eps_of(dtype)}
    assert_residual(spectrum(sc.laplacian(F)) - exact, top, **what)
    P = sc.Partition([0] * len(G))
    for operator in ("internal", "principal"):
        M = sc.local_modes(F, P, F.dim_c0, operator)
        assert_residual(M.eigenvalues(0) - exact, top, **what)
        r = len(G) * d // 2
        M = sc.local_modes(F, P, r, operator)
        if r:
            assert_residual(M.next_eigenvalues[0] - exact[r], top, **what)
            assert M.tied[0] == bool(exact[r] - exact[r - 1] < 1e-6)
        whole = sc.local_modes(F, P, sc.ranks.fixed(max(r, 1)).whole_multiplets(), operator).ranks[
            0
        ]
        assert whole == int((exact <= exact[max(r, 1) - 1] + 1e-4).sum())
    components = nx.number_connected_components(G)
    assert sc.local_modes(F, P, sc.ranks.kernel()).ranks[0] == components * d
    if dtype is np.float64 and len(G) > 1:
        half = sc.Partition(np.arange(len(G)) * 2 // len(G))
        nu = spectrum(sc.laplacian(sc.coarsen(F, half, sc.ranks.fixed(F.dim_c0)).sheaf))
        # no mode is discarded, so the coarse sheaf has the whole spectrum
        assert_residual(nu - exact, top, n=F.dim_c0)


@pytest.mark.parametrize(
    ("n", "theta"),
    [
        *((10, theta) for theta in (0.0, 1e-4, 0.3, pi / 2, 2.0, pi, -1.1, 7.0)),
        *((n, theta) for n in (1, 2, 3, 33) for theta in (0.0, 0.3)),
    ],
)
def test_spectrum_of_a_cycle_with_holonomy_matches_its_closed_form(n, theta):
    """Eigenvalues 2 - 2 cos((2 pi k + theta) / n) are double for rotations, simple for phases."""
    F = sc.gallery.cycle(n, theta)
    exact = np.sort(np.repeat(cycle(n, theta), 2))
    one = sc.Partition([0] * n)
    assert_residual(spectrum(sc.laplacian(F)) - exact, 4.0, n=2 * n)
    assert_residual(sc.local_modes(F, one, 2 * n).eigenvalues(0) - exact, 4.0, n=2 * n)
    assert sc.local_modes(F, one, sc.ranks.kernel()).ranks[0] == (2 if theta == 0 else 0)
    phase = sc.gallery.cycle(n, [[np.exp(1j * theta)]])
    assert_residual(spectrum(sc.laplacian(phase)) - np.sort(cycle(n, theta)), 4.0, n=n)
    assert_residual(
        sc.local_modes(phase, one, n).eigenvalues(0) - np.sort(cycle(n, theta)), 4.0, n=n
    )


@pytest.mark.parametrize("cut", [0, 2, 7])
def test_arcs_have_spectra_of_paths_and_coarse_cycles_keep_the_holonomy(cut):
    """With all modes retained, the coarse sheaf has the spectrum of the twisted cycle."""
    n, theta = 11, 0.7
    labels = np.ones(n, int)
    labels[(cut + np.arange(5)) % n] = 0
    C = sc.coarsen(sc.gallery.cycle(n, theta), sc.Partition(labels), 2 * n)
    assert_residual(C.modes.eigenvalues(0) - np.repeat(path(5), 2), 4.0, n=10)
    assert_residual(C.modes.eigenvalues(1) - np.repeat(path(6), 2), 4.0, n=12)
    assert_residual(
        spectrum(sc.laplacian(C.sheaf)) - np.sort(np.repeat(cycle(n, theta), 2)), 4.0, n=2 * n
    )


def test_exact_coarsening_of_a_cycle_keeps_the_holonomy():
    """With one section per arc, K arcs become a K-cycle with weights 1 / arc length."""
    n, K, theta = 12, 4, 0.9
    C = sc.coarsen(sc.gallery.cycle(n, theta), sc.Partition(np.arange(n) // 3), sc.ranks.kernel())
    assert C.sheaf.n_edges == K
    exact = np.sort(np.repeat(cycle(K, theta), 2)) / 3
    assert_residual(spectrum(sc.laplacian(C.sheaf)) - exact, 4 / 3, n=2 * K)


# ---------------------------------------------------------------- by hand


def test_two_levels_of_a_path_match_hand_computation():
    """Eight vertices form pairs with both modes, then pairs of pairs with one mode."""
    F = sc.CellularSheaf.constant(nx.path_graph(8))
    first = sc.coarsen(F, sc.Partition([0, 0, 1, 1, 2, 2, 3, 3]), 2)
    h = 0.7071067811865476
    for a in range(4):
        assert_residual(first.modes.eigenvalues(a) - [0, 2], 2.0, n=2)
        assert_residual(first.modes.basis(a) - [[h, h], [h, -h]], n=2)
    assert first.sheaf.edges.tolist() == [[0, 1], [1, 2], [2, 3], [0, 0], [1, 1], [2, 2], [3, 3]]
    for e in range(3):
        assert_residual(first.sheaf.tail_map(e) - [[h, -h]], n=2)
        assert_residual(first.sheaf.head_map(e) - [[h, h]], n=2)
    for e in range(3, 7):
        assert_residual(first.sheaf.tail_map(e) - [[0, h]], n=2)
        assert_residual(first.sheaf.head_map(e) - [[0, -h]], n=2)
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
    assert_residual(sc.laplacian(first.sheaf) - np.array(exact), 4.0, n=8)
    assert_residual(first.galerkin() - np.array(exact), 4.0, n=8)
    second = sc.coarsen(first.sheaf, sc.Partition([0, 0, 1, 1]), 1)
    for a in range(2):  # a path of four vertices has eigenvalues 0, 2 - sqrt 2, 2, 2 + sqrt 2
        assert_residual(second.modes.eigenvalues(a), 4.0, n=4)
        assert_residual(second.modes.next_eigenvalues[a] - 0.5857864376269049, 4.0, n=4)
        assert_residual(second.modes.basis(a) - [[h], [0], [h], [0]], 4.0 / 0.5857864376269049, n=4)
    assert second.sheaf.edges.tolist() == [[0, 1]]
    condition = 4.0 / 0.5857864376269049
    for get in (second.sheaf.tail_map, second.sheaf.head_map):
        assert_residual(get(0) - [[0.5]], condition, n=4)
    assert_residual(
        sc.laplacian(second.sheaf) - np.array([[0.25, -0.25], [-0.25, 0.25]]), condition, n=4
    )
    assert_residual(spectrum(sc.laplacian(second.sheaf)) - [0.0, 0.5], condition, n=4)
    # one mode per cluster on three levels retains only the mean
    x = np.array([1.0, 2, 3, 4, 5, 6, 7, 12])
    pooled = second.pool(first.pool(x))
    # the sums 10 and 30 of four entries, divided by sqrt 4
    assert_residual(pooled - [5.0, 15.0], x, condition, n=8)
    assert_residual(
        first.lift(second.lift(pooled)) - np.array([2.5] * 4 + [7.5] * 4), x, condition, n=8
    )


def test_ledger_of_a_path_matches_hand_computation():
    """On two pairs x = (0, 1, 3, 6).

    x_ret = (1/2, 1/2, 9/2, 9/2), x_disc = (-1/2, 1/2, -3/2, 3/2), and 14 = 10 + 16 - 16 + 4.
    """
    x = np.array([0.0, 1, 3, 6])
    C = sc.coarsen(sc.CellularSheaf.constant(nx.path_graph(4)), sc.Partition([0, 0, 1, 1]), 1)
    E = sc.energy_ledger(C, x)
    lines = [
        (E.retained_internal, [0, 0]),
        (E.discarded_internal, [1, 9]),
        (E.internal_coupling, [0, 0]),
        (E.discarded_norm2, [0.5, 4.5]),
        (E.truncation_bound, [0.5, 4.5]),
        (E.retained_crossing, 16),
        (E.crossing_coupling, -16),
        (E.discarded_crossing, 4),
        (E.fine_energy, 14),
        (E.galerkin_energy, 16),
        (E.realization_loss, 0),
        (E.truncation_loss, 10),
    ]
    for found, exact in lines:
        assert_residual(found - np.array(exact, float), 4.0, x, x, n=4)
    flipped = sc.CellularSheaf.constant([[1, 0], [2, 1], [2, 3]])
    E = sc.energy_ledger(sc.coarsen(flipped, sc.Partition([1, 1, 0, 0]), 1), x)
    assert_residual(E.discarded_internal - np.array([9.0, 1]), 4.0, x, x, n=4)
    assert_residual(E.crossing_coupling + 16, 4.0, x, x, n=4)
