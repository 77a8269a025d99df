"""The paper's statements as properties, one test each, named by label.

They hold for any sheaf and any partition, in comparison with the dense reference. The mark
``statement`` puts a test's residuals into the table at the end of the run. The last section
violates the hypotheses.
"""

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support import reference
from tests.support.helpers import (
    LIMIT,
    assert_closes,
    assert_residual,
    dense_kernel,
    dense_range,
    eps_of,
    size,
)
from tests.support.strategies import (
    BASIS_KINDS,
    bases,
    cochains,
    mode_counts,
    sheaves,
    sheaves_with_partitions,
)

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

HALVES = sc.Partition([0, 0, 0, 1, 1, 1])
KINDS = ("internal", "principal", "oversampled", "isometric", "any")
ISOMETRIC = ("internal", "principal", "oversampled", "isometric")
# maps whose singular values are zero or clearly positive
STRUCTURED = ("integer", "repeated", "zero", "bundle")


@st.composite
def coarsenings(draw, kinds=KINDS, loops=True, **options):
    """Draw pairs (coarsening, dense blocks R_a) for every kind of prolongation.

    ``loops`` may be a strategy.
    """
    F, P = draw(sheaves_with_partitions(**options))
    loops = loops if isinstance(loops, bool) else draw(loops)
    kind = draw(st.sampled_from(kinds))
    if kind in ("internal", "principal", "oversampled"):
        C = sc.coarsen(F, P, draw(mode_counts(P)), local_operator=kind, loops=loops)
    else:
        # a larger basis raises an error
        few = F.dtype in (np.float32, np.complex64) and F.largest_entry > 1e6
        of_any_kind = tuple(k for k in BASIS_KINDS if k != "scaled" or not few)
        basis = draw(bases(F, P, kinds=("orthonormal",) if kind == "isometric" else of_any_kind))
        C = sc.coarsen(F, P, basis=basis, loops=loops)
    return C, [C.block(a) for a in range(P.n_clusters)]


def block_norms(C):
    """Return the factors of docs/conventions.md, section 3: n, norm(R_a), norm(L[C_a, C_a])."""
    F, P = C.fine, C.partition
    blocks = [reference.principal_block(F, P, a) for a in clusters(C)]
    n = [max(len(L), int(r)) for L, r in zip(blocks, C.ranks, strict=True)]
    return n, [size(C.block(a)) for a in clusters(C)], [size(L) for L in blocks]


def assert_blocks(C, difference):
    """Assert that each block of a matrix is zero relative to the factors of its clusters."""
    (n, R, L), offsets, eps = block_norms(C), C.sheaf.vertex_offsets, eps_of(C.sheaf.dtype)
    for a, b in np.ndindex(len(n), len(n)):
        D = difference[offsets[a] : offsets[a + 1], offsets[b] : offsets[b + 1]]
        assert_residual(D, R[a], R[b], np.sqrt(L[a]), np.sqrt(L[b]), n=max(n[a], n[b]), eps=eps)


def assert_crossing_rows(C, X):
    """Assert that a coarse crossing coboundary X equals the rows of delta R, edge by edge."""
    F, P = C.fine, C.partition
    delta, R = reference.coboundary(F), C.prolongation.toarray()
    n, norms, _ = block_norms(C)
    groups = reference.crossing_groups(F, P)
    assert C.crossing_rows.tolist() == reference.crossing_rows(F, P)
    assert X.shape == (len(C.crossing_rows), R.shape[1])
    assert C.sheaf.edges[: C.n_crossing_edges].tolist() == [list(pair) for pair in groups]
    at = 0
    for (a, b), group in groups.items():
        rows = [i for e in group for i in reference.edge_coordinates(F, e)]
        D, factor = X[at : at + len(rows)] - delta[rows] @ R, max(norms[a], norms[b])
        assert_residual(D, delta[rows], factor, n=max(n[a], n[b]), eps=eps_of(C.sheaf.dtype))
        at += len(rows)


def crossing_coboundary(C):
    """Return the crossing coboundary delta_x of the coarse sheaf."""
    return sc.coboundary(C.sheaf).toarray()[: int(C.sheaf.edge_offsets[C.n_crossing_edges])]


def double(A):
    return np.asarray(A).astype(np.result_type(A, np.float64))


def local(C, a):
    """Return (L_a, R_a, coordinates) of a cluster in double precision."""
    L = reference.internal_laplacian(C.fine, C.partition, a)
    return double(L), double(C.block(a)), reference.cluster_coordinates(C.fine, C.partition, a)


def random_cochain(F, seed, columns=None):
    rng, shape = np.random.default_rng(seed), (2, F.dim_c0, *([columns] if columns else []))
    real, imaginary = rng.standard_normal(shape)
    return (real + 1j * imaginary if F.dtype.kind == "c" else real).astype(F.dtype)


def clusters(C):
    return range(C.partition.n_clusters)


# ---------------------------------------------------------------- docs/conventions.md, section 3


@pytest.mark.statement("eq:galerkin_energy_identity")
@given(coarsenings(loops=st.booleans()), st.integers(0, 999))
def test_galerkin_energy_identity(case, seed):
    """z* L_Gal z = norm(delta R z)^2 for every z, with and without loops."""
    C, blocks = case
    G = C.galerkin().toarray()
    R = reference.prolongation(C.fine, C.partition, blocks)
    Y = reference.coboundary(C.fine) @ R
    assert_blocks(C, G - Y.conj().T @ Y)
    z = random_cochain(C.sheaf, seed)
    if R.dtype == C.fine.dtype:
        L, n = reference.laplacian(C.fine), max(block_norms(C)[0], default=1)
        error = (z.conj() @ G @ z).real - sc.energy(C.fine, C.lift(z))
        assert_residual(error, L, R, R, z, z, n=n, eps=eps_of(C.sheaf.dtype))


@pytest.mark.statement("thm:local_spectral_optimality")
@given(coarsenings(kinds=("internal",), loops=st.booleans()), st.integers(0, 999))
def test_local_spectral_optimality(case, seed):
    """The maximum over span U_a is lambda_r, and it is larger on any other subspace."""
    C, _ = case
    rng, eps = np.random.default_rng(seed), eps_of(C.fine.dtype)
    for a in clusters(C):
        L, U, _ = local(C, a)
        n, r = U.shape
        what, exact = {"n": n, "eps": eps}, np.linalg.eigvalsh(L)
        known = np.append(C.modes.eigenvalues(a), C.modes.next_eigenvalues[a])[: min(n, r + 1)]
        assert_residual(np.abs(known - exact[: r + 1].clip(min=0)).max(initial=0), L, **what)
        assert np.isinf(C.modes.next_eigenvalues[a]) == (r == n)
        assert_residual(U.conj().T @ U - np.eye(r), np.sqrt(max(r, 1)), **what)
        if r == 0:
            continue
        last = float(C.modes.eigenvalues(a)[-1])
        top = np.linalg.eigvalsh(U.conj().T @ L @ U)[-1]
        assert_residual(top - last, L, **what)
        Q = np.linalg.qr(U, mode="complete")[0][:, r:]  # the discarded directions
        for t in (10.0, 1.0, 1e-2, 1e-4) if r < n else ():
            other = np.linalg.qr(U + t * Q @ rng.standard_normal((n - r, r)))[0]
            best = np.linalg.eigvalsh(other.conj().T @ L @ other)[-1]
            assert_residual(min(best - last, 0.0), L, **what)


@pytest.mark.statement("prop:truncation_loss")
@given(coarsenings(kinds=("internal",), loops=st.booleans()), st.integers(0, 999))
def test_truncation_loss(case, seed):
    """Check the three identities and the gap bound."""
    C, _ = case
    x = random_cochain(C.fine, seed)
    E, lifted = sc.energy_ledger(C, x), C.lift(C.pool(x))
    for a in clusters(C):
        L, U, where = local(C, a)
        xa, (n, r) = double(x[where]), U.shape
        what = {"n": n, "eps": eps_of(C.fine.dtype)}
        Q = np.linalg.qr(U, mode="complete")[0][:, r:]
        values, V = np.linalg.eigh(Q.conj().T @ L @ Q) if r < n else (np.zeros(0), np.zeros((0, 0)))
        phi = Q @ V
        alpha = phi.conj().T @ xa
        squares = np.abs(alpha) ** 2
        assert_residual(xa - lifted[where] - phi @ alpha, xa, **what)
        assert_residual(squares.sum() - E.discarded_norm2[a], xa, xa, **what)
        assert_residual(values @ squares - E.discarded_internal[a], L, xa, xa, **what)
        energy, gap = float((xa.conj() @ L @ xa).real), float(C.modes.next_eigenvalues[a])
        if np.isinf(gap):
            assert E.truncation_bound[a] == 0
            continue
        assert_residual(max(E.discarded_norm2[a] * gap - energy, 0.0), L, xa, xa, **what)
        if np.isfinite(E.truncation_bound[a]):
            assert_residual(E.truncation_bound[a] * gap - energy, L, xa, xa, **what)
        else:  # without a positive gap there is no bound
            assert_residual(gap, L, **what)


@pytest.mark.statement("thm:galerkin_energy_decomposition")
@given(coarsenings(loops=st.booleans()))
def test_galerkin_energy_decomposition(case):
    """L_Gal = delta_x* delta_x + blockdiag(R_a* L_a R_a), with and without loops."""
    C, blocks = case
    F, P = C.fine, C.partition
    X = crossing_coboundary(C)
    assert_crossing_rows(C, X)
    H = [reference.retained_internal_operator(F, P, blocks, a) for a in clusters(C)]
    G, internal = C.galerkin().toarray(), reference.block_diagonal(H, C.sheaf.dtype)
    assert_blocks(C, G - X.conj().T @ X - internal)
    ours = [C.internal_operator(a) for a in clusters(C)]
    for a, A in enumerate(ours):
        assert A.shape == H[a].shape
        assert A.dtype == C.sheaf.dtype
        np.testing.assert_array_equal(C.internal_operator(a - len(ours)), A)
    assert_blocks(C, internal - reference.block_diagonal(ours, C.sheaf.dtype))
    if not C.loops:  # such a sheaf lacks the retained internal energy (realization loss)
        assert C.sheaf.n_edges == C.n_crossing_edges
        assert_blocks(C, G - sc.laplacian(C.sheaf).toarray() - internal)


@pytest.mark.statement("eq:retained_internal_energy_spectral")
@given(coarsenings(kinds=("internal",), loops=st.booleans()))
def test_retained_internal_energy_spectral(case):
    """U_a* L_a U_a = diag(lambda)."""
    C, _ = case
    eps = eps_of(C.fine.dtype)
    for a in clusters(C):
        L, U, _ = local(C, a)
        expected = np.diag(double(C.modes.eigenvalues(a)))
        assert_residual(U.conj().T @ L @ U - expected, L, U, U, n=len(L), eps=eps)
        assert_residual(C.internal_operator(a) - expected, L, U, U, n=len(L), eps=eps)


@pytest.mark.statement("thm:Galerkin_realization")
@given(coarsenings())
def test_galerkin_realization(case):
    """For every R, the Laplacian of the coarse sheaf is R* L R."""
    C, blocks = case
    exact = reference.galerkin(C.fine, C.partition, blocks)
    delta_c = reference.coboundary(C.sheaf)
    assert_blocks(C, delta_c.conj().T @ delta_c - exact)
    assert_blocks(C, sc.laplacian(C.sheaf).toarray() - exact)
    G = C.galerkin()
    assert_blocks(C, G.toarray() - exact)
    assert isinstance(G, scipy.sparse.csr_array)
    assert G.has_canonical_format
    assert G.dtype == C.sheaf.dtype == np.result_type(C.fine.dtype, C.prolongation.dtype)


@pytest.mark.statement("thm:Galerkin_realization")
@pytest.mark.parametrize("power", [-530, -40, 40, 400])
def test_scaling_the_basis_scales_the_coarse_coboundary(power):
    """Loops are linear in R, although R_a* L_a R_a underflows for the smallest scale."""
    F = sc.CellularSheaf.random(nx.complete_graph(6), 2, 2, seed=3)
    rng, s = np.random.default_rng(0), 2.0**power
    blocks = np.linalg.qr(rng.standard_normal((2, 6, 3)))[0]
    one = sc.coarsen(F, HALVES, basis=blocks)
    scaled = sc.coarsen(F, HALVES, basis=[s * B for B in blocks])
    assert scaled.sheaf.edge_dims.tolist() == one.sheaf.edge_dims.tolist() == [18, 3, 3]
    for name in ("tail_data", "head_data"):
        exact = getattr(one.sheaf, name)
        assert_residual(getattr(scaled.sheaf, name) - s * exact, s, exact, n=6)


def test_loop_rows_count_as_zero_relative_to_the_difference_of_their_maps():
    """Two large maps that nearly cancel contribute only their difference 1."""
    F = sc.CellularSheaf([[0, 0]], [[[1e8]]], [[[1e8 - 1]]])
    C = sc.coarsen(F, sc.Partition([0]), basis=[np.ones((1, 1))])
    assert C.sheaf.n_edges == 1
    assert_residual(sc.laplacian(C.sheaf).toarray() - 1, n=1)


def test_a_zero_column_does_not_turn_rounding_errors_into_a_loop():
    """Zero is relative to the largest column of R_a, at any position."""
    F = sc.gallery.bundle(nx.complete_graph(6), 3, seed=5)
    blocks = kernel_bases(F, HALVES, 0, mixed=False)
    for before, after in ((0, 1), (1, 0)):
        wide = [np.pad(B, ((0, 0), (before, after))) for B in blocks]
        C = sc.coarsen(F, HALVES, basis=wide)
        assert C.sheaf.n_edges == C.n_crossing_edges == 1


@pytest.mark.statement("cor:truncation_realization_errors")
@given(coarsenings(kinds=("internal",), loops=st.booleans()), st.integers(0, 999))
def test_truncation_realization_errors(case, seed):
    """The realization loss is sum lambda |z|^2 over retained modes; there is no coupling."""
    C, _ = case
    x = random_cochain(C.fine, seed)
    E, eps = sc.energy_ledger(C, x), eps_of(C.fine.dtype)
    z = np.split(double(C.pool(x)), C.sheaf.vertex_offsets[1:-1])
    for a in clusters(C):
        L, _, where = local(C, a)
        xa = double(x[where])
        kept = double(C.modes.eigenvalues(a)) @ np.abs(z[a]) ** 2
        energy = float((xa.conj() @ L @ xa).real)
        errors = E.retained_internal[a] - kept, E.discarded_internal[a] - (energy - kept)
        for error in (*errors, E.internal_coupling[a]):
            assert_residual(error, L, xa, xa, n=len(L), eps=eps)
    losses = np.array([E.realization_loss, E.truncation_loss])
    sums = [E.retained_internal.sum(), E.discarded_internal.sum()]
    assert_residual(losses - sums, reference.laplacian(C.fine), x, x, n=1, eps=eps)


def kernel_bases(F, P, seed, *, mixed, some=False):
    """Return bases of ker delta_a; "mixed" multiplies them, "some" takes the first half."""
    rng = np.random.default_rng(seed)
    blocks = []
    for a in range(P.n_clusters):
        B = dense_kernel(reference.internal_coboundary(F, P, a))
        if mixed:
            k = B.shape[1]
            B = B @ (np.triu(rng.standard_normal((k, k)), 1) + np.diag(rng.uniform(1, 2, k)))
        blocks.append(B[:, : (B.shape[1] + 1) // 2 if some else None].astype(F.dtype))
    return blocks


@pytest.mark.statement("eq:loopless_exact_realization")
@given(sheaves_with_partitions(), st.integers(0, 999), st.booleans(), st.booleans(), st.booleans())
def test_loopless_exact_realization(case, seed, mixed, some, loops):
    """If im R_a lies in ker L_a, delta_x* delta_x = L_Gal, and there are no loops."""
    F, P = case
    C = sc.coarsen(F, P, basis=kernel_bases(F, P, seed, mixed=mixed, some=some), loops=loops)
    assert C.sheaf.n_edges == C.n_crossing_edges
    exact = reference.galerkin(F, P, [C.block(a) for a in clusters(C)])
    assert_blocks(C, sc.laplacian(C.sheaf).toarray() - exact)
    assert_blocks(C, C.galerkin().toarray() - exact)


@pytest.mark.statement("prop:kernel_preservation_loopless")
@given(sheaves_with_partitions(), st.integers(0, 999), st.booleans(), st.booleans())
def test_kernel_preservation_row_by_row(case, seed, mixed, some):
    """The crossing rows of delta R are delta_x, and its internal rows are zero."""
    F, P = case
    C = sc.coarsen(F, P, basis=kernel_bases(F, P, seed, mixed=mixed, some=some))
    assert_crossing_rows(C, sc.coboundary(C.sheaf).toarray())
    for a in clusters(C):
        delta, U = reference.internal_coboundary(F, P, a), C.block(a)
        assert_residual(delta @ U, delta, U, n=max(*delta.shape, U.shape[1]), eps=eps_of(F.dtype))


def kernel_above(A, level):
    """Return right singular vectors with values up to ``level``, or None if that is unclear."""
    _, sigma, vh = np.linalg.svd(double(A))
    if ((sigma > level / 100) & (sigma < 100 * level)).any():
        return None
    return vh[int((sigma > level).sum()) :].conj().T


@pytest.mark.statement("prop:kernel_preservation_loopless")
@given(
    sheaves_with_partitions(kinds=STRUCTURED, scales=(1.0,), spread=False),
    st.integers(0, 999),
    st.booleans(),
    st.booleans(),
)
def test_kernel_preservation_as_subspaces(case, seed, mixed, some):
    """R(ker delta_x) is the intersection of ker delta and im R, found from principal angles."""
    F, P = case
    C = sc.coarsen(F, P, basis=kernel_bases(F, P, seed, mixed=mixed, some=some))
    delta, R = double(reference.coboundary(F)), double(C.prolongation.toarray())
    n, eps = max(*delta.shape, 1), eps_of(F.dtype)
    level = 30 * n * eps * size(delta) * max(size(R), 1)
    operators = sc.coboundary(C.sheaf).toarray(), delta
    kept, sections = (kernel_above(A, level) for A in operators)
    assume(kept is not None and sections is not None)
    lifted = R @ kept
    assert_residual(delta @ lifted, delta, R, n=n, eps=eps)  # lifted sections are sections
    assert dense_range(lifted).shape[1] == kept.shape[1]  # R is injective
    image = dense_range(R)
    sines = np.sqrt((1 - np.linalg.svd(sections.conj().T @ image)[1] ** 2).clip(min=0))
    tiny = 1e3 * n * np.sqrt(eps)
    assume(not ((sines > tiny / 10) & (sines < 10 * tiny)).any() or tiny > 0.1)
    if tiny < 0.1:
        assert kept.shape[1] == int((sines < tiny).sum())  # im R contains no other sections


# ---------------------------------------------------------------- docs/conventions.md, section 4


@pytest.mark.statement("section-4")
@given(coarsenings(kinds=ISOMETRIC, loops=st.booleans()), st.integers(0, 999))
def test_energy_ledger_closes(case, seed):
    """The lines add up to the fine energy in total and per cluster for every isometry R."""
    C, _ = case
    F = C.fine
    delta, eps = reference.coboundary(F), eps_of(C.sheaf.dtype)
    x = np.stack([random_cochain(F, seed), np.zeros(F.dim_c0, F.dtype)], axis=1)
    if F.dim_c0:
        smooth = np.linalg.svd(delta / max(size(delta), np.finfo(F.dtype).tiny))[2][-1].conj()
        # squares of smaller numbers underflow in single precision
        x[:, 1] = np.where(np.abs(smooth) > eps_of(F.dtype), smooth, 0)
    E = sc.energy_ledger(C, x)
    lines, n = np.array(list(E.lines.values())).astype(float), block_norms(C)[0]
    retained = E.galerkin_energy - E.realization_loss - E.retained_crossing
    assert_residual(retained, E.galerkin_energy, n=1, eps=eps)
    total = np.abs(lines).sum(axis=0)
    gap = np.divide(lines.sum(axis=0) - E.fine_energy, total, where=total > 0, out=0 * total)
    assert_residual(E.closure - gap, n=1)  # lines are in double precision for every type
    per_cluster = np.stack([E.retained_internal, E.discarded_internal, E.internal_coupling])
    for k, column in enumerate(x.T):
        sums = [(lines[:, k], E.fine_energy[k]), ([E.fine_energy[k]], size(delta @ column) ** 2)]
        for terms, energy in sums:
            B = size(delta) * size(column)
            assert_closes(terms, energy, B, n=max(n, default=1), eps=eps)
        for a in clusters(C):
            delta_a = reference.internal_coboundary(F, C.partition, a)
            xa = column[reference.cluster_coordinates(F, C.partition, a)]
            energy, B = size(delta_a @ xa) ** 2, size(delta_a) * size(xa)
            assert_closes(per_cluster[:, a, k], energy, B, n=n[a], eps=eps)


def columns_of(values, x):
    """Return a quantity with shape (K, h) or (h,), also for a cochain without columns."""
    values = np.asarray(values)
    return values if x.ndim == 2 else values[..., None]


@pytest.mark.statement("section-4")
@given(coarsenings(kinds=ISOMETRIC, loops=st.booleans()), st.booleans(), st.data())
def test_energy_ledger_line_by_line(case, is_complex, data):
    """Every line matches its definition, for cochains of any type with and without columns."""
    C, blocks = case
    F, P = C.fine, C.partition
    x = data.draw(cochains(F)) * (1 + 2j if is_complex else 1)
    E, exact = sc.energy_ledger(C, x), reference.energy_ledger(F, P, blocks, x)
    columns, eps = columns_of(x, x), eps_of(F.dtype)
    n = [max(*R_a.shape, 1) for R_a in blocks]
    for name in ("retained_internal", "discarded_internal", "internal_coupling", "discarded_norm2"):
        ours = getattr(E, name)
        assert ours.shape == (P.n_clusters, *x.shape[1:])
        assert not ours.flags.writeable
        assert name == "internal_coupling" or (ours >= 0).all()
        errors = columns_of(ours - getattr(exact, name), x)
        for a in clusters(C):
            delta_a = reference.internal_coboundary(F, P, a)
            factors = () if name == "discarded_norm2" else (delta_a, delta_a)
            for error, y in zip(errors[a], columns.T, strict=True):
                y = y[reference.cluster_coordinates(F, P, a)]
                assert_residual(error, *factors, y, y, n=n[a], eps=eps)
    delta_x, delta = reference.fine_crossing_coboundary(F, P), reference.coboundary(F)
    crossing = "retained_crossing", "crossing_coupling", "discarded_crossing"
    total = "fine_energy", "galerkin_energy", "realization_loss", "truncation_loss"
    for name in (*crossing, *total):
        ours, factor = getattr(E, name), delta_x if name in crossing else delta
        assert isinstance(ours, float) if x.ndim == 1 else ours.shape == x.shape[1:]
        assert name == "crossing_coupling" or (np.asarray(ours) >= 0).all()
        errors = columns_of(ours - getattr(exact, name), x)
        for error, y in zip(errors, columns.T, strict=True):
            assert_residual(error, factor, factor, y, y, n=max(n, default=1), eps=eps)
    assert isinstance(E.closure, float) if x.ndim == 1 else E.closure.shape == x.shape[1:]
    has_bound = C.modes is not None and C.modes.local_operator == "internal"
    assert (E.truncation_bound is not None) == has_bound


# ---------------------------------------------------------------- docs/conventions.md, section 5


@pytest.mark.statement("fact-1")
@given(coarsenings(kinds=ISOMETRIC))
def test_interlacing(case):
    """For every i, lambda_i(L) <= lambda_i(L_Gal); the crossing-only operator is <= L_Gal."""
    C, _ = case
    L, G = double(reference.laplacian(C.fine)), double(sc.laplacian(C.sheaf).toarray())
    X = double(crossing_coboundary(C))
    n, eps = max(len(L), 1), eps_of(C.sheaf.dtype)
    fine, coarse = np.linalg.eigvalsh(L), np.linalg.eigvalsh(G)
    assert_residual((fine[: len(coarse)] - coarse).max(initial=0.0), L, n=n, eps=eps)
    assert_residual(np.linalg.eigvalsh(G - X.conj().T @ X).min(initial=0.0), L, n=n, eps=eps)
    if len(coarse):  # norm(L_Gal) <= norm(L) holds as well
        assert_residual(max(coarse[-1] - fine[-1], 0.0), L, n=n, eps=eps)


def smallest_kept_out(F, P, ranks):
    """Return the smallest singular value of a discarded direction over all delta_a, or inf."""
    smallest = np.inf
    for a, r in enumerate(ranks):
        delta = double(reference.internal_coboundary(F, P, a))
        found = np.linalg.svd(delta, compute_uv=False) if delta.size else np.zeros(0)
        sigma = np.append(np.zeros(delta.shape[1] - len(found)), found[::-1])
        smallest = min([smallest, *sigma[r : r + 1]])
    return float(smallest)


@pytest.mark.statement("fact-2")
@given(sheaves_with_partitions(), st.integers(0, 3), st.booleans())
def test_global_sections_are_kept_if_every_local_section_is(case, more, loops):
    """If r_a >= dim ker L_a, global sections lie in im R and are those of the coarse sheaf."""
    F, P = case
    kernels = sc.local_modes(F, P, sc.ranks.kernel()).ranks
    C = sc.coarsen(F, P, kernels + more if more else sc.ranks.kernel(), loops=loops or more > 0)
    delta, R = double(reference.coboundary(F)), double(C.prolongation.toarray())
    sections = double(reference.global_sections(F))
    n, eps = max(*delta.shape, 1), eps_of(F.dtype)
    # sections are known to eps norm(delta) over the gap; eigenvectors of L_a to the square of that
    gap = smallest_kept_out(F, P, C.ranks)
    condition = max(size(delta) / gap, 1.0) ** (2 if more else 1) if gap > 0 else np.inf
    if sections.size and condition * n * eps < 1e-2:
        assert_residual(sections - R @ (R.conj().T @ sections), condition, sections, n=n, eps=eps)
    if not more:
        assert C.sheaf.n_edges == C.n_crossing_edges
    # the coarse sheaf has as many, unless rounding decides: positive eigenvalues of L_Gal are above
    # those of L
    L, G = delta.conj().T @ delta, double(sc.laplacian(C.sheaf).toarray())
    level = LIMIT * n * eps * size(L)
    fine, coarse = np.linalg.eigvalsh(L), np.linalg.eigvalsh(G)
    h0 = sections.shape[1]
    clear = len(fine) > h0 and (fine[h0:] > 100 * level).all()
    if clear and condition**2 * eps < 1e-2:
        assert int((coarse <= level).sum()) == h0


def shifted_blocks(F, singular, eps):
    """Return D_v plus the shift that a treatment of singular blocks adds."""
    blocks = [double(D) for D in reference.diagonal_blocks(F)]
    relative = eps * max(map(size, blocks), default=0.0)
    shift = {"pinv": 0.0, "regularize": relative, "augment": 1.0}[singular]
    return [D + shift * np.eye(len(D)) for D in blocks]


def assume_ranks_are_clear(F, blocks, singular="pinv"):
    """Reject examples in which rounding determines whether a D_v is singular."""
    for D in blocks:
        values = np.linalg.eigvalsh(D)
        level = 4 * len(D) * eps_of(F.dtype) * values.max(initial=0)
        lowest = level / 4 if singular == "pinv" else -np.inf
        assume(not ((values > lowest) & (values < 100 * level)).any())


def normalize(F, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.SingularDegreeWarning)
        return sc.normalize(F, *args)


@pytest.mark.statement("fact-5")
@given(
    sheaves(),
    st.sampled_from(["pinv", "regularize", "augment"]),
    st.sampled_from([1e-8, 1e-3, 10.0]),
)
def test_laplacian_of_the_normalized_sheaf_is_the_normalized_laplacian(F, singular, eps):
    """The Laplacian of normalize(F) is D^{-1/2} L D^{-1/2} for all treatments of singular D_v."""
    blocks = shifted_blocks(F, singular, eps)
    assume_ranks_are_clear(F, blocks, singular)
    N = normalize(F, singular, eps)
    assert N.dtype == F.dtype
    for name in ("edges", "vertex_dims", "edge_dims"):
        np.testing.assert_array_equal(getattr(N, name), getattr(F, name))
    exact, root = reference.normalized(F, singular, eps)
    errors = sc.laplacian(N).toarray() - exact
    at = [reference.vertex_coordinates(F, v) for v in range(F.n_vertices)]
    W, what = [root[np.ix_(i, i)] for i in at], {"eps": eps_of(F.dtype)}
    # an error of D_v^{-1/2} is eps times the condition of D_v; the worst vertex of a block counts,
    # not the whole matrix
    condition = [size(W_v) ** 2 * size(D) for W_v, D in zip(W, blocks, strict=True)]
    sizes = [np.sqrt(size(exact[np.ix_(i, i)])) for i in at]
    for u, v in np.ndindex(len(at), len(at)):
        worst, n = max(condition[u], condition[v]), max(len(at[u]), len(at[v]), 1)
        assert_residual(errors[np.ix_(at[u], at[v])], worst, sizes[u], sizes[v], n=n, **what)
    for e, (u, v) in enumerate(F.edges):
        for ours, fine, x in ((N.tail_map(e), F.tail_map(e), u), (N.head_map(e), F.head_map(e), v)):
            error, n = ours - fine @ W[x], max(len(at[x]), 1)
            assert_residual(error, fine, W[x], condition[x] or 1, n=n, **what)


@pytest.mark.statement("fact-6")
@given(sheaves(), st.integers(0, 999))
def test_dirichlet_energy_counts_every_edge_once(F, seed):
    """x* Delta x = energy(normalize(F), x), the sum over edges in one orientation."""
    assume_ranks_are_clear(F, shifted_blocks(F, "pinv", 0.0))
    x, N = random_cochain(F, seed), normalize(F)
    exact, root = reference.normalized(F)
    what = {"n": max(F.vertex_dims.max(initial=1), 1), "eps": eps_of(F.dtype)}
    value, delta = sc.energy(N, x), reference.coboundary(N)
    error = value - float((x.conj() @ exact @ x).real)
    assert_residual(error, root, root, reference.laplacian(F), x, x, **what)
    y = [x[reference.vertex_coordinates(F, v)] for v in range(F.n_vertices)]
    edge_by_edge = sum(
        size(double(N.tail_map(e)) @ y[u] - double(N.head_map(e)) @ y[v]) ** 2
        for e, (u, v) in enumerate(F.edges)
    )
    assert_residual(value - edge_by_edge, delta, delta, x, x, **what)
    X = np.stack([x, 2 * x], axis=1)  # for several channels, compare the trace
    assert_residual(sc.energy(N, X).sum() - 5 * value, delta, delta, x, x, **what)


# ---------------------------------------------------------------- docs/conventions.md, section 6


@pytest.mark.parametrize("scale", [1e-100, 1e-3, 1.0, 1e3, 1e100])
def test_multiplets_do_not_depend_on_the_scale_of_the_maps(scale):
    """Ties are relative to the operator, here with eigenvalues 0, 2, 2, 4 times a scale."""
    F = sc.CellularSheaf.constant(nx.cycle_graph(4))
    F, P = F.with_maps(scale * F.tail_data, scale * F.head_data), sc.Partition([0] * 4)
    for rank, whole in ((1, 1), (2, 3), (3, 3)):
        rule = sc.ranks.fixed(rank).whole_multiplets()
        assert sc.local_modes(F, P, rule).ranks.tolist() == [whole]
    for rule in (1, sc.ranks.kernel()):  # by eigenvectors and by singular vectors: norm(L, inf) = 4
        M = sc.local_modes(F, P, rule)
        assert_residual(M.operator_norms[0] - 4 * scale**2, 4 * scale**2, n=4)
        assert_residual(M.next_eigenvalues[0] - 2 * scale**2, 4 * scale**2, n=4)


def test_scores_of_kernel_modes_are_squared_singular_values():
    """A kernel extended to its multiplet retains a direction of score sigma^2 = 1.5e-10."""
    F = sc.CellularSheaf([[0, 1], [1, 2]], [[[1.0]], [[1e-5]]], [[[1.0]], [[1e-5]]])
    M = sc.local_modes(F, sc.Partition([0, 0, 0]), sc.ranks.kernel().whole_multiplets())
    assert M.ranks.tolist() == [2]
    assert_residual(M.scores - np.linalg.eigvalsh(reference.laplacian(F))[:2], 2.0, n=3)


# ---------------------------------------------------------------- hypotheses are needed


def _path(n=6):
    return sc.CellularSheaf.constant(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1))


def test_loopless_realization_fails_with_positive_modes():
    C = sc.coarsen(_path(), HALVES, 2, loops=False)
    missing = C.galerkin() - sc.laplacian(C.sheaf)
    assert size(missing) > 0.5
    skipped = {c.label: c.skipped_because for c in sc.verify(C).checks}
    assert "loops=False" in skipped["thm:Galerkin_realization"]


def test_principal_modes_do_not_satisfy_the_lambda_formulas():
    """For principal modes H_a is full, and the retained and discarded parts are coupled."""
    C = sc.coarsen(_path(), HALVES, 2, local_operator="principal")
    H = C.internal_operator(0)
    assert size(H - np.diag(C.modes.eigenvalues(0))) > 0.1 * size(H)
    assert abs(H[0, 1]) > 0.01 * size(H)
    E = sc.energy_ledger(C, np.arange(6.0) ** 2)
    assert np.abs(E.internal_coupling).max() > 0.1
    assert E.truncation_bound is None
