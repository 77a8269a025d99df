"""Construction of a sheaf from its Laplacian: an edge for every off-diagonal block, and loops.

An off-diagonal block is -B = U S V* and becomes an edge with the maps U S^(1/2) U* and
U S^(1/2) V*, which subtract U S U* and V S V* from the diagonal blocks at its ends. If the
remainder is indefinite, the maps are scaled: after scaling the diagonal blocks to the identity, an
edge between u and v subtracts y_v / y_u times as much at u, where y > 0 is the lowest eigenvector
of I - N, and N is the matrix of block norms. For stalks of dimension 1 this finds a sheaf whenever
there is one with these edges: for matrices of factor width 2 (Boman, Chen, Parekh, Toledo, 2005).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.linalg

from sheafcoarsen._support import (
    RESIDUAL_LIMIT,
    csr_matrix,
    dimensions,
    eps_of,
    is_scalar,
    offsets,
    range_of_blocks,
    scalar_array,
    scalar_type,
    vertex_count,
    whole_number,
    zero_level,
)

MatrixLike: TypeAlias = scipy.sparse.sparray | scipy.sparse.spmatrix | npt.ArrayLike
"""A sparse or dense matrix."""


class Blocks(NamedTuple):
    """Dense blocks of a matrix: block k is entries[starts[k]:starts[k + 1]], row-major."""

    pairs: np.ndarray  # (k, 2) vertices of the rows and columns of each block
    starts: np.ndarray  # (k + 1,)
    entries: np.ndarray


class Stack(NamedTuple):
    """Blocks of equal shape."""

    where: np.ndarray  # indices of the blocks
    blocks: np.ndarray  # (len(where), rows, columns)


class Maps(NamedTuple):
    """Edge maps of equal shape."""

    where: np.ndarray
    tail: np.ndarray
    head: np.ndarray


def sheaf_of_laplacian(
    L: Any, dims: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of a sheaf with Laplacian L.

    They are edges, vertex dims, edge dims, tail data and head data, with sorted edges (u, v) with
    u < v, then sorted loops.
    """
    matrix = _square_matrix(L)
    dims = _stalk_dims(dims, matrix.shape[0])
    matrix = _hermitian(matrix, dims)
    diagonal, beside = _blocks(matrix, dims)
    _refuse_indefinite(diagonal, dims)
    stacks = _stacks(beside, dims)
    maps = [_maps(stack.where, *_factors(-stack.blocks)) for stack in stacks]
    rest = _rest(diagonal, beside.pairs, maps)
    loops, bad = _loops(rest, diagonal, beside.pairs, dims)
    if bad is not None:
        scaled = _unequal_shares(stacks, beside, diagonal, dims)
        if scaled is not None:
            maps = scaled
            rest = _rest(diagonal, beside.pairs, maps)
            loops, still = _loops(rest, diagonal, beside.pairs, dims)
            bad = None if still is None else bad
    if bad is not None:
        raise ValueError(_too_small(*bad))
    return _assembled(beside, maps, loops, dims)


# ---------------------------------------------------------------- the matrix


def _square_matrix(L: Any) -> scipy.sparse.csr_array:
    sparse = scipy.sparse.issparse(L)
    if not sparse:
        L = scalar_array("L", L)
    if L.ndim != 2 or L.shape[0] != L.shape[1]:
        raise ValueError(f"`L` must be a square matrix, got shape {L.shape}")
    vertex_count("L", L.shape[0])
    scalar = np.dtype(float) if L.dtype.kind in "biu" else scalar_type("L", L.dtype)
    matrix = csr_matrix("L", L) if sparse else scipy.sparse.csr_array(L)
    matrix = matrix.astype(scalar, copy=False)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if bad.size:
        i = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        j = int(matrix.indices[bad[0]])
        raise ValueError(f"`L` must be finite, got {matrix.data[bad[0]]} at ({i}, {j})")
    return matrix


def _stalk_dims(dims: npt.ArrayLike, size: int) -> np.ndarray:
    if is_scalar("dims", dims):
        one = whole_number("dims", dims, at_least=1)
        if size % one:
            raise ValueError(
                f"`dims` = {one} does not divide the size of `L`, {size}: pass one dimension for "
                f"each vertex"
            )
        return np.full(size // one, one, dtype=np.int64)
    found = dimensions("dims", dims, len(np.asarray(dims)), "vertex")
    if found.sum() != size:
        raise ValueError(
            f"`dims` must sum to the size of `L`, {size}, got {found.sum()} for {len(found)} "
            f"vertices"
        )
    return found


def _hermitian(matrix: scipy.sparse.csr_array, dims: np.ndarray) -> scipy.sparse.csr_array:
    """Return the Hermitian part of a matrix that is Hermitian up to rounding."""
    adjoint = scipy.sparse.csr_array(matrix.conj().T)
    difference = scipy.sparse.coo_array(matrix - adjoint)
    largest = float(np.abs(matrix.data).max(initial=0))
    allowed = RESIDUAL_LIMIT * eps_of(matrix.dtype) * largest
    bad = np.flatnonzero(np.abs(difference.data) > allowed)
    if bad.size:
        i, j = (int(axis[bad[0]]) for axis in difference.coords)
        starts = offsets(dims)
        u, v = (int(np.searchsorted(starts, k, side="right")) - 1 for k in (i, j))
        raise ValueError(
            f"`L` must be Hermitian, but its block ({u}, {v}) is not the adjoint of block "
            f"({v}, {u}): entries {matrix[i, j]:.6g} at ({i}, {j}) and {matrix[j, i]:.6g} at "
            f"({j}, {i}) differ by {np.abs(difference.data[bad[0]]):.2g}; if that is rounding, "
            f"pass (L + L.conj().T) / 2"
        )
    half = matrix.dtype.type(0.5)
    result = scipy.sparse.csr_array(half * matrix + half * adjoint)
    result.eliminate_zeros()
    return result


def _blocks(matrix: scipy.sparse.csr_array, dims: np.ndarray) -> tuple[Blocks, Blocks]:
    """Return all diagonal blocks, and the nonzero blocks above the diagonal sorted by (u, v)."""
    n = len(dims)
    starts = offsets(dims)
    vertex = np.repeat(np.arange(n), dims)
    entries = matrix.tocoo()
    i, j = (axis.astype(np.int64) for axis in entries.coords)
    u, v = vertex[i], vertex[j]
    above = u < v
    keys, place = np.unique(u[above] * n + v[above], return_inverse=True)
    pairs = np.stack(np.divmod(keys, max(n, 1)), axis=1).astype(np.int64).reshape(-1, 2)
    every = np.stack([np.arange(n), np.arange(n)], axis=1)
    found = []
    for chosen, which, ends in ((u == v, u[u == v], every), (above, place, pairs)):
        begins = offsets(dims[ends[:, 0]] * dims[ends[:, 1]])
        flat = np.zeros(int(begins[-1]), matrix.dtype)
        row, column = i[chosen] - starts[u[chosen]], j[chosen] - starts[v[chosen]]
        flat[begins[which] + row * dims[v[chosen]] + column] = entries.data[chosen]
        found.append(Blocks(ends, begins, flat))
    return found[0], found[1]


def _stacks(blocks: Blocks, dims: np.ndarray) -> list[Stack]:
    """Group blocks by shape."""
    shapes = dims[blocks.pairs]
    kinds, which = np.unique(shapes, axis=0, return_inverse=True)
    stacks = []
    for kind, (rows, columns) in enumerate(kinds.tolist()):
        where = np.flatnonzero(which.reshape(-1) == kind)
        flat = blocks.entries[range_of_blocks(blocks.starts, where)]
        stacks.append(Stack(where, flat.reshape(len(where), rows, columns)))
    return stacks


def _refuse_indefinite(diagonal: Blocks, dims: np.ndarray) -> None:
    """Raise an error for a diagonal block that is not positive semidefinite."""
    for stack in _stacks(diagonal, dims):
        if not stack.blocks.size:
            continue
        values = _eigenvalues(stack.blocks)
        size = np.abs(values).max(axis=1)
        allowed = RESIDUAL_LIMIT * dims[stack.where] * eps_of(values.dtype) * size
        bad = np.flatnonzero(values[:, 0] < -allowed)
        if bad.size:
            k = int(bad[0])
            raise ValueError(
                f"`L` is not the Laplacian of a sheaf: its diagonal block ({stack.where[k]}, "
                f"{stack.where[k]}) must be positive semidefinite, but has the eigenvalue "
                f"{values[k, 0]:.6g}"
            )


def _eigenvalues(blocks: np.ndarray) -> np.ndarray:
    return blocks[:, 0].real if blocks.shape[1] == 1 else np.linalg.eigvalsh(blocks)


# ---------------------------------------------------------------- edges


def _factors(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return U, S and V* of the thin singular value decomposition of each block."""
    if blocks.shape[1:] == (1, 1):
        sizes = np.abs(blocks)
        units = np.divide(blocks, sizes, out=np.ones_like(blocks), where=sizes > 0)
        return units, sizes[:, 0], np.ones_like(blocks)
    return np.linalg.svd(blocks, full_matrices=False)


def _maps(where: np.ndarray, U: np.ndarray, S: np.ndarray, Vh: np.ndarray) -> Maps:
    """Return the maps W S^(1/2) U* and W S^(1/2) V*, where W is U or V, whichever is smaller."""
    roots = np.sqrt(S)[:, :, None]
    Uh, V = _adjoint(U), _adjoint(Vh)
    frame = U if U.shape[1] <= Vh.shape[2] else V
    return Maps(where, frame @ (roots * Uh), frame @ (roots * Vh))


def _adjoint(blocks: np.ndarray) -> np.ndarray:
    return blocks.conj().swapaxes(1, 2)


def _unequal_shares(
    stacks: list[Stack], beside: Blocks, diagonal: Blocks, dims: np.ndarray
) -> list[Maps] | None:
    """Return maps scaled by the vector of `_lowest_positive`, or None if they do not exist."""
    roots, inverses = _roots(diagonal, dims)
    factors, sizes = [], np.zeros(len(beside.pairs))
    for stack in stacks:
        u, v = beside.pairs[stack.where].T
        left, right = (_gathered(inverses, dims, ends) for ends in (u, v))
        U, S, Vh = _factors(-(left @ stack.blocks @ right))
        sizes[stack.where] = S.max(axis=1, initial=0)
        factors.append((U, S, Vh))
    eps = eps_of(diagonal.entries.dtype)
    y = _lowest_positive(beside.pairs, sizes, len(dims), eps)
    if y is None:
        return None
    reach = np.sqrt(_norm_bounds(diagonal, dims))
    found = []
    for stack, (U, S, Vh) in zip(stacks, factors, strict=True):
        u, v = beside.pairs[stack.where].T
        share = np.sqrt(y[v] / y[u]).astype(S.dtype)[:, None, None]
        _, tail, head = _maps(stack.where, U, S, Vh)
        tail = share * (tail @ _gathered(roots, dims, u))
        head = head / share @ _gathered(roots, dims, v)
        missed = np.abs(_adjoint(tail) @ head + stack.blocks).max(axis=(1, 2), initial=0)
        if (missed > RESIDUAL_LIMIT * eps * reach[u] * reach[v]).any():
            return None  # the block is nonzero where a diagonal block is zero
        found.append(Maps(stack.where, tail, head))
    return found


def _norm_bounds(diagonal: Blocks, dims: np.ndarray) -> np.ndarray:
    """Return d times the largest absolute value of every d x d diagonal block."""
    bounds = np.zeros(len(dims))
    for stack in _stacks(diagonal, dims):
        bounds[stack.where] = np.abs(stack.blocks).max(axis=(1, 2), initial=0)
    return dims * bounds


def _roots(diagonal: Blocks, dims: np.ndarray) -> tuple[dict, dict]:
    """Return square roots of the diagonal blocks, and the roots' pseudo-inverses, by dimension."""
    roots: dict = {}
    inverses: dict = {}
    for stack in _stacks(diagonal, dims):
        d = stack.blocks.shape[1]
        values, vectors = np.linalg.eigh(stack.blocks)
        level = zero_level(d, eps_of(values.dtype), values.max(axis=1, initial=0))[:, None]
        size = np.sqrt(np.maximum(values, 0))
        inverse = np.divide(1, size, out=np.zeros_like(size), where=values > level)
        number = np.zeros(len(dims), np.int64)
        number[stack.where] = np.arange(len(stack.where))
        for store, scale in ((roots, size), (inverses, inverse)):
            store[d] = (number, (vectors * scale[:, None, :]) @ _adjoint(vectors))
    return roots, inverses


def _gathered(store: dict, dims: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    """Return the matrices that belong to vertices with stalks of equal dimension."""
    number, matrices = store[int(dims[vertices[0]])]
    return matrices[number[vertices]]


def _lowest_positive(pairs: np.ndarray, sizes: np.ndarray, n: int, eps: float) -> np.ndarray | None:
    """Return the lowest eigenvector of I - N, or None if it is not positive.

    N is the symmetric matrix of ``sizes``, with relative errors of about ``eps``. Inverse iteration
    has a shift, since I - N may be singular, or indefinite by these errors.
    """
    rows, columns = pairs.T
    upper = scipy.sparse.coo_array((sizes, (rows, columns)), shape=(n, n)).tocsr()
    N = scipy.sparse.csr_array(upper + upper.T)
    shift = max(np.sqrt(np.finfo(float).eps), RESIDUAL_LIMIT * eps)
    A = scipy.sparse.csc_array((1 + shift) * scipy.sparse.eye_array(n) - N)
    try:
        solve = scipy.sparse.linalg.splu(A, permc_spec="MMD_AT_PLUS_A").solve
    except RuntimeError:  # A is singular, so I - N and L are indefinite
        return None
    y = np.ones(n)
    for _ in range(4):  # each step gains up to 8 digits
        y = solve(y)
        if not (np.isfinite(y).all() and (y > 0).all()):
            return None
    return y


# ---------------------------------------------------------------- loops


def _rest(diagonal: Blocks, pairs: np.ndarray, maps: list[Maps]) -> Blocks:
    """Return the diagonal blocks minus the contributions of the edges."""
    entries = diagonal.entries.copy()
    for where, tail, head in maps:
        for ends, part in ((pairs[where, 0], tail), (pairs[where, 1], head)):
            gram = _adjoint(part) @ part
            begins = diagonal.starts[ends]
            inside = np.arange(gram.shape[1] * gram.shape[2])
            np.subtract.at(entries, begins[:, None] + inside, gram.reshape(len(where), -1))
    return diagonal._replace(entries=entries)


def _loops(
    rest: Blocks, diagonal: Blocks, pairs: np.ndarray, dims: np.ndarray
) -> tuple[list[tuple[np.ndarray, np.ndarray]], tuple | None]:
    """Return loops as (vertex of every row, rows) by dimension, and the most indefinite block.

    The latter is (vertex, lowest eigenvalue of its remainder, bound on the rounding error) or None.
    """
    degrees = np.bincount(pairs.reshape(-1), minlength=len(dims))
    noise = (dims + degrees) * eps_of(rest.entries.dtype) * _norm_bounds(diagonal, dims)
    loops, worst, bad = [], 1.0, None
    for stack in _stacks(rest, dims):
        if not stack.blocks.size:
            continue
        values, vectors = np.linalg.eigh(stack.blocks)
        allowed = RESIDUAL_LIMIT * noise[stack.where]
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(values[:, 0] < 0, -values[:, 0] / allowed, 0)
        k = int(excess.argmax())
        if excess[k] > worst:
            worst, bad = float(excess[k]), (int(stack.where[k]), values[k, 0], allowed[k])
        kept = values > zero_level(1, 1, noise[stack.where])[:, None]
        rows = np.sqrt(np.maximum(values, 0))[:, :, None] * _adjoint(vectors)
        vertices = np.repeat(stack.where, kept.sum(axis=1))
        loops.append((vertices, rows[kept]))
    return loops, bad


def _too_small(vertex: int, lowest: float, allowed: float) -> str:
    return (
        f"no sheaf with one edge for each block of `L` was found: the diagonal block of vertex "
        f"{vertex} is too small for the balanced maps of its edges and leaves the eigenvalue "
        f"{lowest:.6g} (rounding errors may cause -{allowed:.2g}); build the sheaf from its maps"
    )


def _assembled(
    beside: Blocks,
    maps: list[Maps],
    loops: list[tuple[np.ndarray, np.ndarray]],
    dims: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the sheaf of all edges and loops; the loop rows of a vertex form one loop."""
    ranks = np.zeros(len(dims), np.int64)
    for vertices, _ in loops:
        ranks += np.bincount(vertices, minlength=len(dims))
    at = np.flatnonzero(ranks)
    pairs = np.concatenate([beside.pairs, np.stack([at, at], axis=1)])
    edge_dims = np.concatenate(
        [dims[beside.pairs].min(axis=1, initial=np.iinfo(int).max), ranks[at]]
    )
    data = []
    for end in (0, 1):
        starts = offsets(edge_dims * dims[pairs[:, end]])
        flat = np.zeros(int(starts[-1]), beside.entries.dtype)
        for stack in maps:
            flat[range_of_blocks(starts, stack.where)] = stack[1 + end].reshape(-1)
        if end == 0:
            number = np.zeros(len(dims), np.int64)
            number[at] = len(beside.pairs) + np.arange(len(at))
            for vertices, rows in loops:
                chosen = number[np.unique(vertices)]
                flat[range_of_blocks(starts, chosen)] = rows.reshape(-1)
        data.append(flat)
    return pairs, dims, edge_dims, data[0], data[1]
