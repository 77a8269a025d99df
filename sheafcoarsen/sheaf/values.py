"""User-supplied values on edges, and the maps of each kind of sheaf."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import (
    memory_for_entries,
    offsets,
    range_of_blocks,
    scalar_array,
    single_threaded_blas,
    whole_number,
)
from sheafcoarsen.sheaf.graphs import GraphArrays
from sheafcoarsen.sheaf.maps import check_unitary

EdgeValues: TypeAlias = str | npt.ArrayLike
"""One value per edge in edge order, or the name of an edge attribute."""


def edge_values(
    graph: GraphArrays,
    value: EdgeValues,
    name: str,
    *,
    shape: tuple[int, ...] = (),
    missing: float | None = None,
) -> np.ndarray:
    """Return one scalar or array per edge, given directly or as the name of an edge attribute.

    Parameters
    ----------
    graph : GraphArrays
    value : str or array_like
        An attribute's name, or the values in edge order.
    name : str
        Name of the argument in error messages.
    shape : tuple of int
        Shape of one edge's value; -1 means any size.
    missing : number, optional
        Value of edges without the attribute; by default a missing value is an error.
    """
    m = len(graph.edges)
    given = _attribute(graph, value, name, missing) if isinstance(value, str) else value
    # an empty list does not determine the shape of a value
    if shape and m == 0 and not (isinstance(given, np.ndarray) and given.ndim == 1 + len(shape)):
        return np.zeros((0, *(max(s, 1) for s in shape)))
    sizes = ", ".join("d" if s == -1 else str(s) for s in shape)
    wanted = f"an array of shape ({sizes})" if shape else "a number"
    try:
        array = scalar_array(name, given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error} (each edge needs {wanted})") from None
    found: tuple[int, ...] = array.shape
    if len(found) != 1 + len(shape) or not all(
        s in (-1, t) for s, t in zip((m, *shape), found, strict=True)
    ):
        raise ValueError(
            f"`{name}` must hold {wanted} for each of the {m} edges, got shape {array.shape}"
        )
    bad = np.flatnonzero([] if m == 0 else ~np.isfinite(array).reshape(m, -1).all(axis=1))
    if bad.size:
        e = int(bad[0])
        raise ValueError(f"`{name}` must be finite, got {array[e]} for {edge_name(graph, e)}")
    return array


def _attribute(
    graph: GraphArrays, value: str, name: str, missing: float | None
) -> list | np.ndarray:
    """Return the values of an edge attribute, or ``missing`` on edges without it."""
    m = len(graph.edges)
    try:
        given = graph.attribute(value)
    except KeyError:
        if (missing is None or (value != "weight" and graph.labels is None)) and m:
            raise ValueError(
                f"`{name}` = {value!r} names an edge attribute that no edge of the graph has: "
                f"pass the name of another attribute, or an array"
            ) from None
        return np.full(m, missing, np.float64)
    if not isinstance(given, list):
        return given
    absent = next((e for e, item in enumerate(given) if item is None), None)
    if absent is not None and missing is None:
        raise ValueError(f"{edge_name(graph, absent)} has no attribute {value!r} for `{name}`")
    return [missing if item is None else item for item in given]


def edge_name(graph: GraphArrays, e: int) -> str:
    """Return the name of an edge in error messages."""
    u, v = graph.edges[e].tolist()
    return f"edge {e} {(u, v) if graph.labels is None else (graph.labels[u], graph.labels[v])}"


def edge_weights(graph: GraphArrays, weight: EdgeValues | None, name: str = "weight") -> np.ndarray:
    """Check that weights are real and non-negative, and return them; None means unit weights."""
    if weight is None:
        return np.ones(len(graph.edges))
    values = edge_values(graph, weight, name, missing=1)
    if values.dtype.kind == "c":
        raise TypeError(f"`{name}` must be real, got dtype {values.dtype}")
    negative = np.flatnonzero(values < 0)
    if negative.size:
        e = int(negative[0])
        raise ValueError(
            f"`{name}` must not be negative, got {values[e]} for {edge_name(graph, e)}; "
            f"CellularSheaf.signed reads negative weights, unless edges have a sign"
        )
    return values


# -------------------------------------------------- tail and head maps, both of shape (m, d, d)


def constant_maps(
    graph: GraphArrays, dim: int, weight: EdgeValues | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return tail and head maps sqrt(w) I (``eq:app-scalar-restrictions``)."""
    d = whole_number("dim", dim, at_least=0)
    roots = np.sqrt(edge_weights(graph, weight))
    with memory_for_entries("dim", max(len(graph.edges), 1) * d * d, roots.itemsize):
        maps = roots[:, None, None] * np.eye(d, dtype=roots.dtype)
        return maps, maps.copy()


def connection_maps(
    graph: GraphArrays, transports: EdgeValues, weight: EdgeValues | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return tail maps sqrt(w) I, head maps sqrt(w) U_e (``eq:app-connection-restrictions``)."""
    U = edge_values(graph, transports, "transports", shape=(-1, -1))
    if U.shape[1] != U.shape[2]:
        raise ValueError(f"`transports` must be square, got shape {U.shape}")
    check_unitary(U, lambda e: f"`transports[{e}]` (edge {tuple(graph.edges[e].tolist())})")
    roots = np.sqrt(edge_weights(graph, weight)).astype(U.real.dtype)[:, None, None]
    return roots * np.eye(U.shape[1], dtype=U.dtype), roots * U


def diagonal_maps(
    graph: GraphArrays, tail: EdgeValues, head: EdgeValues
) -> tuple[np.ndarray, np.ndarray]:
    """Return diagonal tail and head maps with the given (m, d) diagonals."""
    tails = edge_values(graph, tail, "tail", shape=(-1,))
    heads = edge_values(graph, head, "head", shape=(-1,))
    if tails.shape != heads.shape:
        raise ValueError(
            f"`tail` and `head` must have the same shape, got {tails.shape} and {heads.shape}"
        )
    d = tails.shape[1]
    return (
        tails[:, :, None] * np.eye(d, dtype=tails.dtype),
        heads[:, :, None] * np.eye(d, dtype=heads.dtype),
    )


def signed_maps(
    graph: GraphArrays, sign: EdgeValues, weight: EdgeValues | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return tail maps sqrt(w) and head maps sign sqrt(w), both of shape (m, 1, 1)."""
    m, adjacency = len(graph.edges), graph.labels is None and _stores(graph, "weight")
    if isinstance(sign, str) and sign == "sign" and m and not _stores(graph, sign):
        source = "weight" if weight is None or adjacency else weight
        if isinstance(source, str) and not _stores(graph, source):
            raise ValueError(
                f"`sign` = 'sign' names an edge attribute that no edge of the graph has, and there "
                f"is no {source!r} whose sign could be used: pass an array of 1 and -1"
            )
        entries = edge_values(graph, source, "weight", missing=1)
        if entries.dtype.kind == "c":
            raise TypeError(f"`weight` must be real, got dtype {entries.dtype}")
        signs = np.where(entries < 0, -1.0, 1.0)
        if isinstance(weight, str) or source is weight:
            weight = np.abs(entries)
    else:
        signs = edge_values(graph, sign, "sign")
    bad = np.flatnonzero((np.abs(signs) != 1) | (signs.imag != 0))
    if bad.size:
        e = int(bad[0])
        raise ValueError(f"`sign` must be 1 or -1, got {signs[e]} for {edge_name(graph, e)}")
    roots = np.sqrt(edge_weights(graph, weight))
    return roots[:, None, None], (signs.real * roots)[:, None, None]


def _stores(graph: GraphArrays, name: str) -> bool:
    """Return whether a graph has an edge attribute; "weight" means the entries of an adjacency."""
    try:
        graph.attribute(name)
    except KeyError:
        return False
    return True


MapKind: TypeAlias = Literal["general", "orthogonal", "diagonal"]
"""Kinds of random maps."""


def random_maps(
    rng: np.random.Generator, rows: np.ndarray, cols: np.ndarray, kind: MapKind, dtype: np.dtype
) -> np.ndarray:
    """Return flat random maps of the given shapes; see :meth:`CellularSheaf.random`."""
    starts = offsets(rows * cols)
    if kind == "general":
        return _normal(rng, int(starts[-1]), dtype)
    data = np.zeros(int(starts[-1]), dtype)
    shapes, which = np.unique(np.stack([rows, cols], axis=1), axis=0, return_inverse=True)
    for s, (r, c) in enumerate(shapes.tolist()):  # loop over shapes, not edges
        here = np.flatnonzero(which.reshape(-1) == s)
        k = min(r, c)
        if kind == "diagonal":
            maps = np.zeros((len(here), r, c), dtype)
            maps[:, np.arange(k), np.arange(k)] = _normal(rng, (len(here), k), dtype)
        elif r >= c:
            maps = random_orthonormal(rng, len(here), r, c, dtype)
        else:
            maps = random_orthonormal(rng, len(here), c, r, dtype).swapaxes(1, 2)
        data[range_of_blocks(starts, here)] = maps.reshape(-1)
    return data


@single_threaded_blas()
def random_orthonormal(
    rng: np.random.Generator, count: int, rows: int, cols: int, dtype: np.dtype
) -> np.ndarray:
    """Return ``count`` uniformly distributed matrices with orthonormal columns, cols <= rows."""
    if count * cols == 0:
        return np.zeros((count, rows, cols), dtype)
    q, r = np.linalg.qr(_normal(rng, (count, rows, cols), dtype))
    diagonal = np.einsum("eii->ei", r)
    return q * (diagonal / np.abs(diagonal))[:, None, :]  # makes the distribution uniform


def _normal(rng: np.random.Generator, shape: int | tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    real = np.zeros(0, dtype).real.dtype
    values = rng.standard_normal(shape).astype(real)
    if dtype.kind == "c":
        values = (values + 1j * rng.standard_normal(shape).astype(real)).astype(dtype)
    return values
