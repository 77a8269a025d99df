"""The paper's statements as properties, one test each, named by label: any sheaf, any partition, judged against the dense reference."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests import reference
from tests.helpers import assert_residual, eps_of, size
from tests.strategies import sheaves_with_partitions

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

RANKS = st.integers(0, 4)
OPERATORS = st.sampled_from(["internal", "principal"])


def own_basis(F, P, rank, seed, *, isometric):
    """Random blocks R_a, orthonormal or not, some of deficient rank."""
    rng = np.random.default_rng(seed)
    blocks = []
    for a in range(P.n_clusters):
        n = len(reference.cluster_coordinates(F, P, a))
        B = rng.standard_normal((n, min(rank, n)))
        if F.dtype.kind == "c":
            B = B + 1j * rng.standard_normal(B.shape)
        if isometric:
            B = np.linalg.qr(B)[0] if B.size else B
        elif B.shape[1] > 1 and rng.random() < 0.3:
            B[:, -1] = B[:, 0]
        blocks.append(B.astype(F.dtype))
    return blocks


@st.composite
def coarsenings(draw, kinds=("internal", "principal", "isometric", "any"), **options):
    """Pairs (coarsening, dense blocks R_a) for every kind of prolongation."""
    F, P = draw(sheaves_with_partitions(**options))
    kind = draw(st.sampled_from(kinds))
    rank = draw(RANKS)
    if kind in ("internal", "principal"):
        C = sc.coarsen(F, P, rank, local_operator=kind)
    else:
        C = sc.coarsen(F, P, basis=own_basis(F, P, rank, draw(st.integers(0, 999)), isometric=kind == "isometric"))
    return C, [C.block(a) for a in range(P.n_clusters)]


def block_norms(C):
    """(size n of each cluster's blocks, norm(R_a), norm(L[C_a, C_a])) for the factors of docs/conventions.md, section 3."""
    F, P = C.fine, C.partition
    L = reference.laplacian(F)
    where = [reference.cluster_coordinates(F, P, a) for a in range(P.n_clusters)]
    return (
        [max(len(i), int(r)) for i, r in zip(where, C.ranks, strict=True)],
        [size(C.block(a)) for a in range(P.n_clusters)],
        [size(L[np.ix_(i, i)]) for i in where],
    )


def assert_blocks(C, difference):
    """Judge a coarse matrix that ought to vanish block by block, each against the factors of its own two clusters."""
    n, R, L = block_norms(C)
    offsets = C.sheaf.vertex_offsets
    for a in range(len(n)):
        for b in range(len(n)):
            D = difference[offsets[a] : offsets[a + 1], offsets[b] : offsets[b + 1]]
            roots = (np.sqrt(L[a]), np.sqrt(L[b]))
            assert_residual(D, R[a], R[b], *roots, n=max(n[a], n[b]), eps=eps_of(C.sheaf.dtype))


@given(coarsenings(), st.integers(0, 999))
def test_galerkin_energy_identity(case, seed):
    """eq:galerkin_energy_identity: z* L_Gal z = norm(delta R z)^2."""
    C, blocks = case
    R = reference.prolongation(C.fine, C.partition, blocks)
    Y = reference.coboundary(C.fine) @ R
    assert_blocks(C, C.galerkin().toarray() - Y.conj().T @ Y)


@given(coarsenings(kinds=("internal",)))
def test_local_spectral_optimality(case):
    """thm:local_spectral_optimality: the max over span U_a is lambda_r, and no subspace does better."""
    C, _ = case
    rng = np.random.default_rng(C.fine.dim_c0)
    for a in range(C.partition.n_clusters):
        L = reference.internal_laplacian(C.fine, C.partition, a).astype(np.result_type(C.fine.dtype, np.float64))
        U = C.modes.basis(a).astype(L.dtype)
        n, r = U.shape
        if r == 0:
            continue
        top = np.linalg.eigvalsh(U.conj().T @ L @ U)[-1]
        exact = np.linalg.eigvalsh(L)
        eps = eps_of(C.fine.dtype)
        assert_residual(top - C.modes.eigenvalues(a)[-1], L, U, U, n=n, eps=eps)
        assert_residual(exact[r - 1] - C.modes.eigenvalues(a)[-1], L, n=n, eps=eps)
        other = np.linalg.qr(U + rng.standard_normal((n, r)))[0]
        best = np.linalg.eigvalsh(other.conj().T @ L @ other)[-1]
        assert_residual(min(best - C.modes.eigenvalues(a)[-1], 0.0), L, n=n, eps=eps)


@given(coarsenings(kinds=("internal",)), st.integers(0, 999))
def test_truncation_loss(case, seed):
    """prop:truncation_loss: the three identities and the gap bound."""
    C, _ = case
    F, P = C.fine, C.partition
    x = np.random.default_rng(seed).standard_normal(F.dim_c0).astype(F.dtype)
    E = sc.energy_ledger(C, x)
    for a in range(P.n_clusters):
        where = reference.cluster_coordinates(F, P, a)
        L = reference.internal_laplacian(F, P, a).astype(np.result_type(F.dtype, np.float64))
        U, xa = C.modes.basis(a).astype(L.dtype), x[where].astype(L.dtype)
        n, r = U.shape
        Q = np.linalg.qr(np.hstack([U, np.eye(n)]))[0][:, r:n] if r < n else np.zeros((n, 0))
        values, V = np.linalg.eigh(Q.conj().T @ L @ Q) if Q.size else (np.zeros(0), np.zeros((0, 0)))
        alpha2 = np.abs((Q @ V).conj().T @ xa) ** 2
        eps = eps_of(F.dtype)
        assert_residual(alpha2.sum() - E.discarded_norm2[a], xa, xa, n=n, eps=eps)
        assert_residual(values @ alpha2 - E.discarded_internal[a], L, xa, xa, n=n, eps=eps)
        energy = float((xa.conj() @ L @ xa).real)
        gap = float(C.modes.next_eigenvalues[a])
        if np.isfinite(gap):
            assert_residual(max(E.discarded_norm2[a] * gap - energy, 0.0), L, xa, xa, n=n, eps=eps)
        else:
            assert E.truncation_bound[a] == 0


@given(coarsenings())
def test_galerkin_energy_decomposition(case):
    """thm:galerkin_energy_decomposition: L_Gal = delta_x* delta_x + blockdiag(R_a* L_a R_a), rows of delta_x as in delta R."""
    C, blocks = case
    F, P = C.fine, C.partition
    rows = int(C.sheaf.edge_offsets[C.n_crossing_edges])
    X = sc.coboundary(C.sheaf).toarray()[:rows]
    assert_residual(X - reference.crossing_coboundary(F, P, blocks), reference.coboundary(F), *_largest(C, blocks),
                    n=max(F.dim_c0, 1), eps=eps_of(C.sheaf.dtype))  # fmt: skip
    assert len(C.crossing_rows) == rows
    H = reference.block_diagonal(
        [reference.retained_internal_operator(F, P, blocks, a) for a in range(P.n_clusters)], C.sheaf.dtype
    )
    assert_blocks(C, C.galerkin().toarray() - X.conj().T @ X - H)


def _largest(C, blocks):
    return (max([size(B) for B in blocks], default=1.0) or 1.0,)


@given(coarsenings(kinds=("internal",)))
def test_retained_internal_energy_spectral(case):
    """eq:retained_internal_energy_spectral: U_a* L_a U_a = diag(lambda)."""
    C, blocks = case
    for a, U in enumerate(blocks):
        L = reference.internal_laplacian(C.fine, C.partition, a)
        H = C.internal_operator(a)
        eps = eps_of(C.fine.dtype)
        assert_residual(U.conj().T @ L @ U - np.diag(C.modes.eigenvalues(a)), L, U, U, n=len(L), eps=eps)
        assert_residual(H - np.diag(C.modes.eigenvalues(a)), L, U, U, n=len(L), eps=eps)


@given(coarsenings())
def test_galerkin_realization(case):
    """thm:Galerkin_realization: the coarse sheaf's own Laplacian is R* L R, loops halved and opposite."""
    C, blocks = case
    exact = reference.galerkin(C.fine, C.partition, blocks)
    delta_c = reference.coboundary(C.sheaf)
    assert_blocks(C, delta_c.conj().T @ delta_c - exact)
    assert_blocks(C, sc.laplacian(C.sheaf).toarray() - exact)
    for e in range(C.n_crossing_edges, C.sheaf.n_edges):
        np.testing.assert_array_equal(C.sheaf.tail_map(e), -C.sheaf.head_map(e))


@given(coarsenings(), st.data())
def test_galerkin_realization_two_more_levels(case, data):
    """The coarse sheaf is a sheaf: coarsening it again realizes (R_0 R_1)* L (R_0 R_1), and once more."""
    C, _ = case
    levels = [C]
    for _ in range(2):
        fine = levels[-1].sheaf
        labels = np.unique(np.arange(fine.n_vertices) // 2, return_inverse=True)[1]
        levels.append(sc.coarsen(fine, sc.Partition(labels), data.draw(RANKS), local_operator=data.draw(OPERATORS)))
    R = [level.prolongation.toarray() for level in levels]
    L = reference.laplacian(C.fine)
    exact = (R[0] @ R[1] @ R[2]).conj().T @ L @ (R[0] @ R[1] @ R[2])
    last = sc.laplacian(levels[-1].sheaf).toarray()
    factors = [item for matrix in R for item in (matrix, matrix)]
    assert_residual(last - exact, L, *factors, n=max(C.fine.dim_c0, 1), eps=eps_of(C.sheaf.dtype))


@given(coarsenings(kinds=("internal",)), st.integers(0, 999))
def test_truncation_realization_errors(case, seed):
    """cor:truncation_realization_errors: realization loss = sum lambda |z|^2, and the ledger has no coupling inside."""
    C, blocks = case
    x = np.random.default_rng(seed).standard_normal(C.fine.dim_c0).astype(C.fine.dtype)
    E, z = sc.energy_ledger(C, x), C.pool(x)
    for a in range(len(blocks)):
        lo, hi = C.sheaf.vertex_offsets[a : a + 2]
        L = reference.internal_laplacian(C.fine, C.partition, a)
        loss = (C.modes.eigenvalues(a).astype(float) * np.abs(z[lo:hi]).astype(float) ** 2).sum()
        xa = x[reference.cluster_coordinates(C.fine, C.partition, a)]
        eps = eps_of(C.fine.dtype)
        assert_residual(E.retained_internal[a] - loss, L, xa, xa, n=len(L), eps=eps)
        assert_residual(E.internal_coupling[a], L, xa, xa, n=len(L), eps=eps)


@given(coarsenings(kinds=("internal", "principal", "isometric")), st.integers(0, 999))
def test_energy_ledger_closes(case, seed):
    """docs/conventions.md, section 4: the six lines add up to the fine energy for every isometric R, near global sections too."""
    C, _ = case
    F = C.fine
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((F.dim_c0, 2)).astype(F.dtype)
    if F.dim_c0:
        x[:, 1] = np.linalg.svd(reference.coboundary(F) / max(size(reference.coboundary(F)), np.finfo(F.dtype).tiny))[
            2
        ][-1].conj()
    E = sc.energy_ledger(C, x)
    lines = np.array(list(E.lines.values()))
    n_eps = max(F.dim_c0, 1) * eps_of(F.dtype)
    delta = size(reference.coboundary(F))
    for column in range(2):
        B = delta * size(x[:, column])
        allowed = 30 * n_eps * B * (np.sqrt(np.abs(lines[:, column]).sum()) + n_eps * B)
        assert abs(lines[:, column].sum() - E.fine_energy[column]) <= allowed


@given(sheaves_with_partitions())
def test_loopless_exact_realization(case):
    """eq:loopless_exact_realization and prop:kernel_preservation_loopless: with kernel bases no loop is needed."""
    F, P = case
    blocks = [_kernel(reference.internal_coboundary(F, P, a)) for a in range(P.n_clusters)]
    C = sc.coarsen(F, P, basis=blocks)
    assert C.sheaf.n_edges == C.n_crossing_edges
    assert_blocks(C, sc.laplacian(C.sheaf).toarray() - reference.galerkin(F, P, blocks))
    Y = reference.coboundary(F) @ C.prolongation.toarray()
    crossing = np.zeros(F.dim_c1, bool)
    crossing[C.crossing_rows] = True
    eps = eps_of(F.dtype)
    X = sc.coboundary(C.sheaf).toarray()
    assert_residual(Y[C.crossing_rows] - X, reference.coboundary(F), *_largest(C, blocks), n=max(F.dim_c0, 1), eps=eps)
    assert_residual(Y[~crossing], reference.coboundary(F), *_largest(C, blocks), n=max(F.dim_c0, F.dim_c1, 1), eps=eps)


def _kernel(delta):
    """Right singular vectors of delta_a of singular value zero to working accuracy (docs/conventions.md, section 6)."""
    if 0 in delta.shape or not delta.any():
        return np.eye(delta.shape[1], dtype=delta.dtype)
    _, s, vh = np.linalg.svd(delta / np.abs(delta).max())
    rank = int((s > max(delta.shape) * np.finfo(delta.dtype).eps * s[0]).sum())
    return vh[rank:].conj().T.astype(delta.dtype)


# ---------------------------------------------------------------- hypotheses are needed


def _path(n=6):
    return sc.CellularSheaf.constant(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1))


def test_loopless_realization_fails_with_positive_modes():
    """Retained modes of positive energy and no loops: the coarse sheaf is not the Galerkin operator."""
    C = sc.coarsen(_path(), sc.Partition([0, 0, 0, 1, 1, 1]), 2, loops=False)
    missing = C.galerkin() - sc.laplacian(C.sheaf)
    assert size(missing) > 0.5
    skipped = {c.label: c.skipped_because for c in sc.verify(C).checks}
    assert "loops=False" in skipped["thm:Galerkin_realization"]


def test_principal_modes_do_not_satisfy_the_lambda_formulas():
    """With the principal operator H_a is full and not diag(lambda)."""
    C = sc.coarsen(_path(), sc.Partition([0, 0, 0, 1, 1, 1]), 2, local_operator="principal")
    H = C.internal_operator(0)
    assert size(H - np.diag(C.modes.eigenvalues(0))) > 0.1 * size(H)
    assert abs(H[0, 1]) > 0.01 * size(H)


def test_principal_modes_lose_global_sections():
    """H^0 of the path survives internal coarsening and is lost by the principal operator."""
    P = sc.Partition([0, 0, 0, 1, 1, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low = {op: np.linalg.eigvalsh(sc.coarsen(_path(), P, 1, local_operator=op).galerkin().toarray())[0]
               for op in ("internal", "principal")}  # fmt: skip
    assert abs(low["internal"]) < 30 * 6 * np.finfo(float).eps * 4
    assert low["principal"] > 0.01
