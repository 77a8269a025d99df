"""Construction of a sheaf from its Laplacian: an edge for every off-diagonal block, and loops.

An off-diagonal block -B with B = U S V* becomes an edge with the maps U S^(1/2) U* and
U S^(1/2) V*, which subtract U S U* and V S V* from the diagonal blocks at its ends. If the
remainder is indefinite, the maps are scaled: after scaling the diagonal blocks to the identity, an
edge between u and v subtracts y_v / y_u times as much at u, where y > 0 is the lowest eigenvector
of I - N, and N is the matrix of block norms. For stalks of dimension 1 this finds a sheaf whenever
there is one with these edges: for matrices of factor width 2 (Boman, Chen, Parekh, Toledo, 2005).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.linalg

from sheafcoarsen._support import checks, linalg, ragged, threads
from sheafcoarsen.sheaf.graphs import finite_entries

MatrixLike: TypeAlias = scipy.sparse.sparray | scipy.sparse.spmatrix | npt.ArrayLike
"""A sparse or dense matrix."""


Stack: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Blocks of equal shape: indices of their edges (vertices for diagonal blocks), and the blocks."""

Maps: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Edge maps of equal shape: the edges, the maps at their tails, the maps at their heads."""


_thin_svd = functools.partial(np.linalg.svd, full_matrices=False)


class Blocks(NamedTuple):
    """Dense blocks of a Hermitian matrix."""

    pairs: np.ndarray  # (m, 2) vertices u < v of the nonzero blocks above the diagonal, sorted
    above: list[Stack]
    diagonal: list[Stack]  # of all vertices but those of dimension 0
    number: np.ndarray  # (n,) index of each diagonal block in its stack
    bounds: np.ndarray  # (n,) d times the largest absolute value of every d x d diagonal block
    eps: float


@threads.single_threaded_blas()
def sheaf_of_laplacian(
    L: Any, dims: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a sheaf with Laplacian L, with sorted edges (u < v), then sorted loops.

    They are edges, vertex dims, edge dims, tail data and head data.
    """
    matrix, dims = _checked(L, dims)
    blocks = _blocks(_hermitian(matrix), dims)
    # rounding errors of diagonal blocks minus the contributions of edges
    noise = np.bincount(blocks.pairs.reshape(-1), minlength=len(dims)) + dims
    noise = noise * blocks.eps * blocks.bounds
    allowed = linalg.RESIDUAL_LIMIT * noise
    maps = [(where, *_maps(*_thin_svd(-stack))) for where, stack in blocks.above]
    loops, lowest = _loops(blocks, maps, noise)
    if (bad := checks.first_true(lowest < -allowed)) is not None:
        maps = _unequal_shares(blocks) or maps
        loops, left = _loops(blocks, maps, noise)
        if (left < -allowed).any():
            raise ValueError(
                f"no sheaf with one edge for each block of `L` was found: the diagonal block of "
                f"vertex {bad} is too small for the balanced maps of its edges and leaves the "
                f"eigenvalue {lowest[bad]:.6g} (rounding errors may cause -{allowed[bad]:.2g}); "
                f"build the sheaf from its maps. If `L` has negative eigenvalues, no sheaf has it "
                f"as its Laplacian"
            )
    return _assembled(blocks.pairs, maps, loops, dims, matrix.dtype)


def _checked(L: Any, dims: npt.ArrayLike) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return a square matrix with finite entries, and the dimension of each vertex."""
    sparse = scipy.sparse.issparse(L)
    if not sparse:
        L = checks.scalar_array("L", L)
    if L.ndim != 2 or L.shape[0] != L.shape[1]:
        raise ValueError(f"`L` must be a square matrix, got shape {L.shape}")
    size = L.shape[0]
    checks.vertex_count("L", size)
    scalar = np.dtype(float) if L.dtype.kind in "biu" else checks.scalar_type("L", L.dtype)
    matrix = checks.csr_matrix("L", L) if sparse else scipy.sparse.csr_array(L)
    matrix = finite_entries("L", matrix.astype(scalar, copy=False))
    if checks.is_scalar("dims", dims):
        one = checks.whole_number("dims", dims, at_least=1)
        if size % one:
            raise ValueError(
                f"`dims` = {one} does not divide the size of `L`, {size}: pass one dimension for "
                f"each vertex"
            )
        return matrix, np.full(size // one, one, dtype=np.int64)
    found = checks.dimensions("dims", dims, len(np.asarray(dims)), "vertex")
    if found.sum() != size:
        raise ValueError(
            f"`dims` must sum to the size of `L`, {size}, got {found.sum()} for {len(found)} "
            f"vertices"
        )
    return matrix, found


def _hermitian(matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return the Hermitian part of a matrix that is Hermitian up to rounding."""
    adjoint = scipy.sparse.csr_array(matrix.conj().T)
    difference = scipy.sparse.coo_array(matrix - adjoint)
    largest = float(np.abs(matrix.data).max(initial=0))
    allowed = linalg.RESIDUAL_LIMIT * linalg.eps_of(matrix.dtype) * largest
    if (bad := checks.first_true(np.abs(difference.data) > allowed)) is not None:
        i, j = (int(axis[bad]) for axis in difference.coords)
        if i == j:
            raise ValueError(
                f"`L` must be Hermitian, but its diagonal entry ({i}, {i}) is not real: "
                f"{matrix[i, i]:.6g}. If L is symmetric, make a sheaf of L.real and one of L.imag "
                f"or -L.imag, whichever is positive semidefinite"
            )
        raise ValueError(
            f"`L` must be Hermitian, but its entries {matrix[i, j]:.6g} at ({i}, {j}) and "
            f"{matrix[j, i]:.6g} at ({j}, {i}) are not conjugate; if that is rounding, pass "
            f"(L + L.conj().T) / 2"
        )
    half = matrix.dtype.type(0.5)
    result = scipy.sparse.csr_array(half * matrix + half * adjoint)
    result.eliminate_zeros()
    return result


def _blocks(matrix: scipy.sparse.csr_array, dims: np.ndarray) -> Blocks:
    n = len(dims)
    starts = ragged.offsets(dims)
    vertex = np.repeat(np.arange(n), dims)
    entries = matrix.tocoo()
    i, j = (axis.astype(np.int64) for axis in entries.coords)
    u, v = vertex[i], vertex[j]
    above = u < v
    keys, place = np.unique(u[above] * n + v[above], return_inverse=True)
    pairs = np.stack(np.divmod(keys, max(n, 1)), axis=1).astype(np.int64).reshape(-1, 2)
    every = np.stack([np.arange(n), np.arange(n)], axis=1)
    grouped = []
    for chosen, which, ends in ((above, place, pairs), (u == v, u[u == v], every)):
        begins = ragged.offsets(dims[ends].prod(axis=1))
        flat = np.zeros(int(begins[-1]), matrix.dtype)
        row, column = i[chosen] - starts[u[chosen]], j[chosen] - starts[v[chosen]]
        flat[begins[which] + row * dims[v[chosen]] + column] = entries.data[chosen]
        grouped.append([found for found in ragged.stacks(flat, dims[ends]) if found[1].size])
    number, bounds = np.zeros(n, np.int64), np.zeros(n)
    for where, stack in grouped[1]:
        number[where] = np.arange(len(where))
        bounds[where] = stack.shape[1] * np.abs(stack).max(axis=(1, 2))
    blocks, diagonal = grouped
    return Blocks(pairs, blocks, diagonal, number, bounds, linalg.eps_of(matrix.dtype))


# ---------------------------------------------------------------- edges


def _maps(U: np.ndarray, S: np.ndarray, Vh: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the maps W S^(1/2) U* and W S^(1/2) V*, where W is U or V, whichever is smaller."""
    roots = np.sqrt(S)[:, :, None]
    frame = U if U.shape[1] <= Vh.shape[2] else _adjoint(Vh)
    return frame @ (roots * _adjoint(U)), frame @ (roots * Vh)


def _adjoint(blocks: np.ndarray) -> np.ndarray:
    return blocks.conj().swapaxes(1, 2)


def _unequal_shares(blocks: Blocks) -> list[Maps] | None:
    """Return maps scaled by the vector of `_lowest_positive`, or None if they do not exist."""
    pairs, above, diagonal, number, bounds, eps = blocks
    roots, inverses = {}, {}  # of the diagonal blocks, by dimension
    for _, stack in diagonal:
        d = stack.shape[1]
        values, vectors = np.linalg.eigh(stack)
        level = linalg.zero_level(d, eps, values.max(axis=1, initial=0))[:, None]
        size = np.sqrt(np.maximum(values, 0))
        inverse = np.divide(1, size, out=np.zeros_like(size), where=values > level)
        roots[d] = (vectors * size[:, None, :]) @ _adjoint(vectors)
        inverses[d] = (vectors * inverse[:, None, :]) @ _adjoint(vectors)
    factors, sizes = [], np.zeros(len(pairs))
    for where, stack in above:
        (u, v), (d, d_head) = pairs[where].T, stack.shape[1:]
        scaled = inverses[d][number[u]] @ stack @ inverses[d_head][number[v]]
        factors.append(_thin_svd(-scaled))
        sizes[where] = factors[-1][1].max(axis=1)
    y = _lowest_positive(pairs, sizes, len(bounds), eps)
    if y is None:
        return None
    reach = np.sqrt(bounds)
    found = []
    for (where, stack), (U, S, Vh) in zip(above, factors, strict=True):
        (u, v), (d, d_head) = pairs[where].T, stack.shape[1:]
        share = np.sqrt(y[v] / y[u]).astype(S.dtype)[:, None, None]
        tail, head = _maps(U, S, Vh)
        tail = share * (tail @ roots[d][number[u]])
        head = head / share @ roots[d_head][number[v]]
        missed = np.abs(_adjoint(tail) @ head + stack).max(axis=(1, 2))
        if (missed > linalg.RESIDUAL_LIMIT * eps * reach[u] * reach[v]).any():
            return None  # the block is nonzero where a diagonal block is zero
        found.append((where, tail, head))
    return found


def _lowest_positive(pairs: np.ndarray, sizes: np.ndarray, n: int, eps: float) -> np.ndarray | None:
    """Return the lowest eigenvector of I - N, or None if it is not positive.

    N is the symmetric matrix of ``sizes``, with relative errors of about ``eps``. Inverse iteration
    has a shift, since I - N may be singular, or indefinite by these errors; it is far below the
    second eigenvalue, which light edges make small.
    """
    rows, columns = pairs.T
    upper = scipy.sparse.coo_array((sizes, (rows, columns)), shape=(n, n)).tocsr()
    N = scipy.sparse.csr_array(upper + upper.T)
    A = scipy.sparse.csc_array((1 + linalg.RESIDUAL_LIMIT * eps) * scipy.sparse.eye_array(n) - N)
    try:
        solve = scipy.sparse.linalg.splu(A, permc_spec="MMD_AT_PLUS_A").solve
    except RuntimeError:  # A is singular, so I - N and L are indefinite
        return None
    y = np.ones(n)
    for _ in range(4):  # each step multiplies the error by shift / second eigenvalue
        y = solve(y)
        if not (np.isfinite(y).all() and (y > 0).all()):
            return None
    return y


# ---------------------------------------------------------------- loops


def _loops(
    blocks: Blocks, maps: list[Maps], noise: np.ndarray
) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Return loops as (vertex of each row, rows) per stalk dimension, and lowest eigenvalues (n,).

    The eigenvalues are those of the diagonal blocks minus the contributions of the edges.
    """
    rest = {stack.shape[1]: stack.copy() for _, stack in blocks.diagonal}
    for where, *ends in maps:
        for vertices, part in zip(blocks.pairs[where].T, ends, strict=True):
            d = part.shape[2]
            places = d * d * blocks.number[vertices][:, None] + np.arange(d * d)
            gram = (_adjoint(part) @ part).reshape(-1, d * d)
            np.subtract.at(rest[d].reshape(-1), places, gram)
    loops, lowest = [], np.zeros(len(noise))
    for where, stack in blocks.diagonal:
        values, vectors = np.linalg.eigh(rest[stack.shape[1]])
        lowest[where] = values[:, 0]
        kept = values > linalg.zero_level(1, 1, noise[where])[:, None]
        rows = np.sqrt(np.maximum(values, 0))[:, :, None] * _adjoint(vectors)
        loops.append((np.repeat(where, kept.sum(axis=1)), rows[kept]))
    return loops, lowest


def _assembled(
    pairs: np.ndarray,
    maps: list[Maps],
    loops: list[tuple[np.ndarray, np.ndarray]],
    dims: np.ndarray,
    dtype: np.dtype,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a sheaf with all edges and loops, at most one loop at each vertex."""
    ranks = sum(
        (np.bincount(vertices, minlength=len(dims)) for vertices, _ in loops), np.zeros_like(dims)
    )
    at = np.flatnonzero(ranks)
    loop_of = len(pairs) + np.cumsum(ranks > 0) - 1
    edges = np.concatenate([pairs, np.stack([at, at], axis=1)])
    edge_dims = np.concatenate([dims[pairs].min(axis=1), ranks[at]])
    starts = [ragged.offsets(edge_dims * dims[edges[:, end]]) for end in (0, 1)]
    tail, head = (np.zeros(int(begins[-1]), dtype) for begins in starts)
    for where, tails, heads in maps:
        tail[ragged.range_of_blocks(starts[0], where)] = tails.reshape(-1)
        head[ragged.range_of_blocks(starts[1], where)] = heads.reshape(-1)
    for vertices, rows in loops:
        tail[ragged.range_of_blocks(starts[0], loop_of[np.unique(vertices)])] = rows.reshape(-1)
    return edges, dims, edge_dims, tail, head
