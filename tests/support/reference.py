"""The oracle: every object of the paper, dense, slow and obvious, to be read with it.

One function for one object, named after it, with the paper's label. Loops over edges, no
cleverness, nothing imported from the library. ``F`` is a sheaf (used: ``n_vertices``, ``edges``,
``vertex_dims``, ``edge_dims``, ``tail_map``, ``head_map``, ``dtype``), ``P`` a partition (used:
``labels``), ``a`` a cluster, ``bases`` the list of R_a, ``x`` a fine cochain. Numbers such as
"conventions 4" are sections of docs/conventions.md.
"""

from typing import NamedTuple

import numpy as np


def norm2(y):
    """Return the squared Euclidean norm of a cochain, per column where it has columns."""
    return np.sum(np.abs(y) ** 2, axis=0)


def norm(A):
    """Return the Frobenius norm at any scale, by dividing by the largest entry (conventions 1)."""
    largest = np.abs(A).max(initial=0)
    return float(largest) * float(np.linalg.norm(np.abs(A) / largest)) if largest else 0.0


def inner(y, z):
    """Return <y, z>, conjugate-linear in y, per column where they have columns."""
    return np.sum(np.conj(y) * z, axis=0)


def block_diagonal(blocks, dtype):
    """Return the direct sum of matrices, empty ones included."""
    out = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), dtype)
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


# ---------------------------------------------------------------- the sheaf, section 2.1


def vertex_coordinates(F, v):
    """Return the indices of F(v) in C^0 (``eq:zero-cochains``)."""
    start = sum(int(d) for d in F.vertex_dims[:v])
    return list(range(start, start + int(F.vertex_dims[v])))


def edge_coordinates(F, e):
    """Return the indices of F(e) in C^1."""
    start = sum(int(d) for d in F.edge_dims[:e])
    return list(range(start, start + int(F.edge_dims[e])))


def coboundary(F):
    """Return delta: (delta x)_e = F_{u->e} x_u - F_{v->e} x_v, e = (u, v) (``eq:coboundary``)."""
    delta = np.zeros((int(F.edge_dims.sum()), int(F.vertex_dims.sum())), F.dtype)
    for e, (u, v) in enumerate(F.edges):
        rows = edge_coordinates(F, e)
        delta[np.ix_(rows, vertex_coordinates(F, u))] += F.tail_map(e)
        delta[np.ix_(rows, vertex_coordinates(F, v))] -= F.head_map(e)
    return delta


def laplacian(F):
    """Return L = delta* delta (``eq:sheaf-laplacian``)."""
    delta = coboundary(F)
    return delta.conj().T @ delta


def energy(F, x):
    """Return norm(delta x)^2 (``eq:sheaf-energy``)."""
    return norm2(coboundary(F) @ x)


def edge_energy(F, x):
    """Return norm((delta x)_e)^2 of every edge, the terms of ``eq:sheaf-energy``."""
    y = coboundary(F) @ x
    terms = [norm2(y[edge_coordinates(F, e)]) for e in range(len(F.edges))]
    return np.array(terms).reshape(len(F.edges), *y.shape[1:])


def diagonal_blocks(F):
    """Return all D_v = L_vv, loops included (``eq:app-sheaf-degree``, conventions 1)."""
    L = laplacian(F)
    coordinates = [vertex_coordinates(F, v) for v in range(F.n_vertices)]
    return [L[np.ix_(c, c)] for c in coordinates]


def normalized(F, singular="pinv", eps=1e-8):
    """Return D^{-1/2} L D^{-1/2} and D^{-1/2} (``eq:app-normalized-sheaf-laplacian``).

    By conventions 5 ``"pinv"`` takes D^{-1/2} on the range of each block, ``"regularize"`` stands
    for D + eps max_v norm(D_v) I, ``"augment"`` for D + I.
    """
    # in double precision, where a shift of 1e-8 does not drown
    delta = coboundary(F).astype(np.result_type(F.dtype, np.float64))
    L = delta.conj().T @ delta
    stacks = [delta[:, vertex_coordinates(F, v)] for v in range(F.n_vertices)]
    shift = {
        "pinv": 0.0,
        "regularize": eps * max((norm(A.conj().T @ A) for A in stacks), default=0.0),
        "augment": 1.0,
    }[singular]
    roots = []
    for A in stacks:  # D_v = A* A, whose small eigenvalues rounding would drown
        d = A.shape[1]
        sigma, adjoint = np.zeros(d), np.eye(d)
        if A.size:
            _, found, adjoint = np.linalg.svd(A)
            sigma[: len(found)] = found
        zero = 4 * d * np.finfo(F.dtype).eps * sigma.max(initial=0) if singular == "pinv" else 0
        sigma = np.hypot(sigma, np.sqrt(shift))
        inverse = np.array([1 / s if s > zero else 0 for s in sigma])
        roots.append(adjoint.conj().T * inverse @ adjoint)
    root = block_diagonal(roots, L.dtype)
    return root @ L @ root, root


def global_sections(F):
    """Return an orthonormal basis of ker delta by SVD (``eq:global-sections``, conventions 6)."""
    delta = coboundary(F)
    _, sigma, vh = np.linalg.svd(delta)
    level = max(delta.shape) * np.finfo(F.dtype).eps * sigma.max(initial=0)
    return vh[int((sigma > level).sum()) :].conj().T


# ---------------------------------------------------------------- elimination, conventions 12


class Schur(NamedTuple):
    """What elimination must come to, from a singular value decomposition of delta_elim."""

    laplacian: np.ndarray  # L / L_vv, on the kept coordinates
    kept: list  # coordinates
    eliminated: list
    extension: np.ndarray  # z -> x on the eliminated coordinates, of least energy and norm
    inverse: np.ndarray  # L_vv^+
    smallest: float  # singular value that counts as nonzero, the largest map being 1


def schur_complement(F, kept_vertices):
    """Return the generalized Schur complement of L and what comes with it.

    With delta = [A | -M], columns of kept and of eliminated vertices, and Q an orthonormal basis of
    the complement of im M, it is A* Q Q* A, and x = M^+ A z.
    """
    kept, eliminated = [], []
    for v in range(F.n_vertices):
        (kept if v in set(kept_vertices) else eliminated).extend(vertex_coordinates(F, v))
    delta = coboundary(F).astype(np.result_type(F.dtype, np.float64))
    unit = float(np.abs(delta).max(initial=0)) or 1.0
    A, M = delta[:, kept] / unit, -delta[:, eliminated] / unit
    U, sigma, adjoint = np.linalg.svd(M)
    level = max(M.shape) * np.finfo(F.dtype).eps * max(sigma.max(initial=0), 1.0)
    rank = int((sigma > level).sum())
    QA = U[:, rank:].conj().T @ A
    V = adjoint[:rank].conj().T / sigma[:rank]
    smallest = float(sigma[:rank].min(initial=1.0))
    return Schur(
        unit * (QA.conj().T @ QA) * unit,
        kept,
        eliminated,
        V @ U[:, :rank].conj().T @ A,
        V / unit @ (V / unit).conj().T,
        smallest,
    )


# ---------------------------------------------------------------- one cluster, section 3.2


def cluster(P, a):
    """Return the vertices of C_a, ascending (``eq:vertex_partition``)."""
    return [v for v in range(len(P.labels)) if P.labels[v] == a]


def n_clusters(P):
    """Return K (``eq:vertex_partition``)."""
    return max(P.labels.tolist(), default=-1) + 1


def cluster_coordinates(F, P, a):
    """Return the indices of C^0(G[C_a]) in C^0, vertices ascending (``eq:local_cochain_space``)."""
    return [i for v in cluster(P, a) for i in vertex_coordinates(F, v)]


def internal_edges(F, P, a):
    """Return E_a: edges with both ends in C_a, loops too (``eq:internal_coboundary_domain``)."""
    return [e for e, (u, v) in enumerate(F.edges) if P.labels[u] == a and P.labels[v] == a]


def internal_coboundary(F, P, a):
    """Return delta_a: the rows of E_a and columns of C_a (``eq:internal_coboundary``)."""
    rows = [i for e in internal_edges(F, P, a) for i in edge_coordinates(F, e)]
    return coboundary(F)[np.ix_(rows, cluster_coordinates(F, P, a))]


def internal_laplacian(F, P, a):
    """Return L_a = delta_a* delta_a (``eq:internal_sheaf_laplacian``)."""
    delta_a = internal_coboundary(F, P, a)
    return delta_a.conj().T @ delta_a


def principal_block(F, P, a):
    """Return L[C_a, C_a], what the paper's layer takes instead of L_a (section 5.1, Reduce)."""
    c = cluster_coordinates(F, P, a)
    return laplacian(F)[np.ix_(c, c)]


LOCAL_OPERATORS = {"internal": internal_laplacian, "principal": principal_block}
"""The two operators of conventions 2 whose eigenvectors are the modes."""


def local_modes(F, P, a, r, local_operator="internal"):
    """Return N_a eigenvalues and U_a, the first r eigenvectors (``eq:local_spectral_basis``)."""
    values, vectors = np.linalg.eigh(LOCAL_OPERATORS[local_operator](F, P, a))
    return values, vectors[:, :r]


# ---------------------------------------------------------------- prolongation, section 3.3


def patch(F, P, a, rings):
    """Return the vertices of T: the cluster and rings of neighbours (conventions 10).

    The most strongly coupled come first, while dim T <= 2 dim C.
    """
    T = list(cluster(P, a))
    largest = (
        max([norm(M(e)) for e in range(len(F.edges)) for M in (F.tail_map, F.head_map)], default=0)
        or 1
    )
    room, layer = sum(int(F.vertex_dims[v]) for v in T), T
    for _ in range(rings):
        coupling = {}
        for e, (u, v) in enumerate(F.edges.tolist()):
            product = norm((F.tail_map(e) / largest).conj().T @ (F.head_map(e) / largest))
            for near, far in ((u, v), (v, u)):
                if near in layer and far not in T and F.vertex_dims[far] > 0:
                    coupling[far] = coupling.get(far, 0.0) + product
        layer = []
        for v in sorted(coupling, key=lambda v: (-float(f"{coupling[v]:.5g}"), v)):
            if F.vertex_dims[v] <= room:
                layer.append(v)
                room -= int(F.vertex_dims[v])
        T = T + layer
        if len(layer) < len(coupling):
            break
    return T


def oversampled(F, P, a, target, rings):
    """Return K_C and M (I - K_C K_C*) with G = M* M of cluster a (conventions 10).

    The third result is how far rounding in A goes.
    """
    T = patch(F, P, a, rings)
    inner = [e for e, (u, v) in enumerate(F.edges.tolist()) if u in T and v in T]
    rows = [i for e in inner for i in edge_coordinates(F, e)]
    columns = [i for v in T for i in vertex_coordinates(F, v)]
    n, N = sum(int(F.vertex_dims[v]) for v in cluster(P, a)), len(columns)
    delta = coboundary(F).astype(np.result_type(F.dtype, np.float64))
    inside = delta[np.ix_(rows, columns)]
    L_T = inside.conj().T @ inside
    border = norm2(delta[:, columns]) - norm2(inside) > 1e-12 * norm2(inside).max(initial=0)
    _, sigma, vh = np.linalg.svd(inside)
    eps = np.finfo(F.dtype).eps
    K = vh[int((sigma > max(inside.shape) * eps * sigma.max(initial=0)).sum()) :].conj().T[:n]
    u, sigma, _ = np.linalg.svd(K, full_matrices=False)
    K = u[:, sigma > 4 * eps * N]
    A = L_T + 0.1 * target * np.eye(N)
    X = np.linalg.solve(A, np.eye(N)[:, :n])
    Y = np.linalg.solve(A, X)
    M = whole = np.concatenate([X[border], target * Y])
    for _ in range(2):  # what is left may be far smaller
        M = M - (M @ K) @ K.conj().T
    return K, M, norm(A) / (0.1 * target) * (norm(whole) / norm(M) if M.any() else 1.0)


def prolongation(F, P, bases):
    """Return R = blockdiag(R_a), rows as in the fine C^0 (``eq:global_block_prolongation``)."""
    ranks = [R_a.shape[1] for R_a in bases]
    R = np.zeros((int(F.vertex_dims.sum()), sum(ranks)), np.result_type(F.dtype, *bases))
    for a, R_a in enumerate(bases):
        columns = coarse_coordinates(bases, a)
        R[np.ix_(cluster_coordinates(F, P, a), columns)] = R_a
    return R


def coarse_coordinates(bases, a):
    """Return the indices of the stalk V_a in C_c^0 (``eq:global_coarse_cochain_space``)."""
    start = sum(R_b.shape[1] for R_b in bases[:a])
    return list(range(start, start + bases[a].shape[1]))


def galerkin(F, P, bases):
    """Return L_Gal = R* L R (``eq:sheaf_galerkin_operator``)."""
    R = prolongation(F, P, bases)
    return R.conj().T @ laplacian(F) @ R


# ---------------------------------------------------------------- the coarse sheaf, section 4


def crossing_edges(F, P):
    """Return the edges whose ends lie in two clusters, ascending (``eq:crossing_edge_set``)."""
    return [e for e, (u, v) in enumerate(F.edges) if P.labels[u] != P.labels[v]]


def crossing_groups(F, P):
    """Return {(a, b): E_ab} for a < b, sorted, edges ascending (``eq:crossing_edge_set``)."""
    groups = {}
    for e in crossing_edges(F, P):
        u, v = F.edges[e]
        pair = tuple(sorted((int(P.labels[u]), int(P.labels[v]))))
        groups.setdefault(pair, []).append(e)
    return dict(sorted(groups.items()))


def crossing_rows(F, P):
    """Return the row of the fine C^1 that each crossing row of the coarse C^1 comes from."""
    return [
        i for group in crossing_groups(F, P).values() for e in group for i in edge_coordinates(F, e)
    ]


def fine_crossing_coboundary(F, P):
    """Return delta_X: crossing rows of delta on the fine C^0, in coarse order (conventions 2)."""
    return coboundary(F)[crossing_rows(F, P)]


def retained_internal_operator(F, P, bases, a):
    """Return H_a = R_a* L_a R_a, which the loop-cell realizes (``eq:local_residual_operator``)."""
    return bases[a].conj().T @ internal_laplacian(F, P, a) @ bases[a]


# ---------------------------------------------------------------- the ledger, conventions 4


class Ledger(NamedTuple):
    """Every line of the ledger: arrays (K,) or (K, h) per cluster, then totals, numbers or (h,)."""

    retained_internal: np.ndarray
    discarded_internal: np.ndarray
    internal_coupling: np.ndarray
    discarded_norm2: np.ndarray
    retained_crossing: float | np.ndarray
    crossing_coupling: float | np.ndarray
    discarded_crossing: float | np.ndarray
    fine_energy: float | np.ndarray
    galerkin_energy: float | np.ndarray
    realization_loss: float | np.ndarray
    truncation_loss: float | np.ndarray


def energy_ledger(F, P, bases, x):
    """Say where the energy of x goes (``cor:truncation_realization_errors``, conventions 4).

    R_a are orthonormal; x_ret = R R* x, x_disc = x - x_ret (``eq:retained_discarded_definition``).
    """
    R = prolongation(F, P, bases)
    x_ret = R @ (R.conj().T @ x)
    x_disc = x - x_ret
    per_cluster = {name: [] for name in Ledger._fields[:4]}
    for a in range(len(bases)):
        c = cluster_coordinates(F, P, a)
        delta_a = internal_coboundary(F, P, a)
        ret, disc = delta_a @ x_ret[c], delta_a @ x_disc[c]
        per_cluster["retained_internal"].append(norm2(ret))
        per_cluster["discarded_internal"].append(norm2(disc))
        per_cluster["internal_coupling"].append(2 * inner(ret, disc).real)
        per_cluster["discarded_norm2"].append(norm2(x_disc[c]))
    real = np.zeros(0, np.result_type(F.dtype, x)).real.dtype
    shape = (len(bases), *x.shape[1:])
    lines = {name: np.array(values, real).reshape(shape) for name, values in per_cluster.items()}
    delta_X = fine_crossing_coboundary(F, P)
    ret, disc = delta_X @ x_ret, delta_X @ x_disc
    return Ledger(
        **lines,
        retained_crossing=norm2(ret),
        crossing_coupling=2 * inner(ret, disc).real,
        discarded_crossing=norm2(disc),
        fine_energy=energy(F, x),
        galerkin_energy=energy(F, x_ret),
        realization_loss=lines["retained_internal"].sum(axis=0),
        truncation_loss=lines["discarded_internal"].sum(axis=0),
    )


# ---------------------------------------------------------------- pooling, section 5.1, conventions
# 7


def lifted(F, X, h):
    """Return X, (N, d h), as (dim_c0, h): X_lifted[v d + i, c] = X[v, i h + c]."""
    out = np.zeros((int(F.vertex_dims.sum()), h), X.dtype)
    for v in range(F.n_vertices):
        for i, row in enumerate(vertex_coordinates(F, v)):
            for c in range(h):
                out[row, c] = X[v, i * h + c]
    return out


def pooled(F, P, bases, M, x):
    """Return X_pool = U_a* X_a, zero-padded to M modes (Reduce).

    Mode i and channel c stand at i h + c of row a.
    """
    h = x.shape[1]
    out = np.zeros((len(bases), M * h), np.result_type(F.dtype, x))
    for a, U_a in enumerate(bases):
        z = U_a.conj().T @ x[cluster_coordinates(F, P, a)]
        for i in range(len(z)):
            for c in range(h):
                out[a, i * h + c] = z[i, c]
    return out


def adjacency(F):
    """Return A of the sheaf's graph: 1 per edge, a loop once on the diagonal."""
    A = np.zeros((F.n_vertices, F.n_vertices))
    for u, v in F.edges:
        A[u, v] += 1
        if u != v:
            A[v, u] += 1
    return A


def connect(A, P):
    """Return A_c = S^T A S (Connect)."""
    S = np.zeros((len(P.labels), n_clusters(P)))
    for v, a in enumerate(P.labels):
        S[v, a] = 1
    return S.T @ A @ S


def local_fourier_basis(A, vertices, H):
    """Return U_{j,H}: first H eigenvectors of D - A of a subgraph (``eq:graph_fourier_modes``)."""
    A_j = np.array([[A[u, v] for v in vertices] for u in vertices], dtype=float)
    return np.linalg.eigh(np.diag(A_j.sum(axis=1)) - A_j)[1][:, :H]


# ---------------------------------------------------------------- diffusion, section 2.2


def diffuse(F, x, t):
    """Return exp(-t L) x by all eigenvectors of L in double (``eq:app-sheaf-diffusion``)."""
    delta = coboundary(F).astype(np.result_type(F.dtype, np.float64))
    values, V = np.linalg.eigh(delta.conj().T @ delta)
    return (V * np.exp(-t * np.maximum(values, 0))) @ (V.conj().T @ x)


def diffusion_step(F, X, W1, W2, activation):
    """Return X - activation(Delta (I (x) W1) X W2) (``eq:nsd-layer``)."""
    Delta, _ = normalized(F)
    return X - activation(Delta @ np.kron(np.eye(F.n_vertices), W1) @ X @ W2)
