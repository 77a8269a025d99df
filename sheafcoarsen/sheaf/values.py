"""User-supplied values on edges, and random maps."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import offsets, range_of_blocks, scalar_array, single_threaded_blas
from sheafcoarsen.sheaf.graphs import GraphArrays

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

    ``shape`` is that of one edge's value, where -1 means any size. Edges without the attribute have
    the value ``missing``; by default a missing value is an error.
    """
    m = len(graph.edges)
    given: object = value
    if isinstance(value, str):
        given = graph.attribute(value)
        if given is None:
            if (missing is None or (value != "weight" and graph.labels is None)) and m:
                raise ValueError(
                    f"`{name}` = {value!r} names an edge attribute that no edge of the graph has: "
                    f"pass the name of another attribute, or an array"
                )
            given = np.full(m, missing, np.float64)
        elif isinstance(given, list):
            absent = [e for e, item in enumerate(given) if item is None]
            if absent and missing is None:
                edge = edge_name(graph, absent[0])
                raise ValueError(f"{edge} has no attribute {value!r} for `{name}`")
            given = [missing if item is None else item for item in given]
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


def edge_name(graph: GraphArrays, e: int) -> str:
    """Return the name of an edge in error messages."""
    u, v = graph.edges[e].tolist()
    return f"edge {e} {(u, v) if graph.labels is None else (graph.labels[u], graph.labels[v])}"


def edge_weights(graph: GraphArrays, weight: EdgeValues | None) -> np.ndarray:
    """Check that weights are real and non-negative, and return them; None means unit weights."""
    if weight is None:
        return np.ones(len(graph.edges))
    values = edge_values(graph, weight, "weight", missing=1)
    if values.dtype.kind == "c":
        raise TypeError(f"`weight` must be real, got dtype {values.dtype}")
    negative = np.flatnonzero(values < 0)
    if negative.size:
        e = int(negative[0])
        raise ValueError(
            f"`weight` must not be negative, got {values[e]} for {edge_name(graph, e)}; "
            f"CellularSheaf.signed reads negative weights, or absolute ones if edges have a sign"
        )
    return values


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
