"""Invariance under bases, numbering, orientation, scale, disjoint unions and zero edges.

Every test draws a sheaf F and constructs an image F', related to F by isometries of C^0 and C^1,
by renumbered clusters and edges, and by a scale of the maps. `check` compares all results of the
library for F and F'. Coarse operators are compared twice: with the modes of F mapped to F' (for any
rank, without a gap), and with modes computed for F' (with condition number norm / gap at the cut).
"""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, size
from tests.support.strategies import DTYPES, SCALES, partitions, sheaves, sheaves_with_partitions

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

SEEDS = st.integers(0, 2**16)
OPERATORS = st.sampled_from(["internal", "internal", "principal"])


class Image(NamedTuple):
    """A transformed sheaf and partition, with the maps from the original."""

    sheaf: sc.CellularSheaf
    partition: sc.Partition
    T: np.ndarray  # C^0 of the original -> C^0 of the image, T* T = I
    S: np.ndarray  # C^1 of the original -> C^1 of the image
    clusters: np.ndarray  # index in the image of every cluster
    edges: np.ndarray  # index in the image of every edge
    scale: float  # factor of the maps


# ---------------------------------------------------------------- images


def image(
    F, P, *, vertices=None, edges=None, clusters=None, bases=(None, None), flip=None, scale=1.0
):
    """Renumber vertices, edges and clusters, change bases, flip edges and scale.

    Every vertex stalk and edge stalk gets a random unitary change of basis.
    """
    Q, W = bases
    n, m, K = F.n_vertices, F.n_edges, P.n_clusters
    p = np.arange(n) if vertices is None else np.array(vertices, dtype=np.int64)
    q = np.arange(m) if edges is None else np.array(edges, dtype=np.int64)
    c = np.arange(K) if clusters is None else np.array(clusters, dtype=np.int64)
    flip = np.zeros(m, bool) if flip is None else np.array(flip, bool)
    ends, maps = np.zeros((m, 2), np.int64), [[None, None] for _ in range(m)]
    for e, (u, v) in enumerate(F.edges.tolist()):
        pair = [scale * F.tail_map(e).astype(double(F)), scale * F.head_map(e).astype(double(F))]
        if Q is not None:
            pair = [pair[0] @ Q[u].conj().T, pair[1] @ Q[v].conj().T]
        if W is not None:
            pair = [W[e] @ pair[0], W[e] @ pair[1]]
        ends[q[e]] = p[[v, u]] if flip[e] else p[[u, v]]
        maps[q[e]] = [M.astype(F.dtype) for M in (pair[::-1] if flip[e] else pair)]
    dims, labels = np.zeros(n, np.int64), np.zeros(n, np.int64)
    dims[p], labels[p] = F.vertex_dims, c[P.labels]
    none = np.zeros((0, 1, 1), F.dtype)
    G = sc.CellularSheaf(
        ends, [M for M, _ in maps] or none, [M for _, M in maps] or none, vertex_dims=dims
    )
    T = isometry(F.vertex_dims, p, Q, double(F))
    S = isometry(F.edge_dims, q, W, double(F), signs=np.where(flip, -1, 1))
    return Image(G, sc.Partition(labels), T, S, c, q, scale)


def double(F):
    return np.result_type(F.dtype, np.float64)


def isometry(dims, numbers, bases, dtype, signs=None):
    """Return the isometry that moves block v to position numbers[v], with basis and sign."""
    moved = np.zeros(len(dims), np.int64)
    moved[numbers] = dims
    here, there = (np.concatenate([[0], np.cumsum(d)]).astype(int) for d in (dims, moved))
    T = np.zeros((here[-1], here[-1]), dtype)
    for v, d in enumerate(dims.tolist()):
        block = np.eye(d) if bases is None else bases[v]
        to = there[numbers[v]]
        T[to : to + d, here[v] : here[v] + d] = block if signs is None else signs[v] * block
    return T


def unitary(rng, dims, dtype):
    """Draw orthogonal matrices, unitary ones for complex types."""
    found = []
    for d in dims.tolist():
        X = rng.standard_normal((d, d)) + (
            1j * rng.standard_normal((d, d)) if dtype.kind == "c" else 0
        )
        found.append(np.linalg.qr(X)[0] if d else X)
    return found


# ---------------------------------------------------------------- sizes


class Sizes(NamedTuple):
    """Norms to which differences are compared.

    In these Laplacians a loop counts as two half-edges, so that its maps do not cancel.
    """

    whole: float
    internal: list
    principal: list


def sizes(F, P):
    rows, inside = [np.zeros((0, F.dim_c0))], []
    for e, (u, v) in enumerate(F.edges.tolist()):
        at_u, at_v = reference.vertex_coordinates(F, u), reference.vertex_coordinates(F, v)
        for where, M in (
            ((at_u, F.tail_map(e)), (at_v, F.head_map(e))) if u == v else ((None, None),)
        ):
            block = np.zeros((int(F.edge_dims[e]), F.dim_c0), double(F))
            if u == v:
                block[:, where] = M
            else:
                block[:, at_u], block[:, at_v] = F.tail_map(e), -F.head_map(e)
            rows.append(block)
            inside += [P.labels[u] == P.labels[v]] * len(block)
    D, inside = np.concatenate(rows), np.array(inside, bool)
    internal, principal = [], []
    for a in range(P.n_clusters):
        G = D[:, reference.cluster_coordinates(F, P, a)]
        principal.append(size(G.conj().T @ G))
        internal.append(size(G[inside].conj().T @ G[inside]))
    return Sizes(size(D.conj().T @ D), internal, principal)


# ---------------------------------------------------------------- comparisons


def check(F, P, im, rank, operator, seed, *, whole=True):
    """Compare a coarsening with that of its image, and return both.

    ``whole`` says that the image has no additional vertices.
    """
    s = sizes(F, P)
    x = np.random.default_rng(seed).standard_normal((F.dim_c0, 2))
    x = (x + 1j * x[::-1] if F.dtype.kind == "c" else x).astype(F.dtype)
    check_operators(F, P, im, s, x, whole=whole)

    rule = sc.ranks.fixed(rank).whole_multiplets()
    C = sc.coarsen(F, P, rule, local_operator=operator)
    local = s.internal if operator == "internal" else s.principal
    check_ties(F, P, im, rank, operator, local)

    # the modes of F, mapped to the image
    U = carried(C, im)
    blocks = [block.astype(F.dtype) for block in others(im)]
    for a, block in enumerate(U):
        blocks[im.clusters[a]] = block.astype(F.dtype)
    D = sc.coarsen(im.sheaf, im.partition, basis=blocks)
    exact = [np.eye(r) for r in C.ranks.tolist()]
    check_coarse(C, D, im, s, exact, [1.0] * len(exact), whole=whole)
    check_ledger(C, D, im, s, x, [1.0] * len(exact), whole=whole)

    # the modes computed for the image
    ranks = im_ranks(C.ranks, im)
    D = sc.coarsen(im.sheaf, im.partition, ranks, local_operator=operator)
    conditions = check_modes(C.modes, D.modes, im, local, U)
    rotations = [
        D.modes.basis(int(b)).conj().T.astype(double(F)) @ V
        for b, V in zip(im.clusters, U, strict=True)
    ]
    check_coarse(C, D, im, s, rotations, conditions, whole=whole)
    check_ledger(C, D, im, s, x, conditions, whole=whole)
    return C, D


def im_ranks(ranks, im):
    """Return the ranks in the order of the image; additional clusters retain one mode."""
    out = np.ones(im.partition.n_clusters, np.int64)
    out[im.clusters] = ranks
    return out


def others(im):
    """Return blocks of rank 0 for every cluster of the image."""
    F, P = im.sheaf, im.partition
    return [np.zeros((len(reference.cluster_coordinates(F, P, a)), 0)) for a in range(P.n_clusters)]


def where(im, F, P, a):
    """Return the coordinates of cluster a in the original and in the image."""
    here = reference.cluster_coordinates(F, P, a)
    return here, reference.cluster_coordinates(im.sheaf, im.partition, im.clusters[a])


def carried(C, im):
    """Return T_a U_a for every cluster of the original."""
    out = []
    for a in range(C.partition.n_clusters):
        here, there = where(im, C.fine, C.partition, a)
        out.append(im.T[np.ix_(there, here)] @ C.block(a).astype(double(C.fine)))
    return out


def check_operators(F, P, im, s, x, *, whole):
    """Compare coboundaries by edge, Laplacians by blocks of clusters, energies and spectra."""
    eps, s2 = eps_of(F.dtype), im.scale**2
    n = max(F.dim_c0, 1)
    d, d2 = (dense(sc.coboundary(G), F) for G in (F, im.sheaf))
    L, L2 = (dense(sc.laplacian(G), F) for G in (F, im.sheaf))
    D = im.S.conj().T @ (d2 / im.scale) @ im.T - d
    ends = [np.hypot(size(F.tail_map(e)), size(F.head_map(e))) for e in range(F.n_edges)]
    width = [int(F.vertex_dims[F.edges[e]].sum() + F.edge_dims[e]) for e in range(F.n_edges)]
    y, y2 = sc.edge_energy(F, x), sc.edge_energy(im.sheaf, moved(im, x)) / s2
    for e in range(F.n_edges):
        assert_residual(D[reference.edge_coordinates(F, e)], ends[e], n=width[e], eps=eps)
        assert_residual(y2[im.edges[e]] - y[e], ends[e], ends[e], x, x, n=width[e], eps=eps)
    E = im.T.conj().T @ (L2 / s2) @ im.T - L
    for a in range(P.n_clusters):
        i = reference.cluster_coordinates(F, P, a)
        for b in range(P.n_clusters):
            j = reference.cluster_coordinates(F, P, b)
            roots = np.sqrt(s.principal[a]), np.sqrt(s.principal[b])
            assert_residual(E[np.ix_(i, j)], *roots, n=max(len(i), len(j)), eps=eps)
    action = sc.laplacian_operator(im.sheaf) @ moved(im, x)
    assert_residual(im.T.conj().T @ (action / s2) - L @ x, s.whole, x, n=n, eps=eps)
    if whole:
        assert_residual(np.linalg.eigvalsh(L2 / s2) - np.linalg.eigvalsh(L), s.whole, n=n, eps=eps)
        assert_residual(
            sc.energy(im.sheaf, moved(im, x)) / s2 - sc.energy(F, x), s.whole, x, x, n=n, eps=eps
        )


def dense(A, F):
    return A.toarray().astype(double(F))


def moved(im, x):
    return (im.T @ x).astype(x.dtype)


def check_ties(F, P, im, rank, operator, local):
    """Check that a cut splits a multiplet in the image if it does in the original.

    Gaps near the threshold are ignored.
    """
    M = sc.local_modes(F, P, rank, operator)
    M2 = sc.local_modes(im.sheaf, im.partition, im_ranks(M.ranks, im), operator)
    level = np.sqrt(np.finfo(F.dtype).eps)
    for a, b in enumerate(im.clusters):
        n = int(M.clusters.dims[a])
        if not 0 < M.ranks[a] < n:
            assert not M2.tied[b]
            continue
        gap = float(M.next_eigenvalues[a]) - float(M.eigenvalues(a)[-1])
        norms = float(M.operator_norms[a]), float(M2.operator_norms[b]) / im.scale**2
        noise = 30 * n * eps_of(F.dtype) * local[a]
        if gap + noise <= level * min(norms) or gap - noise > level * max(norms):
            assert M2.tied[b] == M.tied[a]


def check_modes(M, M2, im, local, U):
    """Compare eigenvalues, first discarded eigenvalues and retained spaces.

    Returns the condition number norm / gap of each space.
    """
    F, s2 = M.sheaf, im.scale**2
    eps, conditions = eps_of(F.dtype), []
    for a, b in enumerate(im.clusters.tolist()):
        n, r = int(M.clusters.dims[a]), int(M.ranks[a])
        assert (M2.clusters.dims[b], M2.ranks[b]) == (n, r)
        what = {"n": max(n, 1), "eps": eps}
        assert_residual(M2.eigenvalues(b) / s2 - M.eigenvalues(a), local[a], **what)
        condition = 1.0
        if r == n:
            assert np.isinf(M2.next_eigenvalues[b])
            assert np.isinf(M.next_eigenvalues[a])
        else:
            assert_residual(M2.next_eigenvalues[b] / s2 - M.next_eigenvalues[a], local[a], **what)
            if r:
                gap = float(M.next_eigenvalues[a]) - float(M.eigenvalues(a)[-1])
                condition = max(local[a] / gap, 1.0)
        V = M2.basis(b).astype(double(F))
        assert_residual(V @ V.conj().T - U[a] @ U[a].conj().T, condition, **what)
        conditions.append(condition)
    return conditions


def check_coarse(C, D, im, s, rotations, conditions, *, whole):
    """Compare R* L R, the Laplacian of the coarse sheaf and its crossing rows.

    ``rotations`` map the coarse stalks of C to those of D.
    """
    F, P, s2 = C.fine, C.partition, im.scale**2
    eps, K = eps_of(F.dtype), P.n_clusters
    Z = np.zeros((D.sheaf.dim_c0, C.sheaf.dim_c0), double(F))
    for a, b in enumerate(im.clusters):
        rows, columns = (
            slice(*D.sheaf.vertex_offsets[b : b + 2]),
            slice(*C.sheaf.vertex_offsets[a : a + 2]),
        )
        Z[rows, columns] = rotations[a]
    dims = [max(len(reference.cluster_coordinates(F, P, a)), 1) for a in range(K)]
    # include the norm of an isometry among the factors
    n_eps = [
        (dims[a], max(np.sqrt(C.ranks[a]), 1.0) * conditions[a] * np.sqrt(s.principal[a]))
        for a in range(K)
    ]
    pairs = [(C.galerkin(), D.galerkin()), (sc.laplacian(C.sheaf), sc.laplacian(D.sheaf))]
    for plain, other in pairs:
        A, B = dense(plain, F), dense(other, F) / s2
        E = Z.conj().T @ B @ Z - A
        for a in range(K):
            for b in range(K):
                block = E[
                    slice(*C.sheaf.vertex_offsets[a : a + 2]),
                    slice(*C.sheaf.vertex_offsets[b : b + 2]),
                ]
                assert_residual(block, n_eps[a][1], n_eps[b][1], n=max(dims[a], dims[b]), eps=eps)
        if whole and len(A):
            worst = max(conditions)
            difference = np.linalg.eigvalsh(B) - np.linalg.eigvalsh(A)
            assert_residual(
                difference, s.whole, max(size(Z) ** 2, 1.0), worst, n=max(F.dim_c0, 1), eps=eps
            )
    X, Y = ambient(C, F), ambient(D, F) / im.scale
    E = im.S.conj().T @ Y @ Z - X
    for e in range(F.n_edges):
        near = P.labels[F.edges[e]]
        factor = np.hypot(size(F.tail_map(e)), size(F.head_map(e))) * max(
            np.sqrt(C.ranks[near].max(initial=1)), 1.0
        )
        condition = max(conditions[a] for a in near)
        assert_residual(
            E[reference.edge_coordinates(F, e)],
            factor,
            condition,
            n=max(dims[a] for a in near),
            eps=eps,
        )
    if whole and len(im.edges) == im.sheaf.n_edges:
        assert D.n_crossing_edges == C.n_crossing_edges


def ambient(C, F):
    """Return the coarse crossing rows, placed at the fine rows that they come from."""
    X = np.zeros((C.fine.dim_c1, C.sheaf.dim_c0), double(F))
    rows = int(C.sheaf.edge_offsets[C.n_crossing_edges])
    assert sorted(C.crossing_rows.tolist()) == sorted(reference.crossing_rows(C.fine, C.partition))
    X[C.crossing_rows] = dense(sc.coboundary(C.sheaf), F)[:rows]
    return X


def check_ledger(C, D, im, s, x, conditions, *, whole):
    """Compare all lines by cluster and in total, and the results of pool and lift."""
    F, P, s2 = C.fine, C.partition, im.scale**2
    eps, n = eps_of(F.dtype), max(F.dim_c0, 1)
    worst = max(conditions, default=1.0)
    if whole:
        lifted = im.T.conj().T @ D.lift(D.pool(moved(im, x)))
        assert_residual(
            lifted - C.lift(C.pool(x)), x, worst, np.sqrt(max(C.sheaf.dim_c0, 1)), n=n, eps=eps
        )
    E, E2 = sc.energy_ledger(C, x), sc.energy_ledger(D, moved(im, x))
    for a, b in enumerate(im.clusters):
        xa = x[reference.cluster_coordinates(F, P, a)]
        what = {"n": max(len(xa), 1), "eps": eps}
        assert_residual(E2.discarded_norm2[b] - E.discarded_norm2[a], xa, xa, conditions[a], **what)
        for name in ("retained_internal", "discarded_internal", "internal_coupling"):
            difference = getattr(E2, name)[b] / s2 - getattr(E, name)[a]
            assert_residual(difference, s.internal[a], xa, xa, conditions[a], **what)
        if E2.truncation_bound is not None:
            first, second = C.modes.next_eigenvalues[a], D.modes.next_eigenvalues[b] / s2
            if np.isinf(first):
                assert (E2.truncation_bound[b] == 0).all()
            elif first > 1e3 * n * eps * s.internal[a]:
                difference = E2.truncation_bound[b] * float(second) - E.truncation_bound[a] * float(
                    first
                )
                assert_residual(difference, s.internal[a], xa, xa, **what)
    if whole:
        for name in (
            "retained_crossing",
            "crossing_coupling",
            "discarded_crossing",
            "fine_energy",
            "galerkin_energy",
        ):
            assert_residual(
                getattr(E2, name) / s2 - getattr(E, name), s.whole, x, x, worst, n=n, eps=eps
            )


# ---------------------------------------------------------------- the tests

CASES = sheaves_with_partitions()
RANKS = st.integers(0, 5)


CHANGES = "vertex stalks", "edge stalks", "vertices", "edges", "clusters", "flip", "scale"


@given(CASES, RANKS, OPERATORS, SEEDS, st.sets(st.sampled_from(CHANGES), min_size=1))
def test_changes_of_bases_numbers_orientation_and_scale_change_nothing(
    case, rank, operator, seed, chosen
):
    """Each alone, or several together; the rows of reversed edges and loops change sign.

    Renumbering clusters reverses crossing edges, but the rows of the coarse coboundary keep their
    signs.
    """
    F, P = case
    rng = np.random.default_rng(seed)
    bases = unitary(rng, F.vertex_dims, F.dtype), unitary(rng, F.edge_dims, F.dtype)
    options = {
        "vertices": rng.permutation(F.n_vertices),
        "edges": rng.permutation(F.n_edges),
        "clusters": rng.permutation(P.n_clusters),
        "flip": rng.random(F.n_edges) < 0.5,
        "scale": rng.choice([0.3, 7.0]),
    }
    im = image(
        F,
        P,
        bases=[B if name in chosen else None for name, B in zip(CHANGES, bases, strict=False)],
        **{name: value for name, value in options.items() if name in chosen},
    )
    check(F, P, im, rank, operator, seed)


@given(sheaves_with_partitions(scales=(1.0,)), RANKS, OPERATORS, SEEDS, st.data())
def test_scaling_maps_scales_eigenvalues_by_the_square(case, rank, operator, seed, data):
    """If all maps are scaled by s, eigenvalues are scaled by s^2 and spaces stay the same.

    Scales are 1e-100 and 1e100 in double, 1e-12 and 1e12 in single precision.
    """
    F, P = case
    s = data.draw(
        st.sampled_from([f for f in SCALES[F.dtype.type(0).real.itemsize] if f != 1] + [3.0])
    )
    C, D = check(F, P, image(F, P, scale=s), rank, operator, seed)
    assert_edges(C, D)


@pytest.mark.parametrize(
    ("dtype", "operator"), list(zip(DTYPES, ["internal", "principal"] * 2, strict=True))
)
def test_scaling_maps_of_a_path_keeps_its_loops(dtype, operator):
    """Modes of a path have positive energy.

    An absolute threshold would drop their loops at small scales.
    """
    ends = np.stack([np.arange(7), np.arange(1, 8)], axis=1)
    F, P = (
        sc.CellularSheaf.random(ends, 2, 3, seed=1, dtype=dtype),
        sc.Partition([0, 0, 0, 0, 1, 1, 1, 1]),
    )
    for s in SCALES[F.dtype.type(0).real.itemsize]:
        C, D = check(F, P, image(F, P, scale=s), 3, operator, 0)
        assert_edges(C, D)
        assert D.sheaf.n_edges == 3


def assert_edges(C, D):
    """Assert that two coarse sheaves have the same crossing edges."""
    k = C.n_crossing_edges
    np.testing.assert_array_equal(D.sheaf.edges[:k], C.sheaf.edges[:k])
    np.testing.assert_array_equal(D.sheaf.edge_dims[:k], C.sheaf.edge_dims[:k])


# ---------------------------------------------------------------- kernels by singular values


@given(CASES, OPERATORS, SEEDS, st.data())
def test_local_kernels_do_not_depend_on_numbering_and_orientation(case, operator, seed, data):
    """Scales are powers of two, which do not change rounding errors."""
    F, P = case
    rng = np.random.default_rng(seed)
    scale = data.draw(st.sampled_from([1.0, 0.25, 1024.0]))
    im = image(
        F,
        P,
        vertices=rng.permutation(F.n_vertices),
        edges=rng.permutation(F.n_edges),
        clusters=rng.permutation(P.n_clusters),
        flip=rng.random(F.n_edges) < 0.5,
        scale=scale if F.largest_entry <= 1 else 1 / scale,  # stays in the range of the type
    )
    M, M2 = (
        sc.local_modes(*pair, sc.ranks.kernel(), operator)
        for pair in ((F, P), (im.sheaf, im.partition))
    )
    for a, b in enumerate(im.clusters.tolist()):
        here, there = where(im, F, P, a)
        assert M2.ranks[b] == M.ranks[a]
        U, V = im.T[np.ix_(there, here)] @ M.basis(a), M2.basis(b)
        L = reference.LOCAL_OPERATORS[operator](F, P, a)
        top = size(L)
        smallest = np.linalg.eigvalsh(L.astype(double(F)))[M.ranks[a] : M.ranks[a] + 1]
        if len(smallest) and smallest[0] > 1e-4 * top:
            assert_residual(
                U @ U.conj().T - V @ V.conj().T, top / smallest[0], n=len(here), eps=eps_of(F.dtype)
            )


# ---------------------------------------------------------------- disjoint unions


@st.composite
def two_cases(draw):
    """Draw two sheaves of the same scalar type, with different scales and a partition each."""
    dtypes = (draw(st.sampled_from(DTYPES)),)
    pairs = []
    for _ in range(2):
        F = draw(sheaves(dtypes=dtypes))
        pairs.append((F, draw(partitions(F.n_vertices))))
    return pairs


def embedding(parts, which, joined, P):
    """Return a part of a union as an image of the part."""
    F, Q = parts[which]
    before = parts[:which]
    v, e, c0, c1, k = (
        sum(get(*pair) for pair in before)
        for get in (
            lambda F, Q: F.n_vertices,
            lambda F, Q: F.n_edges,
            lambda F, Q: F.dim_c0,
            lambda F, Q: F.dim_c1,
            lambda F, Q: Q.n_clusters,
        )
    )
    T = np.eye(joined.dim_c0)[:, c0 : c0 + F.dim_c0]
    S = np.eye(joined.dim_c1)[:, c1 : c1 + F.dim_c1]
    assert v + F.n_vertices <= joined.n_vertices
    return Image(joined, P, T, S, k + np.arange(Q.n_clusters), e + np.arange(F.n_edges), 1.0)


@given(two_cases(), RANKS, OPERATORS, SEEDS)
def test_coarsening_commutes_with_disjoint_union(parts, rank, operator, seed):
    """The coarsening of a union is the union of the coarsenings."""
    F, starts, _ = sc.disjoint_union([G for G, _ in parts])
    assert F.dtype == parts[0][0].dtype
    P = sc.Partition(
        np.concatenate([parts[0][1].labels, parts[1][1].labels + parts[0][1].n_clusters])
    )
    rule = sc.ranks.fixed(rank).whole_multiplets()
    separate = []
    for which, (G, Q) in enumerate(parts):
        C, _ = check(G, Q, embedding(parts, which, F, P), rank, operator, seed, whole=False)
        separate.append(C)
    C = sc.coarsen(F, P, rule, local_operator=operator)
    np.testing.assert_array_equal(C.ranks, np.concatenate([D.ranks for D in separate]))
    eps, n = eps_of(F.dtype), max(F.dim_c0, 1)
    top = max(sizes(G, Q).whole for G, Q in parts)
    joined = np.sort(
        np.concatenate([np.linalg.eigvalsh(dense(sc.laplacian(G), F)) for G, _ in parts])
    )
    assert_residual(np.linalg.eigvalsh(dense(sc.laplacian(F), F)) - joined, top, n=n, eps=eps)
    assert_union(C, separate)
    # the ledger of the union is the sum of the ledgers
    x = np.random.default_rng(seed).standard_normal(F.dim_c0).astype(F.dtype)
    cut = parts[0][0].dim_c0
    E, pieces = (
        sc.energy_ledger(C, x),
        [sc.energy_ledger(D, y) for D, y in zip(separate, (x[:cut], x[cut:]), strict=True)],
    )
    blocks = [D.prolongation.toarray() for D in separate]
    same_modes = np.array_equal(C.prolongation.toarray(), reference.block_diagonal(blocks, F.dtype))
    event("the very same modes" if same_modes else "other modes")
    if same_modes:
        for name, total in E.lines.items():
            assert_residual(
                total - sum(piece.lines[name] for piece in pieces), top, x, x, n=n, eps=eps
            )
        for name, factors in (
            ("retained_internal", (top, x, x)),
            ("discarded_internal", (top, x, x)),
            ("internal_coupling", (top, x, x)),
            ("discarded_norm2", (x, x)),
        ):
            exact = np.concatenate([getattr(piece, name) for piece in pieces])
            assert_residual(getattr(E, name) - exact, *factors, n=n, eps=eps)
    # splitting the union returns the parts
    for again, (G, _) in zip(sc.split(F, starts), parts, strict=True):
        assert_same_sheaf(again, G)


def assert_union(C, separate):
    """Assert that the coarse union has the crossing edges, then the loops, of both parts."""
    first, second = separate
    K = first.partition.n_clusters
    k, m = first.n_crossing_edges, second.n_crossing_edges
    edges = [
        first.sheaf.edges[:k],
        second.sheaf.edges[:m] + K,
        first.sheaf.edges[k:],
        second.sheaf.edges[m:] + K,
    ]
    dims = [
        first.sheaf.edge_dims[:k],
        second.sheaf.edge_dims[:m],
        first.sheaf.edge_dims[k:],
        second.sheaf.edge_dims[m:],
    ]
    np.testing.assert_array_equal(C.sheaf.edges, np.concatenate(edges))
    np.testing.assert_array_equal(C.sheaf.edge_dims, np.concatenate(dims))
    cut = first.sheaf.dim_c0
    for G in (C.galerkin(), sc.laplacian(C.sheaf)):
        assert not G.toarray()[:cut, cut:].any()


def assert_same_sheaf(F, G):
    assert F.dtype == G.dtype
    for name in ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data"):
        np.testing.assert_array_equal(getattr(F, name), getattr(G, name))


@given(st.lists(sheaves(), max_size=4), SEEDS)
def test_split_is_the_inverse_of_union(parts, seed):
    """The coboundary of a union is block diagonal.

    It holds for shuffled or flipped edges; each part gets its edges in their order.
    """
    F, starts, edge_starts = sc.disjoint_union(parts)
    assert F.dtype == np.result_type(np.float32, *[G.dtype for G in parts]) if parts else True
    assert starts.tolist() == [0, *np.cumsum([G.n_vertices for G in parts], dtype=int)]
    assert edge_starts.tolist() == [0, *np.cumsum([G.n_edges for G in parts], dtype=int)]
    pieces = sc.split(F, starts)
    blocks = [reference.coboundary(piece) for piece in pieces]
    np.testing.assert_array_equal(
        reference.coboundary(F), reference.block_diagonal(blocks, F.dtype)
    )
    for again, G in zip(pieces, parts, strict=True):
        assert_same_sheaf(
            again, G.with_maps(G.tail_data.astype(F.dtype), G.head_data.astype(F.dtype))
        )
    again, *_ = sc.disjoint_union(sc.split(F, starts))
    if parts:
        assert_same_sheaf(again, F)
    rng = np.random.default_rng(seed)
    order = rng.permutation(F.n_edges)
    shuffled = image(F, sc.Partition(np.zeros(F.n_vertices, int)), edges=order).sheaf
    for i, piece in enumerate(sc.split(shuffled, starts)):
        own = np.argsort(order[edge_starts[i] : edge_starts[i + 1]]) + edge_starts[i]
        assert piece.edges.tolist() == (F.edges[own] - starts[i]).tolist()
        for k, e in enumerate(own.tolist()):
            np.testing.assert_array_equal(piece.tail_map(k), F.tail_map(e))
            np.testing.assert_array_equal(piece.head_map(k), F.head_map(e))


# ---------------------------------------------------------------- zero edges


@given(sheaves_with_partitions(graph=None), RANKS, OPERATORS, SEEDS, st.data())
def test_a_zero_edge_adds_only_zero_rows(case, rank, operator, seed, data):
    """A zero coarse edge is added only if no other edge joins the two clusters."""
    F, P = case
    if F.n_vertices == 0:
        return
    u, v = (data.draw(st.integers(0, F.n_vertices - 1)) for _ in range(2))
    at, d = data.draw(st.integers(0, F.n_edges)), data.draw(st.integers(0, 4))
    ends = np.insert(F.edges, at, [u, v], axis=0)
    tails, heads = ([get(e) for e in range(F.n_edges)] for get in (F.tail_map, F.head_map))
    tails.insert(at, np.zeros((d, F.vertex_dims[u]), F.dtype))
    heads.insert(at, np.zeros((d, F.vertex_dims[v]), F.dtype))
    G = sc.CellularSheaf(ends, tails, heads, vertex_dims=F.vertex_dims)
    moved_edges = np.arange(F.n_edges) + (np.arange(F.n_edges) >= at)
    rows = np.concatenate([reference.edge_coordinates(G, e) for e in moved_edges] or [[]]).astype(
        int
    )
    im = Image(
        G, P, np.eye(F.dim_c0), np.eye(G.dim_c1)[:, rows], np.arange(P.n_clusters), moved_edges, 1.0
    )
    np.testing.assert_array_equal(sc.laplacian(G).toarray(), sc.laplacian(F).toarray())
    assert sc.edge_energy(G, np.ones(F.dim_c0))[at] == 0
    pair = sorted(P.labels[[u, v]].tolist())
    known = {tuple(np.sort(P.labels[e]).tolist()) for e in F.edges}
    grows = int(pair[0] != pair[1] and tuple(pair) not in known)
    event(f"grows by {grows}, crossing {pair[0] != pair[1]}")
    C, D = check(F, P, im, rank, operator, seed)
    assert D.n_crossing_edges == C.n_crossing_edges + grows
    assert D.sheaf.dim_c1 == C.sheaf.dim_c1 + (d if pair[0] != pair[1] else 0)
    assert D.sheaf.n_edges == C.sheaf.n_edges + grows
    assert not ambient(D, F)[reference.edge_coordinates(G, at)].any()
