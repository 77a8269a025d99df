"""Results for a sheaf and its image under bases, numbering, orientation and scale; unions."""

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, size, ties_allowed
from tests.support.strategies import DTYPES, SCALES, sheaves, sheaves_with_partitions
from tests.theory.test_theorems import double, random_cochain

SEEDS = st.integers(0, 2**16)
RANKS = st.integers(0, 5)
OPERATORS = st.sampled_from(["internal", "internal", "principal"])
CHANGES = "vertex stalks", "edge stalks", "vertices", "edges", "clusters", "orientation"


class Image(NamedTuple):
    """A transformed sheaf and partition, and what leads to it."""

    sheaf: sc.CellularSheaf
    partition: sc.Partition
    T: np.ndarray  # C^0 of the original -> C^0 of the image, T* T = I
    clusters: np.ndarray  # index in the image of every cluster
    edges: np.ndarray  # index in the image of every edge
    scale: float  # factor of the maps


def unitary(rng, dims, dtype):
    """Draw orthogonal matrices, unitary ones for complex types."""
    found = [rng.standard_normal((2, d, d)) for d in dims.tolist()]
    found = [X + 1j * Y if dtype.kind == "c" else X for X, Y in found]
    return [np.linalg.qr(X)[0] if len(X) else X for X in found]


def image(F, P, seed, chosen=(), scale=1.0):
    """Return an image with another scale, and with the chosen ones of ``CHANGES``."""
    rng = np.random.default_rng(seed)
    numbers = {"vertices": F.n_vertices, "edges": F.n_edges, "clusters": P.n_clusters}
    p, q, c = (
        rng.permutation(n) if name in chosen else np.arange(n) for name, n in numbers.items()
    )
    stalks = {"vertex stalks": F.vertex_dims, "edge stalks": F.edge_dims}
    Q, W = (
        unitary(rng, dims, F.dtype) if name in chosen else [np.eye(d) for d in dims.tolist()]
        for name, dims in stalks.items()
    )
    flip = rng.random(F.n_edges) < 0.5 * ("orientation" in chosen)
    ends, tails, heads = np.zeros_like(F.edges), [None] * F.n_edges, [None] * F.n_edges
    for e, (u, v) in enumerate(F.edges.tolist()):
        sides = [
            (p[end], (scale * (W[e] @ M(e) @ Q[end].conj().T)).astype(F.dtype))
            for end, M in ((u, F.tail_map), (v, F.head_map))
        ]
        sides = sides[::-1] if flip[e] else sides
        ends[q[e]] = [end for end, _ in sides]
        tails[q[e]], heads[q[e]] = (M for _, M in sides)
    dims, labels = np.zeros(F.n_vertices, int), np.zeros(F.n_vertices, int)
    dims[p], labels[p] = F.vertex_dims, c[P.labels]
    none = np.zeros((0, 1, 1), F.dtype)
    G = sc.CellularSheaf(ends, tails or none, heads or none, vertex_dims=dims)
    T = np.zeros((F.dim_c0, F.dim_c0), np.result_type(F.dtype, np.float64))
    for v in range(F.n_vertices):
        rows, columns = reference.vertex_coordinates(G, p[v]), reference.vertex_coordinates(F, v)
        T[np.ix_(rows, columns)] = Q[v]
    return Image(G, sc.Partition(labels), T, c, q, scale)


def squares(F, P):
    """Return the squared norms of the maps at each cluster; maps of a loop do not cancel."""
    total = np.zeros(P.n_clusters)
    for e, (u, v) in enumerate(F.edges):
        total[P.labels[u]] += size(F.tail_map(e)) ** 2
        total[P.labels[v]] += size(F.head_map(e)) ** 2
    return total


def compare(F, P, im, rank, operator, seed):
    """Compare a coarsening with that of the image, and return both.

    Eigenvalues and energies are multiplied by the square of the scale.
    """
    x, square = random_cochain(F, seed, columns=2), im.scale**2
    y = (im.T @ x).astype(F.dtype)
    C = sc.coarsen(F, P, sc.ranks.fixed(rank).whole_multiplets(), local_operator=operator)
    ranks = np.zeros(im.partition.n_clusters, int)
    ranks[im.clusters] = C.ranks
    with ties_allowed():
        D = sc.coarsen(im.sheaf, im.partition, ranks, local_operator=operator)

    what = {"n": max(F.dim_c0, 1), "eps": eps_of(F.dtype)}
    norms = squares(F, P)
    top, conditions = norms.sum(), np.ones(P.n_clusters)
    for a, b in enumerate(im.clusters):
        values, next_value = C.modes.eigenvalues(a), C.modes.next_eigenvalues[a]
        assert_residual(D.modes.eigenvalues(b) / square - values, norms[a], **what)
        if np.isinf(next_value):
            assert np.isinf(D.modes.next_eigenvalues[b])
            continue
        assert_residual(D.modes.next_eigenvalues[b] / square - next_value, norms[a], **what)
        if len(values):
            conditions[a] = max(norms[a] / float(next_value - values[-1]), 1.0)
    worst = conditions.max(initial=1.0)
    isometry = np.sqrt(max(C.sheaf.dim_c0, 1))
    lifted = im.T.conj().T @ D.lift(D.pool(y))
    assert_residual(lifted - C.lift(C.pool(x)), x, worst, isometry, **what)
    if C.sheaf.dim_c0:
        first, second = (
            np.linalg.eigvalsh(double(sc.laplacian(G).toarray())) for G in (C.sheaf, D.sheaf)
        )
        assert_residual(second / square - first, top, worst, isometry**2, **what)
    first, second = sc.energy_ledger(C, x), sc.energy_ledger(D, y)
    for name, line in first.lines.items():
        assert_residual(second.lines[name] / square - line, top, x, x, worst, **what)
    return C, D


def loops_of(C):
    """Return the number of rows of each coarse loop by its vertex."""
    loops = slice(C.n_crossing_edges, None)
    return dict(zip(C.sheaf.edges[loops, 0].tolist(), C.sheaf.edge_dims[loops], strict=True))


@given(sheaves_with_partitions(), RANKS, OPERATORS, SEEDS, st.sets(st.sampled_from(CHANGES)))
def test_changes_of_bases_numbers_and_orientation_change_nothing(
    case, rank, operator, seed, chosen
):
    """Scales of 0.3 and 7 are changed too, which are no powers of 2."""
    im = image(*case, seed, chosen, scale=(1.0, 0.3, 7.0)[seed % 3])
    C, D = compare(*case, im, rank, operator, seed)
    assert D.n_crossing_edges == C.n_crossing_edges


@given(sheaves_with_partitions(scales=(1.0,)), RANKS, OPERATORS, SEEDS, st.integers(0, 2))
def test_scaling_maps_scales_eigenvalues_by_the_square(case, rank, operator, seed, which):
    """Scales are 1e-100 and 1e100 in double, 1e-12 and 1e12 in single precision."""
    scale = (3.0, *SCALES[case[0].tail_data.real.itemsize][1:])[which]
    compare(*case, image(*case, seed, scale=scale), rank, operator, seed)


@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: st.tuples(*[sheaves_with_partitions(dtypes=(dtype,))] * 2)
    ),
    RANKS,
    OPERATORS,
    SEEDS,
)
def test_coarsening_commutes_with_disjoint_union(parts, rank, operator, seed):
    """No threshold may depend on another part: their scales may differ by 1e200."""
    (F, P), (G, Q) = parts
    union, *_ = sc.disjoint_union([F, G])
    joined = sc.Partition(np.concatenate([P.labels, Q.labels + P.n_clusters]))
    coordinates = np.split(np.eye(union.dim_c0), [F.dim_c0], axis=1)
    clusters = np.split(np.arange(joined.n_clusters), [P.n_clusters])
    for part, T, numbers in zip(parts, coordinates, clusters, strict=True):
        im = Image(union, joined, T, numbers, np.arange(0), 1.0)
        C, D = compare(*part, im, rank, operator, seed)
        assert {numbers[a]: rows for a, rows in loops_of(C).items()} == loops_of(D)


@given(st.lists(sheaves(), max_size=4), SEEDS)
def test_split_is_the_inverse_of_union(parts, seed):
    """The coboundary of a union is block diagonal; each part gets its edges in their order."""
    F, starts, edge_starts = sc.disjoint_union(parts)
    assert F.dtype == np.result_type(np.float32, *[G.dtype for G in parts]) if parts else True
    assert starts.tolist() == [0, *np.cumsum([G.n_vertices for G in parts], dtype=int)]
    assert edge_starts.tolist() == [0, *np.cumsum([G.n_edges for G in parts], dtype=int)]
    pieces = sc.split(F, starts)
    blocks = [reference.coboundary(piece) for piece in pieces]
    whole = reference.block_diagonal(blocks, F.dtype)
    np.testing.assert_array_equal(reference.coboundary(F), whole)
    for again, G in zip(pieces, parts, strict=True):
        assert again.equals(G.with_maps(G.tail_data.astype(F.dtype), G.head_data.astype(F.dtype)))
    if parts:
        assert sc.disjoint_union(pieces)[0].equals(F)
    shuffled = image(F, sc.Partition(np.zeros(F.n_vertices, int)), seed, {"edges"})
    for i, piece in enumerate(sc.split(shuffled.sheaf, starts)):
        own = np.argsort(shuffled.edges[edge_starts[i] : edge_starts[i + 1]]) + edge_starts[i]
        assert piece.edges.tolist() == (F.edges[own] - starts[i]).tolist()
        for k, e in enumerate(own.tolist()):
            np.testing.assert_array_equal(piece.tail_map(k), F.tail_map(e))
            np.testing.assert_array_equal(piece.head_map(k), F.head_map(e))
